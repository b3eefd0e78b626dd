"""Which known kernel bugs a kernel has, and which of them may be behind a failure; the data is errata.yaml.

An erratum explains, it never excuses: the outcome of the test stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from offload.errata.file import Erratum, Span, read
from offload.errata.kernel import Kernel, Version, kernel, version
from offload.paths import PACKAGE

__all__ = ["Erratum", "Kernel", "Span", "Standing", "explain", "kernel", "load", "matching", "standing"]

DEFAULT = PACKAGE / "errata/errata.yaml"
# words of a failure that left payload, or frames that nothing explains, on the wire
CLEAR = re.compile(r"plaintext|in clear|clear-record|stray-data", re.IGNORECASE)
AFFECTED, UNKNOWN, FIXED = "affected", "unknown", "fixed"


@dataclass(frozen=True)
class Standing:
    """How one kernel stands to one erratum: `word` is affected (it lacks the fix, or behaves so), fixed or
    unknown; `why` is half a sentence."""

    word: str
    why: str


@cache
def load(path: Path = DEFAULT) -> tuple[Erratum, ...]:
    """Every erratum, in the order of the file. ConfigError with every problem as `file:line: key: ...`."""
    return read(path)


def standing(erratum: Erratum, at: Kernel) -> Standing:
    """How a kernel stands to an erratum; nothing is guessed: what the data does not say is unknown."""
    if at.series is None:
        return Standing(UNKNOWN, at.why)
    name = f"Linux {at.series[0]}.{at.series[1]}"
    if erratum.onward and (at.series > erratum.onward or (at.series == erratum.onward and not at.candidate)):
        return Standing(FIXED, f"all of {name} has the fix")
    span = dict(erratum.kernels).get(at.series, Span(unknown=f"nothing is recorded of {name}"))
    if at.stable and (known := [v for v in (span.fixed, span.has) if v and at.stable >= _number(v)]):
        return Standing(FIXED, f"{known[0]} has the fix")
    if shown := _still(erratum, at):
        return Standing(AFFECTED, f"so it is in {shown}")
    return Standing(UNKNOWN, span.unknown) if span.unknown else _before(span, at)


def _still(erratum: Erratum, at: Kernel) -> str:
    """The newer version that still behaves so, or none. A fix may be taken back into an older series, and
    so only behavior, which nobody sees as a bug, is sure to be the same in between."""
    seen = [(series, span.lacks) for series, span in erratum.kernels if span.lacks]
    if erratum.kind != "behavior" or at.series is None or not seen or at.series < seen[0][0]:
        return ""
    same = [text for series, text in seen if series == at.series and at.stable and at.stable <= _number(text)]
    return next(iter(same or [text for series, text in seen if series > at.series]), "")


def _before(span: Span, at: Kernel) -> Standing:
    """How a kernel stands in a series of which something is known, if no version with the fix is older."""
    if at.stable is None:
        return Standing(UNKNOWN, at.why)
    if span.fixed and at.whose == "debian":
        return Standing(AFFECTED, f"the fix is in {span.fixed}, but this is {at.package or at.release}")
    if at.whose == "other":
        return Standing(UNKNOWN, f"{at.release} is a vendor build, which may include the fix anyway")
    if span.lacks and at.stable <= _number(span.lacks):
        return Standing(AFFECTED, f"so it is in {span.lacks}")
    if known := span.fixed or span.has:
        return Standing(UNKNOWN, f"{known} has the fix; the first version with it is not recorded")
    return Standing(UNKNOWN, f"so it is in {span.lacks}, and no later version was checked")


def _number(text: str) -> Version:
    found = version(text)
    assert found is not None  # the file was checked when it was read
    return found


def matching(release: str, package_version: str = "") -> tuple[Erratum, ...]:
    """The errata that a kernel has or may have: affected ones first, then those of which it is unknown.

    `release` is `uname -r`, as in 6.1.0-56-amd64 or 6.12.95; `package_version` Debian's, as in 6.1.192-1.
    `standing()` says which it is, and why.
    """
    return _sorted(load(), kernel(release, package_version))


def explain(outcome_reason: str, at: Kernel, *, test: str = "", driver: str = "") -> tuple[Erratum, ...]:
    """The errata of that kernel whose symptom fits a failure message; affected ones first.

    `test`: the id of the test, where it is known; `driver`: the card's, so that another driver's bugs are
    left out. Directions are not compared: in a lab the peer runs the same kernel, so its bugs count as well.
    Errata that say nothing of the kernel's series are left out: they would come with every failure.
    """
    fitting = tuple(e for e in load() if _fits(e, outcome_reason, test) and not _foreign(e, driver))
    return tuple(
        e for e in _sorted(fitting, at) if at.series in dict(e.kernels) or standing(e, at).word == AFFECTED
    )


def _sorted(errata: tuple[Erratum, ...], at: Kernel) -> tuple[Erratum, ...]:
    words = {erratum.id: standing(erratum, at).word for erratum in errata}
    return tuple(e for word in (AFFECTED, UNKNOWN) for e in errata if words[e.id] == word)


def _fits(erratum: Erratum, reason: str, test: str) -> bool:
    """Say whether message and test look like the erratum; of a test's id only the name counts.

    Plaintext is explained by no bug but one that puts plaintext on the wire.
    """
    if CLEAR.search(reason) and not CLEAR.search(erratum.symptom):
        return False
    about = f"{test.rpartition('::')[2]} {reason}"
    return bool(
        erratum.pattern
        and re.search(erratum.pattern, reason, re.IGNORECASE)
        and re.search(erratum.test, about, re.IGNORECASE)
    )


def _foreign(erratum: Erratum, driver: str) -> bool:
    """Say whether it is a bug of another driver than the card's."""
    return bool(erratum.driver and driver) and erratum.driver != driver
