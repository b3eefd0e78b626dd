"""A job as netdev CI (NIPA) runs it: packaging/kselftest/ktls_offload.sh reads net.config and prints KTAP."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from offload.errors import ConfigError
from offload.paths import ROOT
from offload.suite.bench.lab import netconfig
from offload.suite.certify.verbs import EXIT
from tests.unit.suite.report import report_whole as made
from tests.unit.suite.report.forms.test_report_ktap import Result, netdev_ci, whole

PROGRAM = ROOT / "packaging/kselftest/ktls_offload.sh"
# as the kernel's tools/testing/selftests/drivers/net/README.rst has it, and the profile
CONFIG = """\
NETIF=eth1
LOCAL_V4=192.0.2.1
LOCAL_V6=fd00:2::1
REMOTE_V4=192.0.2.2
REMOTE_V6=fd00:2::2
REMOTE_TYPE=netns
REMOTE_ARGS=peer
OFFLOAD_PROFILE=connectx-6-dx
"""
# in place of the command: notes how it was called, leaves a recorded run where it was told to
COMMAND = """\
#!/bin/sh
echo "$@" > "{folder}/called"
while [ $# -gt 0 ]; do [ "$1" = --out ] && out=$2; shift; done
echo '[1/2] ok 1 of a test, on standard error' >&2
[ -d "{recorded}" ] && cp -r "{recorded}" "$out"
exit {code}
"""


class Job:
    """The folder drivers/net/hw of a kernel tree, with our program in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.hw = folder, folder / "drivers/net/hw"
        self.hw.mkdir(parents=True)
        shutil.copy(PROGRAM, self.hw)

    def runs(self, code: int, recorded: str, *words: str, **env: str) -> tuple[str, int]:
        """Run it as the selftests' runner does: each line behind "# ", and then the result of the whole."""
        command = self.folder / "ktls-offload"
        command.write_text(COMMAND.format(folder=self.folder, recorded=self.folder / recorded, code=code))
        command.chmod(0o755)
        clean = {"PATH": f"{self.folder}:{os.environ['PATH']}", **env}
        argv, title = [f"./{PROGRAM.name}", *words], f"selftests: drivers/net/hw: {PROGRAM.name}"
        done = subprocess.run(
            argv,
            cwd=self.hw,
            env=clean,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=60,
        )
        said = "".join(f"# {line}\n" for line in done.stdout.decode().splitlines())
        end = {0: f"ok 1 {title}", 4: f"ok 1 {title} # SKIP"}
        return f"TAP version 13\n1..1\n# {title}\n{said}{end.get(done.returncode, f'not ok 1 {title}')}\n", (
            done.returncode
        )

    def called(self) -> list[str]:
        return (self.folder / "called").read_text().split()


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A kernel tree's folder without a net.config."""
    return Job(tmp_path)


@pytest.mark.parametrize("worst", ["pass", "fail", "skip"])
def test_net_config_in_and_ktap_out(job: Job, worst: str) -> None:
    """A job of netdev CI shows each promise and test of the run, and passes only if the run certifies."""
    (job.hw / "net.config").write_text(CONFIG)
    port = netconfig.from_file(job.hw / "net.config").dut.port
    assert port and port.profile == "connectx-6-dx"
    (job.folder / "recorded").mkdir()
    made.folder(job.folder / "recorded", worst=worst)
    tree = made.document(worst=worst)
    out, code = job.runs(EXIT[tree["verdict"]], "recorded", "--retry", KTLS_OFFLOAD_OUT=f"{job.folder}/run")
    assert job.called() == f"certify --lab {job.hw}/net.config --out {job.folder}/run --retry".split()
    found = netdev_ci(out)
    printed = [line for line in out.splitlines()[3:] if "standard error" not in line]
    assert printed[0] == "# TAP version 13", "what the job prints begins with the version"
    asked = sum(promise["state"] != "not promised" for promise in tree["promises"])
    assert len(found) == asked + 1 + len(tree["tests"])
    assert found[asked] == Result("verdict-certified", "pass" if worst == "pass" else "fail", None), found[
        asked
    ]
    assert whole(out, code) == ("pass" if worst == "pass" else "fail")


def test_environment_is_a_bench(job: Job) -> None:
    """A runner that sets NETIF and the others, and writes no file, is served as well."""
    job.runs(21, "", NETIF="eth1")
    assert job.called()[:3] == ["certify", "--lab", "env"]


def test_nothing_to_test_is_skipped(job: Job) -> None:
    """A machine without a bench skips the job, as upstream's own tests do, and starts nothing."""
    out, code = job.runs(0, "")
    assert (code, whole(out, code)) == (4, "skip") and "no net.config" in out
    assert not (job.folder / "called").exists()


@pytest.mark.parametrize("code", [2, 4, 7])
def test_run_without_a_report_fails(job: Job, code: int) -> None:
    """A wrong net.config or missing rights fail the job; certify's 4 would be a skip to the runner."""
    (job.hw / "net.config").write_text(CONFIG.replace("LOCAL_V6=fd00:2::1\n", ""))
    with pytest.raises(ConfigError, match="LOCAL_V6 missing"):
        netconfig.from_file(job.hw / "net.config")
    out, ended = job.runs(code, "")
    assert ended == 1 and whole(out, ended) == "fail" and f"certify ended with {code}" in out
