"""The run as nested KTAP, in the form that kernel selftests print and netdev CI reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from offload.suite.report.forms import cases
from offload.suite.report.forms.cases import Case

# Read by parse_nested_tests of netdev CI (linux-netdev/nipa, contest/remote/lib/results.py): what stands
# behind "# TAP version", one level deep, and of a name what comes before the first '#'. It makes '-' of all
# that is no letter or digit, and takes results of one name as retries of each other.
PLACE = "drivers/net/hw"
LONGEST = 160  # characters of a reason behind a result
PARTS = (("ktls_offload_promises", cases.promises), ("ktls_offload_tests", cases.tests))


def ktap(document: Mapping[str, Any]) -> str:
    """Return the document as KTAP: one part for the promises, one for the tests."""
    lines = ["TAP version 13", f"1..{len(PARTS)}"]
    lines += [f"# {cases.title(document)}: {document['verdict']}"]
    for number, (name, read) in enumerate(PARTS, 1):
        lines += _part(number, f"selftests: {PLACE}: {name}", read(document))
    return "\n".join(lines) + "\n"


def _part(number: int, name: str, found: Sequence[Case]) -> Iterator[str]:
    """Yield one part: its results as comments, then its own result."""
    yield f"# {name}"
    yield "# TAP version 13"
    yield f"# 1..{len(found)}" if found else "# 1..0 # SKIP no test gave a result"
    for place, (label, case) in enumerate(zip(_names(found), found, strict=True), 1):
        yield f"# {_result(place, label, case)}"
        if case.bad and case.reason:
            yield f"# # {case.reason}"
    yield f"# # {_totals(found)}"
    bad = not found or any(case.bad for case in found)
    yield f"{'not ok' if bad else 'ok'} {number} {name}" + (" # exit=1" if bad else "")


def _result(place: int, label: str, case: Case) -> str:
    """Return one result line; the time comes last, since the last one counts."""
    why = case.reason[:LONGEST].strip()
    words = {"skip": f"SKIP {why}", "xfail": f"XFAIL {why}"}.get(case.outcome, "").strip()
    took = f"time={round(case.seconds * 1000)}ms" if case.seconds else ""
    rest = " ".join(part for part in (words, took) if part)
    return f"{'not ok' if case.bad else 'ok'} {place} {label}" + (f" # {rest}" if rest else "")


def _names(found: Sequence[Case]) -> list[str]:
    """Return a name for each case, which stays its own when a reader drops what is no letter or digit."""
    seen: Counter[str] = Counter()
    names = []
    for case in found:
        name = f"{case.group} {case.name}".replace("#", "-").strip()
        key = re.sub(r"[^0-9a-zA-Z]+", "-", name)
        seen[key] += 1
        names.append(name if seen[key] == 1 else f"{name} again {seen[key]}")
    return names


def _totals(found: Sequence[Case]) -> str:
    words = Counter(case.outcome for case in found)
    order = ("pass", "fail", "xfail", "xpass", "skip", "error")
    return "Totals: " + " ".join(f"{word}:{words[word]}" for word in order)
