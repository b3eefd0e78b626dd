"""`ktls-offload measure` runs between two namespaces: table, document, live line, refusals."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from offload.cmd import settles, wait_until
from offload.host.local import LocalHost

CAN = os.geteuid() == 0 and LocalHost().run(["ip", "netns", "add", "ktls-probe2"], check=False).rc == 0
if CAN:
    LocalHost().run(["ip", "netns", "del", "ktls-probe2"])
pytestmark = pytest.mark.skipif(
    not (CAN and shutil.which("stunnel4")), reason="needs root, network namespaces and stunnel4"
)
ROOT = Path(__file__).parents[2]


class Bench:
    """Two namespaces; `call` runs the command in the first one."""

    def __init__(self, state: Path) -> None:
        tag = uuid.uuid4().hex[:6]
        self.dut, self.peer, self.state = f"kt-m{tag}", f"kt-n{tag}", state

    def start(self, *argv: str, tty: bool = False) -> subprocess.Popen[str]:
        """`ktls-offload measure ARGV`, on a terminal if asked for."""
        words = ["ip", "netns", "exec", self.dut, sys.executable, "-m", "offload", "measure", *argv]
        command = ["script", "-qec", " ".join(words), "/dev/null"] if tty else words
        env = {**os.environ, "KTLS_OFFLOAD_STATE": str(self.state)}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=env, cwd=ROOT, stdout=pipe, stderr=pipe, text=True)

    def call(self, *argv: str, tty: bool = False) -> subprocess.CompletedProcess[str]:
        """The same, to its end."""
        with self.start(*argv, tty=tty) as child:
            out, err = child.communicate(timeout=300)
            return subprocess.CompletedProcess(argv, child.returncode, out, err)

    def running(self) -> list[str]:
        """Processes in either namespace."""
        return [
            pid
            for name in (self.dut, self.peer)
            for pid in LocalHost().run(["ip", "netns", "pids", name]).text.split()
        ]

    def left(self) -> str:
        """The same with their words and states."""
        return LocalHost().run(["ps", "-o", "pid,ppid,stat,etimes,args", *self.running()], check=False).text


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The bench, gone after."""
    made = Bench(tmp_path_factory.mktemp("state"))

    def ip(*argv: str) -> None:
        LocalHost().run(["ip", *argv])

    with ExitStack() as undo:
        for name in (made.dut, made.peer):
            ip("netns", "add", name)
            undo.callback(ip, "netns", "del", name)
        ip("-n", made.dut, "link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns", made.peer)
        for name, dev, address in ((made.dut, "v0", "192.0.2.1"), (made.peer, "v1", "192.0.2.2")):
            ip("-n", name, "address", "add", f"{address}/24", "dev", dev)
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", dev, "up")
        yield made


def moved(found: dict[str, Any]) -> list[int]:
    """The bytes of each row."""
    return [row["samples"][0]["bytes"] for row in found["rows"]]


def test_document(bench: Bench) -> None:
    """User space and plain TCP are measured both ways, and the rest is skipped with reasons."""
    argv = ("--arm", "user,plain,hw", "--direction", "both", "--streams", "2", "--json")
    for seconds in ("0.3", "3", "20"):  # a busy machine moves less in a short time
        done = bench.call("v0", "--peer", f"netns:{bench.peer}", "--rounds", "1", *argv, "--seconds", seconds)
        if done.returncode == 0 and min(moved(json.loads(done.stdout))) > 1 << 20:
            break
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["method"], found["simulated"]) == ("time", False)
    assert [row["arm"] for row in found["rows"]] == ["user", "plain"]
    assert min(moved(found)) > 1 << 20, found["rows"]
    assert "no profile matches" in found["skipped"][0]["reason"]
    assert any("both ends are on this host" in warning for warning in found["warnings"])
    assert {"kernel", "nic", "governor", "irqs", "tools"} <= found["about"].keys()
    wait_until(lambda: not bench.running(), 30, "a killed program to end")


def test_table_and_live_line(bench: Bench) -> None:
    """A terminal shows a live line while it runs, and the table at the end."""
    live = "cores  hw 0 sw 0  (1/2: stream, tx,"
    argv = ("v0", "--peer", f"netns:{bench.peer}", "--arm", "plain", "--rounds", "1", "--seconds")
    for seconds in ("2.5", "10", "30"):  # a busy machine may have no time for the line in a short one
        done = bench.call(*argv, seconds, tty=True)
        assert done.returncode == 0, done.stdout
        if live in done.stdout:
            break
    assert " of " in done.stdout and live in done.stdout
    assert "plain TCP" in done.stdout and "cores/100G" in done.stdout


def test_interrupted(bench: Bench) -> None:
    """A measurement that is ended leaves no program behind, and exits as an interrupted one."""
    with bench.start("v0", "--peer", f"netns:{bench.peer}", "--arm", "plain", "--seconds", "600") as child:
        wait_until(lambda: len(bench.running()) >= 3, 60, "both pumps")
        child.terminate()
        _, err = child.communicate(timeout=120)
    assert child.returncode == 130 and "interrupted" in err, err
    assert settles(lambda: not bench.running(), 120), bench.left()


@pytest.mark.parametrize(
    ("argv", "rc", "why"),
    [
        (["v0"], 2, "the peer of v0 is unknown"),
        (["v9", "--peer", "192.0.2.2"], 3, "no interface 'v9'"),
        (["v0", "--peer", "192.0.2.2"], 5, "this needs both ends"),
        (["lo", "--peer", "192.0.2.2"], 5, "stream user"),
        (["v0", "--peer", "nowhere"], 2, "an IPv4 address, or netns:NAME"),
        (["v0", "--arm", "hx"], 2, "--arm: no 'hx'"),
    ],
)
def test_refusals(bench: Bench, argv: list[str], rc: int, why: str) -> None:
    """What cannot be measured is one sentence and its exit code, no traceback."""
    done = bench.call(*argv)
    assert done.returncode == rc and why in done.stderr and "Traceback" not in done.stderr, done.stderr
