"""The assertions about ESP and TLS, with a NIC and without: payload, wire, a reset, who answers."""

from __future__ import annotations

from typing import Any

from offload.card.nic import features
from offload.card.profile import Cell
from offload.cmd import settles
from offload.suite.measure.switch import PARTS, SEGMENTATION, keeping
from offload.suite.traffic import certs, stunnel
from offload.suite.traffic import ipsec as esp
from offload.suite.traffic.drive import send, sending, take
from tests.lib.flow.flow import Traffic
from tests.lib.life.life import KIB, Life
from tests.lib.rig.rig import Rig
from tests.lib.wire import ipsec

SIZE = 192 * KIB
CELL = Cell("tx", "1.2", "aes-gcm-128")


def carries(rig: Rig, life: Life, cipher: str, evidence: dict[str, Any]) -> None:
    """Move payload both ways in ESP: whole, in ESP alone, in plaintext only where there is no cipher."""
    name, dut = f"esp {cipher}", rig.bench.dut
    with ipsec.watching(rig) as seen, ipsec.esp_between(rig, cipher) as made:
        (pair,) = life.plain()
        pair.moves(name, SIZE)
        counted = [made.counted(dut, one) for one in (made.out, made.into)]
        life.close([pair])
        ipsec.quiet(rig, pair.port)
    clear = [seen.clear(ipsec.canary(f"{name} {direction}", SIZE)) for direction in ("out", "back")]
    frames = ipsec.between(rig.bench, ipsec.ESP, seen.wire)
    evidence["ipsec"] = {"cipher": cipher, "packets": len(frames), "clear": [round(c, 3) for c in clear]}
    assert seen.spis() == {made.out.spi, made.into.spi}, "ESP of other states was on the wire"
    assert not ipsec.between(rig.bench, ipsec.TCP, seen.wire), "TCP was on the wire next to ESP"
    assert all(c.bytes >= SIZE for c in counted), f"the states carried {counted}, payload was {SIZE} each"
    if cipher == "null":
        assert min(clear) > 0.95, f"without a cipher {clear} of the payload was seen on the wire"
    else:
        assert max(clear) == 0, f"{clear} of the payload is on the wire in plaintext"


def every_part(rig: Rig, life: Life, evidence: dict[str, Any]) -> None:
    """Set all, none and each part of the segmentation offloads, as the kernel shows; move payload in ESP."""
    host, dev = rig.bench.dut.host, rig.bench.dut.dev

    def shown() -> dict[str, bool]:
        now = features(host, dev)
        return {name: now[name].active for name in SEGMENTATION}

    found, seen = shown(), {}
    with ipsec.esp_between(rig, "gcm-128"), keeping(host, dev) as switches:
        (pair,) = life.plain()
        for part in ("on", "off", *PARTS):
            keep = SEGMENTATION if part == "on" else PARTS.get(part, ())
            switches.set({}, part == "on", only=part)
            seen[part] = shown()
            assert seen[part] == {name: name in keep and found[name] for name in SEGMENTATION}, part
            pair.moves(f"segments {part}", 96 * KIB)
        life.close([pair])
    assert shown() == found, "what was found did not come back"
    assert len({tuple(state.values()) for state in seen.values()}) > 2, f"the parts are all the same: {seen}"
    evidence["ipsec"] = {"segmentation": {part: [n for n, on in s.items() if on] for part, s in seen.items()}}


def resets(rig: Rig, life: Life, by: str, evidence: dict[str, Any]) -> None:
    """Forge the same reset on the wire against a kernel TLS connection, and against one in ESP."""
    counted, dut = rig.counters(), rig.bench.dut
    with ipsec.watching(rig) as seen:
        (pair,) = life.plain()
        life.secure([pair])
        pair.moves("tls before", 4 * KIB)
    assert (rig.counters() - counted)["TlsTxDevice" if by == "hw" else "TlsTxSw"], "another kind of TLS"
    waits = pair.near.begin("take", size=-1)
    ipsec.inject(rig.bench, ipsec.reset(rig, pair, seen.host))
    ended = pair.near.connections.answer(waits)["error"]
    for end in (pair.near, pair.far):
        end.close()
    assert ended == "ECONNRESET", f"a forged reset did not end the TLS connection: {ended or 'no error'}"

    with ipsec.watching(rig) as seen:
        (pair,) = life.plain()
        pair.moves("in plaintext", 4 * KIB)
    with esp.protected(dut, rig.bench.peer, "gcm-128"):
        pair.moves("esp before", 4 * KIB)
        before = esp.errors(dut.host)
        ipsec.inject(rig.bench, ipsec.reset(rig, pair, seen.host, 4 * KIB))
        assert settles(lambda: bool(ipsec.spent(dut.host, before)), 15), "nobody refused the forged reset"
        refused = ipsec.spent(dut.host, before)
        pair.moves("esp after", 4 * KIB)
        life.close([pair])
    evidence["ipsec"] = {"tls": ended, "esp": refused, "by": by}
    assert refused == {"XfrmInTmplMismatch": 1}, refused


def whoever_listens(traffic: Traffic, evidence: dict[str, Any]) -> None:
    """Send to somebody else's program on the peer's host: ESP delivers, TLS asks who it is and does not."""
    rig, plan = traffic.rig, sending("for one program only", 16 * KIB)
    dut, peer = rig.bench.dut, rig.bench.peer
    port = rig.next_port()
    with ipsec.esp_between(rig, "gcm-256"), ipsec.somebody(peer, port) as got:
        traffic.dut.pump.connect(peer.v4, port, send(plan)).report(60)
    assert [(one.uid, one.sha256) for one in got] == [(ipsec.NOBODY, plan.sha256())], got

    folder = f"{traffic.peer.at.folder}-other"
    other = certs.make([peer.v4])  # a certificate, and a CA that the DUT does not know
    with certs.placed(other, peer.host, folder) as at:
        port, (listener, plain) = rig.next_port(), traffic.peer.pump.listen()
        far = traffic.peer.pump.accept(listener, take(), timeout=120)
        service = stunnel.Service("other", f"{peer.v4}:{port}", f"127.0.0.1:{plain}")
        with stunnel.running(peer.host, [service], at, name=f"stunnel-{port}"):
            near = traffic.dut.pump.handoff(traffic.argv(CELL, port), send(plan)).report(60)
        far.give_up()
        traffic.peer.pump.close(listener)
    peer.host.run(["rm", "-rf", folder], check=False)
    line = near.handoff
    evidence["ipsec"] = {"esp": "delivered", "tls": line.message if line else near.error}
    assert line is not None and not line.ok and near.sent.bytes == 0, near
    assert "certificate" in line.message, line.message
    assert dut.v4 != peer.v4


def without_its_policy(rig: Rig, life: Life, evidence: dict[str, Any]) -> None:
    """Take the policies away under a connection: it goes on, in plaintext, and neither end notices."""
    with ipsec.watching(rig) as seen:
        with ipsec.esp_between(rig, "gcm-256"):
            (pair,) = life.plain()
            pair.moves("in esp", 32 * KIB)
            ipsec.quiet(rig, pair.port)
        pair.moves("after esp", 32 * KIB)
        life.close([pair])
    found = {name: seen.clear(ipsec.canary(f"{name} out", 32 * KIB)) for name in ("in esp", "after esp")}
    evidence["ipsec"] = {"clear": found}
    assert found["in esp"] == 0, f"{found['in esp']:.1%} of the payload was in plaintext while in ESP"
    assert found["after esp"] > 0.95, (
        f"only {found['after esp']:.1%} was in plaintext afterwards: who encrypted it?"
    )
