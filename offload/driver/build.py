"""Build a driver with TLS offload for a kernel: source, tree, make, checks; the outcome is a folder."""

from __future__ import annotations

import os
import re
import shutil
import time
from hashlib import sha256
from pathlib import Path

from offload.cmd import run
from offload.debian.cache import cache_root, locked, need_space, new_folder, read_json, write_json
from offload.driver.kinds import Kind
from offload.driver.source import Say, take
from offload.driver.target import Target, fits
from offload.driver.tree import MARK, pack, texts, write
from offload.errors import ConfigError, Refused, RigError

PROGRAMS = {"make": "make", "gcc": "gcc", "modinfo": "kmod", "nm": "binutils", "tar": "tar", "xz": "xz-utils"}
SBIN = ("/usr/sbin", "/sbin")
ROOM = 500 << 20  # bytes: mlx5 of 7.2 with objects and without debug information takes 200 MB
STAMP = "origin.json"
HOURS = 3 * 3600.0  # seconds: one slow core, shared


def place(kind: Kind, release: str, out: Path | None) -> Path:
    """Where a driver for a kernel is built: below `out`, or in the cache."""
    return (out.absolute() if out else cache_root() / "drivers") / f"{kind.name}-{release}"


def lock_of(tree: Path) -> Path:
    """The lock of one tree: drivers of two kernels are built side by side."""
    return tree.with_name(f".{tree.name}.lock")


def build(target: Target, kind: Kind, out: Path | None, archive: Path | None, jobs: int, say: Say) -> Path:
    """Build and check; the folder. Steps of an earlier call are not repeated.

    Refused if kernel and driver do not go together, or the modules must not be installed; ConfigError for a
    missing program; RigError if the source cannot be had or does not compile.
    """
    fits(target, kind)
    _programs()
    tree = place(kind, target.release, out)
    with locked(lock_of(tree), say):
        _prepare(target, kind, tree, archive, say)
        _make(target, kind, tree, jobs, say)
        check(target, tree, say)
    return tree


def compile_again(target: Target, kind: Kind, tree: Path, jobs: int, say: Say) -> None:
    """Compile what somebody has changed in a tree; whether the outcome may be installed is not asked.

    ConfigError for a missing program; RigError, with the compiler's words, if it does not compile.
    """
    _programs()
    with locked(tree / ".lock"):
        _make(target, kind, tree, jobs, say)


def built_modules(kind: Kind, tree: Path) -> list[Path]:
    """The modules that lie in a tree."""
    found = (tree / folder / f"{name}.ko" for name, folder in kind.modules.items())
    return [path for path in found if path.is_file()]


def origin(tree: Path) -> str:
    """The version of Debian's source in a tree, or an empty string if it is none of ours."""
    return (read_json(tree / STAMP) or {}).get("version", "")


def archive_of(tree: Path) -> Path | None:
    """The tree as it was before anything was built in it, for DKMS."""
    return next(iter(tree.glob("ktls-offload-*.tar.gz")), None)


def _programs() -> None:
    """ConfigError naming every program that is missing, and the packages."""
    path = os.pathsep.join((os.environ.get("PATH", ""), *SBIN))
    missing = [name for name in PROGRAMS if not shutil.which(name, path=path)]
    if missing:
        packages = dict.fromkeys(PROGRAMS[name] for name in missing)
        raise ConfigError(f"not installed: {', '.join(missing)}", f"apt install {' '.join(packages)}")


def _prepare(target: Target, kind: Kind, tree: Path, archive: Path | None, say: Say) -> None:
    """Have the source and our files in the tree."""
    ours = sha256(repr((kind.take, texts(target, kind))).encode()).hexdigest()[:16]
    stamp = {"kind": kind.name, "version": target.version, "ours": ours}
    if read_json(tree / STAMP) == stamp and archive_of(tree):
        say(f"source: {tree} has it")
        return
    if tree.exists() and not _made(tree):
        raise Refused(f"{tree} exists, and this command did not make it", "--out names another folder")
    need_space(tree.parent, ROOM, f"building {kind.name}")
    with locked(tree.parent / ".lock", say), new_folder(tree) as fresh:
        take(target, kind, fresh, archive, say)
        write(target, kind, fresh)
        pack(target, kind, fresh)
        write_json(fresh / STAMP, stamp)


def _made(tree: Path) -> bool:
    """Whether a folder is one of ours, or empty."""
    kbuild = tree / "Kbuild"
    return MARK in kbuild.read_text(errors="replace") if kbuild.is_file() else not any(tree.iterdir())


def its_own(target: Target) -> str:
    """The compiler that Debian built the kernel with, as gcc-14; '' if the headers do not tell."""
    match = re.search(r"gcc-\d+", target.config.get("CONFIG_CC_VERSION_TEXT", ""))
    return match[0] if match else ""


def compiler(target: Target) -> str:
    """The compiler of the kernel if it is installed, else this machine's."""
    own = its_own(target)
    return own if own and shutil.which(own) else os.environ.get("CC", "gcc")


def make_line(target: Target, tree: Path, jobs: int) -> list[str]:
    """The command that compiles."""
    cc = compiler(target)
    line = ["nice", "-n", "10", "make", f"-j{jobs}", "-C", str(tree), f"CC={cc}"]
    line += [f"KDIR={target.headers}", f"MODDIR={target.modules}"]
    # gcc knows this option from 14 on; kernels whose own compiler is that new ask for it
    if run([cc, "-fmin-function-alignment=16", "-x", "c", "-c", "-o", "/dev/null", "/dev/null"])[0] != 0:
        line.append("CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=")
    return [*line, "modules"]


def _make(target: Target, kind: Kind, tree: Path, jobs: int, say: Say) -> None:
    """Compile. RigError with the compiler's words."""
    cc, own = compiler(target), its_own(target)
    if own not in ("", cc):
        say(f"note: the kernel was built with {own}, but this is {cc}; the kernel's own compiler is safer")
    count = sum(1 for folder in kind.modules.values() for _ in (tree / folder).rglob("*.c"))
    log = tree / "build.log"
    say(f"building {', '.join(kind.modules)} with {cc}, {count} files: tail -f {log}")
    began = time.monotonic()
    with log.open("wb") as out:
        rc, _, err, _ = run(make_line(target, tree, jobs), timeout=HOURS, stdout=out.fileno())
    if rc != 0:
        said = err.decode("utf-8", "replace").strip()[-3000:]
        raise RigError(f"{kind.name} does not build for {target.release}:\n{said}", f"the rest: {log}")
    say(f"built in {time.monotonic() - began:.0f} s")


def check(target: Target, tree: Path, say: Say) -> None:
    """Show what the tree's check says; Refused if it found something bad."""
    say(f"checking that they fit kernel {target.release} ({target.version})?")
    env = {"PATH": os.pathsep.join((os.environ.get("PATH", ""), *SBIN))}
    argv = ["sh", str(tree / "check"), str(target.headers), str(target.modules)]
    rc, out, err, _ = run(argv, timeout=600, env=env)
    for line in out.decode("utf-8", "replace").splitlines():
        say(line)
    if rc != 0:
        said = err.decode("utf-8", "replace").strip()[-300:]
        why = f" ({said})" if said else ""
        raise Refused(f"do not install these modules for {target.release}{why}", f"they are in {tree}")
