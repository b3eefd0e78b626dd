"""NVMe/TCP with TLS: the kernel speaks TLS 1.3 for it, which no card does: software takes over."""

from __future__ import annotations

import hashlib
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
QUEUES = 2  # the admin queue and one more
CARD = ("TlsTxDevice", "TlsRxDevice", "tx_tls_encrypted_packets", "rx_tls_decrypted_packets")


@pytest.mark.requires("tls", "wire", "nvme-tls")
def test_leaves_storage_to_software(
    rig: Rig, offload: Switch, evidence: dict[str, Any], tmp_path: Path
) -> None:
    """This NIC has no part in NVMe/TCP with TLS: software does it, and no byte crosses as plaintext."""
    offload.on()
    before, wire = rig.counters(), (rig.bench.wire, rig.bench.wire_ports[0])
    with rig.captures.taking({"wire": wire}, tmp_path) as taken:
        with storage.nvme(rig) as found:
            found.put(DATA)
            stored, read = found.digest("peer"), found.digest("dut")
            services = doctor.nvme(Files(rig.bench.dut.host), "", {}).services
        moved = rig.counters() - before
    assert "client" in {one.side for one in services}, f"doctor --app nvme sees {services}"
    kept = {name: moved.get(name, 0) for name in ("TlsTxSw", "TlsRxSw", *CARD)}
    evidence.update(bytes=len(DATA), counters=kept, sha256=SHA)
    assert (stored, read) == (SHA, SHA), "what the peer has, or what came back, is not what was sent"
    assert (kept["TlsTxSw"], kept["TlsRxSw"]) == (QUEUES, QUEUES), f"counted {kept}"
    assert not any(kept[name] for name in CARD), f"TLS 1.3, and the card counted {kept}"
    seen = list(segments(taken.files()["wire"].read_bytes()))
    assert sum(len(one.payload) for one in seen) > 2 * len(DATA), "the wire does not show both ways"
    assert share(DATA, seen) == 0, "data crossed the wire as plaintext"
