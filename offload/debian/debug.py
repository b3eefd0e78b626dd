"""The debug kernel: Debian's linux-source, built with KASAN, lockdep and the like (debug.config)."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from offload.cmd import run
from offload.debian.cache import cache_root, locked, need_space, new_folder, read_json, write_json
from offload.debian.packages import Package, amd64_only, download, index, newest, refresh
from offload.errors import RigError
from offload.paths import PACKAGE

NAME = "debug"  # what --kernel calls it
SOURCE = "linux-source-6.1"
FRAGMENT = PACKAGE / "debian/debug.config"
ROOM = 4 << 30  # bytes: the package, the unpacked source and the objects
# what kconfig's own compiler is made with; the archive's, where they are not installed
TOOLS = ("flex", "bison", "m4")
# of no use to the lab, and most of the source; kconfig still reads their Kconfig files
LEFT_OUT = (
    "arch/[!x]*/*.[chS]",
    "arch/*.dts*",
    "Documentation/*/*",
    "tools/testing/*",
    "tools/perf/*",
    "sound/*.[ch]",
    *(f"drivers/{name}/*.[ch]" for name in ("gpu", "media", "staging", "infiniband", "scsi", "usb", "iio")),
    *(f"drivers/net/{name}/*.[ch]" for name in ("ethernet", "wireless")),
    *(f"fs/{name}/*.[ch]" for name in ("xfs", "btrfs")),
)
# what is changed in the source: file, pattern, and what stands there instead
EDITS = (
    # frame pointers unwind the stack here, so objtool, which needs the headers of libelf, has nothing to do
    ("arch/x86/Kconfig", r"^\s*select HAVE_OBJTOOL\b.*\n", ""),
    # without objtool there is no code for the ITS mitigation, which a module's loading calls
    ("arch/x86/kernel/module.c", r"^\s*its_(?:init|fini|free)_mod\(.*\n", "\n"),
    # QEMU enters an ELF kernel by PVH, before KASAN has its shadow: what runs there must not look at it
    ("arch/x86/platform/pvh/Makefile", r"\Z", "KASAN_SANITIZE := n\n"),
    ("lib/Makefile", r"\Z", "KASAN_SANITIZE_string.o := n\n"),
)
STEP = re.compile(r"^ {2}(?:CC|AS|LD) ", re.M)
STEPS = 2000  # some; for the progress only
MINUTE = 60.0
Say = Callable[[str], None]


def tree(say: Say) -> Path:
    """Return the built tree in the cache; what is missing of it is fetched and built, which takes minutes.

    A build that was cut off goes on where it was. RigError in plain words if it fails.
    """
    amd64_only()
    root = cache_root() / "kernels" / NAME
    built = root / SOURCE
    with locked(root / ".lock", say):
        if read_json(root / "built.json") == {"recipe": recipe()} and built.is_dir():
            return built
        (root / "built.json").unlink(missing_ok=True)
        if read_json(root / "source.json") != {"edits": edits()} or not built.is_dir():
            _unpack(root, built, say)
            write_json(root / "source.json", {"edits": edits()})
        env = _tools(root, say)
        _configure(built, env)
        _build(built, env, say)
        write_json(root / "built.json", {"recipe": recipe()})
    return built


def is_slow(config: Path) -> bool:
    """Whether a kernel is built to watch itself, which under emulation takes some times the time."""
    return (
        re.search(r"^CONFIG_(?:KASAN|PROVE_LOCKING)=y$", config.read_text(errors="replace"), re.M) is not None
    )


def recipe() -> str:
    """Names what decides how the kernel is built, but for the version of its source."""
    return hashlib.sha256((FRAGMENT.read_text() + edits()).encode()).hexdigest()[:16]


def edits() -> str:
    """Names what is unpacked, and what is changed there."""
    words = (SOURCE, *LEFT_OUT, *(word for one in EDITS for word in one))
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]


def _newest(names: tuple[str, ...]) -> list[Package]:
    """The newest of these packages that fit this machine; RigError naming one that is nowhere."""
    complaint = refresh()
    fits = {p.suite for p in index() if p.suite.startswith("bookworm")}
    best = newest(index(), fits)
    if missing := [name for name in names if name not in best]:
        raise RigError(
            f"no package {missing[0]} in the suites that could be fetched: {complaint}".rstrip(": ")
        )
    return [best[name] for name in names]


def _unpack(root: Path, built: Path, say: Say) -> None:
    """Fetch the source and unpack what the lab's kernel is made of."""
    need_space(root, ROOM, "the debug kernel")
    (package,) = _newest((SOURCE,))
    say(f"fetching {SOURCE} {package.version}: {package.size >> 20} MiB")
    with new_folder(built) as temp:
        download([package], temp)
        archive = temp / f"usr/src/{SOURCE}.tar.xz"
        say("unpacking it")
        _must(
            ["tar", "-xf", str(archive), "-C", str(temp), "--strip-components=1", "--no-same-owner"]
            + [f"--exclude={SOURCE}/{pattern}" for pattern in LEFT_OUT]
        )
        shutil.rmtree(temp / "usr/src")
        edit(temp)


def edit(source: Path) -> None:
    """Change the source as EDITS says; RigError where there is nothing to change."""
    for name, old, new in EDITS:
        text = (source / name).read_text()
        changed = re.sub(old, new, text, flags=re.M)
        if changed == text:
            raise RigError(f"{SOURCE}: {name} has nothing like {old}")
        (source / name).write_text(changed)


def _tools(root: Path, say: Say) -> dict[str, str]:
    """Return the environment in which kconfig finds flex and bison: the installed ones, or ours."""
    if all(shutil.which(name) for name in TOOLS):
        return {}
    folder = root / "tools"
    if not folder.is_dir():
        wanted = _newest(TOOLS)
        say(f"fetching {', '.join(TOOLS)}")
        with new_folder(folder) as temp:
            download(wanted, temp)
    return {
        "PATH": f"{folder}/usr/bin:{os.environ.get('PATH', os.defpath)}",
        "M4": f"{folder}/usr/bin/m4",
        "BISON_PKGDATADIR": f"{folder}/usr/share/bison",
    }


def _configure(built: Path, env: dict[str, str]) -> None:
    """Every option as its default has it, but for those of the fragment. RigError for one that is not set."""
    argv = ["make", "-s", "-C", str(built), f"KCONFIG_ALLCONFIG={FRAGMENT}", "alldefconfig"]
    _must(argv, env)
    if lost := ignored(FRAGMENT.read_text(), (built / ".config").read_text()):
        raise RigError(f"{SOURCE} has other options than {FRAGMENT.name} asks for: {', '.join(lost)}")


def ignored(fragment: str, config: str) -> list[str]:
    """The lines of a fragment that kconfig did not take: an unknown option, or one that others decide."""
    has = set(config.splitlines())
    asked = re.findall(r"^(?:CONFIG_\w+=.*|# CONFIG_\w+ is not set)$", fragment, re.M)
    return [line for line in asked if line not in has]


def _build(built: Path, env: dict[str, str], say: Say) -> None:
    """Run make, and say each minute how far it is. RigError with the compiler's last words."""
    log = built.parent / "build.log"
    jobs = os.cpu_count() or 1
    say(f"building {SOURCE} as {FRAGMENT.name} has it, -j{jobs}: 10 to 30 minutes; see {log}")
    argv = ["setpriv", "--pdeathsig", "TERM", "make", "-C", str(built), f"-j{jobs}", "bzImage", "modules"]
    began = time.monotonic()
    with (
        log.open("w") as out,
        subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={**os.environ, **env, **SAME}
        ) as child,
    ):
        while not _ended(child):
            say(progress(log.read_text(errors="replace"), time.monotonic() - began))
    if child.returncode:
        raise RigError(f"the debug kernel does not build:\n{log.read_text(errors='replace')[-2000:].strip()}")


SAME = {"KBUILD_BUILD_USER": "lab", "KBUILD_BUILD_HOST": "lab"}  # the banner names no one's machine


def _ended(child: subprocess.Popen[bytes]) -> bool:
    """Wait a minute for it."""
    try:
        child.wait(MINUTE)
    except subprocess.TimeoutExpired:
        return False
    return True


def progress(said: str, seconds: float) -> str:
    """A line for a person who waits."""
    return f"debug kernel: {len(STEP.findall(said))} of some {STEPS} steps after {seconds / MINUTE:.0f} min"


def _must(argv: list[str], env: dict[str, str] | None = None) -> None:
    """Run it; RigError with its last words if it fails."""
    rc, _, err, _ = run(argv, timeout=1800, env=env)
    if rc != 0:
        raise RigError(f"{argv[0]} failed: {err.decode('utf-8', 'replace').strip()[-600:]}")
