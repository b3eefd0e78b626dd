"""NVMe/TCP and NFS with TLS: TLS 1.3, so software does it, unless the kernel hands that to the card, too."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from offload.doctor.apps import storage as doctor
from offload.doctor.apps.files import Files
from tests.lib.flow import storage
from tests.lib.rig.rig import Rig
from tests.lib.rig.switch import Switch
from tests.lib.wire.wire import segments, share

DATA = hashlib.shake_128(b"storage").digest(storage.SIZE)
SHA = hashlib.sha256(DATA).hexdigest()
# by direction: what counts connections of software, of the card, and the card's packets
COUNTED = {
    "tx": ("TlsTxSw", "TlsTxDevice", "tx_tls_encrypted_packets"),
    "rx": ("TlsRxSw", "TlsRxDevice", "rx_tls_decrypted_packets"),
}


@pytest.mark.requires("tls", "wire", "nvme-tls")
def test_leaves_storage_to_software(
    rig: Rig, offload: Switch, evidence: dict[str, Any], tmp_path: Path
) -> None:
    """This NIC has a part in NVMe/TCP with TLS only if it promises TLS 1.3; no byte crosses as plaintext."""
    offload.on()
    opened, sides = moved(rig, storage.nvme, doctor.nvme, evidence, tmp_path)
    assert opened == 2, f"the admin queue and one more are two connections, and {opened} were opened"
    assert "client" in sides, f"doctor --app nvme sees {sides}"


@pytest.mark.requires("tls", "wire", "nfs-tls")
def test_leaves_nfs_to_software(rig: Rig, offload: Switch, evidence: dict[str, Any], tmp_path: Path) -> None:
    """This NIC has a part in NFS with TLS only if it promises TLS 1.3; no byte crosses as plaintext."""
    offload.on()
    opened, sides = moved(rig, storage.nfs, doctor.nfs, evidence, tmp_path)
    assert opened >= 1, "the mount has no connection with TLS"
    assert "client" in sides, f"doctor --app nfs sees {sides}"


def moved(
    rig: Rig, kind: Callable[..., Any], look: Callable[..., Any], evidence: dict[str, Any], folder: Path
) -> tuple[int, set[str]]:
    """Write to the peer and read back: how many connections there were, and the sides doctor sees."""
    before, wire = rig.counters(), (rig.bench.wire, rig.bench.wire_ports[0])
    with rig.captures.taking({"wire": wire}, folder) as taken:
        with kind(rig) as found:
            found.put(DATA)
            stored, read = found.digest("peer"), found.digest("dut")
            services = look(Files(rig.bench.dut.host), "", {}).services
        counted = rig.counters() - before
    kept = {name: counted.get(name, 0) for names in COUNTED.values() for name in names}
    evidence.update(bytes=len(DATA), counters=kept, sha256=SHA)
    assert (stored, read) == (SHA, SHA), "what the peer has, or what came back, is not what was sent"
    opened = {connections(rig, direction, kept) for direction in COUNTED}
    assert len(opened) == 1, f"counted {kept}"
    seen = list(segments(taken.files()["wire"].read_bytes()))
    assert sum(len(one.payload) for one in seen) > 2 * len(DATA), "the wire does not show both ways"
    assert share(DATA, seen) == 0, "data crossed the wire as plaintext"
    return opened.pop(), {one.side for one in services}


def connections(rig: Rig, direction: str, kept: dict[str, int]) -> int:
    """How many there were one way; all are the card's if it promises TLS 1.3 there, else none is."""
    software, card, packets = (kept[name] for name in COUNTED[direction])
    if any((c.direction, c.version) == (direction, "1.3") for c in rig.profile.promises):
        assert card and packets and not software, f"TLS 1.3 is for the card, and it counted {kept}"
        return card
    assert not card and not packets, f"TLS 1.3, and the card counted {kept}"
    return software
