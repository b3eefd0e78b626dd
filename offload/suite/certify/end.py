"""The end of a certification run: its report, its manifest, and what is printed of them."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any

from offload.suite.certify.labs import MOST
from offload.suite.certify.patch import PATCH
from offload.suite.certify.plan import Plan
from offload.suite.report.former import FAILED, command
from offload.suite.report.render.summary import files as paths
from offload.suite.report.render.summary import text
from offload.suite.report.trust import manifest

CONSOLES = ["console.log", *(f"console-{number}.log" for number in range(2, MOST + 1))]
NAMES = [
    "report.html",
    "report.json",
    "report.ktap",
    "summary.txt",
    "events.jsonl",
    "junit.xml",
    "timing.svg",
    *CONSOLES,
    manifest.NAME,
]


def summary(document: dict[str, Any]) -> str:
    """Return the summary for the terminal."""
    return text(document, width=max(60, shutil.get_terminal_size((100, 24)).columns))


def files(plan: Plan) -> str:
    """Return the paths of what the run left."""
    return paths(plan.out, NAMES)


def again(plan: Plan, document: dict[str, Any]) -> str:
    """Return how to repeat what failed; empty if nothing did."""
    failed = sum(document["counts"][word] for word in FAILED)
    here = Path.cwd()
    folder = plan.out.relative_to(here) if plan.out.is_relative_to(here) else plan.out
    patched = f" --nicsim-patch {shlex.quote(str(folder / PATCH))}" if plan.patch else ""
    own = f" --driver {shlex.quote(str(plan.driver))}" if plan.driver else ""
    line = f"repeat what failed ({failed}): {command(str(folder))}{patched}{own}\n"
    return line if failed and not plan.hosts else ""  # a bench of hosts is no lab that we boot
