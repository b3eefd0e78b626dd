"""A connection in impairments: what was done to it on the wire, and how soon the card is resynchronized."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from offload.card.counters import Delta, Snapshot
from offload.card.profile import Cell
from offload.errors import OffloadError, RigError
from offload.suite.traffic.drive import Ended, Sending, Transfer, send, sending, take
from offload.suite.traffic.impair import Box, Chosen, RandomImpairment, Record, wirebox
from tests.lib.flow import proof
from tests.lib.flow.flow import Flow, Several, Traffic
from tests.lib.rig.switch import Switch

Rules = tuple[Chosen | RandomImpairment, ...]
RECORD = 16384  # bytes of payload in a full record
RECOVERY = 8 * RECORD  # what a card may take to find the records once the impairment is over
CALM = 24 * RECORD
IN_STEP = 95.0  # percent of the calm that the card must decrypt: all but one record
PATIENCE = 30.0  # seconds without a byte: a connection that is dead, not one that TCP is still mending

INSIDE = ("header", "inside", "tag")
FINISHED = 3  # of the client: after ClientHello, ClientKeyExchange, ChangeCipherSpec; the card's first record
STORM = (6, 7, 8, 10, 11, 13)  # of eight records in a row these lose the frame with their header


def chosen(action: str, direction: str, *places: str, **more: Any) -> Rules:
    """Rules for the frame at each place: record 10 for the first one in a record, 12, 14 for the others."""
    return tuple(
        Chosen(place, 10 + 2 * n if place in INSIDE else 0, action, direction, data=place in INSIDE, **more)
        for n, place in enumerate(places)
    )


def storm(direction: str) -> Rules:
    """Rules for a storm: most headers of eight records in a row are lost."""
    return tuple(Chosen("header", number, "drop", direction, data=True) for number in STORM)


def noise(direction: str) -> Rules:
    """Rules for noise: a bit wrong in each place of a record, and the checksum with it."""
    return chosen("flip", direction, *INSIDE, repaired=False)


def chance(direction: str) -> Rules:
    """Rules for a loss of 2 %, the same frames in every run."""
    return (RandomImpairment(loss=2.0, seed=5, direction=direction),)


# What is done on the way from a card that sends, and on the way to one that receives. Only what does not come
# makes the sender's card go back; what the receiver's card must find depends on the frame.
SENT = {
    "records": chosen("drop", "to-peer", *INSIDE),
    "ends": (Chosen("header", FINISHED), *chosen("drop", "to-peer", "first", "last")),
    "storm": storm("to-peer"),
    "noise": noise("to-peer"),
    "late": chosen("delay", "to-peer", *INSIDE, "first", "last"),
    "2%": chance("to-peer"),
}
AGAIN = tuple(name for name in SENT if name != "late")  # something must be sent again
WITHIN = tuple(name for name in AGAIN if name != "ends")  # from the middle of a record
CAME = {
    **{place: chosen("drop", "to-dut", place) for place in INSIDE},
    "ends": chosen("drop", "to-dut", "first", "last"),
    "storm": storm("to-dut"),
    "noise": noise("to-dut"),
    "late": chosen("delay", "to-dut", *INSIDE, "first", "last"),
    "twice": chosen("duplicate", "to-dut", *INSIDE, "first", "last"),
    "2%": chance("to-dut"),
}


@contextmanager
def impaired(
    traffic: Traffic, evidence: dict[str, Any], rules: Rules, *, strict: bool = True
) -> Iterator[Box]:
    """Make this impairment on the wire; RigError if a rule never met its frame: then nothing was tested.

    Not `strict`: a card that breaks the connection may be why, so `all_met` is for when it proved whole.
    In a replay the impairment is that of the former run.
    """
    box, turn = None, evidence.get("impairment", {}).get("turn", 0) + 1
    start, seed = as_before(evidence, turn) or (rules, 1)
    try:
        with wirebox(traffic.rig.bench, start, seed=seed) as box:
            yield box
    finally:
        if box is not None:
            evidence["impairment"] = {**box.record().json(), "turn": turn}
    missed = [text for number, text in enumerate(rules_of(box.record()), 1) if not acts(box.record(), number)]
    evidence["impairment"]["missed"] = missed
    if strict:
        all_met(evidence)


def all_met(evidence: Mapping[str, Any]) -> None:
    """RigError if a rule of the last impairment never met its frame; AssertionError if the card is why.

    The wire counts the records of a stream as long as its bytes come in order, as TCP sends them.
    """
    missed = evidence["impairment"]["missed"]
    gaps = evidence["impairment"]["summary"].get("to-peer", {}).get("gaps", 0)
    assert not (missed and gaps), (
        f"{gaps} frames left the DUT before bytes that TCP sent first: in another order, or some are lost"
    )
    if missed:
        raise RigError(f"the impairments met no frame: {'; '.join(missed)}")


def as_before(evidence: Mapping[str, Any], turn: int) -> tuple[tuple[str, ...], int] | None:
    """Rules and seed of a former run's last impairment in this test, if a replay asks for it in this turn."""
    former = evidence.get("replay", {})
    if "rules" not in former or former.get("turn", 1) != turn:
        return None
    record = Record.of(former)
    return record.start, record.seed


def rules_of(record: Record) -> list[str]:
    """The rules that can act."""
    return [text for text in record.rules if text != "clear"]


def acts(record: Record, rule: int) -> int:
    """How often a rule did something."""
    return sum(action.rule == rule and action.action != "none" for action in record.actions)


@contextmanager
def controlled(evidence: dict[str, Any], offload: Switch, again: Callable[[], str]) -> Iterator[None]:
    """If what is inside fails, do it `again` without the card, and add the result to the failure."""
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
        exc.args = ("\n".join([f"{first}; the same impairments with software TLS: {said}", *rest]),)
        raise


def trouble(flow: Flow, plan: Sending | Several, *, sent: bool) -> str:
    """Say what is wrong with a transfer; nothing if it is intact."""
    try:
        proof.intact(flow.far if sent else flow.dut, plan)
    except AssertionError as exc:
        return str(exc)
    return ""


@dataclass(frozen=True)
class ImpairedRun:
    """A connection received in three parts, and how far the counters moved until the calm and in it."""

    flow: Flow
    before: Delta
    calm: Delta


def three(name: str, storm: int) -> Several:
    """Plan what is received: `storm` bytes, those in which the card may recover, and the calm."""
    sizes = {"storm": storm, "recovery": RECOVERY, "calm": CALM}
    return Several(tuple(sending(f"{name} {part}", size) for part, size in sizes.items()))


def sent(traffic: Traffic, cell: Cell, plan: Sending) -> Flow:
    """Send from the DUT to a sink behind stunnel; a connection that impairment or a card kills ends soon."""
    before = traffic.rig.counters()
    with traffic.behind_stunnel(take()) as (port, far):
        near = traffic.dut.pump.handoff(traffic.argv(cell, port), send(plan), timeout=PATIENCE)
        return traffic.ended(near, far, before)


def received(traffic: Traffic, cell: Cell, plan: Several, clear: Callable[[], None]) -> ImpairedRun:
    """Receive three parts from a source behind stunnel; `clear` is called when the first one is taken."""
    start = traffic.rig.counters()
    with traffic.behind_stunnel(*source(plan)) as (port, far):
        argv = traffic.argv(cell, port, want="both")
        near = traffic.dut.pump.handoff(argv, *sink(plan), timeout=PATIENCE)
        return in_parts(traffic, near, far, start, clear)


def source(plan: Several) -> tuple[dict[str, Any], ...]:
    """The steps of who sends three parts, each but the first only when the DUT has the one before."""
    storm, again, calm = plan.parts
    return send(storm), take(1), send(again), take(1), send(replace(calm, gate=0))


def sink(plan: Several) -> tuple[dict[str, Any], ...]:
    """The steps of the DUT: it says by one byte that it has a part."""
    storm, again, _ = plan.parts
    word = Sending("go", (1,), gate=0)
    return take(storm.total), send(word), take(again.total), send(replace(word, gate=-1)), take()


def in_parts(
    traffic: Traffic, near: Transfer, far: Transfer, start: Snapshot, clear: Callable[[], None]
) -> ImpairedRun:
    """Let the parts go one after the other; what ends early is in the reports."""
    with suppress(Ended):
        near.at_gate()
        clear()
        near.go()
        far.at_gate()
    between = traffic.rig.counters()
    far.go()
    flow = traffic.ended(near, far, start)
    return ImpairedRun(flow, between - start, traffic.rig.counters() - between)


def recovery(evidence: dict[str, Any], seen: ImpairedRun, plan: Several) -> None:
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


def sent_again(evidence: dict[str, Any], flow: Flow, seen: Mapping[str, Any], name: str) -> None:
    """The card noticed that something was sent again, and had what it takes to encrypt it again.

    How much of a record it is given again for that (mlx5 calls it dump) is counted by some drivers only.
    """
    names = ("ooo", "dump_packets", "dump_bytes", "skip_no_sync_data", "drop_no_sync_data")
    moved = {n: value for n in names if (value := flow.moved.get(f"tx_tls_{n}")) is not None}
    evidence["sent_again"] = {"retransmissions": seen["retransmissions"], **moved}
    assert proof.count(flow, "tx_tls_drop_no_sync_data") == 0, "the card dropped what it could not place"
    if name in AGAIN:
        assert seen["retransmissions"] > 0, "nothing was seen to be sent again"
        assert proof.count(flow, "tx_tls_ooo") > 0, "the card did not notice that something was sent again"
    if name in WITHIN and "dump_bytes" in moved:
        assert moved["dump_bytes"] > 0, "records were sent again from their middle, and the card did without"


def back_in_step(evidence: dict[str, Any], seen: ImpairedRun) -> None:
    """The card decrypts again once the impairment is over, and no record was damaged on the way."""
    flow, found = seen.flow, evidence["recovery"]
    assert flow.line.rx == "hw", f"inet_diag shows receive as {flow.line.rx}"
    assert proof.count(flow, "TlsRxDevice") == 1 and proof.count(flow, "TlsRxSw") == 0
    assert proof.count(flow, "TlsDecryptError") == 0, "the kernel met records that are not authentic"
    errors = seen.calm.get("rx_tls_err", 0)
    assert found["calm_decrypted_percent"] >= IN_STEP and not errors, (
        "the card is not resynchronized: "
        f"it decrypted {found['calm_decrypted_percent']} % of the calm phase, with {errors} errors "
        f"(resync: {found['resync_requests']} answered, {found['resync_answers_taken']} taken)"
    )
