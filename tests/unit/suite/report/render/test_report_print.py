"""The page in a real browser: it asks nobody, and prints on A4. Needs Chromium; skipped without."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from offload.cmd import run
from offload.errors import CommandFailed, Refused
from offload.suite.report.forms import pdf
from offload.suite.report.render import render
from tests.lib.catalogue import browser
from tests.unit.suite.report.render.test_report_render import EVIL
from tests.unit.suite.report.render.test_report_render import document as small

PROGRAM = browser.had()
wanted = pytest.mark.skipif(not PROGRAM, reason=browser.ABSENT)
# what the browser itself asks its maker for: the time, updates; here only, `pdf` lets it resolve no name
OWN = re.compile(rb"^\w+ (https?://)?[\w.-]+\.(google|googleapis|gstatic|gvt1)\.com[:/ ]")
ASKING = "<!DOCTYPE html><title>x</title><img src='http://asked.example/x.png'><p>x"


@contextmanager
def proxy() -> Iterator[tuple[int, list[bytes]]]:
    """A proxy that refuses everything and remembers what it was asked for."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    end, _ = server.accept()
                except OSError:
                    return
                with end:
                    asked.append(end.recv(4096).partition(b"\r\n")[0])
                    end.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1], asked
        server.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def asked_for(page: str, folder: Path) -> list[bytes]:
    """What a browser asks the network for while it prints a page."""
    source = folder / "page.html"
    source.write_text(page, "utf-8", "backslashreplace")
    with proxy() as (port, asked):
        argv = [one for one in pdf.headless(PROGRAM, str(folder)) if "resolver" not in one]
        argv += [
            f"--proxy-server=http://127.0.0.1:{port}",
            f"--print-to-pdf={folder / 'x.pdf'}",
            source.as_uri(),
        ]
        rc, _, err, _ = run(argv, timeout=pdf.TIMEOUT, env={"HOME": str(folder)})
        assert rc == 0 and (folder / "x.pdf").stat().st_size, err.decode("utf-8", "replace")[-500:]
    return [line for line in asked if not OWN.search(line)]


@wanted
def test_page_asks_nobody(tmp_path: Path) -> None:
    """A browser that shows the report asks no one; a page that does is found out."""
    assert any(b"asked.example" in line for line in asked_for(ASKING, tmp_path))
    assert asked_for(render.html(small("fail", EVIL)), tmp_path) == []


@wanted
def test_policy_holds_even_a_planted_picture(tmp_path: Path) -> None:
    """A picture that someone plants in the page is not fetched either."""
    page = render.html(small()).replace("<footer>", "<img src='http://asked.example/x.png' alt='x'><footer>")
    assert asked_for(page, tmp_path) == []


@wanted
def test_prints_on_a4() -> None:
    """The PDF is of A4 pages, can be read aloud, and has the report's title."""
    data = pdf.pdf(render.html(small("fail")), PROGRAM)
    assert data.startswith(b"%PDF-") and b"/StructTreeRoot" in data and b"/MarkInfo" in data
    boxes = {tuple(map(float, box.split())) for box in re.findall(rb"/MediaBox \[([^]]*)\]", data)}
    assert (
        all(box[:2] == (0, 0) and abs(box[2] - 595) < 1 and abs(box[3] - 842) < 1 for box in boxes) and boxes
    )
    assert 1 < len(re.findall(rb"/Type /Page\b", data)) < 60


def test_without_chromium_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refused, match="a PDF needs Chromium, which is not installed\n  hint: apt install"):
        pdf.pdf("<p>x")


def test_failing_browser_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A browser that fails, or makes nothing, is shown with what it said."""
    program = tmp_path / "chromium"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for code in (0, 3):
        program.write_text(f"#!/bin/sh\necho no display >&2\nexit {code}\n")
        program.chmod(0o755)
        with pytest.raises(CommandFailed, match="no display"):
            pdf.pdf("<p>x")
