"""The report as one picture to send on: card, kernel, verdict, three figures, digest; SVG or PNG."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from offload.cmd import run
from offload.errors import CommandFailed
from offload.suite.report.forms import pdf
from offload.suite.report.render.front import figures
from offload.suite.report.render.render import page

WIDTH, HEIGHT = 1200, 630  # what pages that show a link cut their pictures to


def svg(document: Mapping[str, Any]) -> str:
    """Return the picture, for light and dark grounds, with everything in it escaped."""
    card, driver = document["card"], document["card"]["driver"]
    remark = document["judged"]["profile"]["remark"] if "judged" in document else ""
    played = document["rig"].get("driver") if document["simulated"] else ""
    return page(
        "card.svg",
        r=document,
        size=(WIDTH, HEIGHT),
        title=lines(card["name"], 30, 2),
        driver=f"{played}, in place of {driver}" if played not in ("", None, driver) else driver,
        verdict=lines(document["verdict"], 16, 2),
        said=lines(_said(document), 84, 3),
        remark=remark,
        figures=[(one.value, lines(one.words, 33, 2)) for one in figures(document)],
    )


def _said(document: Mapping[str, Any]) -> str:
    defect = document.get("defect")
    return f"This card {defect['fault']}." if defect else str(document["headline"])


def lines(text: str, width: int, most: int) -> list[str]:
    """Return text as at most this many lines of this many characters; what is left out ends in an
    ellipsis."""
    return textwrap.wrap(text, width, max_lines=most, placeholder=" \u2026", break_on_hyphens=False)


def png(document: Mapping[str, Any], program: str | None = None) -> bytes:
    """Return the picture as PNG, made by Chromium. Refused without one; CommandFailed if it fails."""
    picture = svg(document)
    program = program or pdf.needed("a PNG", "--as card makes an SVG without it")
    with TemporaryDirectory(prefix="ktls-offload-card-") as folder:
        source, out = Path(folder) / "card.svg", Path(folder) / "card.png"
        source.write_text(picture, "utf-8", "backslashreplace")
        window = [f"--window-size={WIDTH},{HEIGHT}", "--hide-scrollbars", f"--screenshot={out}"]
        argv = [*pdf.headless(program, folder), *window, source.as_uri()]
        rc, said, err, _ = run(argv, timeout=pdf.TIMEOUT, env={"HOME": folder})
        if rc != 0 or not out.exists():
            raise CommandFailed(argv, rc, said, err)
        return out.read_bytes()
