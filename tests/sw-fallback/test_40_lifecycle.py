"""Without a NIC that offloads a connection lives as long as it should, and ends as it should."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from offload.card.counters import tls_stat
from offload.cmd import settles
from offload.host.base import Bench
from offload.suite.traffic.drive import Ended, sending
from offload.suite.traffic.impair import RandomImpairment, wirebox
from tests.lib.impair.paths import second_path
from tests.lib.life.endings import ENDINGS, gone, vanish
from tests.lib.life.life import KIB, Life, held
from tests.lib.rig.rig import Rig
from tests.lib.wire.wire import share, watched

pytestmark = pytest.mark.requires("tls")
KEY_UPDATE = "1800000100"  # update_not_requested: RFC 8446 section 4.6.3
HANDSHAKE = 22
MANY = 300


@pytest.mark.promise("lifecycle.close")
@pytest.mark.parametrize("how", ENDINGS)
def test_every_ending_leaves_nothing_behind(life: Life, rig: Rig, evidence: dict[str, Any], how: str) -> None:
    """Without a NIC that offloads a connection ends like this, and no socket is left."""
    before = rig.counters()
    pair = life.open()[0]
    pair.moves(how)
    ENDINGS[how](pair)
    gone(rig, pair.port)
    moved = rig.counters() - before
    evidence["counters"] = {name: n for name, n in moved.nonzero().items() if "Tls" in name}
    assert (moved["TlsTxSw"], moved["TlsCurrTxSw"], moved["TlsCurrRxSw"]) == (1, 0, 0), evidence["counters"]


@pytest.mark.promise("lifecycle.close")
@pytest.mark.requires("wire")
def test_vanished_peer_is_given_up(life: Life, rig: Rig, evidence: dict[str, Any]) -> None:
    """Without a NIC that offloads TCP gives up a peer that is heard of no more, and no socket is left."""
    pair = life.open()[0]
    pair.moves("vanish")
    with wirebox(rig.bench, [RandomImpairment(loss=100.0)]):
        evidence["seconds_until_given_up"] = vanish(pair)
        gone(rig, pair.port)
    pair.far.close(reset=True)


@pytest.mark.promise("lifecycle.route")
@pytest.mark.requires("wire", "wire-tap")
def test_connection_survives_a_route_change(
    life: Life, bench: Bench, rig: Rig, evidence: dict[str, Any], tmp_path: Path
) -> None:
    """Without a NIC that offloads a connection goes on elsewhere, with no plaintext on either wire."""
    assert bench.wire is not None
    parts = [sending(f"sw route {number}", 128 * KIB) for number in range(3)]
    with second_path(bench) as path:
        pair = life.open()[0]
        places = {"other": (bench.dut.host, path.dev), "wire": (bench.wire, bench.wire_ports[0])}
        with watched(rig, places, tmp_path) as seen:
            for part, turn in zip(parts, (lambda: None, path.take, path.leave), strict=True):
                turn()
                pair.sends(part.seed, part.total)
        pair.close()
    content = b"".join(part.content() for part in parts)
    found = {name: share(content, what) for name, what in seen.items()}
    carried = {name: sum(len(s.payload) for s in what) for name, what in seen.items()}
    evidence.update(plaintext_share=found, carried_bytes=carried)
    assert not any(found.values()), f"plaintext was seen, as a share of the payload: {found}"
    assert carried["other"] >= parts[1].total and carried["wire"] >= 2 * parts[1].total, str(carried)


@pytest.mark.promise("lifecycle.many")
def test_opens_and_closes_many(life: Life, rig: Rig) -> None:
    """Without a NIC that offloads hundreds of connections come and go, and none is counted after."""
    before = rig.counters()
    for batch in range(3):
        pairs = life.open(MANY // 3)
        pairs[batch].moves(f"sw many {batch}", 16 * KIB)
        life.close(pairs)
    assert settles(lambda: (rig.counters() - before)["TlsCurrTxSw"] == 0, 15), "some are still counted"
    moved = rig.counters() - before
    assert (moved["TlsTxSw"], moved["TlsRxSw"]) == (MANY, MANY)
    assert not any(held(rig).values()), f"a card has contexts here: {held(rig)}"


def test_key_update(life: Life, rig: Rig, evidence: dict[str, Any]) -> None:
    """Without a NIC that offloads TLS 1.3 changes its keys where the kernel can, and elsewhere refuses to."""
    before = tls_stat(rig.bench.dut.host)[0] or {}
    can = "TlsRxRekeyOk" in before  # Linux 6.14 and later
    pair = life.open(tls="1.3")[0]
    pair.moves("before")
    evidence["rekey"] = can
    pair.far.call("record", type=HANDSHAKE, content=KEY_UPDATE)
    assert pair.near.take()["closed"] == f"record {HANDSHAKE}", "the KeyUpdate is the application's to read"
    if can:
        assert pair.near.take(1)["error"] == "EKEYEXPIRED", "the old key is good for more"
    for end, only in ((pair.far, "tx"), (pair.near, "rx")):
        with nullcontext() if can else pytest.raises(Ended, match="EBUSY"):
            life.rekey(end, only)
    pair.moves("after")  # with the new key one way, or still with the old one
    pair.close()
    after = tls_stat(rig.bench.dut.host)[0] or {}
    moved = {name: n - before[name] for name, n in after.items() if "Rekey" in name and n != before[name]}
    assert moved == ({"TlsRxRekeyReceived": 1, "TlsRxRekeyOk": 1} if can else {}), str(moved)
