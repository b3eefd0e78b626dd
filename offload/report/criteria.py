"""What "certified" takes, read from criteria.yaml: promises in order, each with its bar."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from offload.errors import ConfigError
from offload.paths import PACKAGE

DEFAULT = PACKAGE / "report/criteria.yaml"
APPLIES = ("always", "tx", "rx", "unpromised")
CELLS = ("promised", "unpromised", None)
UNPROVED = ("blocks", "limits")
DEPTHS, GROUPS = ("quick", "standard", "deep"), ("pairs", "triples")
PROOFS = ("A", "B", "C", "where", None)
FRAMES = ("explained", None)
# libyaml's, where PyYAML has it: 2 ms for what Python takes 24
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
KEYS = {
    "title", "why", "source", "blocker", "unproved", "applies", "tests", "cells", "levels", "proof", "frames",
    "crossed",
}  # fmt: skip


@dataclass(frozen=True)
class Level:
    """The bar for one number of the evidence; None: no bound on that side."""

    min: float | None = None
    max: float | None = None

    def holds(self, value: float) -> bool:
        """Say whether the number is within the bar."""
        return (self.min is None or value >= self.min) and (self.max is None or value <= self.max)

    def __str__(self) -> str:
        return f"at least {self.min:g}" if self.min is not None else f"at most {self.max:g}"


@dataclass(frozen=True)
class Criterion:
    """One promise: `title` completes "this NIC ..."; the keys are explained at the top of criteria.yaml."""

    id: str
    title: str
    blocker: bool
    applies: str
    tests: int
    cells: str | None
    levels: Mapping[str, Level]
    proof: str | None = None
    why: str = ""
    source: str = ""
    frames: str | None = None
    unproved: str = "blocks"
    crossed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # depth -> what -> percent

    @property
    def required(self) -> bool:
        """Whether there is no certificate unless it is proved; a blocker may only forbid a failure."""
        return self.blocker and self.unproved == "blocks"

    @property
    def direction(self) -> str | None:
        """Tx or rx, where the promise belongs to one direction."""
        return self.applies if self.applies in ("tx", "rx") else None


@dataclass(frozen=True)
class Criteria:
    """Every promise by id, in the order of the file, and the SHA-256 of that file."""

    promises: Mapping[str, Criterion]
    sha256: str

    def level(self, promise: str, name: str) -> Level:
        """Return the bar for a number, for tests that compare with it; ConfigError if there is none."""
        self.check(promise)
        try:
            return self.promises[promise].levels[name]
        except KeyError:
            raise ConfigError(f"criteria.yaml: {promise} has no level {name!r}") from None

    def check(self, promise: str) -> None:
        """Raise ConfigError naming the nearest promise if there is no such id."""
        if promise not in self.promises:
            near = get_close_matches(promise, self.promises, 1, 0.4)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise ConfigError(
                f"unknown promise {promise!r}{hint}; promises are listed in offload/report/criteria.yaml"
            )


@cache
def load(path: Path = DEFAULT) -> Criteria:
    """Read the criteria; ConfigError naming promise and key for a wrong file."""
    data = path.read_bytes()
    try:
        tree = yaml.load(data, Loader=LOADER)  # noqa: S506  (a safe loader, in C)
    except yaml.YAMLError as exc:
        raise ConfigError(f"{path.name}: {exc}") from None
    promises = tree.get("promises") if isinstance(tree, dict) else None
    if not isinstance(promises, dict) or tree.get("schema") != 1:
        raise ConfigError(f"{path.name}: wanted 'schema: 1' and a mapping 'promises'")
    return Criteria(
        {str(key): _criterion(path.name, str(key), value) for key, value in promises.items()},
        hashlib.sha256(data).hexdigest(),
    )


def _criterion(name: str, promise: str, raw: Any) -> Criterion:
    """Return one promise, each key checked."""
    where = f"{name}: {promise}"
    if not isinstance(raw, dict):
        raise ConfigError(f"{where}: wanted a mapping, got {raw!r:.60}")
    for key in raw.keys() - KEYS:
        near = get_close_matches(str(key), KEYS, 1)
        raise ConfigError(f"{where}: unknown key {key!r}" + (f" (did you mean {near[0]}?)" if near else ""))
    found = Criterion(
        promise,
        raw.get("title", ""),
        raw.get("blocker", True),
        raw.get("applies", "always"),
        raw.get("tests", 1),
        raw.get("cells"),
        _levels(where, raw.get("levels", {})),
        raw.get("proof"),
        raw.get("why", ""),
        raw.get("source", ""),
        raw.get("frames"),
        raw.get("unproved", "blocks"),
        _crossed(where, raw.get("crossed", {})),
    )
    _check(where, "title", found.title, isinstance(found.title, str) and bool(found.title), "a sentence")
    for key, value in (("why", found.why), ("source", found.source)):
        _check(where, key, value, isinstance(value, str), "a sentence")
    _check(where, "blocker", found.blocker, isinstance(found.blocker, bool), "true or false")
    _check(where, "unproved", found.unproved, found.unproved in UNPROVED, " or ".join(UNPROVED))
    _check(where, "applies", found.applies, found.applies in APPLIES, " | ".join(APPLIES))
    _check(where, "tests", found.tests, type(found.tests) is int and found.tests >= 1, "a number from 1")
    _check(where, "cells", found.cells, found.cells in CELLS, "promised or unpromised")
    _check(where, "proof", found.proof, found.proof in PROOFS, "A, B, C or where")
    _check(where, "frames", found.frames, found.frames in FRAMES, "explained")
    return found


def _levels(where: str, raw: Any) -> dict[str, Level]:
    _check(where, "levels", raw, isinstance(raw, dict), "a mapping of evidence name to {min: N} or {max: N}")
    for key, bar in raw.items():
        good = isinstance(bar, dict) and set(bar) in ({"min"}, {"max"})
        good = good and all(type(value) in (int, float) for value in bar.values())
        _check(where, f"levels.{key}", bar, good, "{min: N} or {max: N}")
    return {str(key): Level(**bar) for key, bar in raw.items()}


def _crossed(where: str, raw: Any) -> dict[str, dict[str, float]]:
    wanted = "a mapping of quick, standard and deep to {pairs: PERCENT, triples: PERCENT}"
    _check(where, "crossed", raw, isinstance(raw, dict) and set(raw) <= set(DEPTHS), wanted)
    for depth, bars in raw.items():
        good = isinstance(bars, dict) and set(bars) <= set(GROUPS)
        good = good and all(type(value) in (int, float) and 0 <= value <= 100 for value in bars.values())
        _check(where, f"crossed.{depth}", bars, good, "{pairs: PERCENT, triples: PERCENT}")
    return dict(raw)


def _check(where: str, key: str, value: Any, good: bool, wanted: str) -> None:
    if not good:
        raise ConfigError(f"{where}: {key}: got {value!r:.60}, wanted {wanted}")
