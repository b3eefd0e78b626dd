"""The registry as a static site, made again as a whole: a table of results, reports, pictures, badges."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from offload.errors import ConfigError, RigError
from offload.suite.report.registry.listed import Compared, Entry
from offload.suite.report.render import card
from offload.suite.report.render.render import canonical, html, page

SCHEMA = "ktls-offload/registry/1"
LIST = "registry.json"
LOOKS = {"certified": "#11693a", "certified with limitations": "#7a4b00", "failed": "#a8161d"}
LETTER = 6.6  # pixels of a letter on a badge, on average


def write(out: Path, rows: Sequence[Compared], wrong: Mapping[str, str]) -> None:
    """Replace a site by a new one. ConfigError for a folder of something else, RigError."""
    if out.exists() and not (out / LIST).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out} is there already, and is no registry", "name a new folder with --out")
    try:
        out.resolve().parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".ktls-offload-", dir=out.resolve().parent) as name:
            new = Path(name) / "site"
            _fill(new, rows, wrong)
            shutil.rmtree(out, ignore_errors=True)
            new.rename(out)
    except OSError as exc:
        raise RigError(f"cannot write {out}: {exc.strerror}") from None


def _fill(site: Path, rows: Sequence[Compared], wrong: Mapping[str, str]) -> None:
    latest: dict[tuple[str, str, str], Entry] = {}
    for row in rows:
        latest.setdefault(row.entry.bench, row.entry)
        place = site / "reports" / row.entry.slug
        place.mkdir(parents=True)
        _put(place / "report.html", html(row.entry.document))  # ours, not the one that somebody sent
        (place / "report.json").write_bytes(canonical(row.entry.document))
        _put(place / "card.svg", card.svg(row.entry.document) + "\n")
        if row.words:
            _put(place / "diff.txt", row.words)
    (site / "badges").mkdir(parents=True)
    badges = {bench: f"badges/{number}.svg" for number, bench in enumerate(sorted(latest), 1)}
    for bench, entry in latest.items():
        _put(site / badges[bench], badge(entry.document))
    listed = [_row(row, badges.get(row.entry.bench, ""), row.entry in latest.values()) for row in rows]
    tree = {"schema": SCHEMA, "results": listed, "not_listed": dict(wrong)}
    _put(site / LIST, json.dumps(tree, ensure_ascii=False, sort_keys=True, indent=1) + "\n")
    _put(site / "index.html", page("registry.html", rows=listed, wrong=dict(wrong)))


def _put(path: Path, text: str) -> None:
    path.write_text(text, "utf-8", "backslashreplace")


def _row(row: Compared, image: str, newest: bool) -> dict[str, Any]:
    """Return one result as site and programs get it."""
    entry, (name, kernel, driver) = row.entry, row.entry.bench
    document = entry.document
    return {
        "card": name,
        "kernel": kernel,
        "driver": driver,
        "firmware": str(document["rig"].get("firmware", "")),
        "verdict": document["verdict"],
        "headline": document["headline"],
        "simulated": document["simulated"],
        "finished": document["finished"],
        "signer": entry.signer,
        "remark": entry.remark,
        "changed": row.changed,
        "folder": f"reports/{entry.slug}",
        "diff": bool(row.words),
        "badge": image,
        "newest": newest,
        "archive": entry.archive,
        "sha256": entry.sha256,
    }


def badge(document: Mapping[str, Any]) -> str:
    """Return a badge as SVG: TLS offload, and the verdict; SIMULATED where it is."""
    left = "TLS offload" + (", SIMULATED" if document["simulated"] else "")
    right = str(document["verdict"])
    widths = [round(len(text) * LETTER + 14) for text in (left, right)]
    return page("badge.svg", left=left, right=right, widths=widths, color=LOOKS.get(right, "#3f4d5a")) + "\n"
