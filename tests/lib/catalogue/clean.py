"""What became of a good card, run by run? One line of JSON each, failures too, and a table of them all."""

from __future__ import annotations

import datetime
import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.lib.catalogue import record

ROOT = Path(__file__).parents[3]
FILE = ROOT / "benchmarks" / "results" / "clean-runs.jsonl"
BEGIN, END = "<!-- made by benchmarks.certifier, of clean-runs.jsonl: begin -->", "<!-- end of clean runs -->"
# what makes a run another one; the record itself does not
SOURCES = ("offload", "tests", "native", "nic-profiles")
KINDS = {
    "run": "whole: every test of the catalog",
    "step": "in between, after bad cards: a part of them, or all",
}
CLEAN, FAILED, VOID = "clean", "failed", "void"
FIELDS = ("date", "commit", "kernel", "card", "kind", "tests", "word", "seconds", "problem")
LATER = ("load",)
BUSY = 8  # a load from which on a machine is busy
Json = Mapping[str, Any]


def commit() -> str:
    """The commit that is checked out, with a plus if the code is not as it has it."""
    head = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    same = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", *SOURCES], cwd=ROOT, check=False)
    return head.stdout.strip() + ("+" if same.returncode else "")


def entry(found: Json, *, kernel: str, card: str, kind: str, code: str) -> dict[str, Any]:
    """The line of one run; `found`: its `tests` (how many ran), `word`, `seconds`, `problem`."""
    word = (VOID if found["word"] == VOID else FAILED) if found["problem"] else CLEAN
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    said = " ".join(str(found["problem"]).split())[:300]
    values = (now, code, kernel, card, kind, found["tests"], word, found["seconds"], said)
    return dict(zip(FIELDS, values, strict=True)) | {"load": round(os.getloadavg()[0], 1)}


def append(line: Json, path: Path | None = None) -> None:
    """Add a line to the record."""
    record.append(path or FILE, line)


def read(path: Path | None = None) -> list[dict[str, Any]]:
    """Every line. ConfigError with file and line for one that is none."""
    return record.read(path or FILE, FIELDS, LATER)


def table(lines: Sequence[Json]) -> str:
    """A sentence, and a row per kernel, card and kind; then every run that was not clean."""
    count = Counter((line["kernel"], line["card"], line["kind"], line["word"]) for line in lines)
    words = Counter(line["word"] for line in lines if line["kind"] == "run")
    steps = Counter(line["word"] for line in lines if line["kind"] == "step")
    days = sorted(line["date"][:10] for line in lines)
    span = f", {days[0]} to {days[-1]}" if days else ""
    first = f"{_runs(words, 'whole run')} and {_runs(steps, 'step')} of a good card{span}.{_since(lines)}"
    out = [first + _busy(lines), ""]
    out += ["| kernel | card | kind | clean | failed | void | tests |", "|---|---|---|---|---|---|---|"]
    for kernel, card, kind in sorted(
        {key[:3] for key in count}, key=lambda key: (_release(key[0]), *key[1:])
    ):
        mine = [
            line for line in lines if (line["kernel"], line["card"], line["kind"]) == (kernel, card, kind)
        ]
        ends = [str(count[kernel, card, kind, word]) for word in (CLEAN, FAILED, VOID)]
        out.append(
            f"| {' | '.join((kernel, card, KINDS[kind], *ends, str(sum(m['tests'] for m in mine))))} |"
        )
    return "\n".join([*out, *_bad(lines)]) + "\n"


def _since(lines: Sequence[Json]) -> str:
    """How many have been clean since the last one that was not; nothing if all were."""
    last = max((number for number, line in enumerate(lines) if line["word"] != CLEAN), default=None)
    if last is None:
        return ""
    kinds = Counter(line["kind"] for line in lines[last + 1 :])
    clean = f"{_count(kinds['run'], 'whole run')}, {_count(kinds['step'], 'step')}"
    return f" Since the last that was not clean: {clean}."


def _busy(lines: Sequence[Json]) -> str:
    """How many whole runs a busy machine made; nothing if none was."""
    busy = Counter(line["word"] for line in lines if line["kind"] == "run" and (line["load"] or 0) >= BUSY)
    return f" At a load of {BUSY} or more: {_runs(busy, 'whole run')}." if busy else ""


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _runs(words: Counter[str], what: str) -> str:
    return f"{_count(words.total(), what)} ({words[FAILED]} failed, {words[VOID]} void)"


def _bad(lines: Iterable[Json]) -> list[str]:
    found = [
        f"* {line['date'][:16]}, {line['kernel']}, {line['card']}, {line['commit']}, {line['word']}: "
        f"`{str(line['problem']).replace('`', '')}`"
        for line in lines
        if line["word"] != CLEAN
    ]
    return ["", "Not clean:", "", *found] if found else []


def _release(kernel: str) -> tuple[int, ...]:
    return tuple(int(part) for part in kernel.split("."))


def page(text: str, lines: Sequence[Json]) -> str:
    """The page with a new table. ValueError if it has no place for it."""
    return record.put(text, BEGIN, END, table(lines))
