"""The native core under sanitizers, against the oracle: `python -m tests.lib.wiregen.smoke ASAN... TSAN`.

ASAN and TSAN are builds of it. Random captures, good and damaged: each build under ASan answers all of them,
that under TSan a few with four threads.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from shutil import which

CASES, THREADED = 200, 24
PIPE = subprocess.PIPE


def starter(build: str) -> list[str]:
    """How to start this build: with many random bits in addresses TSan needs them fixed."""
    plain = subprocess.run([build, "--version"], capture_output=True, check=False)
    fixed = ["setarch", "-R", build]
    if plain.returncode and which("setarch"):
        return (
            fixed if subprocess.run([*fixed, "--version"], capture_output=True).returncode == 0 else [build]
        )
    return [build]


def partings(build: str, first: int, count: int, threads: int, folder: Path) -> Iterator[str]:
    """Where this build and the oracle part, and what a sanitizer found."""
    from tests.lib.wiregen.any_case import any_case
    from tests.lib.wiregen.engines import end_core, oracle, parting, write

    start = starter(build)
    for seed in range(first, first + count):
        case = any_case(seed)
        case = replace(case, threads=threads or case.threads)
        args = [*start, "verify", *write(case, folder / "core")]
        with subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=PIPE, stderr=PIPE) as running:
            ours = oracle(case, folder / "oracle")
            try:
                theirs = end_core(running)
            except AssertionError as exc:
                yield f"any_case({seed}): {exc}"
                continue
        yield from (f"any_case({seed}){line}" for line in parting(ours, theirs))


def main() -> int:
    """Ask both builds; 0, 1 if an answer was wrong, 7 if the rig cannot ask."""
    if find_spec("cryptography") is None:
        sys.stderr.write("these checks need the Python module cryptography: run `make setup`\n")
        return 7
    *asan, tsan = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        wrong = [
            f"{Path(build).name}: {line}"
            for build in asan
            for line in partings(build, 0, CASES, 0, Path(folder))
        ]
        wrong += partings(tsan, CASES, THREADED, 4, Path(folder))
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    sys.stdout.write(
        f"{CASES} captures under ASan and UBSan by {len(asan)} builds, {THREADED} with threads under TSan: "
        f"{len(wrong)} wrong\n"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
