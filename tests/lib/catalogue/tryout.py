"""`make try T=...`: some tests against a lab that stays up for the next call; without T the warm labs end.

T is a test's id, a file of tests (its name will do), or an expression as for `pytest -k`.
"""

from __future__ import annotations

import argparse
import compileall
import sys
from pathlib import Path

import pytest

from offload.errors import ConfigError, OffloadError
from offload.suite.bench.vm import rundir, warm

ROOT = Path(__file__).parents[3]
FOLDERS = ("tests/hw", "tests/sw-fallback", "tests/nicsim")


def chosen(wanted: str, root: Path = ROOT) -> list[str]:
    """Return pytest's arguments for T. ConfigError for a file that is not there."""
    words = wanted.split()
    path, colons, rest = wanted.partition("::")
    if not colons and not wanted.endswith(".py"):
        return ["-k", wanted, *(_files_with(words[0], root) if len(words) == 1 else FOLDERS)]
    found = [root / path] if (root / path).is_file() else _named(Path(path).name, root)
    if not found:
        raise ConfigError(f"no file {path!r} in {', '.join(FOLDERS)}", "or T=EXPR, as for pytest -k")
    return [f"{file.relative_to(root)}{colons}{rest}" for file in found]


def _named(name: str, root: Path) -> list[Path]:
    return [path for folder in FOLDERS for path in sorted((root / folder).rglob(name)) if path.is_file()]


def _files_with(word: str, root: Path) -> list[str]:
    """Where a word can match: one that begins with test_ is in the name of a file or function, not of a case.

    To import fewer files is half a second.
    """
    files = [path for folder in FOLDERS for path in sorted((root / folder).rglob("test_*.py"))]
    text = word.lower()
    there = [path for path in files if text in path.name.lower() or text in path.read_text().lower()]
    return (
        [str(path.relative_to(root)) for path in there] if text.startswith("test_") and there else [*FOLDERS]
    )


def end() -> None:
    """End the warm labs."""
    rundir.sweep()
    for name in warm.names():
        rundir.end(name)
        sys.stdout.write(f"lab {name} is down\n")


def main(argv: list[str]) -> int:
    """Run the tests, or end the labs; pytest's exit code, or ours."""
    parser = argparse.ArgumentParser(prog="make try", description=__doc__)
    parser.add_argument("wanted", metavar="T")
    parser.add_argument("--kernel", default="6.1")
    parser.add_argument("--profile", default="connectx-6-dx")
    args = parser.parse_args(argv)
    if not args.wanted:
        end()
        return 0
    try:
        tests = chosen(args.wanted)
    except OffloadError as exc:
        sys.stderr.write(f"make try: {exc}\n")
        return exc.exit_code
    compileall.compile_dir(ROOT / "offload", quiet=1)  # the guest cannot write there, and compiles slowly
    options = ["-q", "--no-header", "--warm", "--kernel", args.kernel, "--profile", args.profile]
    return int(pytest.main([*options, *tests]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
