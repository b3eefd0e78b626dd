"""Random bad cards: a defect is what a card does wrong, and the one condition under which it does so."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from offload.card.profile import Profile, find
from offload.errors import ConfigError
from tests.lib.catalogue.drawn_tables import CONDITIONS, PLACES, Condition, Place
from tests.lib.scenario.space import Scenario, Space, load

CARD = "connectx-6-dx"


@dataclass(frozen=True)
class Defect:
    """A place and a condition: `line` is the scenario that makes the condition, so that it must fire."""

    place: Place
    condition: Condition
    direction: str
    line: str = field(compare=False)

    @property
    def id(self) -> str:
        """Its name in results."""
        return f"{self.place.name}--{self.condition.name}"

    @property
    def knobs(self) -> str:
        """Return what makes a simulated card that has it, as `0/tx_ks=1 0/when_key=256`."""
        wanted = {**self.place.knobs, **self.condition.knobs}
        return " ".join(f"0/{name}={value}" for name, value in wanted.items())

    def words(self) -> str:
        """The defect in words."""
        return f"{self.place.words} {self.condition.words}"

    @property
    def named(self) -> tuple[str, ...]:
        """Return what a headline must hold that blames the condition: as conditions.yaml says it, or the
        place."""
        words, place = load().words, self.condition.place
        return (*(words[one] for one in self.condition.values.items()), *([place] if place else ()))

    def blamed(self, text: str) -> bool:
        """Whether a headline blames the condition, or another one that makes it as well."""
        also = [load().words[one] for one in self.condition.also]
        also += filter(None, [self.condition.words, self.condition.also_named])
        return any(words in text for words in also) or bool(self.named) and all(w in text for w in self.named)


@cache
def card() -> Profile:
    """The card that is made bad."""
    return find(CARD)


@cache
def space() -> Space:
    """Its scenarios."""
    return load(card())


@cache
def defects() -> tuple[Defect, ...]:
    """Every defect that there can be, in the order of the tables."""
    return tuple(_all(space()))


def _all(found: Space) -> Iterator[Defect]:
    for place in PLACES:
        for condition in CONDITIONS:
            if place.direction in condition.directions and place.level in condition.levels:
                values = _values(place, condition)
                line = _line(found, values) if values else ""
                if line:
                    yield Defect(place, condition, place.direction, line)


def _values(place: Place, condition: Condition) -> Mapping[str, str]:
    """Return what a scenario needs for both; nothing if they do not go together."""
    both = place.values.keys() & condition.values.keys()
    if any(place.values[name] != condition.values[name] for name in both):
        return {}
    if condition.name.startswith(place.never) if place.never else False:
        return {}
    return {"direction": place.direction, **place.values, **condition.values}


def _line(found: Space, values: Mapping[str, str]) -> str:
    """The plainest scenario with these values, its trouble on the connection opened last; or nothing."""
    whole = found.complete(dict(values))
    if whole is None:
        return ""
    seed = int(whole["connections"]) - 1 or 1
    return Scenario(seed, tuple((name, whole[name]) for name in found.plain)).line()


def draw(seed: int, count: int) -> tuple[Defect, ...]:
    """Defects drawn by chance, the same for the same seed. ConfigError if there are not this many."""
    every = defects()
    if not 0 < count <= len(every):
        raise ConfigError(f"{count} defects cannot be drawn", f"there are {len(every)}")
    return tuple(random.Random(seed).sample(every, count))
