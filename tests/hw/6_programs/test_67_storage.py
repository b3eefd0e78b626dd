"""NVMe/TCP and NFS with TLS: the kernel speaks TLS 1.3 for it, which no card does: software takes over."""

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
CARD = ("TlsTxDevice", "TlsRxDevice", "tx_tls_encrypted_packets", "rx_tls_decrypted_packets")


@pytest.mark.requires("tls", "wire", "nvme-tls")
def test_leaves_storage_to_software(
    rig: Rig, offload: Switch, evidence: dict[str, Any], tmp_path: Path
) -> None:
    """This NIC has no part in NVMe/TCP with TLS: software does it, and no byte crosses as plaintext."""
    offload.on()
    opened, sides = moved_by_software(rig, storage.nvme, doctor.nvme, evidence, tmp_path)
    assert opened == 2, f"the admin queue and one more are two connections, and {opened} were opened"
    assert "client" in sides, f"doctor --app nvme sees {sides}"


@pytest.mark.requires("tls", "wire", "nfs-tls")
def test_leaves_nfs_to_software(rig: Rig, offload: Switch, evidence: dict[str, Any], tmp_path: Path) -> None:
    """This NIC has no part in NFS with TLS: software does it, and no byte crosses as plaintext."""
    offload.on()
    opened, sides = moved_by_software(rig, storage.nfs, doctor.nfs, evidence, tmp_path)
    assert opened >= 1, "the mount has no connection with TLS"
    assert "client" in sides, f"doctor --app nfs sees {sides}"


def moved_by_software(
    rig: Rig, kind: Callable[..., Any], look: Callable[..., Any], evidence: dict[str, Any], folder: Path
) -> tuple[int, set[str]]:
    """Write to the peer and read back: how many connections software had, and the sides doctor sees."""
    before, wire = rig.counters(), (rig.bench.wire, rig.bench.wire_ports[0])
    with rig.captures.taking({"wire": wire}, folder) as taken:
        with kind(rig) as found:
            found.put(DATA)
            stored, read = found.digest("peer"), found.digest("dut")
            services = look(Files(rig.bench.dut.host), "", {}).services
        moved = rig.counters() - before
    kept = {name: moved.get(name, 0) for name in ("TlsTxSw", "TlsRxSw", *CARD)}
    evidence.update(bytes=len(DATA), counters=kept, sha256=SHA)
    assert (stored, read) == (SHA, SHA), "what the peer has, or what came back, is not what was sent"
    assert kept["TlsTxSw"] == kept["TlsRxSw"], f"counted {kept}"
    assert not any(kept[name] for name in CARD), f"TLS 1.3, and the card counted {kept}"
    seen = list(segments(taken.files()["wire"].read_bytes()))
    assert sum(len(one.payload) for one in seen) > 2 * len(DATA), "the wire does not show both ways"
    assert share(DATA, seen) == 0, "data crossed the wire as plaintext"
    return kept["TlsTxSw"], {one.side for one in services}
