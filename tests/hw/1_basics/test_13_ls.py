"""This NIC's connections are listed as they are: taken by it, given back by it, led past it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from offload.card.profile import Profile
from offload.connections.look import Inspector, Line
from offload.doctor.examine import Doctor
from offload.doctor.library import Trial
from offload.doctor.process.judge import ask
from offload.host.base import Bench
from tests.lib.impair.link import bounce
from tests.lib.impair.paths import second_path
from tests.lib.life.life import KIB, Life, Pair
from tests.lib.rig.rig import Rig
from tests.lib.rig.switch import Switch

pytestmark = pytest.mark.requires("tls")
SIZE = 96 * KIB


def listed(rig: Rig, pairs: list[Pair]) -> list[Line]:
    """The lines of these connections on the DUT, as `ktls-offload ls --here` has them."""
    looked = Inspector(rig.bench.dut.host, everywhere=False).look()
    found = {line.socket.local_port: line for line in looked.lines}
    assert {pair.port for pair in pairs} <= set(found), f"only {sorted(found)} of {[p.port for p in pairs]}"
    return [found[pair.port] for pair in pairs]


def by_ss(rig: Rig, pair: Pair) -> dict[str, str]:
    """Return what `ss` says of a connection: version, cipher, and who does each direction."""
    said = rig.bench.dut.host.run(["ss", "-Htien", f"sport = :{pair.port}"]).text
    found = re.search(r"tcp-ulp-tls version: (\S+) cipher: (\S+) rxconf: (\w+) txconf: (\w+)", said)
    assert found, f"ss does not call it kernel TLS: {said}"
    return dict(zip(("version", "cipher", "rx", "tx"), found.groups(), strict=True))


@pytest.mark.once
@pytest.mark.promise("tools.honest")
def test_ls_lists_offloaded_connections(
    life: Life, rig: Rig, offload: Switch, profile: Profile, evidence: dict[str, Any]
) -> None:
    """This NIC is shown with the connections it has taken, their process and bytes, in agreement with ss."""
    offload.on()
    pairs, before = life.open(2), rig.counters()
    pairs[0].moves("listed", SIZE)
    evidence["counters"] = {n: v for n, v in (rig.counters() - before).nonzero().items() if "tls" in n}
    lines = listed(rig, pairs)
    for pair, line in zip(pairs, lines, strict=True):
        one, ss = line.socket, by_ss(rig, pair)
        assert (one.version, one.cipher, one.rx, one.tx) == (ss["version"], ss["cipher"], ss["rx"], ss["tx"])
        for direction in ("tx", "rx"):
            wanted = "hw" if direction in profile.directions() else "sw"
            assert line.word(direction) == wanted, f"{direction}: {line.word(direction)} {line.doubts}"
        assert (one.device, one.state) == (rig.bench.dut.dev, "established")
        assert one.owner is not None
        assert one.owner.pid == life.near.pid
    for count in (lines[0].socket.sent, lines[0].socket.received):
        assert count is not None
        assert SIZE < count < 1.1 * SIZE, f"{count} bytes with records for {SIZE} of payload"
    assert evidence["counters"].get("tx_tls_encrypted_bytes", 0) >= SIZE * 0.9
    assert lines[1].socket.sent == 0
    life.close(pairs)


@pytest.mark.once
@pytest.mark.promise("tools.honest")
def test_ls_sees_a_connection_lost_by_link_down(
    life: Life, rig: Rig, offload: Switch, profile: Profile, evidence: dict[str, Any]
) -> None:
    """This NIC lost a connection when its link went down, and `ls` says so though the kernel says hw."""
    offload.on()
    pair = life.open()[0]
    pair.sends("before", SIZE)
    assert listed(rig, [pair])[0].word("tx") == "hw"
    bounce(rig.bench.dut)
    old = listed(rig, [pair])[0]
    pair.sends("after", SIZE)
    counts = rig.counters()
    evidence["inet_diag_after_link_down"], evidence["ls_after_link_down"] = old.socket.tx, old.word("tx")
    assert old.socket.tx == by_ss(rig, pair)["tx"]
    if (
        old.socket.tx == "hw"
        and None not in (counts.get("tx_tls_ctx"), counts.get("tx_tls_del"))
        and not {"tx_tls_ctx", "tx_tls_del"} & {*profile.counters.absent("tx")}
    ):
        assert old.word("tx") == "hw stale", old.doubts
        assert "holds 0 of the 1 connections" in old.doubts["tx"][1]
        reported = (
            Doctor(rig.bench.dut.host, trial=Trial(why="not asked")).diagnose([rig.bench.dut.dev]).devices[0]
        )
        assert "D702" in {finding.code for finding in reported.findings}, reported.fine
        assert not [words for words in reported.fine if "on a card now" in words], reported.fine
    life.close([pair])


@pytest.mark.once
@pytest.mark.promise("tools.honest")
def test_ls_sees_a_connection_routed_elsewhere(life: Life, rig: Rig, bench: Bench, offload: Switch) -> None:
    """This NIC has a connection whose route now leads elsewhere: stale as long as it does, and not after."""
    offload.on()
    pair = life.open()[0]
    pair.sends("here", SIZE)
    with second_path(bench) as path:
        path.take()
        past = listed(rig, [pair])[0]
        path.leave()
    back = listed(rig, [pair])[0]
    pair.sends("here again", SIZE)
    assert past.socket.device == path.dev
    assert past.word("tx") == "hw stale", past.doubts
    assert path.dev in past.doubts["tx"][1]
    assert (back.socket.device, back.word("tx")) == (bench.dut.dev, "hw"), back.doubts
    life.close([pair])


@pytest.mark.once
@pytest.mark.promise("tools.honest")
def test_is_not_blamed_for_what_began_in_software(
    life: Life, rig: Rig, offload: Switch, profile: Profile, evidence: dict[str, Any]
) -> None:
    """This NIC is ready, and a connection that began while it was off is named so; a new one is on it."""
    offload.on()
    offload.set(tx=False)
    early = life.open()[0]
    off = ask(rig.bench.dut.host, life.near.pid)
    assert [kind.states["tx"] for kind in off.connections] == [("off", "D301")]
    offload.set(tx=True)
    late = life.open()[0]
    reported = ask(rig.bench.dut.host, life.near.pid)
    states = sorted(kind.states["tx"] for kind in reported.connections)
    evidence["doctor"] = states
    assert states == [("off", "D912"), ("ready", "")], [f.what for f in reported.findings]
    rx = {kind.states["rx"] for kind in reported.connections}
    assert rx == {("ready", "") if "rx" in profile.directions() else ("not promised", "D211")}
    life.close([early, late])
