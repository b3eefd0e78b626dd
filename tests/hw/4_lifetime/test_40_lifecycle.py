"""This NIC keeps its connections through what administrators do: switches, links, routes, namespaces."""

from __future__ import annotations

import re
from pathlib import Path
from socket import SO_SNDBUF, SOL_SOCKET
from typing import Any

import pytest

from offload.card.counters import Delta
from offload.card.profile import Cell, Profile
from offload.host.base import Bench, Side
from offload.suite.traffic.drive import send, sending, take
from tests.lib.flow import proof
from tests.lib.flow.flow import Traffic
from tests.lib.impair.link import bounce
from tests.lib.impair.paths import THEIRS, bonded, move_away_and_back, second_path
from tests.lib.life.life import KIB, Life, Pair
from tests.lib.rig.rig import Rig
from tests.lib.rig.switch import Switch
from tests.lib.wire.wire import WireTap, share, watched

TX = Cell("tx", "1.2", "aes-gcm-128")
SIZE = 320 * KIB  # more than proof.RX_START: some of it is the card's
SOME = SIZE // 8  # bytes: more than another connection sends again, less than what is left of this one
BYTES = {"tx": "tx_tls_encrypted_bytes", "rx": "rx_tls_decrypted_bytes"}


def opened(moved: Delta) -> dict[str, str]:
    """Return who took the one connection that was opened meanwhile, by direction."""
    return {
        d: kind.lower() for d in BYTES for kind in ("Device", "Sw") if moved.get(f"Tls{d.title()}{kind}") == 1
    }


def follows(life: Life, rig: Rig, direction: str, ours: tuple[str, ...], on: bool) -> Pair:
    """Open a connection, and assert that it is who the switches say that has it; all others are on."""
    before = rig.counters()
    pair = life.open()[0]
    kinds = opened(rig.counters() - before)
    wanted = {d: "device" if d in ours and (on or d != direction) else "sw" for d in BYTES}
    assert kinds == wanted, f"{direction} switched {'on' if on else 'off'}, and a new connection is {kinds}"
    return pair


@pytest.mark.promise("lifecycle.toggle")
@pytest.mark.direction
@pytest.mark.parametrize("direction", ["tx", "rx"])
@pytest.mark.requires("tls")
def test_toggle_keeps_connections_and_rules_new_ones(
    life: Life, rig: Rig, offload: Switch, profile: Profile, evidence: dict[str, Any], direction: str
) -> None:
    """This NIC keeps a connection when it is switched off and on again; a new one follows the switch."""
    offload.on()
    pairs: list[Pair] = []
    lost = []
    for on in (True, False, True):
        offload.set(**{direction: on})
        pairs.append(follows(life, rig, direction, profile.directions(), on))
        for number, pair in enumerate(pairs):
            before, turn = rig.counters(), len(pairs)
            pair.moves(f"toggle {turn} {number}", SIZE)
            kept = (rig.counters() - before).get(BYTES[direction], 0)
            evidence[f"switch_{turn}_connection_{number}"] = kept
            if number == 1:  # opened while it was off
                assert kept < SOME, f"software's connection moved to the card: {kept} bytes"
            elif number == turn - 1:
                assert kept >= SOME, f"switched on, and the card did {kept} bytes of a new connection"
            elif kept < SOME:
                lost.append(f"{kept} bytes after switch {turn}")
    for pair in pairs:
        pair.close()
    # last of all: a profile may list this as a limitation, and then nothing else is forgiven with it
    done = "encrypted" if direction == "tx" else "decrypted"
    assert not lost, f"the first connection is no longer {done} by the card: {', '.join(lost)}"


@pytest.mark.promise("lifecycle.toggle")
@pytest.mark.requires("tls", "ktls-handoff", "stunnel", "wire", "wire-tap")
def test_switch_is_not_seen_on_the_wire(
    traffic: Traffic, offload: Switch, wire_tap: WireTap, evidence: dict[str, Any]
) -> None:
    """This NIC goes on encrypting, record by record, what it has when it is switched off in the middle."""
    offload.on()
    plan, before = sending("toggle wire", 384 * KIB, 32 * KIB, gate=6), traffic.rig.counters()
    with wire_tap.open() as watch:
        with traffic.behind_stunnel(take()) as (port, far):
            near = traffic.dut.pump.handoff(traffic.argv(TX, port), send(plan))
            near.at_gate()
            offload.set(tx=False)
            near.go()
            flow = traffic.ended(near, far, before)
        proof.note(evidence, flow, plan, "hw")
        watch.handed_over(flow, TX)
        watch.proves(evidence, "client", plan.total, payload=plan.content())
        proof.intact(flow.far, plan)
        proof.sent_by_card(flow, plan)


@pytest.mark.promise("lifecycle.link-down")
@pytest.mark.requires("tls", "ktls-handoff", "stunnel", "wire", "wire-tap")
def test_link_down_leaves_it_to_software(
    traffic: Traffic, offload: Switch, dut: Side, wire_tap: WireTap, evidence: dict[str, Any]
) -> None:
    """This NIC has its connection finished by software after the link was down: ciphertext, every record."""
    offload.on()
    plan, start = sending("down wire", 384 * KIB, 32 * KIB, gate=6), traffic.rig.counters()
    with wire_tap.open() as watch:
        with traffic.behind_stunnel(take()) as (port, far):
            near = traffic.dut.pump.handoff(traffic.argv(TX, port), send(plan))
            near.at_gate()
            bounce(dut)
            between = traffic.rig.counters()
            shown = re.findall(r"txconf: (\w+)", dut.host.run(["ss", "-Htie", f"dport = :{port}"]).text)
            near.go()
            flow = traffic.ended(near, far, start)
        proof.note(evidence, flow, plan, "hw")
        watch.handed_over(flow, TX)
        watch.proves(evidence, "client", plan.total, payload=plan.content())
    after = traffic.rig.counters() - between
    # tls_device_down() leaves tx_conf at TLS_HW (tls_device.c 6.1:1342): what ss says is old from now on
    evidence["stale"] = shown == ["hw"] and (between - start)["TlsCurrTxDevice"] == 1
    evidence["inet_diag_after_link_down"] = shown
    proof.intact(flow.far, plan)
    assert (between - start)[BYTES["tx"]] > 0, "the card encrypted nothing before the link went down"
    assert after[BYTES["tx"]] == 0, f"software has it, and the card counted {after[BYTES['tx']]} bytes"


@pytest.mark.promise("lifecycle.route")
@pytest.mark.requires("tls", "wire", "wire-tap")
def test_route_moves_to_a_device_without_offload(
    life: Life, bench: Bench, rig: Rig, offload: Switch, evidence: dict[str, Any], tmp_path: Path
) -> None:
    """This NIC's connection goes on in software while its route is elsewhere: no plaintext on either wire."""
    offload.on()
    assert bench.wire is not None
    parts = [sending(f"route {number}", 128 * KIB) for number in range(3)]
    with second_path(bench) as path:
        pair = life.open()[0]
        room = 2 * parts[1].total  # where the way leads nowhere, nobody makes some
        pair.near.call("option", level=SOL_SOCKET, name=SO_SNDBUF, value=room)
        places = {"other": (bench.dut.host, path.dev), "wire": (bench.wire, bench.wire_ports[0])}
        with watched(rig, places, tmp_path) as seen:
            pair.sends(parts[0].seed, parts[0].total)
            path.take()
            before = rig.counters()
            sent = pair.near.begin("send", seed=parts[1].seed, size=parts[1].total)
            if path.carries:
                pair.far.takes(parts[1].seed, parts[1].total)
            pair.near.connections.end(sent)
            away = rig.counters() - before
            path.leave()
            if not path.carries:
                pair.far.takes(parts[1].seed, parts[1].total)
            before = rig.counters()
            pair.sends(parts[2].seed, parts[2].total)
            back = rig.counters() - before
        pair.close()
    plaintext = b"".join(part.content() for part in parts)
    found = {name: share(plaintext, what) for name, what in seen.items()}
    carried = {
        name: sum(len(s.payload) for s in what if s.target != pair.port) for name, what in seen.items()
    }
    evidence.update(bytes=len(plaintext), plaintext_share=found, carried_bytes=carried, carries=path.carries)
    assert not any(found.values()), f"plaintext was seen, as a share of the payload: {found}"
    assert carried["other"] >= (parts[1].total if path.carries else 1), f"the route never moved: {carried}"
    assert away[BYTES["tx"]] == 0, f"the card counted {away[BYTES['tx']]} bytes that went another way"
    assert back[BYTES["tx"]] >= parts[2].total, "the card does not encrypt again after the route came back"


@pytest.mark.promise("lifecycle.route")
@pytest.mark.requires("tls", "wire", "wire-tap")
def test_plaintext_would_be_seen(life: Life, bench: Bench, rig: Rig, tmp_path: Path) -> None:
    """This NIC's other way is looked at closely enough: plain TCP on it is seen, byte for byte."""
    assert bench.wire is not None
    with second_path(bench) as path:
        pair, plan = life.plain()[0], sending("route plain", 128 * KIB)
        pair.near.call("option", level=SOL_SOCKET, name=SO_SNDBUF, value=2 * plan.total)  # nobody may answer
        with watched(rig, {"other": (bench.dut.host, path.dev)}, tmp_path) as seen:
            path.take()
            sent = pair.near.begin("send", seed=plan.seed, size=plan.total)
            if path.carries:
                pair.far.takes(plan.seed, plan.total)
            pair.near.connections.end(sent)
        path.leave()
        if not path.carries:
            pair.far.takes(plan.seed, plan.total)
        life.close([pair])
    found = share(plan.content(), seen["other"])
    assert found > (0.9 if path.carries else 0), f"only {found:.1%} of what went there was seen"


@pytest.mark.promise("lifecycle.bond")
@pytest.mark.requires("tls", "lab", "wire", "wire-tap")
def test_active_backup_bond_is_left_to_software(
    life: Life, bench: Bench, rig: Rig, offload: Switch, evidence: dict[str, Any], tmp_path: Path
) -> None:
    """This NIC leaves to software what goes through an active-backup bond, and a failover costs no byte."""
    offload.on()
    assert bench.wire is not None
    parts, before = [sending(f"bond {number}", 128 * KIB) for number in range(2)], rig.counters()
    with bonded(bench, "active-backup") as bond:
        pair = life.open(host=THEIRS)[0]
        places = {"card": (bench.wire, bench.wire_ports[0]), "other": (bench.peer.host, bond.other)}
        with watched(rig, places, tmp_path) as seen:
            for part in parts:
                pair.sends(part.seed, part.total)
                bond.fail_over()
        pair.close()
    moved = rig.counters() - before
    content = b"".join(part.content() for part in parts)
    found = {name: share(content, what) for name, what in seen.items()}
    carried = {name: sum(len(s.payload) for s in what) for name, what in seen.items()}
    evidence.update(plaintext_share=found, carried_bytes=carried, bytes=len(content))
    assert not any(found.values()), f"plaintext was seen, as a share of the payload: {found}"
    assert min(carried.values()) >= parts[0].total, f"not both cables were used: {carried}"
    assert opened(moved) == dict.fromkeys(BYTES, "sw"), "this bond is not one that offloads"
    assert moved[BYTES["tx"]] == 0, f"software did it, and the card counted {moved[BYTES['tx']]} bytes"


@pytest.mark.promise("lifecycle.unload")
@pytest.mark.requires("tls", "lab", "wire", "wire-tap")
def test_moves_to_another_namespace_and_back(
    life: Life, bench: Bench, rig: Rig, offload: Switch, evidence: dict[str, Any], tmp_path: Path
) -> None:
    """This NIC is moved to another namespace under a live connection: refused, or software goes on."""
    offload.on()
    assert bench.wire is not None
    pair = life.open()[0]
    parts = [sending(f"namespace {number}", 128 * KIB) for number in range(2)]
    with watched(rig, {"wire": (bench.wire, bench.wire_ports[0])}, tmp_path) as seen:
        pair.sends(parts[0].seed, parts[0].total)
        moved, words = move_away_and_back(bench.dut, life.near.pid)
        before = rig.counters()
        pair.sends(parts[1].seed, parts[1].total)
        after = rig.counters() - before
    pair.close()
    found = share(b"".join(part.content() for part in parts), seen["wire"])
    evidence.update(moved=moved, refused=words, plaintext_share=found, bytes=2 * parts[0].total)
    assert found == 0, f"{found:.1%} of the payload was seen as plaintext"
    assert (after[BYTES["tx"]] == 0) == moved, (
        f"moved: {moved}, and the card counted {after[BYTES['tx']]} bytes"
    )
