"""The folder of one run: events.jsonl goes in, report.json, its page and other forms come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from offload.card.profile import find
from offload.errors import ConfigError
from offload.suite.report import facts as profile_facts
from offload.suite.report import timing
from offload.suite.report.criteria import load
from offload.suite.report.document import build
from offload.suite.report.events import Log, read
from offload.suite.report.facts import Facts
from offload.suite.report.forms.junit import junit
from offload.suite.report.forms.ktap import ktap
from offload.suite.report.render.summary import text
from offload.suite.report.trust.kept import Kept, kept
from offload.suite.report.trust.saved import EVENTS, put


def compute(folder: Path) -> dict[str, Any]:
    """Return the report document of a run's folder. ConfigError if there are no events or no profile."""
    try:
        log = read(folder / EVENTS)
    except OSError as exc:
        raise ConfigError(
            f"{folder / EVENTS}: {exc.strerror}", "name the folder that certify printed, results/<time>"
        ) from None
    facts = facts_of(log)
    if isinstance(facts, str):
        raise ConfigError(f"{folder / EVENTS}: {facts}")
    return build(log, load(), facts)


def facts_of(log: Log) -> Facts | str:
    """Return what the run knew of the card: its own profile event, else today's profile of that id."""
    for event in log.events:
        if event["event"] == "profile":
            return profile_facts.from_event(event)
    names = [event["profile"] for event in log.events if event["event"] in ("run-start", "rig")]
    known = [name for name in names if name]
    return profile_facts.of(find(known[-1])) if known else "no event says which profile was tested"


def write(folder: Path) -> dict[str, Any]:
    """Write every form of a run's report next to its events; return the document.

    junit.xml is ours, not pytest's: that one says nothing of promises, so an incomplete run looks good in it.
    """
    document = compute(folder)
    for name, made in pages(folder, document):
        put(folder / name, made())
    return document


def pages(
    folder: Path, document: Mapping[str, Any], listed: Sequence[Kept] | None = None
) -> list[tuple[str, Callable[[], bytes]]]:
    """Return what is made of a document, in order, by name; the last one names the files of its folder.

    `listed`: those files, if the folder has only a part of them, as an archive.
    """
    from offload.suite.report.render.render import canonical, html  # Jinja2 only when a page is wanted

    return [
        ("report.json", lambda: canonical(document)),
        ("summary.txt", lambda: text(document, width=140).encode()),
        ("report.ktap", lambda: ktap(document).encode("utf-8", "backslashreplace")),
        ("junit.xml", lambda: junit(document)),
        ("timing.svg", lambda: timing.svg(document).encode("utf-8", "backslashreplace")),
        (
            "report.html",
            lambda: html(document, _attachments(folder, listed)).encode("utf-8", "backslashreplace"),
        ),
    ]


def _attachments(folder: Path, listed: Sequence[Kept] | None) -> list[Kept]:
    """Return the files that the page names: not itself, and not what is made of it later."""
    try:
        files = kept(folder) if listed is None else listed
        return [one for one in files if not one.name.startswith(("report.html", "manifest."))]
    except ConfigError:  # one that cannot be read must not cost the report
        return []
