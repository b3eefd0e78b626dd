"""This NIC sends what stunnel sends, the whole connection: handshake, records, close, both ways (proof C).

All programs draw the same random numbers and are fed in lock step; what was captured beyond the card is
compared with a connection from stunnel to stunnel in user space, made once per cell. Every cell that the card
promises goes by fd write, sendfile and SSL_write(), and by stunnel's own kernel TLS; one that is left to
software (TLS 1.3) by fd write and SSL_write().
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from offload.card.profile import Cell, Profile
from tests.lib.flow import proof, stream
from tests.lib.flow.stream import Streams
from tests.lib.rig.rig import Labs
from tests.lib.rig.switch import Switch

pytestmark = [
    pytest.mark.requires("tls", "ktls-handoff", "stunnel", "openssl", "wire"),
    pytest.mark.promise("wire.stream"),
]
SOFTWARE = Cell("tx", "1.3", "aes-gcm-256")  # the card's only on a kernel that hands TLS 1.3 to cards


@pytest.fixture(scope="module")
def streams(labs: Labs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Streams]:
    """Connections with known random numbers; nothing runs before the first is asked for."""
    found = Streams(lambda: labs.get("nicsim"), tmp_path_factory.mktemp("streams"))
    yield found
    found.close()


@pytest.mark.cells("tx")
@pytest.mark.parametrize("arm", ["write", "sendfile", "ssl-write", "stunnel-ktls"])
def test_sends_the_stream_of_stunnel(
    streams: Streams, offload: Switch, evidence: dict[str, Any], cell: Cell, arm: str
) -> None:
    """This NIC sends the connection that stunnel would have sent, to the last byte, whichever program
    writes."""
    offload.on()
    reference, run = streams.reference(cell), streams.run(cell, arm)
    proof.note(evidence, run.flow, run.plan, "hw")
    stream.same(run, reference, evidence)
    proof.intact(run.flow.far, run.plan)
    stream.done_by(run, "hw")


@pytest.mark.parametrize("arm", ["write", "ssl-write"])
@pytest.mark.parametrize("cell", [SOFTWARE], ids=["tx-13_aes_gcm_256"])
def test_leaves_the_stream_alone(
    streams: Streams, profile: Profile, offload: Switch, evidence: dict[str, Any], cell: Cell, arm: str
) -> None:
    """This NIC does not change a connection that kernel software encrypts: it is stunnel's as well."""
    offload.on()
    who = "hw" if cell in profile.promises else "sw"
    reference, run = streams.reference(cell), streams.run(cell, arm)
    proof.note(evidence, run.flow, run.plan, who)
    stream.same(run, reference, evidence)
    proof.intact(run.flow.far, run.plan)
    stream.done_by(run, who)


@pytest.mark.once
def test_other_random_numbers_make_another_stream(
    streams: Streams, offload: Switch, evidence: dict[str, Any]
) -> None:
    """This NIC faces a proof that can fail: stunnel itself is equal again, and not with another seed."""
    offload.on()
    reference, again = streams.reference(SOFTWARE), streams.run(SOFTWARE, "stunnel")
    stream.same(again, reference, evidence)
    other = streams.run(SOFTWARE, "stunnel", client="another client")
    proof.intact(other.flow.far, other.plan)
    assert stream.compared(other, reference, {})["outcome"] == "different"
