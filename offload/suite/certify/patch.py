"""What does `certify --nicsim-patch` change? A stranger's defect in a private copy of the simulated card.

The card's own source stays as it is. A patch may change C files and headers of native/nicsim and add headers;
nothing else: a build file would run commands on this machine. The VM contains what a patch does.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from offload.cmd import run
from offload.errors import ConfigError, RigError
from offload.yamlfile import read_plain

if TYPE_CHECKING:
    from offload.debian.kernels import Kernel

RIG = "nicsim"  # the line of the rig that says so, in every report
PATCH = "nicsim.patch"  # all patches of a run, in its folder
MOST = 1 << 20  # bytes of patches
NAME = re.compile(r"(?:[ab]/)?(?:native/nicsim/)?(?:[a-z]+/)?([A-Za-z0-9_]+\.[ch])")
HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
HINT = "docs/certify/try-to-fool-us.md says how to make one: git diff -- native/nicsim > my.patch"


@dataclass(frozen=True)
class Patch:
    """Patches that were read and can be applied: `diff` holds nothing but file names and hunks."""

    path: Path
    names: tuple[str, ...]
    sha256: str
    raw: bytes
    diff: bytes

    def words(self) -> str:
        """Return what the report says of the card."""
        return f"patched by SHA-256 {self.sha256} ({', '.join(self.names)})"


def read_patch(path: Path) -> Patch:
    """Read a patch, or every *.patch of a folder in the order of their names.

    ConfigError for what is no patch of the card's C files.
    """
    try:
        files = _files(path) if path.is_dir() else [path]
        if sum(one.stat().st_size for one in files) > MOST:
            raise ConfigError(f"{path} is larger than {MOST >> 10} KiB", HINT)
        contents = [read_plain(one, MOST) for one in files]
    except OSError as exc:
        raise ConfigError(f"cannot read the patch {path}: {exc.strerror}") from None
    raw, names = b"".join(contents), tuple(one.name for one in files)
    diff = b"".join(b"".join(_plain(one, content)) for one, content in zip(files, contents, strict=True))
    if not diff:
        raise ConfigError(
            f"{path} contains no patch: no line begins with '--- ' and the next with '+++ '", HINT
        )
    return Patch(path, names, hashlib.sha256(raw).hexdigest(), raw, diff)


def _files(folder: Path) -> list[Path]:
    """Return every *.patch of a folder in the order of their names. ConfigError if there is none."""
    found = sorted(folder.glob("*.patch"))
    if not found:
        others = sorted(one.name for one in folder.iterdir())
        there = f"; it holds {', '.join(others[:5])}{' and more' * (len(others) > 5)}" if others else ""
        raise ConfigError(
            f"{folder} contains no file whose name ends with .patch{there}",
            "rename the files that belong to the card (mv my.diff 1.patch), or name one file of any name",
        )
    return found


def _plain(path: Path, content: bytes) -> Iterator[bytes]:
    """Yield file names and hunks of a unified diff, all else left away; ConfigError for other files."""
    lines = content.splitlines(keepends=True)
    at = 0
    while at < len(lines):
        line = lines[at].decode("utf-8", "replace")
        if line.startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith(b"+++ "):
            yield from _names(path, at + 1, line, lines[at + 1].decode("utf-8", "replace"))
            at += 2
        elif hunk := HUNK.match(line):
            end = _end(path, lines, at, [int(n) if n else 1 for n in hunk.groups()])
            yield from lines[at:end]
            at = end
        else:
            at += 1


def _names(path: Path, number: int, old: str, new: str) -> Iterator[bytes]:
    """Yield the lines that name a file, in the folder of the card in which it is."""
    was, now = (line[4:].rstrip("\r\n").partition("\t")[0] for line in (old, new))
    names = [match[1] for name in (was, now) if (match := NAME.fullmatch(name))]
    made = was == "/dev/null" and len(names) == 1 and names[0].endswith(".h")
    if not made and (len(names) != 2 or names[0] != names[1]):
        raise ConfigError(
            f"{path}:{number}: changes {now if was == '/dev/null' else was} to {now}:"
            " wanted a C file or header of native/nicsim, or a new header",
            HINT,
        )
    yield b"--- /dev/null\n" if made else f"--- {_place(names[0])}\n".encode()
    yield f"+++ {names[-1] if made else _place(names[-1])}\n".encode()


def _place(name: str) -> Path:
    """Where the card has a file of this name: a patch may leave its folder out."""
    from offload.suite.bench.cards.module import SOURCE, sources

    return next((path for path in sources(SOURCE) if path.name == name), Path(name))


def _end(path: Path, lines: list[bytes], at: int, left: list[int]) -> int:
    """Return the line after the hunk that begins at line `at`; `left`: its lines of the old and new file."""
    begin, at = at, at + 1
    while at < len(lines) and (any(left) or lines[at].startswith(b"\\")):
        sign = lines[at][:1]
        if sign not in (b" ", b"-", b"+", b"\\", b"\n"):
            break
        left = [left[0] - (sign not in (b"+", b"\\")), left[1] - (sign not in (b"-", b"\\"))]
        at += 1
    if left != [0, 0]:
        raise ConfigError(f"{path}:{begin + 1}: this part of the patch is cut off or has other lines", HINT)
    return at


def try_patch(patch: Patch) -> None:
    """Apply a patch to a copy that is removed at once. ConfigError if it does not apply."""
    with tempfile.TemporaryDirectory(prefix="ktls-offload-patch-") as folder:
        apply_patch(patch, Path(folder) / "nicsim")


def apply_patch(patch: Patch, folder: Path) -> None:
    """Make a patched copy of the card's source in the new folder; ConfigError if the patch does not apply."""
    from offload.suite.bench.cards.module import copy_sources

    folder.mkdir()
    copy_sources(folder)
    argv = ["patch", "-p0", "--batch", "--forward", "--fuzz=0", "--reject-file=-", "-d", str(folder)]
    rc, out, err, _ = run(argv, input=patch.diff)
    if rc == 127:
        raise RigError("program patch is not installed", "apt install patch")
    if rc != 0:
        said = (out + err).decode("utf-8", "replace").strip()
        raise ConfigError(f"{patch.path} does not apply to native/nicsim:\n{said[-2000:]}", HINT)
    for left in folder.rglob("*.orig"):
        left.unlink()


def build_patched(patch: Patch, kernel: Kernel, folder: Path, say: Callable[[str], None]) -> Path:
    """Build the patched copy and return the module; ConfigError, with the compiler's words, if it fails."""
    from offload.suite.bench.cards.module import build_nicsim

    try:
        return build_nicsim(kernel, say, folder)
    except RigError as exc:
        raise ConfigError(f"with {patch.path}, {exc}", "line numbers refer to the patched file") from None
