"""What "certified" takes, read from criteria.yaml: promises in order, each with its bar."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path

from offload.errors import ConfigError
from offload.paths import PACKAGE
from offload.yamlfile import SCHEMA, Item, fields, flag, listed, mapped, near, number, parse, record, text

DEFAULT = PACKAGE / "suite/report/criteria.yaml"


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
class Spec:
    """Where a promise comes from: the kernel, RFC sections, OCP's core features, others."""

    kernel: tuple[str, ...] = ()
    rfc: tuple[str, ...] = ()
    ocp: tuple[str, ...] = ()
    also: tuple[str, ...] = ()

    def tree(self) -> dict[str, list[str]]:
        """Return the parts that are there, as report.json has them."""
        return {name: list(found) for name, found in vars(self).items() if found}


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
    spec: Spec = Spec()
    frames: str | None = None
    unproved: str = "blocks"
    crossed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # depth -> what -> percent
    fault: str = ""

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
            meant = f"unknown promise {promise!r}{near(promise, self.promises)}"
            raise ConfigError(f"{meant}; promises are listed in offload/suite/report/criteria.yaml")


def _one_bar(item: Item, have: Mapping[str, Item], bar: Level) -> None:
    if len(have) != 1:
        item.bad("wanted {min: N} or {max: N}")


SENTENCE = text("a sentence", r".*[A-Za-z].*")
NUMBER = number().optional(None)
PERCENT = number("a percentage, 0 to 100", 0, 100)
SPEC = {
    "kernel": listed(
        text(
            "a file of the kernel, as in net/tls/tls_main.c 7.2:716-758", r"(Documentation|drivers|net)/\S+.*"
        ),
        least=1,
    ),
    "rfc": listed(text("a section, as in RFC 5246 section 6.2.1", r"RFC \d+ section \d+(\.\d+)*")).optional(),
    "ocp": listed(text(choices=("checksum offload", "TCP segmentation offload"))).optional(),
    "also": listed(SENTENCE).optional(),
}
PROMISE = {
    "title": SENTENCE,
    "why": SENTENCE.optional(),
    "spec": record(Spec, SPEC).optional(),
    "fault": SENTENCE.optional(),
    "blocker": flag("true or false").optional(True),
    "unproved": text(choices=("blocks", "limits")).optional("blocks"),
    "applies": text(choices=("always", "tx", "rx", "unpromised")).optional("always"),
    "tests": number("a number from 1", 1, whole=True).optional(1),
    "cells": text(choices=("promised", "unpromised")).optional(None),
    "levels": mapped(record(Level, {"min": NUMBER, "max": NUMBER}, _one_bar)).optional(),
    "proof": text(choices=("A", "B", "C", "where")).optional(None),
    "frames": text(choices=("explained",)).optional(None),
    "crossed": mapped(
        mapped(PERCENT, ("pairs", "triples")), ("quick", "standard", "deep"), what="depth"
    ).optional(),
}
ROWS = {"schema": SCHEMA, "promises": mapped(record(partial(Criterion, ""), PROMISE))}


@cache
def load(path: Path = DEFAULT) -> Criteria:
    """Read the criteria. ConfigError with every problem as `file:line: key: ...`."""
    data = path.read_bytes()
    root = parse(data, path.name, "list of criteria")
    found = fields(root, ROWS)[1]["promises"]
    root.log.check()
    return Criteria({i: replace(one, id=i) for i, one in found.items()}, hashlib.sha256(data).hexdigest())
