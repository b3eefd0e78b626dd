"""The kinds of damage and what a verifier must say to each: a register, and the capture that is damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.lib.wiregen import good
from tests.lib.wiregen.frames import any_net
from tests.lib.wiregen.scene import Case, Conn, Scene
from tests.lib.wiregen.session import ALERT, CLIENT, SERVER, Rec, Session
from tests.lib.wiregen.suites import SUITES, TLS12, TLS13, Suite
from tests.lib.wiregen.talk import NOTIFY, Plan, key_update, talk, turns
from tests.lib.wiregen.tcp import Style, any_style

SIDES = ("from_client", "from_server")
LAYERS = ("records", "segments", "frames")


class Unfit(Exception):
    """This damage cannot be done to this capture."""


@dataclass
class Want:
    """What the verdict must say. `first`: fields of the first difference; `sent_again`: of the
    retransmission finding; `problem`: (code, direction), `at` of it; `leak`: fields; `side`: counters of the
    direction."""

    outcome: str = "different"
    direction: int = CLIENT
    first: dict[str, Any] | None = None
    sent_again: dict[str, Any] | None = None
    problem: tuple[str, str] | None = None
    at: int | None = None
    leak: dict[str, Any] | None = None
    side: dict[str, Any] = field(default_factory=dict)
    listed: int = 1


Damage = Callable[[Random, Scene], Want]


@dataclass(frozen=True)
class Kind:
    """A kind of damage. `layer`: when it is done; `needs`: which capture it is done to (see `suites`)."""

    name: str
    layer: str
    needs: str
    apply: Damage


KINDS: dict[str, Kind] = {}


def kind(layer: str, needs: str = "any") -> Callable[[Damage], Damage]:
    """Register a kind of damage under its function's name."""

    def enter(function: Damage) -> Damage:
        name = function.__name__
        assert layer in LAYERS and name not in KINDS
        KINDS[name] = Kind(name, layer, needs, function)
        return function

    return enter


def suites(needs: str) -> list[Suite]:
    """The suites that a kind of damage makes sense with."""
    return {
        "tls12": TLS12,
        "tls13": TLS13,
        "update": TLS13,
        "gcm12": [s for s in TLS12 if not s.counted],
        "counted": [s for s in SUITES if s.counted],
        "aes256": [s for s in SUITES if s.name == "aes-gcm-256"],
    }.get(needs, SUITES)


def steady_scene(rng: Random, needs: str = "any") -> Scene:
    """A good capture of some records each way, no padding, random payload: damage has one name in it."""
    plan = Plan(rng.choice(suites(needs)), [(CLIENT, rng.randint(200, 900)), (SERVER, rng.randint(200, 900))])
    plan.turns += [(rng.choice((CLIENT, CLIENT, SERVER)), rng.randint(200, 900)) for _ in range(12)]
    plan.turns += [(CLIENT, rng.randint(200, 900)) for _ in range(3)]
    half = len(plan.turns) // 2
    later = plan.turns[half:]
    plan.turns = plan.turns[:half] if needs == "update" else plan.turns
    session = talk_on(rng, plan, later) if needs == "update" else talk(rng, plan)
    session.log = [line for line in session.log if not line.startswith("CLIENT_EARLY")]
    conn = Conn(any_net(rng, rng.random() < 0.3, 443), any_style(rng, 9000), session)
    conn.net.trailer = 0
    form = rng.choice(("pcap", "pcapng"))
    scene = Scene(rng, [conn], good.any_links(rng, {conn.net.v6}, form), form=form)
    scene.payload = session.sent(CLIENT)
    return scene


def talk_on(rng: Random, plan: Plan, later: list[tuple[int, int]]) -> Session:
    """A TLS 1.3 connection with one KeyUpdate by each side in its middle."""
    plan.notify = (False, False)
    session = talk(rng, plan)
    for direction in (CLIENT, SERVER):
        key_update(rng, session, direction)
    turns(rng, session, Plan(plan.suite, later))
    for direction in (CLIENT, SERVER):
        session.say(direction, ALERT, NOTIFY)
    return session


def plain_style(rng: Random) -> Style:
    """TCP without trouble: what is lost or sent again is the damage's own doing."""
    return Style(size=rng.choice(("mtu", "mixed")), first=rng.choice((0, 1)))


def done(
    scene: Scene, kinds: list[Kind], more: Callable[[str], None] = lambda _: None
) -> tuple[Case, list[Want]]:
    """The case after all this damage, and what each was to give; damage that does not fit is left out.

    `more`: called after each layer's damage, with the layer's name.
    """
    wants = []

    def layer(name: str) -> None:
        for one in kinds:
            if one.layer == name and scene.session.suite in suites(one.needs):
                with suppress(Unfit, ValueError, IndexError, StopIteration, AssertionError):
                    wants.append(one.apply(scene.rng, scene))
        more(name)

    layer("records")
    scene.cut()
    layer("segments")
    scene.log()
    scene.lay()
    layer("frames")
    return scene.case(), wants


def damaged(name: str, seed: int) -> tuple[Case, Want]:
    """A steady capture with this damage, and what a verifier must say."""
    for turn in range(50):
        rng = Random(f"{name} {seed} {turn}")
        scene = steady_scene(rng, KINDS[name].needs)
        if KINDS[name].layer != "records":
            scene.main.style = plain_style(rng)
        case, wants = done(scene, [KINDS[name]])
        if wants:
            return case, wants[0]
    raise Unfit(f"{name} fits none of 50 captures")


def pick(rng: Random, scene: Scene, least: int = 64) -> Rec:
    """An application record with this many bytes: not the first nor the last of the client."""
    found = scene.session.data(CLIENT)[1:-1]
    found = [rec for rec in found if len(rec.plain) >= least and rec.body]
    if not found:
        raise Unfit
    return rng.choice(found)


def blame(scene: Scene, rec: Rec, name: str, place: str, **more: Any) -> Want:
    """A difference of this class and field in this record, which must be the first of its direction."""
    first = {
        "record": scene.session.number(rec),
        "sequence": rec.seq,
        "offset": scene.session.offset(rec),
        "class": name,
        "field": place,
    }
    return Want(direction=rec.direction, first=first | more)


def span(old: bytes, new: bytes) -> tuple[int, int]:
    """First and last place where two byte strings of one length differ."""
    places = [i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
    if not places:
        raise Unfit
    return places[0], places[-1]


def missed(want: Want, verdict: dict[str, Any]) -> Iterator[str]:
    """Yield what the verdict does not say as wanted."""
    yield from unlike("outcome", want.outcome, verdict["outcome"])
    yield from unlike("connections", want.listed, len(verdict["connections"]))
    problems = list(verdict["problems"])
    for conn in verdict["connections"]:
        problems += conn["problems"]
    if want.problem:
        found = [p for p in problems if (p["code"], p["direction"]) == want.problem]
        if not found or (want.at is not None and found[0]["at"] != want.at):
            yield f"problem {want.problem} at {want.at}: {problems}"
    if want.leak is not None:
        yield from unlike_in("leak", want.leak, verdict["leak"])
    if verdict["connections"]:
        side = verdict["connections"][0][SIDES[want.direction]]
        yield from unlike_in("side", want.side, side)
        if want.first is not None:
            yield from unlike_in("first_difference", want.first, side["first_difference"])
        if want.sent_again is not None:
            yield from unlike_in("retransmission", want.sent_again, side["retransmission"])


def unlike(name: str, want: object, got: object) -> Iterator[str]:
    """A line if these differ."""
    if want != got:
        yield f"{name}: wanted {want!r}, got {got!r}"


def unlike_in(name: str, want: dict[str, Any], got: dict[str, Any] | None) -> Iterator[str]:
    """A line for each wanted field that differs."""
    for key, value in want.items():
        yield from unlike(f"{name}.{key}", value, None if got is None else got[key])
