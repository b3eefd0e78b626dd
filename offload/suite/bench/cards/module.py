"""Builds the simulated NIC for a kernel of the lab, cached by a hash of what went in; and lints it."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

from offload.cmd import run
from offload.debian.cache import cache_root, locked, write_json
from offload.debian.kernels import SERIES, Kernel, Say, compiler, fetch
from offload.errors import ConfigError, OffloadError, RigError
from offload.paths import ROOT

SOURCE = ROOT / "native/nicsim"
NAMES = ("Kbuild", "Makefile")
TESTS = "tests"  # the folder that is no part of the module
CARD, PEER = "nicsim", "nicsim_peer"  # modules: both cards; the peer's alone, where the DUT's is patched


def sources(folder: Path) -> list[Path]:
    """Return what the module is built from, as paths inside the folder; no two C files have one name."""
    found = {path.relative_to(folder) for path in folder.rglob("*.[ch]")}
    if not (folder / "Kbuild").is_file():
        raise RigError(f"no source of the simulated NIC in {folder}")
    code = sorted(path for path in found if path.parts[0] != TESTS and not path.name.endswith(".mod.c"))
    return [*(Path(name) for name in NAMES if (folder / name).is_file()), *code]


def copy_sources(into: Path, folder: Path | None = None) -> None:
    """Copy what the module is built from into a folder that is there; `folder`: not the project's card."""
    for path in sources(folder or SOURCE):
        (into / path).parent.mkdir(exist_ok=True)
        shutil.copyfile((folder or SOURCE) / path, into / path)


def make_line(kernel: Kernel, folder: Path, name: str = CARD) -> list[str]:
    """The kbuild command: without BTF it needs no pahole; a gcc older than the kernel's lacks one option.

    Without debug information, which nothing here reads, the module is a fiftieth of its size.
    """
    cc = compiler(kernel)
    line = [
        "make",
        "-s",
        "-C",
        str(kernel.build),
        f"M={folder}",
        f"CC={cc}",
        "CONFIG_DEBUG_INFO_BTF_MODULES=",
        "KCFLAGS=-g0",
        *([f"NICSIM={name}"] if name != CARD else []),
    ]
    if not _knows(cc, "-fmin-function-alignment=16"):
        line.append("CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=")
    return line


def _knows(cc: str, option: str) -> bool:
    return run([cc, option, "-x", "c", "-c", "-o", "/dev/null", "/dev/null"])[0] == 0


def digest(kernel: Kernel, folder: Path, line: list[str]) -> str:
    """Names the outcome of a build: sources, kernel and options."""
    state = hashlib.sha256("\0".join([kernel.release, kernel.version, *line]).encode())
    for path in sources(folder):
        state.update(f"\0{path}\0".encode() + (folder / path).read_bytes())
    return state.hexdigest()[:16]


def build_nicsim(kernel: Kernel, say: Say = print, source: Path | None = None, name: str = CARD) -> Path:
    """Return the path of nicsim.ko for this kernel, built first if need be; `source`: from another folder.

    `name`: of the module, CARD or PEER. RigError with the compiler's words in one block if it fails.
    """
    folder = source or SOURCE
    made = digest(kernel, folder, make_line(kernel, Path("M"), name))
    target = cache_root() / "modules" / made / f"{name}.ko"
    if target.is_file():
        return target
    with locked(cache_root() / "modules" / ".lock", say):
        if not target.is_file():
            say(f"building nicsim for {kernel.release}")
            _build(kernel, folder, target)
    return target


def _build(kernel: Kernel, source: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="nicsim-") as temporary:
        folder = Path(temporary)
        copy_sources(folder, source)
        _make(
            [*make_line(kernel, folder, target.stem), f"-j{os.cpu_count() or 1}", "modules"], kernel, folder
        )
        target.parent.mkdir(parents=True, exist_ok=True)
        temp = target.with_suffix(f".{os.getpid()}")
        shutil.copyfile(folder / target.name, temp)
        temp.rename(target)
    write_json(target.with_name("built.json"), {"kernel": kernel.release, "compiler": compiler(kernel)})


def _make(argv: list[str], kernel: Kernel, folder: Path) -> str:
    """Run make; its words with the names of the project's files, or RigError with them."""
    rc, out, err, _ = run(argv, timeout=600)
    said = (out + err).decode("utf-8", "replace").replace(f"{folder}/", "native/nicsim/").strip()
    if rc != 0:
        raise RigError(f"nicsim does not build for {kernel.release} (make exit {rc}):\n{said[-6000:]}")
    return said


def lint(kernel: Kernel, say: Say = print) -> int:
    """W=1 and sparse over the module, as `make check` wants: 0, or 1 with the warnings shown."""
    if not shutil.which("sparse"):
        raise RigError("no sparse", "apt-get install sparse")
    with tempfile.TemporaryDirectory(prefix="nicsim-") as name:
        folder = Path(name)
        copy_sources(folder)
        said = _make([*make_line(kernel, folder), "PARTS=1", "W=1", "C=2", "modules"], kernel, folder)
    lines = [line for line in said.splitlines() if "native/nicsim/" in line]
    for line in lines:
        say(line)
    by = "W=1 (its headers refuse this sparse)" if "sparse is not available" in said else "W=1 and sparse"
    say(f"nicsim, {kernel.release}: {len(lines)} warnings of {by}")
    return 1 if lines else 0


def main(argv: list[str]) -> int:
    """`python -m offload.suite.bench.cards.module build|lint [--kernel SERIES]`."""
    verb, series = (argv or [""])[0], argv[2] if argv[1:2] == ["--kernel"] and len(argv) == 3 else SERIES[0]
    try:
        if verb not in ("build", "lint") or len(argv) not in (1, 3):
            raise ConfigError(
                "usage: python -m offload.suite.bench.cards.module build|lint [--kernel SERIES]"
            )
        kernel = fetch(series, _tell)
        if verb == "lint":
            return lint(kernel, _tell)
        _tell(str(build_nicsim(kernel, _tell)))
    except OffloadError as exc:
        sys.stderr.write(f"ktls-offload: {exc}\n")
        return exc.exit_code
    return 0


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
