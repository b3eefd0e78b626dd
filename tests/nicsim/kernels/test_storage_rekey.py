"""What a kernel makes of a KeyUpdate under NVMe/TCP and NFS: no card has a part in it, and none is judged."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from offload.cmd import wait_until
from offload.host.base import Process
from tests.lib.flow import storage, storage_update
from tests.lib.rig.rig import Rig
from tests.lib.rig.switch import Switch

DATA = hashlib.shake_128(b"storage").digest(storage.SIZE)
SHA = hashlib.sha256(DATA).hexdigest()
PATIENCE = 10  # seconds for a request, until it times out


@pytest.mark.long
@pytest.mark.requires("tls", "nvme-tls")
def test_stalls_nvme_at_a_key_update(rig: Rig, offload: Switch, evidence: dict[str, Any]) -> None:
    """A KeyUpdate of the target stalls NVMe/TCP until a request times out; without rekey it reconnects.

    Here that fails: the kernel reconnects in its first network namespace, and the DUT has another.
    """
    offload.on()
    with storage_update.sender(rig) as sender, storage.nvme(rig) as found:
        found.dut.run(["sh", "-ec", storage_update.IMPATIENT.format(PATIENCE * 1000)])
        with stalled(rig, found, sender, 2, evidence) as read:
            state = ["sh", "-c", "cat /sys/class/nvme/nvme*/state"]
            wait_until(lambda: "connecting" in found.dut.run(state).text, storage.SOON, "a timeout", 0.5)
            evidence["log"] = found.dut.run(["sh", "-c", "dmesg | grep nvme0: | tail -n 5"]).text
            assert read.running(), read.output()
    stalls = "TlsRxRekeyReceived" in rig.counters().values()
    assert (" timeout" in evidence["log"]) == stalls, evidence["log"]
    assert ("receive failed: -22" in evidence["log"]) != stalls, evidence["log"]


@pytest.mark.long
@pytest.mark.requires("tls", "nfs-tls")
def test_stalls_nfs_at_a_key_update(rig: Rig, offload: Switch, evidence: dict[str, Any]) -> None:
    """A KeyUpdate of the server stalls NFS until its connection ends; a kernel without rekey drops it."""
    offload.on()
    with storage_update.sender(rig) as sender, storage.nfs(rig) as found:
        with stalled(rig, found, sender, 1, evidence) as read:
            if "TlsRxRekeyReceived" in rig.counters().values():
                time.sleep(PATIENCE)
                assert read.running(), read.output()
                found.dut.run(["ss", "-K", "dst", str(rig.bench.peer.v4), "dport", "=", "2049"])
            done = read.wait(storage.SOON)
    assert done.text.split()[0] == SHA, "what came back is not what was sent"


@contextmanager
def stalled(
    rig: Rig, found: storage.Storage, sender: storage_update.Sender, held: int, evidence: dict[str, Any]
) -> Iterator[Process]:
    """Write, take a KeyUpdate of the peer, and begin to read; the counters of the block."""
    found.put(DATA)
    before = rig.counters()
    sender.sends(held)
    read = found.dut.start(found.reading("dut"))
    try:
        yield read
        counted = rig.counters() - before
        evidence.update(counters=counted.nonzero("Tls"))
    finally:
        read.kill()
    if "TlsRxRekeyReceived" in before.values():
        assert counted["TlsRxRekeyReceived"] == 1, f"counted {evidence['counters']}"
