"""Cost mode beside its bars: do boots repeat within 0.1 %, is it done in 4 minutes, what does offload save?

usage: python -m benchmarks.cost [--kernel 6.1] [--boots 3] [--load N] [--json FILE]

--load N: so many processes keep the machine busy meanwhile; the figures must not see it, the time does.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from offload.errors import OffloadError
from offload.suite.measure.cost.figures import REPEATS, saving, spread, text
from offload.suite.measure.cost.run import BOOTS, measure

WALL = 240.0  # seconds on two cores without other work
LEAST = 0.25  # of software's instructions, as cpu.cost of offload/suite/report/criteria.yaml wants


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that only spin."""
    children = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


def line(name: str, value: str, bar: str, held: bool | None) -> bool:
    """Print a row; whether it holds."""
    verdict = "" if held is None else "held" if held else "MISSED"
    print(f"| {name:44} | {value:>9} | {bar:>15} | {verdict:6} |", flush=True)
    return held is not False


def bars(found: dict[str, Any], wall: float, loaded: bool, boots: int) -> bool:
    """All rows; whether all hold."""
    print(f"| {'':44} | {'':>9} | {'bar':>15} | {'':6} |\n|{'-' * 46}|{'-' * 11}|{'-' * 17}|{'-' * 8}|")
    apart, fast = spread(found), None if loaded else wall <= WALL
    same = apart <= REPEATS if boots > 1 else None
    held = [
        line("boots differ by at most", f"{100 * apart:.4f} %", f"at most {100 * REPEATS:g} %", same),
        line("wall time", f"{wall:.0f} s", f"at most {WALL:.0f} s", fast),
    ]
    for side in ("sender", "receiver", "host"):
        part = saving(found, "both", side)
        name = f"offload saves of the {side}'s instructions"
        held.append(line(name, f"{100 * part:.1f} %", f"at least {100 * LEAST:.0f} %", part >= LEAST))
    return all(held)


def main() -> int:
    """Run it; exit 1 if a bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", default="6.1")
    parser.add_argument("--boots", type=int, default=BOOTS)
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("--json", metavar="FILE", help="keep the document")
    args = parser.parse_args()
    began = time.monotonic()
    try:
        with busy(args.load):
            found = measure(args.kernel, boots=args.boots)
    except OffloadError as exc:
        print(f"bench: error: {exc}", file=sys.stderr)
        return exc.exit_code
    wall = time.monotonic() - began
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=1) + "\n")
    print(text(found))
    return 0 if bars(found, wall, args.load > 0, args.boots) else 1


if __name__ == "__main__":
    sys.exit(main())
