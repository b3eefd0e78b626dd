"""This NIC keeps its promises for every queue, context and frame, on short and on long connections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from offload.card.counters import Delta
from offload.card.profile import Cell, Profile
from offload.cmd import settles
from offload.host.base import Bench, Host
from offload.suite.bench.cards import knobs
from offload.suite.traffic.drive import Sending, send, sending, take
from tests.lib.flow import proof
from tests.lib.flow.flow import Several, Traffic
from tests.lib.impair import tamper
from tests.lib.life.life import KIB, Life
from tests.lib.life.many import at_once, opened
from tests.lib.rig.rig import Rig
from tests.lib.rig.switch import Switch
from tests.lib.wire import frames
from tests.lib.wire.wire import watched

TX, RX = Cell("tx", "1.2", "aes-gcm-128"), Cell("rx", "1.2", "aes-gcm-128")
MIB = 1024 * KIB
SOME, LONG = 256 * KIB, 8 * MIB
MANY, EACH = 40, 16 * KIB
ROOM, BEYOND = 6, 4  # connections that a small table has room for, and how many more are opened
FULL = "hw_tls_no_space"  # nfp counts what its full table refused
BYTES = {"tx": "tx_tls_encrypted_bytes", "rx": "rx_tls_decrypted_bytes"}
# what a card may count above what TCP carries: mlx5 counts received frames with their headers
AROUND = 1.25


def refusals(host: Host) -> int:
    """How many TCP segments with a wrong checksum the host's kernel has met."""
    text = host.run(["cat", "/proc/net/snmp"]).text
    names, values = (line.split() for line in text.splitlines() if line.startswith("Tcp:"))
    return int(dict(zip(names, values, strict=True))["InCsumErrors"])


@pytest.mark.promise("wire.frames")
@pytest.mark.requires("tls", "wire", "wire-tap")
def test_sends_each_frame_once(
    life: Life, bench: Bench, rig: Rig, offload: Switch, evidence: dict[str, Any], tmp_path: Path
) -> None:
    """This NIC puts on the wire what TCP sends, each byte of it, once, in order, with right checksums."""
    offload.on()
    assert bench.wire is not None
    peer = bench.peer.host
    before = refusals(peer)
    with watched(rig, {"wire": (bench.wire, bench.wire_ports[0])}, tmp_path), opened(life) as (pair,):
        pair.sends("frames", 2 * SOME)
        tcp = frames.tcp_counters(bench.dut.host, pair.port)
    refused = refusals(peer) - before
    capture = (tmp_path / "wire.pcapng").read_bytes()
    seen = [frame for frame in frames.frames(capture) if frame.source == pair.port]
    evidence.update(bytes=2 * SOME, tcp=tcp, frames=len(seen), checksum_errors_at_peer=refused)
    frames.left_once(seen, tcp["bytes_sent"])
    assert refused == 0, f"the peer met {refused} segments with a wrong TCP checksum"


@pytest.mark.once
@pytest.mark.promise("counters.move-when-on")
@pytest.mark.requires("tls")
def test_counts_each_byte_once(
    life: Life, bench: Bench, rig: Rig, offload: Switch, profile: Profile, evidence: dict[str, Any]
) -> None:
    """This NIC counts no more bytes as offloaded than TCP has carried."""
    offload.on()
    before = rig.counters()
    with opened(life) as (pair,):
        pair.moves("once", SOME)
        tcp, moved = frames.tcp_counters(bench.dut.host, pair.port), rig.counters() - before
    carried = {"tx": tcp["bytes_sent"], "rx": tcp["bytes_received"]}
    counted = {d: moved[BYTES[d]] for d in profile.directions()}
    evidence.update(bytes=2 * SOME, tcp=tcp, counted=counted)
    assert all(n > 0 for n in counted.values()), f"nothing was offloaded: {counted}"
    more = {d: n for d, n in counted.items() if n > AROUND * carried[d]}
    assert not more, f"the card counted {more} bytes as offloaded, TCP carried {carried}"


@pytest.mark.promise("payload.many")
@pytest.mark.requires("tls")
def test_keeps_many_connections_right(
    life: Life, bench: Bench, rig: Rig, offload: Switch, profile: Profile, evidence: dict[str, Any]
) -> None:
    """This NIC keeps every byte of many connections right that live and move payload at once, both ways."""
    offload.on()
    before = rig.counters()
    with opened(life, MANY // 2, (bench.peer.v4, bench.peer.v6)) as pairs:
        # twice: a card whose cache of contexts is too small is wrong once a connection comes back to it
        wrong = at_once(pairs, "many", EACH) or at_once(pairs, "again", EACH)
        moved = rig.counters() - before
    taken = {d: moved[f"Tls{d.title()}Device"] for d in profile.directions()}
    evidence.update(bytes=4 * MANY * EACH, connections=MANY, taken=taken, wrong=wrong)
    assert not wrong, (
        f"at least {len(wrong)} of {MANY} connections are wrong: {list(wrong)}: {next(iter(wrong.values()))}"
    )
    assert set(taken.values()) == {MANY}, f"of {MANY} connections it took {taken}"
    did = {d: moved[BYTES[d]] for d in taken}
    assert min(did.values()) >= 2 * MANY * EACH, f"of {2 * MANY * EACH} bytes each way it did {did}"


@contextmanager
def room_for(rig: Rig, contexts: int) -> Iterator[None]:
    """Let the DUT's simulated card have room for this many contexts; the next gets ENOSPC, as from nfp."""
    knobs.turn(rig.lab.root, f"0/ctx_limit={contexts}")
    try:
        yield
    finally:
        knobs.turn(rig.lab.root, "0/ctx_limit=0")


def by_whom(moved: Delta, direction: str) -> tuple[int, int]:
    """How many connections the card took in this direction, and how many the kernel's software did."""
    name = f"Tls{direction.title()}"
    return moved[f"{name}Device"], moved[f"{name}Sw"]


# of no promise: on a real bench nobody can shrink the table, and a blocker may not rest on that
@pytest.mark.once
@pytest.mark.requires("tls", "lab", "nicsim")
def test_leaves_to_software_what_it_has_no_room_for(
    life: Life, rig: Rig, offload: Switch, profile: Profile, evidence: dict[str, Any]
) -> None:
    """This NIC refuses what its full table has no room for: software takes it, every byte whole."""
    offload.on()
    directions = profile.directions()
    with room_for(rig, ROOM * len(directions)):
        before = rig.counters()
        with opened(life, ROOM + BEYOND) as pairs:
            wrong = at_once(pairs, "full", EACH)
            moved = rig.counters() - before
        by = {direction: by_whom(moved, direction) for direction in directions}
        evidence.update(card_and_software=by, refused=moved.get(FULL), wrong=wrong)
        assert not wrong, f"{len(wrong)} of {len(pairs)} connections are wrong: {wrong}"
        assert set(by.values()) == {(ROOM, BEYOND)}, f"with room for {ROOM}, card and software took {by}"
        assert moved.get(FULL, BEYOND * len(directions)) == BEYOND * len(directions), (
            f"it counted {moved.get(FULL)} refusals"
        )
        assert settles(lambda: takes_one(life, rig, directions), 30), (
            "nothing is offloaded after the table was full"
        )


def takes_one(life: Life, rig: Rig, directions: Sequence[str]) -> bool:
    """Whether the card takes a connection now, in each of these directions; it must be whole anyhow."""
    before = rig.counters()
    with opened(life) as (pair,):
        pair.moves("one more", EACH)
        moved = rig.counters() - before
    return all(by_whom(moved, direction) == (1, 0) for direction in directions)


@pytest.mark.once
@pytest.mark.promise("payload.many")
@pytest.mark.requires("tls", "ktls-handoff", "stunnel")
def test_sends_a_long_stream(traffic: Traffic, offload: Switch, evidence: dict[str, Any]) -> None:
    """This NIC encrypts a long stream without one wrong bit."""
    offload.on()
    parts = tuple(sending(f"long tx {number}", LONG // 4, 1 << 17, how="sendfile") for number in range(4))
    plan, before = Several(parts), traffic.rig.counters()
    with traffic.behind_stunnel(*(take(part.total) for part in parts)) as (port, far):
        near = traffic.dut.pump.handoff(traffic.argv(TX, port), *(send(part) for part in parts))
        flow = traffic.ended(near, far, before)
    proof.note(evidence, flow, plan, "hw")
    proof.handed_over(flow, TX)
    proof.intact(flow.far, plan)
    proof.sent_by_card(flow, plan)


@pytest.mark.once
@pytest.mark.promise("shapes.rx")
@pytest.mark.requires("tls", "ktls-handoff", "stunnel")
@pytest.mark.cells("rx")
def test_receives_small_records(
    traffic: Traffic, offload: Switch, peer_offload: Switch, evidence: dict[str, Any], cell: Cell
) -> None:
    """This NIC decrypts records of less than 256 bytes, with each cipher, after it has found the records."""
    offload.on()
    peer_offload.set(tx=False)
    sizes = (16384,) * 16 + tuple(range(1, 256, 3)) * 8
    plan = Sending(f"small {cell}", sizes)
    flow = traffic.received_as_written(cell, plan)
    proof.note(evidence, flow, plan, "hw")
    proof.handed_over(flow, cell)
    proof.intact(flow.dut, plan)
    proof.received_by_card(flow, plan)


@pytest.mark.promise("wire.forged")
@pytest.mark.requires("tls", "ktls-handoff", "stunnel", "wire", "wire-tap", "pedit")
def test_compares_the_whole_tag(
    traffic: Traffic, offload: Switch, peer_offload: Switch, evidence: dict[str, Any]
) -> None:
    """This NIC refuses a record of which only one bit in the twelfth byte of the tag was altered."""
    offload.on()
    peer_offload.set(tx=False, rx=False)  # only the DUT's card is asked
    flow, _ = tamper.received_forged(traffic, RX, tamper.ONE_FRAME, flips=tamper.IN_TAG)
    proof.note(evidence, flow, tamper.PRIMER, "hw")
    assert flow.line.rx == "hw", f"inet_diag shows receive as {flow.line.rx}"
    tamper.refused(flow)
