"""The space of conditions on one card: its scenarios, one drawn by a seed, one read from a line."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, reduce
from pathlib import Path

from offload.card.profile import Profile
from offload.card.profile_model import Cell
from offload.errors import ConfigError
from offload.yamlfile import near
from tests.lib.scenario.model import Condition, Dimension
from tests.lib.scenario.read import conditions

DEFAULT = Path(__file__).with_name("conditions.yaml")
SEEDS = 1 << 32
Pair = tuple[Condition, Condition]  # in the order of the dimensions
Rows = list[tuple[str, Sequence[str]]]  # values that are left, by dimension


@dataclass(frozen=True)
class Scenario:
    """One value of every dimension, and the seed of whatever else is random in it."""

    seed: int
    values: tuple[Condition, ...]

    def __getitem__(self, dimension: str) -> str:
        return dict(self.values)[dimension]

    def line(self) -> str:
        """One shell word that `Space.parse` makes the same scenario of; plain values are left out."""
        plain = load().plain
        odd = [f"{name}={value}" for name, value in self.values if value != plain[name]]
        return ",".join([f"seed={self.seed}", *odd])

    def having(self, dimension: str, value: str) -> Scenario:
        """The same with another value in a dimension."""
        return replace(self, values=tuple((n, value if n == dimension else v) for n, v in self.values))

    def plainer(self, dimension: str) -> Scenario:
        """The same with the plain value in a dimension."""
        return self.having(dimension, load().plain[dimension])


@dataclass(frozen=True)
class Space:
    """The dimensions as far as a profile promises them, and what excludes what."""

    parts: tuple[Dimension, ...]
    triples: tuple[tuple[str, ...], ...]
    barred: Mapping[Pair, str]  # the pairs that nobody can make, and why

    @cached_property
    def dimensions(self) -> dict[str, tuple[str, ...]]:
        """Every value by dimension, in order, the plain one first."""
        return {part.name: part.names() for part in self.parts}

    @cached_property
    def plain(self) -> dict[str, str]:
        """The plain value of every dimension."""
        return {part.name: part.plain for part in self.parts}

    @cached_property
    def words(self) -> dict[Condition, str]:
        """Every condition as a headline says it."""
        return {(part.name, value.name): value.words for part in self.parts for value in part.values}

    @cached_property
    def no_lab(self) -> dict[Condition, str]:
        """The values that no lab makes, and why."""
        return {
            (part.name, value.name): value.no_lab
            for part in self.parts
            for value in part.values
            if value.no_lab
        }

    @cached_property
    def not_yet(self) -> dict[Condition, str]:
        """The values that the suite does not make yet, and why."""
        return {
            (part.name, value.name): value.not_yet
            for part in self.parts
            for value in part.values
            if value.not_yet
        }

    @cached_property
    def made(self) -> dict[str, tuple[str, ...]]:
        """The values by dimension that the suite makes."""
        out = self.no_lab | self.not_yet
        return {
            name: tuple(v for v in values if (name, v) not in out) for name, values in self.dimensions.items()
        }

    def pair(self, one: Condition, other: Condition) -> Pair:
        """Two conditions in the order of their dimensions."""
        names = list(self.dimensions)
        return (one, other) if names.index(one[0]) < names.index(other[0]) else (other, one)

    def conflicts(self, scenario: Scenario) -> Iterator[tuple[Pair, str]]:
        """Every pair of a scenario that nobody can make, and why."""
        there = set(scenario.values)
        yield from ((pair, why) for pair, why in self.barred.items() if there.issuperset(pair))

    def allows(self, scenario: Scenario) -> bool:
        """Say whether the suite makes this scenario."""
        fits = all(value in self.made.get(name, ()) for name, value in scenario.values)
        return fits and not any(self.conflicts(scenario))

    def draw(self, seed: int) -> Scenario:
        """One scenario that the suite makes, by chance; the same for the same seed and profile."""
        dice = random.Random(seed)
        names = list(self.dimensions)
        dice.shuffle(names)
        found = self.complete(
            {}, {name: dice.sample(self.made[name], len(self.made[name])) for name in names}
        )
        if found is None:
            raise ConfigError("no scenario is left", "what the profile promises excludes all of them")
        return Scenario(seed, tuple((name, found[name]) for name in self.dimensions))

    def complete(
        self, chosen: dict[str, str], values: Mapping[str, Sequence[str]] | None = None
    ) -> dict[str, str] | None:
        """A whole scenario with what is chosen, the first that these values allow; None if there is none."""
        rest = self._left(chosen, values or self.made)
        return None if rest is None else self._filled(chosen, rest)

    def can(self, chosen: dict[str, str]) -> bool:
        """Say whether there is a whole scenario with what is chosen: what `complete` says, sooner."""
        rest = self._left(chosen, self._tight)
        return rest is not None and self._filled(chosen, rest) is not None

    @cached_property
    def _tight(self) -> dict[str, tuple[str, ...]]:
        """Return the dimensions without a value that goes with everything, which always remains."""
        return {
            name: values
            for name, values in self.made.items()
            if all((name, value) in self._bars for value in values)
        }

    def _left(self, chosen: dict[str, str], values: Mapping[str, Sequence[str]]) -> Rows | None:
        """Return the values of the other dimensions that go with what is chosen; None if that clashes."""
        here = chosen.items()
        barring = self._bars.keys() & here
        if not all(self._bars[one].isdisjoint(here) for one in barring):
            return None
        rows: Rows = [(name, row) for name, row in values.items() if name not in chosen]
        return reduce(self._without, barring, rows)

    def _filled(self, chosen: dict[str, str], rest: Rows) -> dict[str, str] | None:
        """Return what is chosen and a value of each of the other dimensions, going back where none is
        left."""
        if not rest:
            return chosen
        (name, values), *more = rest
        for value in values:
            left = self._without(more, (name, value))
            found = None if left is None else self._filled({**chosen, name: value}, left)
            if found is not None:
                return found
        return None

    def _without(self, rest: Rows | None, chosen: Condition) -> Rows | None:
        """The rows without what is not made together with a condition; None if one has nothing left."""
        bars = self._barred_by.get(chosen)
        if rest is None or not bars:
            return rest
        left = [
            (row[0], [value for value in row[1] if value not in bars[row[0]]]) if row[0] in bars else row
            for row in rest
        ]
        return left if all(values for _, values in left) else None

    def some_day(self) -> Space:
        """The space as if the suite made all that a lab can make."""
        values = {
            part.name: tuple(replace(value, not_yet="") for value in part.values) for part in self.parts
        }
        return replace(self, parts=tuple(replace(p, values=values[p.name]) for p in self.parts))

    @cached_property
    def slow(self) -> frozenset[Condition]:
        """The conditions that take tens of seconds."""
        each = ((part.name, value) for part in self.parts for value in part.values)
        return frozenset((name, value.name) for name, value in each if value.slow)

    def brisk(self) -> Space:
        """The space without what is slow."""
        values = {
            part.name: tuple(replace(value, not_yet=value.not_yet or value.slow) for value in part.values)
            for part in self.parts
        }
        parts = tuple(replace(p, values=values[p.name]) for p in self.parts)
        return replace(self, parts=parts)

    @cached_property
    def _bars(self) -> dict[Condition, set[Condition]]:
        """Return what each condition is not made together with."""
        found: dict[Condition, set[Condition]] = {}
        for one, other in self.barred:
            found.setdefault(one, set()).add(other)
            found.setdefault(other, set()).add(one)
        return found

    @cached_property
    def _barred_by(self) -> dict[Condition, dict[str, set[str]]]:
        """Return what each condition is not made together with: values by dimension."""
        found: dict[Condition, dict[str, set[str]]] = {}
        for one, others in self._bars.items():
            for name, value in others:
                found.setdefault(one, {}).setdefault(name, set()).add(value)
        return found

    def parse(self, text: str) -> Scenario:
        """The scenario of a line, or drawn by a bare number as seed. ConfigError naming the mistake."""
        text = text.strip()
        if text.isdecimal():
            return self.draw(int(text[:20]) % SEEDS)
        given: dict[str, str] = {}
        for word in (word.strip() for word in text.split(",")):
            name, equals, value = word.partition("=")
            if not equals or name in given or not value:
                raise ConfigError(
                    f"scenario: {word[:60]!r} is not a condition"
                    if name not in given
                    else f"scenario: {name} is given twice",
                    "a scenario is a seed, or a line such as seed=7,direction=rx,trouble=lost-tag",
                )
            given[name] = self._checked(name, value)
        seed = int(given.pop("seed", "1"))
        scenario = Scenario(seed, tuple((name, given.get(name, plain)) for name, plain in self.plain.items()))
        for ((one, value), (other, second)), why in self.conflicts(scenario):
            raise ConfigError(f"scenario: {one} {value} and {other} {second} are not made together: {why}")
        return scenario

    def _checked(self, name: str, value: str) -> str:
        """A value that the suite makes. ConfigError."""
        if name == "seed":
            if not (value.isdecimal() and len(value) < 12 and int(value) < SEEDS):
                raise ConfigError(f"scenario: seed {value[:60]!r}, wanted a number below {SEEDS}")
            return value
        if name not in self.dimensions:
            raise ConfigError(
                f"scenario: no dimension {name[:60]!r}{near(name, self.dimensions)}", _listed(self.dimensions)
            )
        if value not in self.dimensions[name]:
            choices = self.dimensions[name]
            raise ConfigError(
                f"scenario: {name} has no value {value[:60]!r}{near(value, choices)}", _listed(choices)
            )
        if why := self.no_lab.get((name, value)) or self.not_yet.get((name, value)):
            raise ConfigError(f"scenario: {name} {value} is not made: {why}")
        return value


def _listed(names: Mapping[str, object] | tuple[str, ...]) -> str:
    return f"one of {', '.join(names)}"


@cache
def load(profile: Profile | None = None, path: Path = DEFAULT) -> Space:
    """The space of a file, as far as a profile promises its cells. ConfigError for a wrong file."""
    parts, triples = conditions(path)
    cut = tuple(_on(part, profile) for part in parts) if profile else parts
    order = {part.name: number for number, part in enumerate(cut)}
    there = {(part.name, name) for part in cut for name in part.names()}
    barred: dict[Pair, str] = {}
    for part in cut:
        for value in part.values:
            for bar in value.bars:
                for name in bar.values:
                    ends = ((part.name, value.name), (bar.dimension, name))
                    if there.issuperset(ends):
                        one, other = sorted(ends, key=lambda end: order[end[0]])
                        barred[one, other] = bar.because
    if profile:
        barred |= _unpromised(cut, profile)
    return Space(cut, triples, barred)


def cell_of(value: str, direction: str) -> Cell:
    """The cell of the truth table that a value of the dimension `cell` is, in tx or rx."""
    version, _, cipher = value.partition("-")
    return Cell(direction, version, cipher)


def _on(part: Dimension, profile: Profile) -> Dimension:
    """A dimension without the values that this profile promises in no direction."""
    if part.from_profile:
        kept = [v for v in part.values if any(cell_of(v.name, d) in profile.promises for d in ("tx", "rx"))]
    elif part.name == "direction":
        kept = [v for v in part.values if set(_directions(v.name)) <= set(profile.directions())]
    else:
        return part
    return replace(part, values=tuple(kept))


def _directions(direction: str) -> tuple[str, ...]:
    return ("tx", "rx") if direction == "both" else (direction,)


def _unpromised(parts: tuple[Dimension, ...], profile: Profile) -> dict[Pair, str]:
    """Pairs of a direction and a cell that the profile does not promise."""
    names = {part.name: part.names() for part in parts}
    cells = next((part.name for part in parts if part.from_profile), "")
    return {
        (("direction", direction), (cells, value)): f"the profile does not promise {lacking[0]}"
        for direction in names.get("direction", ())
        for value in names.get(cells, ())
        if (
            lacking := [
                c
                for c in (cell_of(value, one) for one in _directions(direction))
                if c not in profile.promises
            ]
        )
    }
