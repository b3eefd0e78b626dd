"""Every reason has a code, and a finding is a reason met here: reasons.yaml, as values."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

from offload.errors import ConfigError
from offload.paths import PACKAGE

FILE = PACKAGE / "doctor/reasons.yaml"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's, where PyYAML has it
LEVELS = ("never", "off", "unknown", "risk", "note")  # from the worst
FIELDS = ("name", "level", "what", "so", "do", "about", "source", "test")
LONGEST = 400  # what a host says of itself may be anything


class Reason(NamedTuple):
    """One code; `what`, `so` and `do` hold {names} for what is seen."""

    code: str
    name: str
    level: str
    what: str
    so: str
    do: str
    about: str
    source: str
    test: str


class Finding(NamedTuple):
    """A reason met on this host: `dev` is '' and `directions` empty where it concerns all of it.

    Fields: what, evidence (where doctor looked and what it found), consequence, remedy; each one printable
    line.
    """

    code: str
    name: str
    level: str
    dev: str
    directions: tuple[str, ...]
    what: str
    evidence: str
    consequence: str
    remedy: str
    detail: tuple[str, ...] = ()


@dataclass
class Notes:
    """What an examination has found so far about one device (or, with dev '', the host)."""

    dev: str = ""
    findings: list[Finding] = field(default_factory=list)
    fine: list[str] = field(default_factory=list)

    def add(
        self,
        code: str,
        evidence: str,
        directions: Sequence[str] = (),
        detail: Sequence[str] = (),
        **values: object,
    ) -> None:
        """Note a finding; `values` fill in the names in its sentences. KeyError for a code that is none."""
        reason = load()[code]
        words = {name: plain(str(value)) for name, value in {"dev": self.dev, **values}.items()}
        what, so = (plain(text.format_map(words)) for text in (reason.what, reason.so))
        # an interface may be called `a;b`, and a remedy is copied into a shell
        do = plain(reason.do.format_map({**words, "dev": shlex.quote(words["dev"])}))
        shown = tuple(plain(line) for line in detail)
        found = Finding(
            code, reason.name, reason.level, self.dev, tuple(directions), what, plain(evidence), so, do, shown
        )
        for at, known in enumerate(self.findings):
            if (known.code, known.what, known.remedy) == (code, found.what, found.remedy):
                both = tuple(dict.fromkeys((*known.directions, *found.directions)))
                self.findings[at] = known._replace(directions=both)
                return
        self.findings.append(found)

    def ok(self, text: str) -> None:
        """Note what is as it should be."""
        if (line := plain(text)) not in self.fine:
            self.fine.append(line)


def printable(text: str) -> str:
    """Text as one line that cannot steer a terminal."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(text.split())


def plain(text: str) -> str:
    """Text that is safe for a terminal: one line, printable, bounded."""
    line = printable(text[: 4 * LONGEST])
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."


@cache
def load(path: Path = FILE) -> dict[str, Reason]:
    """Every reason by its code. ConfigError if the file is not what it must be."""
    try:
        document = yaml.load(path.read_text("utf-8"), Loader=LOADER)  # noqa: S506  (a safe loader)
        rows = document["reasons"].items()
        found = {code: Reason(code, **{name: row[name] for name in FIELDS}) for code, row in rows}
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError) as exc:
        raise ConfigError(f"{path.name}: {exc}", "is the installation complete?") from None
    if odd := [r.code for r in found.values() if r.level not in LEVELS]:
        raise ConfigError(f"{path.name}: {odd[0]}: level, wanted one of {', '.join(LEVELS)}")
    return found
