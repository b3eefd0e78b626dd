"""The report page as PDF, printed by Chromium without a network, where it is installed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from offload.cmd import run
from offload.errors import CommandFailed, Refused

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OFFLINE = (
    "--host-resolver-rules=MAP * ~NOTFOUND",  # the page asks nobody; this holds it to that
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--no-first-run",
)
TIMEOUT = 300.0  # seconds; it takes about two, on a busy machine a minute


def browser() -> str | None:
    """Return the path of a Chromium, or None."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def needed(what: str, instead: str) -> str:
    """Return the path of a Chromium; Refused, with what to do instead, if there is none."""
    if program := browser():
        return program
    raise Refused(f"{what} needs Chromium, which is not installed", f"apt install chromium, or {instead}")


def pdf(page: str, program: str | None = None) -> bytes:
    """Return an HTML page of ours as PDF (A4). Refused without Chromium; CommandFailed if it fails.

    `program`: a Chromium, if not the installed one.
    """
    program = program or needed("a PDF", "open report.html in a browser and print it")
    with TemporaryDirectory(prefix="ktls-offload-pdf-") as folder:
        source, out = Path(folder) / "report.html", Path(folder) / "report.pdf"
        source.write_text(page, "utf-8", "backslashreplace")
        argv = [*headless(program, folder), "--no-pdf-header-footer", f"--print-to-pdf={out}"]
        argv += ["--generate-pdf-document-outline", source.as_uri()]
        rc, said, err, _ = run(argv, timeout=TIMEOUT, env={"HOME": folder})
        if rc != 0 or not out.exists():
            raise CommandFailed(argv, rc, said, err)
        return out.read_bytes()


def headless(program: str, folder: str) -> list[str]:
    """Return the command of a browser that shows nothing, asks nobody and keeps its state in `folder`."""
    # Chromium refuses its sandbox to root; what it reads is our own page, which holds no script
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    return [program, "--headless", "--disable-gpu", *root, *OFFLINE, f"--user-data-dir={folder}/profile"]
