"""Run the checks: `run.py PROGRAM FAKE_KTLS_LIBRARY [WORD]`; last line "N passed, M failed"."""

from __future__ import annotations

import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import check_client
import check_close
import check_fallback
import check_handover
import check_options
import check_peer
import check_place
import check_policy
import check_serve
import check_steps
import check_taken
from rig import Rig, make_certificates

MODULES = (
    check_options,
    check_peer,
    check_steps,
    check_handover,
    check_close,
    check_fallback,
    check_serve,
    check_place,
    check_policy,
    check_client,
    check_taken,
)


LIMIT = 600  # seconds for one check: a program that hangs has to show as a failure


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


def main(program: str, fake: str, word: str = "") -> int:
    """Run the checks of every module."""
    with tempfile.TemporaryDirectory() as folder:
        make_certificates(Path(folder))
        rig = Rig(str(Path(program).resolve()), str(Path(fake).resolve()), Path(folder))
        return report(passed for module in MODULES for passed in checks(module, rig, word))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
