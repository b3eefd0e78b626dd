"""A headless Chromium for pictures of our pages: the installed one, or Debian's, unpacked into the cache.

`python -m tests.lib.catalogue.browser` fetches it (95 MiB) where none is; nothing is installed. Tests that
look at a page use it if it is there, and skip if not.
"""

from __future__ import annotations

import json
import re
import sys
from html import escape, unescape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from offload.cmd import run
from offload.debian.cache import cache_root, kept, new_folder, read_json
from offload.debian.kernels import Say, codename
from offload.debian.packages import Package, depends, download, index, installed, newest, refresh
from offload.errors import CommandFailed, RigError
from offload.suite.report.forms import pdf

PLACE, NAME, SHELL = "chromium", "chromium", "chromium-headless-shell"
WANTED = (SHELL, "chromium-common", "fonts-liberation")
ABSENT = (
    "no Chromium here: install it, or `python -m tests.lib.catalogue.browser` unpacks Debian's into the cache"
)
LIBRARY = "usr/lib/x86_64-linux-gnu"
STARTER = (
    "#!/bin/sh\n"
    'export LD_LIBRARY_PATH="{folder}/{library}:{folder}/{library}/pulseaudio"\n'
    'export FONTCONFIG_FILE="{folder}/fonts.conf"\n'
    'exec "{folder}/usr/lib/chromium/{shell}" "$@"\n'
)
# Chromium asks for a nameless font where a page says system-ui: the last edit is for that
FONTS = """\
<fontconfig><dir>{folder}/usr/share/fonts</dir><cachedir>{folder}/fonts</cachedir>
<alias><family>monospace</family><prefer><family>Liberation Mono</family></prefer></alias>
<match target="pattern"><edit name="family" mode="append_last"><string>Liberation Sans</string></edit></match>
</fontconfig>
"""
# what a page tells of itself: the place of each element with an id, what is too wide, what scrolls
LOOK = """<script>window.onload = () => {
  const at = {}, wide = [];
  for (const one of document.querySelectorAll("[id]")) {
    const box = one.getBoundingClientRect(); at[one.id] = [box.top + scrollY, box.bottom + scrollY]; }
  for (const one of document.querySelectorAll("main *, header *")) {
    const box = one.getBoundingClientRect();
    if (box.width && box.right > innerWidth + 1 && !one.closest(".scroll, .panels, figure.cpu"))
      wide.push(one.tagName + " " + one.className + ": " + one.textContent.trim().slice(0, 60)); }
  const scrolls = [...document.querySelectorAll(".scroll, .panels > div, .wide")]
    .filter((one) => one.scrollWidth > one.clientWidth + 1)
    .map((one) => (one.querySelector("table") || one).className + " of " +
      one.closest("section").getAttribute("aria-labelledby"));
  const width = document.documentElement.scrollWidth;
  document.body.textContent = "FOUND" + JSON.stringify({at, wide, scrolls, width}) + "FOUND";
};</script></body>"""
# a window of the full Chromium is never narrower than 500 pixels, a frame is as wide as we say
FRAME = '<iframe width="{width}" height="800" style="border: 0" srcdoc="{page}"></iframe>'
FRAMES = """<body>{frames}<script>window.onload = () => {{
  const all = [...document.querySelectorAll("iframe")];
  document.body.textContent = all.map((one) => one.contentDocument.body.textContent).join("");
}};</script></body>"""


def find(say: Say = print) -> str:
    """Return the path of a Chromium, fetched if need be. RigError if it cannot be had or does not run."""
    if found := had():
        return found
    return str(kept(PLACE, lambda root: _fetch(root, say), say) / NAME)


def had() -> str:
    """Return the same path if it is installed or has been fetched, else an empty string."""
    state = read_json(cache_root() / PLACE / "current.json")
    path = cache_root() / PLACE / state["folder"] / NAME if state else None
    return pdf.browser() or (str(path) if path and path.is_file() else "")


def choose(packages: tuple[Package, ...], release: str, present: set[str]) -> list[Package]:
    """Return the browser of a release, its fonts, and those libraries that are not installed; or nothing."""
    best = newest(packages, (release, f"{release}-security"))
    chosen, names = list[Package](), list(WANTED)
    while names:
        part = best.get(names.pop(0))
        if part and part not in chosen and (part.name in WANTED or part.name not in present):
            chosen.append(part)
            names += depends(part)
    return chosen if {*WANTED} <= {part.name for part in chosen} else []


def _fetch(root: Path, say: Say) -> Path:
    refresh()
    parts = choose(index(), codename(), installed())
    if not parts:
        raise RigError(f"no {SHELL} in the archive's lists", "refresh them: rm the folder apt in the cache")
    say(f"fetching {SHELL} {parts[0].version}: {sum(part.size for part in parts) >> 20} MiB")
    folder = root / parts[0].version.replace(":", "_")
    with new_folder(folder) as temp:
        download(parts, temp)
        (temp / "fonts.conf").write_text(FONTS.format(folder=folder))
        (temp / NAME).write_text(STARTER.format(folder=folder, library=LIBRARY, shell=SHELL))
        (temp / NAME).chmod(0o755)
    return folder


def _run(program: str, folder: str, page: Path, *more: str) -> bytes:
    argv = [*pdf.headless(program, folder), "--hide-scrollbars", *more, page.as_uri()]
    rc, out, err, _ = run(argv, timeout=pdf.TIMEOUT, env={"HOME": folder})
    if rc != 0:
        raise CommandFailed(argv, rc, out, err)
    return out


def picture(program: str, page: Path, out: Path, width: int, height: int, dark: bool = False) -> None:
    """Write a picture of the top of a page as PNG, in light or dark colors. CommandFailed without one."""
    more = ["--blink-settings=preferredColorScheme=0"] if dark else []
    with TemporaryDirectory(prefix="ktls-offload-picture-") as folder:
        _run(program, folder, page, f"--window-size={width},{height}", f"--screenshot={out}", *more)


def look(program: str, *pages: tuple[str, int]) -> list[dict[str, Any]]:
    """Return, for each page in a window so wide, where each element with an id begins and ends (`at`),
    and what the window cuts off (`wide`). One start of the browser, which costs most, serves all.

    `scrolls`: the boxes whose content is wider than they are: the class of the table, and its section.

    The browser lays the page out without its content policy, which would not let us look.
    """
    with TemporaryDirectory(prefix="ktls-offload-look-") as folder:
        source = Path(folder) / "page.html"
        framed = "".join(FRAME.format(width=width, page=escape(_telling(page))) for page, width in pages)
        source.write_text(FRAMES.format(frames=framed), "utf-8", "backslashreplace")
        said = _run(program, folder, source, "--dump-dom").decode()
    found = [json.loads(unescape(one)) for one in said.split("FOUND")[1::2]]
    assert len(found) == len(pages), said[-500:]
    return found


def _telling(page: str) -> str:
    """The page, with a script that tells of it, and without the policy that forbids scripts."""
    return re.sub(r"<meta http-equiv=[^>]*>", "", page).replace("</body>", LOOK)


if __name__ == "__main__":
    sys.stdout.write(find(lambda words: None) + "\n")
