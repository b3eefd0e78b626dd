"""This NIC takes new keys while a connection lives: a KeyUpdate of TLS 1.3 (RFC 8446 section 4.6.3).

Asked only on a kernel that hands TLS 1.3 to cards: docs/certify/your-kernel.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from offload.card.counters import tls_stat
from offload.card.profile import Cell, Profile
from offload.suite.traffic.drive import sending
from offload.suite.traffic.impair import Chosen, wirebox
from tests.lib.life.life import KIB, Life, Pair
from tests.lib.rig.rig import Rig
from tests.lib.rig.switch import Switch
from tests.lib.wire import updated
from tests.lib.wire.wire import WireTap

pytestmark = pytest.mark.requires("tls")
KEY_UPDATE = "1800000100"  # update_not_requested
HANDSHAKE = 22
LATE = "before the DUT has the next key"
SIZE = 256 * KIB
EARLY = 256 * KIB  # bytes that software may decrypt until the card knows where the records are
# of records of 16 KiB the last of the first key, so that its end is acknowledged late; then the first that
# software sends under the next key, three times, so that it is sent again when the card has that key
LOSSES = [Chosen("inside", 15), Chosen("inside", 17, times=3)]
Parts = Sequence[tuple[str, int]]


def opened(life: Life, cell: Cell) -> Pair:
    """A connection of TLS 1.3 with this cipher."""
    pairs = life.plain()
    life.secure(pairs, tls=cell.version, cipher=cell.cipher)
    return pairs[0]


def tells(life: Life, cell: Cell, pair: Pair, back: bool) -> None:
    """A KeyUpdate, and the next key for its sender."""
    source = pair.far if back else pair.near
    source.call("record", type=HANDSHAKE, content=KEY_UPDATE)
    life.rekey(source, "tx", cell.cipher)


def follows(life: Life, cell: Cell, pair: Pair, back: bool) -> None:
    """The receiver reads it, and takes the next key."""
    sink = pair.near if back else pair.far
    seen = sink.take()
    assert seen["closed"] == f"record {HANDSHAKE}", f"in place of the KeyUpdate came {seen}"
    life.rekey(sink, "rx", cell.cipher)


def at_once(life: Life, cell: Cell, pair: Pair, parts: Parts) -> list[int]:
    """The DUT sends, changes its key and sends on before the peer has acknowledged what it sent at first."""
    first, second = ({"do": "send", "seed": name, "size": size, "write": 16 * KIB} for name, size in parts)
    said = {"do": "record", "type": HANDSHAKE, "content": KEY_UPDATE}
    asked = [first, said, life.next_key(pair.near, "tx", cell.cipher), second]
    return pair.near.connections.begin_all([{"at": pair.near.at, **ask} for ask in asked])


def outcomes(rig: Rig, before: dict[str, int], evidence: dict[str, Any]) -> dict[str, int]:
    """Return how the KeyUpdates of the DUT ended, in the kernel's words."""
    after = tls_stat(rig.bench.dut.host)[0] or {}
    moved = {name: after[name] - before.get(name, 0) for name in after if "Rekey" in name or "Error" in name}
    found = {name: n for name, n in moved.items() if n}
    evidence["rekey"] = found
    return found


def proven(watch: Any, evidence: dict[str, Any], life: Life, cell: Cell, pair: Pair, parts: Parts) -> None:
    """Every record of the DUT is right on the wire, under the key of its time."""
    keys = life.keys(pair, "up", cell.cipher), life.keys(pair, "down", cell.cipher)
    content = b"".join(sending(name, size).content() for name, size in parts)
    updated.proves(watch.stop()["wire"], evidence, pair.port, keys, content)


@pytest.mark.promise("payload.tx", cell=None)
@pytest.mark.requires("wire", "wire-tap")
@pytest.mark.cells("tx", version="1.3")
def test_sends_on_under_the_next_key(
    life: Life,
    rig: Rig,
    offload: Switch,
    peer_offload: Switch,
    wire_tap: WireTap,
    evidence: dict[str, Any],
    cell: Cell,
) -> None:
    """This NIC takes the next key at a KeyUpdate, and encrypts with it what is sent from then on."""
    offload.on()
    peer_offload.set(tx=False, rx=False)
    before, counted = tls_stat(rig.bench.dut.host)[0] or {}, rig.counters()
    parts = [(f"key update {cell} {number}", SIZE) for number in range(3)]
    with wire_tap.open() as watch:
        pair = opened(life, cell)
        pair.sends(*parts[0])
        tells(life, cell, pair, back=False)
        follows(life, cell, pair, back=False)
        for part in parts[1:]:
            pair.sends(*part)
        pair.close()
        proven(watch, evidence, life, cell, pair, parts)
    moved = rig.counters() - counted
    assert outcomes(rig, before, evidence) == {"TlsTxRekeyOk": 1}, "the card did not take the next key"
    assert moved["TlsTxDevice"] == 1 and moved["tx_tls_encrypted_bytes"] >= 2 * SIZE, (
        f"the card encrypted {moved['tx_tls_encrypted_bytes']} of {3 * SIZE} bytes"
    )


@pytest.mark.promise("payload.tx", cell=None)
@pytest.mark.requires("wire", "wire-tap")
@pytest.mark.cells("tx", version="1.3")
def test_changes_keys_while_frames_are_lost(
    life: Life,
    rig: Rig,
    offload: Switch,
    peer_offload: Switch,
    profile: Profile,
    wire_tap: WireTap,
    evidence: dict[str, Any],
    cell: Cell,
) -> None:
    """This NIC leaves alone what software sent under the next key before the card had it."""
    offload.on()
    peer_offload.set(tx=False, rx=False)
    before = tls_stat(rig.bench.dut.host)[0] or {}
    parts = [("first key, lossy", SIZE), ("next key, lossy", 4 * SIZE)]
    with wirebox(rig.bench, LOSSES, offloads=profile.directions()), wire_tap.open() as watch:
        pair = opened(life, cell)
        sent = at_once(life, cell, pair, parts)
        pair.far.takes(*parts[0])
        follows(life, cell, pair, back=False)
        pair.far.takes(*parts[1])
        for number in sent:
            pair.near.connections.end(number)
        pair.close()
        proven(watch, evidence, life, cell, pair, parts)
    assert outcomes(rig, before, evidence) == {"TlsTxRekeyOk": 1}, "the card did not take the next key"


@pytest.mark.promise("payload.rx", cell=None)
@pytest.mark.cells("rx", version="1.3")
def test_receives_on_under_the_next_key(
    life: Life, rig: Rig, offload: Switch, peer_offload: Switch, evidence: dict[str, Any], cell: Cell
) -> None:
    """This NIC takes the next key at a KeyUpdate, and decrypts with it what comes from then on."""
    offload.on()
    peer_offload.set(tx=False, rx=False)
    before, counted = tls_stat(rig.bench.dut.host)[0] or {}, rig.counters()
    pair = opened(life, cell)
    pair.sends("old key", 2 * SIZE, back=True)
    tells(life, cell, pair, back=True)
    # acknowledged, so the card has met it, and with the key that it has
    pair.far.call("pace", seed=LATE, size=32 * KIB, write=16 * KIB)
    follows(life, cell, pair, back=True)
    pair.near.takes(LATE, 32 * KIB)
    pair.sends("next key", 4 * SIZE, back=True)
    pair.close()
    moved = rig.counters() - counted
    wanted = {"TlsRxRekeyOk": 1, "TlsRxRekeyReceived": 1}
    assert outcomes(rig, before, evidence) == wanted, "the card did not take the next key"
    done = moved["rx_tls_decrypted_bytes"]
    assert moved["TlsRxDevice"] == 1 and done >= 6 * SIZE - 2 * EARLY, (
        f"the card decrypted {done} of {6 * SIZE} bytes"
    )
