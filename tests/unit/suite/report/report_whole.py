"""A run as large as a real one, with every section that a report can have, as events, document and folder."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from offload.card.profile import find
from offload.suite.report import facts, files, known
from offload.suite.report.criteria import Criterion, load
from offload.suite.report.document import build
from offload.suite.report.events import Log, Writer
from tests.unit.suite.report import cpu_documents as made
from tests.unit.suite.report import crossed_documents, migration_documents

LISTED = {"made-up": "sends nothing on some days"}
EXCUSE = {"made-up": ("tests/hw/test_payload.tx", "as listed")}
FACTS = replace(facts.of(find("connectx-6-dx")), limitations=LISTED, excuses=EXCUSE)
COUNTERS = {f"tx_tls_counter_{n}": n * 7919 for n in range(24)}
RULES = ["b>a header +6 drop", "impair both loss 1.0000%"]
EVIDENCE: dict[str | None, dict[str, Any]] = {
    "A": {"bytes": 1 << 20, "sha256": "ab" * 32},
    "B": {"proof": "B", "engine": "core", "records": 64, "bytes": 1 << 20},
    "C": {"proof": "C", "engine": "", "records": 64, "bytes": 1 << 20},
    "where": {"proof": "where", "engine": "", "records": 64, "bytes": 1 << 20},
}
JUDGED = {
    "profile": {"sha256": "1" * 64, "shipped": "yes", "of": ""},
    "tests": {"tests/hw": "2" * 64, "tests/lib": "3" * 64},
    "commit": "4" * 40,
    "dirty": False,
}
BOOTED = {"kernel": "6.1.0-56-amd64", "checked": "as it was fetched"}
BOOTED |= {"image": "5" * 64, "modules": "6" * 64, "driver": "7" * 64}
BUG = {name: f"the {name}" for name in known.KEYS}
REPLAY = {"id": "old", "outcome": "fail"}
RIG = {"qemu": "10.0.2", "driver": "nicsim", "bus": "sim:0", "stunnel": "5.68", "kernel": "6.1.0-56-amd64"}


def events(tests: int = 60, worst: str = "pass", simulated: bool = True) -> list[dict[str, Any]]:
    """Every event of a run; its first test has the outcome `worst`. From 200 tests on it has a long sweep."""
    results = [one for promise in load().promises.values() for one in _of(promise)]
    few = [row for row in (*made.streams(count=5), *made.sweep(5)) if row["arm"] in ("sw", "hw")]
    few = [row for row in few if row["streams"] == 1]
    timed = [*made.streams(), *made.sweep()] if tests >= 200 else few
    cpu = [made.document(timed, about=made.ABOUT | made.COUNTED), made.document(made.cost(), "icount")]
    results += [_test(f"test_50_cpu.py::test_{n}", None, cpu=one) for n, one in enumerate(cpu)]
    results += [_test("test_62_migration.py::test_takes", None, migrations=migration_documents.document(1))]
    results += [_stormy(n) for n in range(max(5, tests - len(results)))]
    results[1]["known_bugs"] = [BUG]
    results[0] |= {"outcome": worst, "reason": "" if worst == "pass" else _reason(worst)}
    head = {"kernel": "6.1.0-56-amd64", "profile": FACTS.id, "simulated": simulated, "rig": RIG}
    former = {"of": "results/a", "sha256": "b" * 64, "tests": [REPLAY]}
    plan = [{"id": test["id"], "promise": test["promise"]} for test in results]
    return [
        {"event": "profile", **facts.to_event(FACTS)},
        {"event": "judged", **JUDGED},
        {"event": "booted", **BOOTED},
        {"event": "phase", "name": "boot the lab", "seconds": 9.5},
        {"event": "run-start", **head},
        {"event": "replay", **former, "kernel": "6.1.0", "rig": {}},
        {"event": "plan", "tests": plan, "deselected": [], "conditions": crossed_documents.PLAN},
        *results,
        {"event": "run-end", "exit": int(worst in ("fail", "error")), "seconds": 500.25},
        {"event": "phase", "name": "tests", "seconds": 501.0},
        {"event": "memory", "peak": 1700 << 20},
    ]


def _reason(worst: str) -> str:
    return "made-up: as listed" if worst == "xfail" else f"the reason of this {worst}"


def _of(promise: Criterion) -> list[dict[str, Any]]:
    """The tests that keep one promise."""
    if not FACTS.applies(promise.applies):
        return []
    if promise.crossed:
        rows = enumerate((crossed_documents.SENT, crossed_documents.FORGED))
        name = f"test_{promise.id}"
        return [_test(f"{name}[seed={n}]", promise.id, **crossed_documents.scenario(met)) for n, met in rows]
    wanted = [c for c in FACTS.cells if (c in FACTS.promised) == (promise.cells == "promised")]
    cells = [c for c in wanted if promise.direction in (None, c[0])] if promise.cells else []
    bars = {name: bar.min if bar.min is not None else bar.max for name, bar in promise.levels.items()}
    found = EVIDENCE.get(promise.proof, {})
    shown = found if promise.proof == "A" else {"wire": {**found, "outcome": "equal", "difference": ""}}
    numbers = {**bars, **(shown if promise.proof else {}), "counters": COUNTERS}
    numbers |= {"offload": "hw" if promise.cells == "promised" else "sw"} if promise.cells else {}
    named = [*cells, *[None] * max(0, promise.tests - len(cells))]
    return [_test(f"test_{promise.id}[{n}]", promise.id, cell, **numbers) for n, cell in enumerate(named)]


def _test(name: str, promise: str | None, cell: Any = None, **evidence: Any) -> dict[str, Any]:
    keys = dict(zip(("direction", "version", "cipher"), cell, strict=True)) if cell else None
    head = {"event": "test", "id": f"tests/hw/{name}", "promise": promise, "cell": keys, "outcome": "pass"}
    return head | {"seconds": 1.25, "reason": "", "details": "", "evidence": evidence}


def _stormy(n: int) -> dict[str, Any]:
    """A test under impairment of its own; the first ones under random loss."""
    impairment = {
        "schema": 1,
        "seed": n,
        "rules": RULES,
        "actions": [{"rule": 1, "action": "drop"}],
        "summary": {},
    }
    more = (
        {"loss": {"percent": n, "full": 90 - n, "part": n, "none": 10, "resync_requests": n}} if n < 5 else {}
    )
    back = {"software_records": 3, "software_bytes": 4096, "calm_decrypted_percent": 100.0}
    return _test(
        f"test_31_impairment.py::test_storm[{n}]",
        "resync.rx",
        impairment=impairment,
        recovery=back,
        counters=COUNTERS,
        **EVIDENCE["A"],
        **more,
    )


@cache
def document(tests: int = 60, worst: str = "pass", simulated: bool = True) -> dict[str, Any]:
    """The report on such a run, as a program reads it: from its JSON. Not to be changed: it is made once."""
    rows = events(tests, worst, simulated)
    stamped = [row | {"seq": n, "time": "2026-01-02T03:04:05.678Z"} for n, row in enumerate(rows)]
    found = build(Log(stamped, sha256=hashlib.sha256(b"").hexdigest()), load(), FACTS)
    return dict(json.loads(json.dumps(found)))


def folder(place: Path, tests: int = 60, worst: str = "pass") -> Path:
    """The folder of such a run, with its report and a console."""
    writer = Writer(place / files.EVENTS)
    for row in events(tests, worst):
        writer.write(row["event"], **{key: value for key, value in row.items() if key != "event"})
    writer.close()
    (place / "console.log").write_text("[    0.000000] Linux version 6.1.0\n")
    files.write(place)
    return place
