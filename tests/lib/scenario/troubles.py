"""The trouble of a scenario: which frame of a connection the wire loses, delays, doubles or alters."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from offload.cmd import settles
from offload.suite.traffic.impair import Box, Chosen, wirebox
from offload.suite.traffic.impairments.place import survey
from tests.lib.rig.rig import Rig
from tests.lib.scenario.connections import OVERHEAD, Burst, Line, Track
from tests.lib.scenario.layout import Spot, spot
from tests.lib.scenario.space import Scenario

TOWARDS = {"tx": "to-peer", "rx": "to-dut"}
FORGED = "forged-"
UNTRIED = "forged-version"  # the kernel ends the connection with EINVAL, and tries no key (tls_rx_msg_size)
KEPT = "scenario_wire"  # where a rig has what is between its wire ports
AGAIN = {"lost-twice": 2, "lost-thrice": 3}  # how often the same bytes are lost
VERSION = 1, 2  # the bytes of a record's version
UPPER, LENGTH = 3, 4  # and of its length
SHORTEST = 24  # bytes of a record that the kernel still decrypts: explicit nonce and tag (tls_rx_msg_size)
LONGEST = 16384 + SHORTEST  # with more it ends with EMSGSIZE, and tries no key (the same function)
NONCE, TAG = 13, 16  # where the ciphertext of a record begins, and bytes of its tag


@dataclass
class Troubled:
    """The wire of a scenario: rules that were added, and how often each acted."""

    box: Box
    wanted: dict[int, tuple[str, int]] = field(default_factory=dict)  # by number: text, times it must act

    def add(self, rule: Chosen, times: int) -> int:
        """Add a rule that must act so often."""
        number = self.box.add(rule)
        self.wanted[number] = (rule.text, times)
        return number

    def acted(self, number: int) -> int:
        """How often a rule has done something."""
        return sum(a.rule == number and a.action != "none" for a in self.box.actions())

    def missed(self) -> list[str]:
        """The rules that did not act as often as they must, in words; what they wait for has been sent."""
        settles(lambda: all(self.acted(n) >= times for n, (_, times) in self.wanted.items()), 5)
        return [
            f"the wire met {self.acted(number)} of {times} frames: {text}"
            for number, (text, times) in self.wanted.items()
            if self.acted(number) < times
        ]


def needed(scenario: Scenario) -> bool:
    """Whether the wire must do something in it."""
    return scenario["trouble"] != "none" or scenario["tcp"] == "sack-live"


def on(undo: ExitStack, rig: Rig) -> Troubled:
    """A wire that impairs frames on command; what is there without it is asked once for a rig."""
    kept = vars(rig)
    if KEPT not in kept:
        kept[KEPT] = survey(rig.bench)
    return Troubled(undo.enter_context(wirebox(rig.bench, found=kept[KEPT], join=True)))


def rules(
    scenario: Scenario, line: Line, direction: str, bursts: Sequence[Burst]
) -> list[tuple[Chosen, int]]:
    """The rules for the bursts that come next on a connection, and how often each must act."""
    trouble, found = scenario["trouble"], spot(scenario, line.tracks[direction], bursts)
    place, action = _what(trouble, found, *_ends(line.tracks[direction], bursts))
    more = {"action": action, "direction": TOWARDS[direction], "port": line.port}
    if times := AGAIN.get(trouble):
        return [(Chosen("offset", place, times=times, **more), times)]
    if trouble == "noise":
        return [(Chosen("offset", place, repaired=False, **more), 1)]
    if trouble.startswith(FORGED):
        at = forged_at(scenario, found)
        return [(Chosen("offset", at, bit=_bit(found, at), **more), 1)]
    return [(Chosen("offset", place, **more), 1)]


def struck(scenario: Scenario, track: Track, bursts: Sequence[Burst]) -> int:
    """Which of the bursts that come next has the byte whose frame is met."""
    found = spot(scenario, track, bursts)
    place, _ = _what(scenario["trouble"], found, *_ends(track, bursts))
    return next(n for n in range(len(bursts)) if place <= _ends(track, bursts[: n + 1])[1])


def _ends(track: Track, bursts: Sequence[Burst]) -> tuple[int, int]:
    """The first and the last byte of the bursts that come next."""
    first = track.wire
    return first, first + sum(burst.total + OVERHEAD * len(burst.writes) for burst in bursts) - 1


def _what(trouble: str, found: Spot, first: int, last: int) -> tuple[int, str]:
    """The byte whose frame is met, and what is done to it."""
    inside = (found.begin + found.end) // 2
    return {
        "lost-first": (first, "drop"),
        "lost-header": (found.begin, "drop"),
        "lost-inside": (inside, "drop"),
        "lost-tag": (found.end - 1, "drop"),
        "lost-last": (last, "drop"),
        "lost-twice": (found.begin, "drop"),
        "lost-thrice": (found.begin, "drop"),
        "reorder": (found.begin, "delay"),
        "duplicate": (inside, "duplicate"),
        "ce-mark": (inside, "mark"),
        "noise": (inside, "flip"),
    }.get(trouble, (found.begin, "flip"))


def _bit(found: Spot, at: int) -> int:
    """The bit of an altered byte: one whose loss makes a record shorter, or the last one, of a length."""
    special = {found.begin + LENGTH: _nearly(found), found.begin + UPPER: _shorter(found, 8)}
    return special.get(at, [at % 3])[-1]


def _nearly(found: Spot) -> list[int]:
    """The last bit of a length; of a record that would be too long with it, bits that make it shorter."""
    length = found.end - found.begin - LENGTH - 1
    return [0] if length ^ 1 <= LONGEST else _shorter(found, 0)


def _shorter(found: Spot, above: int) -> list[int]:
    """The bits of one byte of a length without which the record is shorter, and long enough to be read.

    A longer one might wait for bytes that never come. `above`: the bits of the length below this byte.
    """
    length = found.end - found.begin - LENGTH - 1
    weights = {bit: 1 << bit + above for bit in range(8)}
    return [bit for bit, weight in weights.items() if length & weight and length - weight >= SHORTEST]


def forged_at(scenario: Scenario, found: Spot) -> int:
    """The byte that is altered: the record's type or length, its version, a byte of the ciphertext or tag."""
    dice = random.Random(f"{scenario.seed} forged")
    return {
        "forged-header": found.begin + dice.choice((0, *[UPPER] * bool(_shorter(found, 8)), LENGTH)),
        UNTRIED: found.begin + dice.choice(VERSION),
        "forged-body": found.begin + NONCE + dice.randrange(found.end - found.begin - NONCE - TAG),
    }.get(scenario["trouble"], found.end - TAG + dice.randrange(TAG))


def hole(line: Line) -> Chosen:
    """The rule for the next byte to the DUT: lost again and again, until the rules are cleared."""
    track = line.tracks["rx"]
    return Chosen("offset", track.wire, direction="to-dut", port=line.port, times=100)
