"""NFS and NVMe/TCP with TLS: the kernel speaks TLS 1.3 for them, which no card does: software takes over."""

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
OPENED = {"nvme": storage.nvme, "nfs": storage.nfs}
REPORTED = {"nvme": doctor.nvme, "nfs": doctor.nfs}
CONNECTIONS = {"nvme": 2, "nfs": 1}  # an admin queue and one more; one mount
CARD = ("TlsTxDevice", "TlsRxDevice", "tx_tls_encrypted_packets", "rx_tls_decrypted_packets")


@pytest.mark.requires("tls", "wire")
@pytest.mark.parametrize(
    "app", [pytest.param(app, marks=pytest.mark.requires(f"{app}-tls")) for app in OPENED]
)
def test_leaves_storage_to_software(
    rig: Rig, offload: Switch, evidence: dict[str, Any], tmp_path: Path, app: str
) -> None:
    """This NIC has no part in NFS and NVMe/TCP with TLS: software does it, no byte as plaintext."""
    offload.on()
    before, wire = rig.counters(), (rig.bench.wire, rig.bench.wire_ports[0])
    with rig.captures.taking({"wire": wire}, tmp_path) as taken:
        with OPENED[app](rig) as found:
            found.put(DATA)
            stored, read = found.digest("peer"), found.digest("dut")
            reported = REPORTED[app](Files(rig.bench.dut.host), "", {})
        moved = rig.counters() - before
    assert [one.side for one in reported.services] == ["client"], (
        f"doctor --app {app} sees {reported.services}"
    )
    kept = {name: moved.get(name, 0) for name in ("TlsTxSw", "TlsRxSw", *CARD)}
    evidence.update(app=app, bytes=len(DATA), counters=kept, sha256=SHA)
    assert (stored, read) == (SHA, SHA), (
        f"{app}: what the peer has, and what came back, differ from what was sent"
    )
    assert (kept["TlsTxSw"], kept["TlsRxSw"]) == (CONNECTIONS[app],) * 2, f"{app}: counted {kept}"
    assert not any(kept[name] for name in CARD), f"{app}: TLS 1.3, and the card counted {kept}"
    seen = list(segments(taken.files()["wire"].read_bytes()))
    assert sum(len(one.payload) for one in seen) > 2 * len(DATA), f"{app}: the wire does not show both ways"
    assert share(DATA, seen) == 0, f"{app}: data crossed the wire as plaintext"
