"""What conditions.yaml says, as frozen values: dimensions, their values, and what cannot be combined."""

from __future__ import annotations

from dataclasses import dataclass

Condition = tuple[str, str]  # dimension and value


@dataclass(frozen=True)
class Bar:
    """Values of another dimension that a value does not go with, and because of what."""

    dimension: str
    values: tuple[str, ...]
    because: str


@dataclass(frozen=True)
class Value:
    """One value: what a card could do wrong there, who says so, and why it cannot be made if it cannot."""

    name: str
    words: str  # the condition in a headline
    why: str
    source: str
    bars: tuple[Bar, ...] = ()  # impossible together
    not_yet: str = ""
    slow: str = ""
    no_lab: str = ""


@dataclass(frozen=True)
class Dimension:
    """One dimension; its first value is the plain one. `from_profile`: its values are cells."""

    name: str
    why: str
    values: tuple[Value, ...]
    from_profile: bool = False

    @property
    def plain(self) -> str:
        """The value that a line leaves out and a failing scenario shrinks towards."""
        return self.values[0].name

    def names(self) -> tuple[str, ...]:
        """Every value in order."""
        return tuple(value.name for value in self.values)
