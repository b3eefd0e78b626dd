"""The report in a terminal: verdict, failures first, promises, cells, limitations, time and files."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from offload.suite.report import judged, known, wire
from offload.suite.report.cpu import words as cpu_words
from offload.suite.report.render import crossed_page, migration_page

MARKS = {"kept": "+", "limited": "~", "broken": "X", "not proved": "?", "not promised": "-"}
COLORS = {
    "certified": "32",
    "certified with limitations": "33",
    "failed": "31",
    "incomplete": "36",
    "void": "35",
}
WHY = 8  # lines of a reason
REPEAT = "; repeat it: "  # before the command, in the reason of a scenario (tests/lib/scenario/check.py)


def text(document: Mapping[str, Any], *, width: int = 100, color: bool = False) -> str:
    """Return the summary of a report document, as lines of at most `width` columns where words allow it."""
    word = document["verdict"].upper()
    shown = f"\x1b[1;{COLORS.get(document['verdict'], '0')}m{word}\x1b[0m" if color else word
    blocks = [
        _simulated(document),
        [f"verdict: {shown}", f"  {clean(document['headline'])}"],
        _reasons(document, width),
        _failures(document, width),
        _replay(document, width),
        _promises(document, width),
        _wire(document, width),
        _crossed(document, width),
        _cpu(document, width),
        _migration(document, width),
        _weaknesses(document, "limitations", "known limitations seen:", width),
        _weaknesses(document, "notes", "known weaknesses that no test covers (they excuse nothing):", width),
        _judged(document, width),
        _times(document),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def clean(value: object) -> str:
    """Return text without control characters: what a test or a card said must not steer the terminal."""
    return "".join(char if char.isprintable() else " " for char in str(value))


def files(folder: Path, names: list[str]) -> str:
    """Return the paths of the report's files, one per line."""
    return "".join(f"  {folder / name}\n" for name in names if (folder / name).exists())


def _cut(line: str, width: int) -> str:
    line = clean(line)
    return line if len(line) <= width else line[: width - 3] + "..."


def _simulated(document: Mapping[str, Any]) -> list[str]:
    name = clean(document["card"]["name"])
    if document["simulated"]:
        patched, real = document["rig"].get("nicsim"), document["rig"].get("driver under test")
        return [
            f"SIMULATED {name}, kernel {clean(document['kernel']) or 'unknown'}:"
            " this run says nothing about a physical card",
            *([f"nicsim {clean(patched)}"] if patched else []),
            *([f"driver: {clean(real)}", f"card: {clean(document['rig'].get('card', ''))}"] if real else []),
        ]
    return [f"{name}, kernel {clean(document['kernel'])}"]


def _reasons(document: Mapping[str, Any], width: int) -> list[str]:
    """Return the further reasons; the first is in the headline."""
    known = {f"{promise['id']}: {promise['reason']}" for promise in _unrun(document)}
    further = [reason for reason in document["reasons"][1:] if reason not in known]
    return [_cut(f"  also: {reason}", width) for reason in further[:10]]


def _unrun(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the unproved promises without a single test, as --only leaves them; of one alone, nothing."""
    found = [p for p in document["promises"] if p["state"] == "not proved" and not p["tests"]]
    return found if len(found) > 1 else []


def _failures(document: Mapping[str, Any], width: int) -> list[str]:
    """Return the failed tests and the broken rig, each with its reason and numbers."""
    bad = [test for test in document["tests"] if test["outcome"] in ("fail", "error")]
    lines = ["failures:"] if bad else []
    for test in bad[:20]:
        lines += [_cut(f"  {test['outcome']:<5} {test['id']}", width), *_why(str(test["reason"]), width)]
        for note in test.get("known_bugs", []):
            lines += _wrapped(" " * 8, known.line(note), width)
        numbers = [f"{key}={value}" for key, value in test["evidence"].items() if not isinstance(value, dict)]
        lines += [_cut(f"        {', '.join(numbers)}", width)] if numbers else []
    return lines + ([f"  and {len(bad) - 20} more"] if len(bad) > 20 else [])


def _why(reason: str, width: int) -> list[str]:
    """Return the reason of a failure, wrapped, and the command that repeats it, uncut for copying."""
    said, _, command = clean(reason).partition(REPEAT)
    lines = _wrapped(" " * 8, said, width)
    if len(lines) > WHY:
        lines[WHY - 1 :] = [f"{lines[WHY - 1][: width - 3]}..."]
    return [*lines, *([f"        repeat it: {command.partition(' (')[0]}"] if command else [])]


def _replay(document: Mapping[str, Any], width: int) -> list[str]:
    """Return how the tests that were repeated compare with the former run."""
    found = document.get("replay")
    if found is None:
        return []
    lines = [f"replay of {clean(found['of'])}:"]
    for test in found["tests"]:
        lines.append(_cut(f"  {test['then']:<5} -> {test['now'] or 'none':<5} {test['id']}", width))
        lines += _wrapped(" " * 17, "; ".join(filter(None, (test["words"], test["impairment"]))), width)
    return lines + _wrapped("  changed since: ", "; ".join(found["differs"]), width)


def _promises(document: Mapping[str, Any], width: int) -> list[str]:
    if not document["tests"]:
        return ["promises: the run tested none"]
    lines, unrun = ["promises: this NIC ..."], _unrun(document)
    for promise in (p for p in document["promises"] if p not in unrun):
        state, count = promise["state"], f"{promise['passed']}/{len(promise['tests'])}"
        lines.append(_cut(f"  {MARKS[state]} {state:<12} {count:>7}  {promise['title']}", width))
        void = document["verdict"] == "void" and state == "not proved"  # the verdict has said why
        if promise["reason"] and state not in ("kept", "not promised") and not void:
            lines.append(_cut(f"      {promise['id']}: {promise['reason']}", width))
    left = f"  ? not proved           {len(unrun)} more promises, whose tests were not part of this run"
    return [*lines, _cut(left, width)] if unrun else lines


def _wire(document: Mapping[str, Any], width: int) -> list[str]:
    """Return the proofs of the wire in one line, and the first difference in whole words below it."""
    rows = document.get("wire", [])
    totals = wire.totals(rows)
    if all(totals[proof]["state"] == "not asked" for proof in ("B", "C", "where")):
        return []
    parts = [_proof(proof, totals[proof]) for proof in ("B", "C", "where")]
    found = [
        f"first difference: {wire.label(row)}, {name}: {proof['difference']}"
        for row in rows
        for name, proof in row["proofs"].items()
        if proof["difference"]
    ]
    proven = any(totals[proof]["state"] in ("proven", "limited") for proof in ("B", "C"))
    parts += ["no difference"] if proven and not found else []
    return _wrapped("wire      ", "; ".join(parts), width) + [
        line for text in found[:1] for line in _wrapped(" " * 10, text, width)
    ]


def _proof(name: str, total: Mapping[str, Any]) -> str:
    """Return one proof over all cells: its state unless proven, and what is proven."""
    cells, tests = f"{total['cells']} cells", f"{total['proven']} tests"
    cells = cells if total["cells"] == total["asked"] else f"{total['cells']} of {total['asked']} cells"
    amounts = f"{total['records']:,} records, {wire.size(total['bytes'])} proven"
    good = {
        "B": f"{cells if total['asked'] else tests}, {amounts}",
        "C": f"{total['proven']} streams identical",
        "where": tests,
    }[name]
    if total["state"] in ("proven", "limited"):
        return f"{name} {good}" + (" (limited)" if total["state"] == "limited" else "")
    return f"{name} {total['state']}" + (f" ({cells}, {amounts})" if name == "B" and total["records"] else "")


def _wrapped(head: str, line: str, width: int) -> list[str]:
    return textwrap.wrap(clean(line), width, initial_indent=head, subsequent_indent=" " * 10)


def _crossed(document: Mapping[str, Any], width: int) -> list[str]:
    """Return which conditions were crossed, and what this depth cannot see."""
    said = crossed_page.lines(document["crossed"]) if "crossed" in document else []
    lines = [line for words in said for line in _wrapped("  ", words, width)]
    return ["conditions crossed:", *lines] if lines else []


def _cpu(document: Mapping[str, Any], width: int) -> list[str]:
    """Return what offload costs of software kernel TLS, the first few settings, and what gave no figure."""
    found = document.get("cpu", {"sources": [], "settings": []})
    said = cpu_words.summary(found)
    lines = [line for words in said[:6] for line in _wrapped("  ", words, width)]
    lines += [f"  and {len(said) - 6} more"] if len(said) > 6 else []
    lines += [_cut(f"  {s['test']}: {s['problem']}", width) for s in found["sources"] if s["problem"]]
    mark = f" ({cpu_words.MARK})" if any(source["simulated"] for source in found["sources"]) else ""
    return [f"active cores{mark}:", *lines] if lines else []


def _migration(document: Mapping[str, Any], width: int) -> list[str]:
    """Return what a live migration took, a line per transport."""
    found = document.get("migration", {"sources": [], "transports": []})
    lines = [part for line in migration_page.lines(found) for part in _wrapped("  ", line, width)]
    mark = f" ({cpu_words.MARK})" if any(source["simulated"] for source in found["sources"]) else ""
    return [f"live migration, by transport{mark}:", *lines] if lines else []


def _weaknesses(document: Mapping[str, Any], section: str, head: str, width: int) -> list[str]:
    """Return a list of known weaknesses of the card under its heading."""
    said = [f"{one['id']}: {one['message']}" for one in document.get(section, [])]
    lines = [part for line in said for part in _wrapped("  ", line, width)]
    return [head, *lines] if lines else []


def _judged(document: Mapping[str, Any], width: int) -> list[str]:
    lines = [_cut(f"  {name:<18} {value}", width) for name, value in judged.rows(document)]
    return ["judged by (SHA-256):", *lines] if lines else []


def _times(document: Mapping[str, Any]) -> list[str]:
    total = sum(phase["seconds"] for phase in document["phases"])
    lines = [f"  {clean(phase['name']):<24} {phase['seconds']:8.1f} s" for phase in document["phases"]]
    found = ["time:", *lines, f"  {'total':<24} {total:8.1f} s"] if lines else []
    peak = document.get("memory", {}).get("peak", 0)
    return found + ([f"peak memory: {peak >> 20} MiB (runner, VMs, tools)"] if peak else [])
