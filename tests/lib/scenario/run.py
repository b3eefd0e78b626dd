"""Runs one scenario against a lab, and holds it to every invariant: `run` is what the tests call."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offload.cmd import settles
from offload.suite.traffic.learned import learned
from tests.lib.flow.stand_ins import packets_only
from tests.lib.life.life import held
from tests.lib.rig.rig import Rig
from tests.lib.scenario import setting, troubles
from tests.lib.scenario.connections import Line, by_call, close, obeyed, opened, sent
from tests.lib.scenario.events import Stage
from tests.lib.scenario.layout import MANY, first_number
from tests.lib.scenario.play import Play
from tests.lib.scenario.space import Scenario, cell_of
from tests.lib.scenario.stand import Stand
from tests.lib.scenario.taps import Taps
from tests.lib.scenario.verdict import judge
from tests.lib.scenario.verdict.blame import Unseen
from tests.lib.scenario.verdict.invariants import Facts, NotTaken, facts
from tests.lib.scenario.verdict.where import in_record


@dataclass(frozen=True)
class Made:
    """A scenario that held: the conditions that were really met, and in words those that were not."""

    scenario: Scenario
    met: Mapping[str, str]
    missing: tuple[str, ...]
    evidence: Mapping[str, Any]


def run(stand: Stand, scenario: Scenario, *, strict: bool = False) -> Made:
    """Make a scenario. AssertionError if an invariant does not hold; Unseen if the capture cannot tell.

    `strict`: the card has to find its place again also where its profile says that it does not.
    """
    stand.ready(scenario)
    try:
        return _made(stand, scenario, strict)
    finally:
        stand.done(scenario)


def _made(stand: Stand, scenario: Scenario, strict: bool) -> Made:
    """Make it on connections that are ready."""
    rig = stand.rig
    with rig.captures.first(), ExitStack() as undo:
        folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="ktls-offload-scenario-")))
        undo.enter_context(kept_if_it_fails(folder, stand.keep))
        setting.prepare(undo, rig, scenario)
        before = facts(rig)
        taps = Taps(undo, rig, folder, scenario, decrypts="rx" in stand.card)
        wire = troubles.on(undo, rig) if troubles.needed(scenario) else None
        lines = connected(stand, scenario)
        line = victim(scenario, lines)
        stage = Stage(rig, stand.life, stand.offload, stand.card, undo, line, [], lines)
        play = Play(stage, scenario, lines, wire)
        said = _played(stand, play)
        kept = contexts_kept(before, rig, scenario)
        by_card = taps.by_card()  # before the counters: what the kernel has taken, the card has counted
        after, files = facts(rig), taps.fetched()
        seen = judge.Seen(
            scenario,
            lines,
            play.notes,
            before,
            after,
            files,
            stand.card,
            rig.kind != "veth",
            by_card,
            no_bytes=packets_only(rig.profile),
            readings=stand.readings,
            no_resync=() if strict else rig.profile.no_resync(),
        )
        try:
            return _judged(seen, said, kept)
        except AssertionError as exc:
            if why := rigs(stand, exc):
                raise Unseen(f"{why}; before that was known: {exc}") from exc
            raise AssertionError(f"{exc}{in_record(seen.everyone, str(exc))}") from exc


def rigs(stand: Stand, failed: AssertionError) -> str:
    """Why a failure says nothing of the card, as the host made it: in words, or nothing."""
    bench = stand.rig.bench
    if lost := stand.lost_above():
        return f"queues above the cards dropped {lost} packets"
    if isinstance(failed, NotTaken) and (mtu := learned(bench.dut.host, bench.peer.v4)):
        return f"the DUT's kernel knows a path MTU of {mtu} bytes, and may keep new connections from any card"
    return ""


@contextmanager
def kept_if_it_fails(folder: Path, into: Path | None) -> Iterator[None]:
    """Copy the captures of a scenario that fails, in place of those of the one before."""
    try:
        yield
    except AssertionError:
        if into is not None:
            shutil.copytree(folder, into, dirs_exist_ok=True)
        raise


def contexts_kept(before: Facts, rig: Rig, scenario: Scenario) -> dict[str, int]:
    """The contexts that are there beyond those of the start, less what a link that went down took back."""
    found: dict[str, int] = {}

    def given_back() -> bool:
        taken = {name for name in before.contexts if " - " in name and scenario["event"] == "link-down"}
        found.clear()
        found.update({n: v for n, v in held(rig).items() if v > (0 if n in taken else before.contexts[n])})
        return not found

    settles(given_back, 15)
    return found


def victim(scenario: Scenario, lines: list[Line]) -> Line:
    """The connection that trouble and event are for: an old one where the scenario wants that."""
    meant = [line for line in lines if line.old == (scenario["age"] == "old")]
    return meant[scenario.seed % len(meant)]


def connected(stand: Stand, scenario: Scenario) -> list[Line]:
    """The connections of a scenario: old ones as far as there are any and it wants them, the others new."""
    count = int(scenario["connections"])
    lines = stand.aged(scenario)[:count] if scenario["age"] == "old" else []
    for line, before in zip(lines, sent(lines) if lines else (), strict=True):
        line.before = before
        for track in line.tracks.values():
            track.begin()
    if count > len(lines):
        cell, ports = cell_of(scenario["cell"], "tx"), {line.port for line in lines}
        alike = {"family": setting.version(scenario["ip"]), "number": first_number(scenario)}
        options = setting.listening(scenario)
        lines += opened(stand.life, count - len(lines), cell, **alike, options=options, apart=ports)
    obeyed([*setting.sockets(scenario, lines), by_call(lines, scenario["call"])])
    return lines


def _played(stand: Stand, play: Play) -> str:
    """Play, and end what was opened for it: what was wrong with what arrived, in words."""
    left = [line for line in play.lines if not line.old]
    try:
        play.run()
        ordinary = left if len(left) <= MANY else [line for line in left if line is play.victim]
        whole = [line for line in ordinary if not (play.notes.forged and line is play.victim)]
        if left and whole:
            close(stand.life, whole)
        left = [line for line in left if line not in whole]
    except AssertionError as exc:
        return str(exc) or "an assertion"
    finally:
        stand.life.close([line.pair for line in left], reset=True)
    return ""


def _judged(seen: judge.Seen, said: str, kept: Mapping[str, int]) -> Made:
    """Judge what was seen: the wire first, for it says more than the ends do."""
    try:
        shown = seen.shown
    except Unseen:
        if not said:
            raise
    except AssertionError as exc:
        if not said or "different" in str(exc) or "plaintext" in str(exc):
            raise AssertionError(f"{exc}; {said}" if said else str(exc)) from None
    assert not said, said
    assert shown and not kept, f"contexts were not released: {dict(kept)} are left"
    judge.rest(seen)
    not_met = judge.not_met(seen)
    met = {name: value for name, value in seen.scenario.values if name not in not_met}
    return Made(seen.scenario, met, tuple(not_met.values()), judge.evidence(seen))
