"""A connection in bad weather: what was done to it on the wire, and how soon the card is back in step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from offload.counters import Delta
from offload.errors import OffloadError, RigError
from offload.profile import Cell
from offload.traffic.drive import Ended, Sending, send, sending, take
from offload.traffic.impair import Box, Chosen, Record, Weather, wirebox
from tests.lib import proof
from tests.lib.flow import Flow, Several, Traffic
from tests.lib.switch import Switch

Rules = tuple[Chosen | Weather, ...]
RECORD = 16384  # bytes of payload in a full record
RECOVERY = 8 * RECORD  # what a card may take to find the records once the weather is over
CALM = 24 * RECORD
IN_STEP = 95.0  # percent of the calm that the card has to decrypt: all but one record


INSIDE = ("header", "inside", "tag")
FINISHED = 3  # of the client: after ClientHello, ClientKeyExchange, ChangeCipherSpec; the card's first record


def chosen(action: str, direction: str, *places: str) -> Rules:
    """Rules for the frame at each place: record 10 for the first one in a record, 12, 14 for the others."""
    return tuple(
        Chosen(place, 10 + 2 * n if place in INSIDE else 0, action, direction, data=place in INSIDE)
        for n, place in enumerate(places)
    )


def chance(direction: str) -> Rules:
    """Rules for a loss of 2 %, the same frames in every run."""
    return (Weather(loss=2.0, seed=5, direction=direction),)


# What is done on the way from a card that sends, and on the way to one that receives. Only with loss does the
# sender's card have to go back; what the receiver's card has to find depends on the frame.
SENT = {
    "records": chosen("drop", "to-peer", *INSIDE),
    "ends": (Chosen("header", FINISHED), *chosen("drop", "to-peer", "first", "last")),
    "2%": chance("to-peer"),
}
CAME = {
    **{place: chosen("drop", "to-dut", place) for place in INSIDE},
    "ends": chosen("drop", "to-dut", "first", "last"),
    "late": chosen("delay", "to-dut", *INSIDE, "first", "last"),
    "twice": chosen("duplicate", "to-dut", *INSIDE, "first", "last"),
    "2%": chance("to-dut"),
}


@contextmanager
def raining(traffic: Traffic, evidence: dict[str, Any], rules: Rules) -> Iterator[Box]:
    """Make this weather on the wire; RigError if a rule never met its frame: then nothing was tested."""
    box = None
    try:
        with wirebox(traffic.rig.bench, rules) as box:
            yield box
    finally:
        if box is not None:
            evidence["weather"] = box.record().json()
    missed = [text for number, text in enumerate(rules_of(box.record()), 1) if not acts(box.record(), number)]
    if missed:
        raise RigError(f"the weather met no frame: {'; '.join(missed)}")


def rules_of(record: Record) -> list[str]:
    """The rules that can act."""
    return [text for text in record.rules if text != "clear"]


def acts(record: Record, rule: int) -> int:
    """How often a rule did something."""
    return sum(action.rule == rule and action.action != "none" for action in record.actions)


@contextmanager
def controlled(evidence: dict[str, Any], offload: Switch, again: Callable[[], str]) -> Iterator[None]:
    """If what is inside fails, do it `again` without the card, and put what came of it beside the failure."""
    try:
        yield
    except AssertionError as exc:
        try:
            offload.set(tx=False, rx=False)
            said = again() or "intact"
        except (AssertionError, OffloadError) as other:
            said = f"not to be had: {other}"
        evidence["control"] = said
        first, *rest = str(exc).splitlines() or [""]
        exc.args = ("\n".join([f"{first}; the same weather with software TLS: {said}", *rest]),)
        raise


def trouble(flow: Flow, plan: Sending | Several, *, sent: bool) -> str:
    """Say what is wrong with a transfer; nothing if it is intact."""
    try:
        proof.intact(flow.far if sent else flow.dut, plan)
    except AssertionError as exc:
        return str(exc)
    return ""


@dataclass(frozen=True)
class Weathered:
    """A connection received in three parts, and how far the counters moved until the calm and in it."""

    flow: Flow
    before: Delta
    calm: Delta


def three(name: str, storm: int) -> Several:
    """Plan what is received: `storm` bytes, those in which the card may recover, and the calm."""
    sizes = {"storm": storm, "recovery": RECOVERY, "calm": CALM}
    return Several(tuple(sending(f"{name} {part}", size) for part, size in sizes.items()))


def received(traffic: Traffic, cell: Cell, plan: Several, clear: Callable[[], None]) -> Weathered:
    """Receive three parts from a source behind stunnel; `clear` is called when the first one is taken.

    The DUT says by one byte that it has a part, and the source sends the next one only then.
    """
    start, (storm, again, calm), word = traffic.rig.counters(), plan.parts, Sending("go", (1,), gate=0)
    source = (send(storm), take(1), send(again), take(1), send(replace(calm, gate=0)))
    sink = (take(storm.total), send(word), take(again.total), send(replace(word, gate=-1)), take())
    with traffic.behind_stunnel(*source) as (port, far):
        near = traffic.dut.pump.handoff(traffic.argv(cell, port, want="both"), *sink)
        with suppress(Ended):  # the reports say more
            near.at_gate()
            clear()
            near.go()
            far.at_gate()
        between = traffic.rig.counters()
        far.go()
        flow = traffic.ended(near, far, start)
    return Weathered(flow, between - start, traffic.rig.counters() - between)


def recovery(evidence: dict[str, Any], seen: Weathered, plan: Several) -> None:
    """Keep what software had to decrypt until the calm (with the start of the stream), and in it."""
    calm = plan.parts[-1].total
    before = plan.total - calm
    done = [part.get("rx_tls_decrypted_bytes", 0) for part in (seen.before, seen.calm)]
    by_software = max(0, before - done[0])
    evidence["recovery"] = {
        "bytes": before,
        "software_bytes": by_software,
        "software_records": -(-by_software // RECORD),
        "calm_bytes": calm,
        "calm_decrypted_percent": round(100 * min(1.0, done[1] / calm), 1),
        "resync_requests": seen.flow.moved.get("TlsRxDeviceResync", 0),
        "resync_answers_taken": seen.flow.moved.get("rx_tls_resync_res_ok", 0),
    }


def back_in_step(evidence: dict[str, Any], seen: Weathered) -> None:
    """The card decrypts again once the weather is over, and no record was damaged on the way."""
    flow, found = seen.flow, evidence["recovery"]
    assert flow.line.rx == "hw", f"inet_diag shows receive as {flow.line.rx}"
    assert proof.count(flow, "TlsRxDevice") == 1 and proof.count(flow, "TlsRxSw") == 0
    assert proof.count(flow, "TlsDecryptError") == 0, "the kernel met records that are not authentic"
    assert found["calm_decrypted_percent"] >= IN_STEP, (
        f"the card is not back in step: it decrypted {found['calm_decrypted_percent']} % of the calm"
    )
