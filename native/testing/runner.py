"""Runs the checks of a compiled program: the functions check_* of the modules that tests/run.py names."""

from __future__ import annotations

import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from typing import Any

LIMIT = 600  # seconds for one check: a program that hangs has to show as a failure


def run(modules: Iterable[object], rig: object, word: str = "", limit: int = LIMIT) -> int:
    """Run the checks whose name holds `word`, and print each; 1 if one failed, or none ran."""
    signal.signal(signal.SIGALRM, give_up)
    found = [(name, check) for module in modules for name, check in vars(module).items()]
    wanted = [(name, check) for name, check in found if name.startswith("check_") and word in name]
    results = [passes(name, check, rig, limit) for name, check in wanted]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if results and all(results) else 1


def passes(name: str, check: Callable[[Any], None], rig: object, limit: int) -> bool:
    """Run one check, and print how it ended."""
    began = time.monotonic()
    signal.alarm(limit)
    try:
        check(rig)
    except Exception:
        traceback.print_exc(file=sys.stdout)
        print(f"FAILED {name}", flush=True)
        return False
    finally:
        signal.alarm(0)
    print(f"ok {name} ({time.monotonic() - began:.2f} s)", flush=True)
    return True


def give_up(number: int, frame: object) -> None:
    """End a check that hangs."""
    raise TimeoutError("the check did not end in time")
