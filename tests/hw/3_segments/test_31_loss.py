"""This NIC goes on decrypting while frames are lost by chance: how much, at each level of loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from offload.card.profile import Cell
from offload.host.base import Side
from offload.suite.traffic import handoff
from offload.suite.traffic.drive import Sending, send
from offload.suite.traffic.impair import RandomImpairment
from tests.lib.flow import proof
from tests.lib.flow.flow import Several, Traffic
from tests.lib.impair.impairment import (
    PATIENCE,
    RECORD,
    ImpairedRun,
    Rules,
    all_met,
    back_in_step,
    controlled,
    impaired,
    in_parts,
    recovery,
    sink,
    source,
    three,
    trouble,
)
from tests.lib.rig.switch import Switch
from tests.lib.wire.records_trace import OVERHEAD, Met, shares, tracing

pytestmark = pytest.mark.requires("tls", "ktls-handoff", "wire", "records-trace")
RX = Cell("rx", "1.2", "aes-gcm-128")
LEVELS = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)  # percent; those that were published of ConnectX-6 Dx
STORM = 48 * RECORD
NEAR = 0.06  # a card may count headers of packets too: 5 % of what they carry at an MTU of 1500
ASK, ASKED = send(Sending("ask", (1,))), {"do": "take", "bytes": 1}
SWEEP = [pytest.param(n, marks=() if n in (0, 2) else pytest.mark.once) for n in LEVELS]


def random_loss(percent: float) -> Rules:
    """The rules of a level; one seed for all: what is lost at one level is lost at the next ones too."""
    return (RandomImpairment(loss=percent, seed=3, direction="to-dut"),) if percent else ()


def received_records(traffic: Traffic, cell: Cell, plan: Several, clear: Callable[[], None]) -> ImpairedRun:
    """Receive three parts from the peer's kernel, in full records; `clear` is called when it has the first.

    The first part, too, is sent only when the DUT has asked for it: its keys are with the card by then.
    """
    start, port, side = traffic.rig.counters(), traffic.rig.next_port(), traffic.peer.side
    argv = handoff.accept(side.v4, port, traffic.peer.at, version=cell.version, cipher=cell.cipher)
    far = traffic.peer.pump.handoff(argv, ASKED, *source(plan), timeout=PATIENCE)
    far.listening()
    argv = traffic.argv(cell, port, want="both")
    near = traffic.dut.pump.handoff(argv, ASK, *sink(plan), timeout=PATIENCE)
    return in_parts(traffic, near, far, start, clear)


def full_records(met: Sequence[Met], plan: Several) -> list[Met]:
    """The records that hold the payload, without Finished and alert: as many as were sent."""
    records = [record for record in met if record.size == RECORD]
    assert len(records) == plan.total // RECORD, (
        f"the kernel met {len(records)} records of {RECORD} bytes, {plan.total // RECORD} were sent"
    )
    return records


def under_loss(
    evidence: dict[str, Any], percent: float, records: Sequence[Met], seen: ImpairedRun, plan: Several
) -> dict[str, Any]:
    """Keep, and return, what became of the records of the first part, in which frames were lost."""
    size = plan.parts[0].total
    evidence["loss"] = {
        "percent": percent,
        **shares(records[: size // RECORD]),
        "resync_requests": seen.before.get("TlsRxDeviceResync", 0),
        "bytes": size,
    }
    return dict(evidence["loss"])


def counted_right(records: Sequence[Met], seen: ImpairedRun) -> None:
    """The card counts as decrypted at least the records that came so, and at most those it touched."""
    counted, size = proof.count(seen.flow, "rx_tls_decrypted_bytes"), RECORD + OVERHEAD
    found = shares(records)
    least, most = found["full"] * size, (found["full"] + found["part"]) * size
    assert least * (1 - NEAR) <= counted <= most * (1 + NEAR) + size, (
        f"the card counted {counted} bytes as decrypted; the kernel met {found['full']} records that it had "
        f"decrypted in full and {found['part']} in part: {least} to {most} bytes"
    )


def went_on(found: dict[str, Any]) -> None:
    """Something was decrypted while frames were lost; where none were, all but the start of the stream."""
    if found["percent"]:
        assert found["full"] + found["part"] > 0, f"the card decrypted nothing at {found['percent']:g} % loss"
        return
    start = proof.RX_START // RECORD
    assert found["full"] >= found["records"] - start and not found["resync_requests"] > 1, (
        f"without any loss the card decrypted {found['full']} of {found['records']} records in full"
    )


@pytest.mark.promise("resync.loss")
@pytest.mark.parametrize("percent", SWEEP, ids=lambda percent: f"{percent:g}%")
def test_decrypts_under_random_loss(
    traffic: Traffic,
    offload: Switch,
    peer_offload: Switch,
    dut: Side,
    evidence: dict[str, Any],
    percent: float,
) -> None:
    """This NIC goes on decrypting while this share of the frames is lost, and is in sync when none are."""
    offload.on()
    peer_offload.set(tx=False, rx=False)  # only the DUT's card is asked
    rules, plan = random_loss(percent), three(f"loss {percent:g}", STORM)

    def transfer(noted: dict[str, Any]) -> ImpairedRun:
        with impaired(traffic, noted, rules, strict=False) as box:
            return received_records(traffic, RX, plan, box.clear)

    with controlled(evidence, offload, lambda: trouble(transfer({}).flow, plan, sent=False)):
        with tracing(dut.host) as trace:
            seen = transfer(evidence)
            met = trace.records()
        proof.note(evidence, seen.flow, plan, "hw")
        recovery(evidence, seen, plan)
        proof.handed_over(seen.flow, RX)
        proof.intact(seen.flow.dut, plan)
        all_met(evidence)
        records = full_records(met, plan)
        found = under_loss(evidence, percent, records, seen, plan)
        back_in_step(evidence, seen)
        counted_right(records, seen)
        went_on(found)
