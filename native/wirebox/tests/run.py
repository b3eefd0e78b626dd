"""Run the checks in a private network namespace: `run.py PROGRAM [WORD]`; last line "N passed, M failed"."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import check_carry
import check_life
import check_real
import check_rules
import check_talk
import check_weather
from rig import Rig, make_links

MODULES = (check_talk, check_carry, check_rules, check_weather, check_life, check_real)
LIMIT = 600  # seconds for one check: a program that hangs has to show as a failure
INSIDE = "WIREBOX_INSIDE"


def give_up(number: int, frame: object) -> None:
    """End a check that hangs."""
    raise TimeoutError(f"no end after {LIMIT} s")


def checks(module: ModuleType, rig: Rig, word: str) -> Iterator[bool]:
    """Run the module's checks whose name holds `word`; yield for each whether it passed."""
    signal.signal(signal.SIGALRM, give_up)
    for name in [n for n in vars(module) if n.startswith("check_") and word in n]:
        began = time.monotonic()
        signal.alarm(LIMIT)
        try:
            getattr(module, name)(rig)
        except Exception:
            traceback.print_exc(file=sys.stdout)
            signal.alarm(0)
            print(f"FAILED {name}", flush=True)
            yield False
        else:
            signal.alarm(0)
            print(f"ok {name} ({time.monotonic() - began:.2f} s)", flush=True)
            yield True


def report(passed: Iterable[bool]) -> int:
    """Print the last line; 1 if a check failed, or none ran."""
    results = list(passed)
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if results and all(results) else 1


def private() -> list[str]:
    """The command that gives a network namespace of our own: as root, or in a user namespace."""
    plain = ["unshare", "--net"]
    works = subprocess.run([*plain, "true"], capture_output=True).returncode == 0
    return plain if works else ["unshare", "--net", "--map-root-user"]


def main(program: str, word: str = "") -> int:
    """Run the checks of every module."""
    if INSIDE not in os.environ:
        argv = [*private(), sys.executable, "-B", *sys.argv]
        os.execvpe(argv[0], argv, {**os.environ, INSIDE: "1"})
    make_links()
    rig = Rig(str(Path(program).resolve()))
    return report(passed for module in MODULES for passed in checks(module, rig, word))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
