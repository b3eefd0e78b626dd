"""Run the checks: `run.py PROGRAM [WORD]`, in a network namespace; last line "N passed, M failed"."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import check_frames
import check_stop
import check_usage
from rig import Rig, inside, ip, permitted

LIMIT = 600  # seconds for one check: a program that hangs has to show as a failure


def give_up(number: int, frame: object) -> None:
    """End a check that hangs."""
    raise TimeoutError(f"no end after {LIMIT} s")


def checks(module: ModuleType, rig: Rig, word: str) -> Iterator[bool]:
    """Run the module's checks whose name holds `word`; yield for each whether it passed."""
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


def main(program: str, word: str = "") -> int:
    """Run the checks; 1 if one failed, or none ran. Without a namespace only those that need none."""
    how = permitted()
    if how and not inside():
        argv = [*how.split(), sys.executable, "-B", __file__, program, word]
        os.execvpe(argv[0], argv, {**os.environ, "WIRETAP_NAMESPACE": "yes"})
    modules: tuple[ModuleType, ...] = (check_usage, check_frames, check_stop)
    if not how:
        print("no network namespaces here: only the command line is checked")
        modules = (check_usage,)
    else:
        ip("link", "set", "lo", "up")
    signal.signal(signal.SIGALRM, give_up)
    with tempfile.TemporaryDirectory() as folder:
        rig = Rig(str(Path(program).resolve()), Path(folder))
        results = [passed for module in modules for passed in checks(module, rig, word)]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
