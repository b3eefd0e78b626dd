"""Kernel headers that were unpacked, not installed: made to build modules from where they lie."""

from __future__ import annotations

import re
from pathlib import Path

from offload.cmd import run
from offload.debian.packages import Package

# what kbuild's own programs are linked with, for a host whose C library is older than theirs
LIBRARIES = ("libc6", "libelf1t64", "libelf1", "libssl3t64", "libssl3", "zlib1g")
LOADER = "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"


def relocate(root: Path, final: Path) -> None:
    """Let the headers' Makefiles below `root` find each other at `final`, where `root` is about to move."""
    for makefile in root.glob("usr/src/linux-headers-*/Makefile"):
        text = makefile.read_text()
        makefile.write_text(re.sub(r"(?<![\w/.])/usr/src/", f"{final}/usr/src/", text))


def programs(root: Path) -> list[Path]:
    """The compiled programs of kbuild."""
    files = (p for p in root.glob("usr/lib/linux-kbuild-*/**/*") if p.is_file() and not p.is_symlink())
    return [p for p in files if p.stat().st_mode & 0o111 and first_bytes(p) == b"\x7fELF"]


def first_bytes(path: Path) -> bytes:
    """Return what tells a compiled program from a script."""
    with path.open("rb") as file:
        return file.read(4)


def too_new(root: Path) -> list[Path]:
    """Those of kbuild's programs that want a newer C library, or another library, than this machine has."""
    return [p for p in programs(root) if b"not found" in b"".join(run(["ldd", str(p)])[1:3])]


def runtime(index: tuple[Package, ...], suite: str) -> list[Package]:
    """The libraries to run kbuild with, from the release that it was built for."""
    release = suite.split("-")[0]
    return [p for p in index if p.suite == release and p.name in LIBRARIES]


def wrap(wanted: list[Path], root: Path, final: Path, library: Path) -> None:
    """Start these programs below `root` through the newer loader below `library`; both move to `final` paths.

    --argv0: Debian's objtool and modpost are starters that execute "<own name>.real-x86".
    """
    for program in wanted:
        real = program.with_name(f".{program.name}.elf")
        program.rename(real)
        program.write_text(
            f'#!/bin/sh\nexec "{library}/{LOADER}" --argv0 "$0" --library-path '
            f'"{library}/usr/lib/x86_64-linux-gnu" "{final / real.relative_to(root)}" "$@"\n'
        )
        program.chmod(0o755)
