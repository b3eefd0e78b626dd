"""`certify --lab`: which file, what it excludes, and what a bench that cannot be used comes to."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from offload.errors import ConfigError, OffloadError, Refused, RigError
from offload.suite.certify import plan as certify_plan
from offload.suite.certify import run, tests, verbs
from offload.suite.certify.request import Request, read
from tests.lib.rig.rack import Rack, rack
from tests.lib.rig.sshd import keys, missing

EXAMPLE = str(Path(__file__).parents[2] / "ci/lab.yaml")
SUITE = """
import os, pathlib, signal
import pytest
from offload.suite.bench.lab.bench import RealLab
from offload.suite.report.record.plugin import set_rig

@pytest.fixture(scope="session")
def lab(pytestconfig):
    with RealLab.open(pathlib.Path(pytestconfig.getoption("--lab")), lambda line: None) as made:
        set_rig(pytestconfig, made.rig, profile="connectx-6-dx", kernel=made.rig["kernel"], simulated=False)
        yield made

def test_measured(lab, evidence):
    evidence["bytes"] = 5
    assert lab.bench.dut.host.run(["cat", "/sys/class/net/cable0/operstate"]).text == "up\\n"

def test_loses_the_connection(lab):
    for pid in pathlib.Path(f"/proc/SERVER/task/SERVER/children").read_text().split():
        os.kill(int(pid), signal.SIGKILL)
    lab.bench.dut.host.run(["sleep", "30"])
"""
OPTIONS = """
pytest_plugins = ["tests.lib.rig.attempts"]
def pytest_addoption(parser):
    for name in ("--profile", "--lab"):
        parser.addoption(name)
"""


def typed(*words: str) -> argparse.Namespace:
    """What somebody typed."""
    parser = argparse.ArgumentParser()
    verbs.add_parser(parser.add_subparsers())
    return parser.parse_args(["certify", *words])


def asked(*words: str) -> Request:
    """What somebody asked for."""
    return read(typed(*words))


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal of its own."""
    monkeypatch.setenv("KTLS_OFFLOAD_STATE", str(tmp_path / "state"))


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    """Two hosts behind sshd."""
    if missing():
        pytest.skip(missing())
    with rack(tmp_path_factory.mktemp("rack")) as made:
        yield made


def test_the_file_says_what_is_certified(tmp_path: Path) -> None:
    """Profile and bench come from the lab file, and pytest is told its absolute path."""
    plan = certify_plan.plan(asked("--lab", EXAMPLE, "--out", str(tmp_path / "run"), "--retry"))
    words = tests.command(plan, "")
    assert (plan.kernel, plan.profile.id) == ("", "connectx-6-dx")
    assert words[words.index("--lab") + 1] == EXAMPLE
    assert "--retry" in words and "--attach" not in words and "--kernel" not in words
    attempts = words[words.index("--attempts") + 1]
    assert attempts.startswith(str(tmp_path / "state")) and "dut1.example" in attempts


def test_the_file_names_a_draft(tmp_path: Path) -> None:
    """A card that nobody has described is judged by the draft that its lab file names."""
    draft = (
        (Path(EXAMPLE).parents[1] / "nic-profiles/nicsim.yaml")
        .read_text()
        .replace("id: nicsim", "id: my-card")
    )
    (tmp_path / "my-card.yaml").write_text(draft)
    (tmp_path / "lab.yaml").write_text(Path(EXAMPLE).read_text().replace("connectx-6-dx", "my-card.yaml"))
    plan = certify_plan.plan(asked("--lab", str(tmp_path / "lab.yaml"), "--out", str(tmp_path / "run")))
    words = tests.command(plan, "")
    assert plan.profile.id == "my-card"
    assert words[words.index("--profile") + 1] == str(tmp_path / "my-card.yaml")


@pytest.mark.parametrize("option", ["attach", "replay", "nicsim-patch", "kernel"])
def test_what_real_hosts_exclude(option: str) -> None:
    """Options that make a lab are refused before anybody is asked."""
    with pytest.raises(ConfigError, match=f"--lab and --{option} exclude each other"):
        asked("--lab", EXAMPLE, f"--{option}", "x")
    with pytest.raises(ConfigError, match="--retry needs --lab"):
        asked("--retry")


def test_another_card_than_the_file_has(tmp_path: Path) -> None:
    """--nic does not overrule the lab file; a file without a profile wants it."""
    with pytest.raises(ConfigError, match="--nic chelsio-t6: .*lab.yaml has connectx-6-dx"):
        certify_plan.plan(asked("--lab", EXAMPLE, "--nic", "chelsio-t6"))
    names = (
        "NETIF=eth0 LOCAL_V4=192.0.2.1 LOCAL_V6=fd00::1 REMOTE_V4=192.0.2.2 REMOTE_V6=fd00::2 "
        "REMOTE_TYPE=netns REMOTE_ARGS=peer"
    )
    (tmp_path / "net.config").write_text(names.replace(" ", "\n"))
    with pytest.raises(ConfigError, match="names no profile for the DUT"):
        certify_plan.plan(asked("--lab", str(tmp_path / "net.config")))


@pytest.mark.parametrize(
    ("old", "new", "kind", "words"),
    [
        ("cable0", "cable7", ConfigError, r"lab.yaml:\d+: targets.dut.resources.OffloadNic.ifname"),
        (
            "192.0.2.1/24",
            "192.0.2/24",
            ConfigError,
            r"lab.yaml:8: targets.dut.resources.OffloadNic.v4: .192.0.2/24",
        ),
        ("ADDRESS", "127.0.0.99", RigError, r"cannot reach dut \(root@127.0.0.99"),
        ("HOSTKEY", "", Refused, r"the host key of dut .* is not the one in .*lab.yaml"),
    ],
)
def test_a_bench_that_cannot_be_used(
    hosts: Rack, tmp_path: Path, old: str, new: str, kind: type[OffloadError], words: str
) -> None:
    """A wrong file, an unreachable host and a changed host key are one sentence each."""
    text = hosts.file.read_text().replace("keyfile: ", f"keyfile: {hosts.file.parent}/")
    named = {
        "ADDRESS": (hosts.dut.login.address, new),
        "HOSTKEY": (hosts.dut.login.hostkeys[0], keys(tmp_path, "other")),
    }
    (tmp_path / "lab.yaml").write_text(text.replace(*named.get(old, (old, new)), 1))
    with pytest.raises(kind, match=words) as wrong:
        verbs.main(typed("--lab", str(tmp_path / "lab.yaml"), "--out", str(tmp_path / "run")))
    assert "\n" not in str(wrong.value.args[0])
    if (tmp_path / "run").exists():  # the file was good: the report says why there is no verdict
        assert json.loads((tmp_path / "run/report.json").read_text())["verdict"] == "void"


def test_connection_lost_in_mid_test(hosts: Rack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that goes away under a test costs no result before it."""
    tree = tmp_path / "tree"
    for name in ("native/nicsim", "native/ktls-handoff", "tests/hw"):
        (tree / name).mkdir(parents=True)
    (tree / "native/ktls-handoff/Makefile").write_text("all:\n\t@true\n")
    (tree / "tests/hw/test_it.py").write_text(SUITE.replace("SERVER", str(hosts.dut.process.pid)))
    (tree / "tests/hw/conftest.py").write_text(OPTIONS)
    (tree / "pytest.ini").write_text("[pytest]\n")
    for module in (certify_plan, run, tests):
        monkeypatch.setattr(module, "ROOT", tree)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    out = tmp_path / "run"
    assert verbs.main(typed("--lab", str(hosts.file), "--out", str(out))) == 22
    report = json.loads((out / "report.json").read_text())
    found = {test["id"].rpartition("::")[2]: test for test in report["tests"]}
    assert found["test_measured"]["outcome"] == "pass" and found["test_measured"]["evidence"]["bytes"] == 5
    assert "the connection to dut" in found["test_loses_the_connection"]["reason"]
    assert report["simulated"] is False and report["rig"]["transport"] == "ssh"
