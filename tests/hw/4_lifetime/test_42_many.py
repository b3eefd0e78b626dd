"""This NIC releases what many connections took, and ignores connections that do not go straight through
it."""

from __future__ import annotations

from typing import Any

import pytest

from offload.card.counters import Delta
from offload.card.profile import Profile
from offload.cmd import settles
from offload.host.base import Bench
from tests.lib.impair import paths
from tests.lib.life.life import KIB, Life, churn, held
from tests.lib.rig.rig import Rig
from tests.lib.rig.switch import Switch

MANY, BATCH = 1000, 100
SLAB_PER_CONNECTION = 8 * KIB  # bytes; a context of the simulated card has more than that for both ways
OF_CARD = ("TlsTxDevice", "TlsRxDevice", "tx_tls_ctx", "tx_tls_encrypted_bytes", "rx_tls_decrypted_bytes")


@pytest.mark.promise("lifecycle.many")
@pytest.mark.once
@pytest.mark.requires("tls")
def test_opens_and_closes_a_thousand(
    life: Life, rig: Rig, offload: Switch, profile: Profile, evidence: dict[str, Any]
) -> None:
    """This NIC takes a thousand connections, a hundred at a time, and then has the contexts it had before."""
    offload.on()
    contexts = held(rig)
    churn(life, BATCH, BATCH)  # what is made once, and stays
    released(rig, contexts)
    before, slab = rig.counters(), unreclaimable(rig)
    evidence["offloaded"] = churn(life, MANY, BATCH)
    released(rig, contexts)
    moved, grown = rig.counters() - before, unreclaimable(rig) - slab
    evidence.update(counters=of_tls(moved), slab_bytes_kept_per_connection=round(grown / MANY))
    offload.set(**dict.fromkeys(profile.directions(), False))
    before = rig.counters()
    evidence["software"] = churn(life, 2 * BATCH, BATCH)
    software = rig.counters() - before
    for direction in profile.directions():
        name = direction.title()
        assert moved[f"Tls{name}Device"] == MANY, f"of {MANY} only {moved[f'Tls{name}Device']} were offloaded"
        assert software[f"Tls{name}Sw"] == 2 * BATCH, "switched off, and not all were software's"
    assert moved["tx_tls_ctx"] == MANY, f"{MANY} connections took {moved['tx_tls_ctx']} contexts"
    assert grown < MANY * SLAB_PER_CONNECTION, f"the kernel kept {grown} bytes after {MANY} connections"


def released(rig: Rig, contexts: dict[str, int]) -> None:
    """Assert that the card soon has these contexts again: it gives them back after the connections end."""
    settled = settles(lambda: held(rig) == contexts, 15)
    assert settled, f"contexts were not released: {held(rig)}, {contexts} before"


def unreclaimable(rig: Rig) -> int:
    """Bytes of the kernel's own that it cannot reclaim, on the DUT."""
    lines = rig.bench.dut.host.read("/proc/meminfo").decode().splitlines()
    return next(int(line.split()[1]) * KIB for line in lines if line.startswith("SUnreclaim:"))


def of_tls(moved: Delta) -> dict[str, int]:
    """The TLS counters that moved."""
    return {name: n for name, n in moved.nonzero().items() if "tls" in name.lower()}


@pytest.mark.promise("lifecycle.stack")
@pytest.mark.requires("tls")
@pytest.mark.parametrize("layer", ["vlan", "vlan-v6", "bridge", "loopback"])
def test_leaves_other_layers_to_software(
    life: Life, bench: Bench, rig: Rig, offload: Switch, evidence: dict[str, Any], layer: str
) -> None:
    """This NIC leaves to software what comes to it by a VLAN or a bridge, or not at all, every byte whole."""
    offload.on()
    before = rig.counters()
    if layer == "loopback":
        through(life, "127.0.0.1", layer, near=True)
    else:
        with paths.bridged(bench) if layer == "bridge" else paths.vlan(bench):
            through(life, paths.THEIRS6 if layer == "vlan-v6" else paths.THEIRS, layer)
    moved = rig.counters() - before
    evidence.update(counters=of_tls(moved), bytes=2 * 256 * KIB)
    ends = 2 if layer == "loopback" else 1
    assert (moved["TlsTxSw"], moved["TlsRxSw"]) == (ends, ends), f"not software's: {of_tls(moved)}"
    counted = {name: n for name in OF_CARD if (n := moved.get(name, 0))}
    assert not counted, f"the connection did not go straight through the card, and it counted {counted}"


def through(life: Life, host: str, layer: str, *, near: bool = False) -> None:
    """Move payload both ways over a connection to this address."""
    pair = life.open(host=host, far=life.near if near else None)[0]
    pair.moves(layer, 32 * KIB if near else 256 * KIB)
    pair.close()
