"""A bench of hosts behind sshd carries the suite's traffic, and is left as it was found."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from offload.card.profile import Cell, find
from offload.errors import ConfigError, Refused, RigError
from offload.host.base import Side
from offload.host.local import LocalHost
from offload.suite.bench.lab import bench, programs, settings
from offload.suite.bench.lab.bench import RealLab
from offload.suite.bench.lab.file import load
from offload.suite.traffic import openssl
from offload.suite.traffic.drive import send, sending, take
from tests.lib.flow.flow import Traffic
from tests.lib.rig.rack import Rack, rack
from tests.lib.rig.rig import Rig
from tests.lib.rig.sshd import missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
CELL = Cell("tx", "1.2", "aes-gcm-256")
GRO = "generic-receive-offload"  # a switch that a veth has too, which TLS offload is not


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    """Two hosts."""
    with rack(tmp_path_factory.mktemp("rack")) as made:
        yield made


@pytest.fixture(scope="module", autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A journal of its own, in which a switch of a veth is noted."""
    with pytest.MonkeyPatch.context() as patch:
        place = tmp_path_factory.mktemp("state")
        patch.setenv("KTLS_OFFLOAD_STATE", str(place))
        patch.setattr(settings, "FEATURES", {"rx": GRO})
        yield place


@pytest.fixture(scope="module")
def testbed(hosts: Rack, state: Path) -> Iterator[RealLab]:
    """The bench, open."""
    with RealLab.open(hosts.file, lambda line: None) as made:
        yield made


def gro(side: Side) -> bool:
    """Whether the switch is on."""
    return settings.look(side.host, side.dev).features[GRO].active


def turn(side: Side) -> None:
    """Turn the switch."""
    before = gro(side)
    side.host.run(["ethtool", "-K", side.dev, GRO, "off" if before else "on"])
    assert gro(side) != before


def test_traffic_of_the_suite(testbed: RealLab) -> None:
    """OpenSSL on one host takes from OpenSSL on the other what was sent, intact, both ways."""
    with ExitStack() as undo:
        rig = Rig(testbed, "real", find("connectx-6-dx"), undo)
        assert testbed.bench.dut.host.name == "dut" and not testbed.bench.simulated and testbed.rig["kernel"]
        plan, traffic = sending("over-ssh", 1_000_000), Traffic(rig)
        flow = traffic.between_openssl(CELL, plan, near=False, far=False)
        assert flow.far.took(plan), flow
        flow = traffic.between_openssl(CELL._replace(direction="rx"), plan, near=False, far=False)
        assert flow.dut.took(plan), flow


def test_stunnel_on_the_peer(testbed: RealLab) -> None:
    """The reference peer runs on its host and gives out what OpenSSL sent from the other."""
    with ExitStack() as undo:
        traffic, plan = (
            Traffic(Rig(testbed, "real", find("connectx-6-dx"), undo)),
            sending("stunnel", 300_000),
        )
        with traffic.behind_stunnel(take()) as (port, far):
            at = traffic.dut.at
            env = openssl.environment(testbed.bench.dut.host, at, ktls=False)
            argv = openssl.client(testbed.bench.peer.v4, port, at, version="1.2", cipher="aes-gcm-256")
            traffic.dut.pump.spawn(argv, send(plan), env=env).report(120)
            assert far.report(120).took(plan)


def test_a_mark_in_the_kernel_log(testbed: RealLab) -> None:
    """A warning after the mark is seen with its host's name, and what was before it is not."""
    if testbed.rig.get("log"):
        pytest.skip("the kernel log cannot be read here")
    say = ["tee", "/dev/kmsg"]
    testbed.root.run(say, input=b"<6>ktls-offload: a test says WARNING: before\n")
    mark = testbed.console_mark()
    assert testbed.console_faults(mark) == []
    testbed.root.run(say, input=b"<6>ktls-offload: a test says WARNING: after\n")
    assert "dut: ktls-offload: a test says WARNING: after" in testbed.console_faults(mark)


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("192.0.2.1/24", "192.0.2.9", "wrong.yaml:3: targets.dut.resources.OffloadNic.v4: 192.0.2.9 is not"),
        ("cable0", "cable7", "targets.dut.resources.OffloadNic.ifname: no interface 'cable7'"),
    ],
)
def test_a_file_that_is_not_so(testbed: RealLab, hosts: Rack, old: str, new: str, words: str) -> None:
    """An address or interface that the host has not is named by file, line and key."""
    wrong = hosts.file.with_name("wrong.yaml")
    wrong.write_text(hosts.file.read_text().replace(old, new, 1))
    file = load(wrong)
    with pytest.raises(ConfigError) as caught:
        bench._side(testbed.bench.dut.host, file, file.dut)
    assert words in str(caught.value)


def test_programs_are_sent_and_removed(
    testbed: RealLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host gets the programs that it lacks, keeps those that it has, and is left without."""
    host, folder = testbed.bench.dut.host, tmp_path / "made" / "build"
    with programs.provided(host) as sent:
        assert sent == []  # the same machine: they lie there
    folder.mkdir(parents=True)
    tool = folder / "tool"
    tool.write_bytes(b"#!/bin/sh\necho ours\n")
    tool.chmod(0o755)
    archive, want = programs._tar([str(tool)]), programs.built(folder)
    tool.write_bytes(b"#!/bin/sh\necho theirs\n")
    monkeypatch.setattr(programs, "built", lambda folder: want)
    monkeypatch.setattr(programs, "_tar", lambda paths: archive)
    with pytest.raises(RigError, match="dut has another"), programs.provided(host, folder):
        pass
    tool.unlink()
    folder.rmdir()
    with programs.provided(host, folder) as sent:
        assert host.run([str(tool)]).text == "ours\n" and sent == [str(tool)]
    assert not folder.exists()


def test_a_bench_in_use_is_left_alone(testbed: RealLab, hosts: Rack) -> None:
    """During a run, another one and `lab restore` are refused, and undo nothing that the run has set."""
    side, found = testbed.bench.dut, gro(testbed.bench.dut)
    turn(side)
    for other in (RealLab.open, bench.restore):
        with pytest.raises(Refused, match=f"a run is using .* of {hosts.file}"):
            other(testbed.file if other is bench.restore else hosts.file, lambda line: None)  # type: ignore[arg-type]
        assert gro(side) != found
    turn(side)


def test_settings_survive_what_happens_to_a_run(testbed: RealLab, hosts: Rack, state: Path) -> None:
    """A run puts back what it changed: over a new connection if its own was lost in mid-test,
    and if it was killed, the next run does so first."""
    before = [gro(side) for side in (testbed.bench.dut, testbed.bench.peer)]
    turn(testbed.bench.dut)
    turn(testbed.bench.peer)
    testbed.bench.dut.host.run(["ip", "link", "set", "cable0", "mtu", "1400"])
    killed = settings.journal_of(testbed.file.dut).file.read_bytes()
    for pid in sessions(hosts.dut.process.pid):
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(RigError, match="the connection to dut .* is gone"):
        testbed.root.run(["sleep", "20"])
    testbed.stop()
    assert now(hosts) == before and not settings.journal_of(testbed.file.dut).entries()
    assert " mtu 1500 " in LocalHost(hosts.spaces[0]).run(["ip", "link", "show", "cable0"]).text
    LocalHost(hosts.spaces[0]).run(["ethtool", "-K", "cable0", GRO, "off" if before[0] else "on"])
    settings.journal_of(testbed.file.dut).file.write_bytes(killed)
    said: list[str] = []
    with RealLab.open(hosts.file, said.append):
        assert now(hosts) == before
    assert any("of an unfinished run were put back" in line for line in said)


def now(hosts: Rack) -> list[bool]:
    """The switch of both ports, looked at from here."""
    ends = zip(hosts.spaces, ("cable0", "cable1"), strict=True)
    return [settings.look(LocalHost(space), dev).features[GRO].active for space, dev in ends]


def sessions(server: int) -> list[int]:
    """The processes that serve an sshd's connections."""
    return [int(pid) for pid in Path(f"/proc/{server}/task/{server}/children").read_text().split()]


def test_a_lost_connection_is_no_dead_host(hosts: Rack, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that runs on behind a lost connection is told from one that was booted anew, and
    from one of which nothing is known."""
    with RealLab.open(hosts.file, lambda line: None) as lab:
        for pid in sessions(hosts.dut.process.pid):
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(RigError, match="the connection to dut .* is gone"):
            lab.root.run(["true"])
        assert lab.fate() == ""
        lab._logs.boots["peer"] = b"another\n"
        assert lab.fate() == f"{lab.file.peer.place} rebooted during the test"
        with monkeypatch.context() as out_of_reach:
            out_of_reach.setattr(bench, "RETURN", 1.0)
            out_of_reach.setattr(bench, "Machine", lambda login: gone(login.name))
            assert "is unknown: cannot reach dut" in lab.fate()


def gone(name: str) -> None:
    """No such host any more."""
    raise RigError(f"cannot reach {name}", "is it up?")
