"""Without a NIC that offloads kernel software sends what stunnel sends, the whole connection (proof C).

As its twin in tests/hw. TLS 1.2 with AES-256 goes by every arm, AES-128 by fd write, TLS 1.3 by fd
write, sendfile and SSL_write(): there OpenSSL installs kernel TLS at another place, after the handshake.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from offload.card.profile import Cell
from tests.lib.flow import proof, stream
from tests.lib.flow.stream import Streams
from tests.lib.rig.rig import Labs

pytestmark = [
    pytest.mark.requires("tls", "ktls-handoff", "stunnel", "openssl", "wire"),
    pytest.mark.promise("wire.stream"),
]
GCM128, GCM256 = Cell("tx", "1.2", "aes-gcm-128"), Cell("tx", "1.2", "aes-gcm-256")
TLS13 = Cell("tx", "1.3", "aes-gcm-256")
ARMS = [(GCM256, arm) for arm in ("write", "sendfile", "ssl-write", "stunnel-ktls")]
ARMS += [(GCM128, "write"), *((TLS13, arm) for arm in ("write", "sendfile", "ssl-write"))]


@pytest.fixture(scope="module")
def streams(labs: Labs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Streams]:
    """Connections with known random numbers; nothing runs before the first is asked for."""
    found = Streams(lambda: labs.get("veth"), tmp_path_factory.mktemp("streams"))
    yield found
    found.close()


@pytest.mark.parametrize(("cell", "arm"), ARMS, ids=[f"{c.version}-{c.cipher}-{arm}" for c, arm in ARMS])
def test_sends_the_stream_of_stunnel(
    streams: Streams, evidence: dict[str, Any], cell: Cell, arm: str
) -> None:
    """Without a NIC that offloads kernel TLS sends stunnel's connection, to the last byte, whoever writes."""
    reference, run = streams.reference(cell), streams.run(cell, arm)
    proof.note(evidence, run.flow, run.plan, "sw")
    stream.same(run, reference, evidence)
    proof.intact(run.flow.far, run.plan)
    stream.done_by(run, "sw")


def test_other_random_numbers_make_another_stream(streams: Streams, evidence: dict[str, Any]) -> None:
    """Without a NIC that offloads the proof can fail: stunnel is equal again, and not with another seed."""
    reference, again = streams.reference(GCM256), streams.run(GCM256, "stunnel")
    stream.same(again, reference, evidence)
    other = streams.run(GCM256, "stunnel", client="another client")
    proof.intact(other.flow.far, other.plan)
    assert stream.compared(other, reference, {})["outcome"] == "different"
