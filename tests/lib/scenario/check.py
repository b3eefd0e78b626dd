"""Holds a card to one scenario: once more if a condition was not met, and what fails is shrunk and named."""

from __future__ import annotations

from typing import Any

from offload.errors import OffloadError
from tests.lib.scenario.run import Made, run
from tests.lib.scenario.shrink import shrink
from tests.lib.scenario.space import Scenario, Space, load
from tests.lib.scenario.stand import Stand
from tests.lib.scenario.verdict.blame import ABSENT, INTACT, Unseen, judged
from tests.lib.scenario.verdict.headline import headline

AS_FOUND = [False]  # whether what fails is told at once: not made plainer, not compared with software


def check(stand: Stand, space: Space, scenario: Scenario, evidence: dict[str, Any]) -> tuple[str, ...]:
    """Run a scenario, twice if need be: the conditions that were not met, in words.

    AssertionError if an invariant does not hold: with the fewest conditions under which it fails, what
    software makes of them, and the line that repeats it. NotTheCards if software fails there, too; Unseen
    if the captures of two runs could not tell.
    """
    evidence["scenario"] = {"line": scenario.line(), "seed": scenario.seed}
    try:
        made = _run(stand, scenario, evidence["scenario"])
        if made.missing:
            evidence["scenario"]["first_not_met"] = list(made.missing)
            made = _run(stand, scenario, evidence["scenario"])
    except AssertionError as exc:
        evidence["scenario"]["first_failure"] = str(exc) or "an assertion"
        raise AssertionError(_named(stand, space, scenario, str(exc), evidence)) from exc
    _keep(evidence, made)
    return made.missing


def check_line(stand: Stand, line: str, evidence: dict[str, Any]) -> tuple[str, ...]:
    """The same for one scenario by its line."""
    space = load(stand.rig.profile)
    return check(stand, space, space.parse(line), evidence)


def strictly(stand: Stand, line: str, evidence: dict[str, Any]) -> tuple[str, ...]:
    """Run one scenario once, and forgive nothing that the profile lists: the conditions that were not met."""
    scenario = load(stand.rig.profile).parse(line)
    evidence["scenario"] = {"line": scenario.line(), "seed": scenario.seed}
    made = _run(stand, scenario, evidence["scenario"], strict=True)
    _keep(evidence, made)
    return made.missing


def _run(stand: Stand, scenario: Scenario, noted: dict[str, Any], *, strict: bool = False) -> Made:
    """Run a scenario; once more if the capture lacks a connection's beginning. Unseen if it does again."""
    try:
        return run(stand, scenario, strict=strict)
    except Unseen as exc:
        noted["first_not_seen"] = str(exc)
        stand.renew()
        return run(stand, scenario, strict=strict)


def _keep(evidence: dict[str, Any], made: Made) -> None:
    """Put what was made where the report finds it."""
    evidence.update(made.evidence)
    evidence["scenario"] |= {"met": dict(made.met), "not_met": list(made.missing)}


def _named(stand: Stand, space: Space, scenario: Scenario, words: str, evidence: dict[str, Any]) -> str:
    """Return what a failure is called: the headline, what was seen, and how to repeat it."""
    if AS_FOUND[0]:
        return f"{headline(scenario, words)}: {words}; repeat it: certify --scenario {scenario.line()}"
    stand.renew()
    found = shrink(scenario, words, lambda plainer: _still_fails(stand, plainer), space)
    twin = software(stand, found.scenario)
    stand.renew()
    evidence["scenario"] |= {"shrunk": found.scenario.line(), "runs": found.runs, "software": twin}
    line = found.scenario.line()
    judged(twin, found.words, line)
    return (
        f"{headline(found.scenario, found.words)}: {found.words}; "
        f"software under the same conditions: {twin}; repeat it: certify --scenario {line}"
        + (f" (found as {scenario.line()})" if line != scenario.line() else "")
    )


def _still_fails(stand: Stand, scenario: Scenario) -> str:
    """What is wrong under fewer conditions; nothing where the capture cannot tell."""
    try:
        return fails(stand, scenario)
    except Unseen:
        return ""


def fails(stand: Stand, scenario: Scenario) -> str:
    """Return what is wrong in a scenario; nothing if it holds."""
    try:
        _run(stand, scenario, {})
    except AssertionError as exc:
        stand.renew()
        return str(exc) or "an assertion"
    return ""


def software(stand: Stand, scenario: Scenario) -> str:
    """Return what becomes of a scenario without the card; its captures are not those of the card."""
    card, directions, keep = stand.card, stand.rig.profile.directions(), stand.keep
    try:
        stand.card, stand.keep = (), None
        if card:
            stand.offload.set(**dict.fromkeys(directions, False))
        stand.renew()
        with stand.rig.captures.aside():
            return fails(stand, scenario) or INTACT
    except (AssertionError, OffloadError) as exc:
        return f"{ABSENT}: {exc}"
    finally:
        stand.card, stand.keep = card, keep
        if card:
            stand.offload.set(**{direction: direction in card for direction in directions})
