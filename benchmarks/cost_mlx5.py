"""What does a byte cost below the real mlx5_core? Cost mode with cx6sim, whose work costs the guest nothing.

usage: python -m benchmarks.cost_mlx5 [--kernel 6.1] [--boots 3] [--write]

As `benchmarks/cost.py`, but the DUT's instructions are those of the unmodified driver. A write to the card's
registers waits until the card has done the work (x-no-posted-writes), and every port is polled by a timer of
the guest. docs/reference/cost-mode.md has more.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any

from offload.errors import OffloadError
from offload.suite.bench.vm import cards
from offload.suite.measure.cost.figures import apart, costs, saving
from offload.suite.measure.cost.run import measure

ARMS = ("hw", "plain", "sw")
SIDES = ("sender", "receiver", "host")
RECORD = Path(__file__).parent / "results/cost-mlx5.md"
HEAD = """\
# Cost mode below the real driver

`python -m benchmarks.cost_mlx5 --write` ([how it counts](../../docs/reference/cost-mode.md)); SIMULATED.
Instructions per byte of payload, one connection each way at once. The card is cx6sim, whose work costs the
guest nothing.
"""


def lines(found: dict[str, Any]) -> Iterator[str]:
    """The table: the mean of the boots, how far they lie apart, and what offload saves of software."""
    about = found["about"]
    yield f"mlx5_core of Debian's Linux {about['kernel-package']}, unmodified; QEMU {about['qemu']}.\n"
    yield "| `both` | sender | receiver | host |\n|---|---|---|---|"
    each = {arm: costs(found, arm, "both") for arm in ARMS}
    for arm in ("plain", "sw", "hw"):
        yield f"| {arm} | " + " | ".join(f"{mean(each[arm][side]):.2f}" for side in SIDES) + " |"
    saved = (f"{100 * saving(found, 'both', side):.0f} %" for side in SIDES)
    yield f"| offload saves | {' | '.join(saved)} |"
    wide = {side: max(apart(each[arm][side]) for arm in ARMS) for side in SIDES}
    far = ", ".join(f"{side} {100 * wide[side]:.2f} %" for side in SIDES)
    yield f"\nBoots: {len(each['hw']['host'])}; they differ by at most: {far}."


def main() -> int:
    """Run it; another exit code than 0 if an arm was not what it says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", default="6.1")
    parser.add_argument("--boots", type=int, default=3)
    parser.add_argument("--write", action="store_true", help=f"write {RECORD.name}")
    args = parser.parse_args()
    try:
        found = measure(
            args.kernel,
            boots=args.boots,
            arms=ARMS,
            directions=("both",),
            kind=cards.KIND,
            say=lambda line: print(line, file=sys.stderr),
        )
    except OffloadError as exc:
        print(f"bench: error: {exc}", file=sys.stderr)
        return exc.exit_code
    table = "\n".join(lines(found)) + "\n"
    print(table, end="")
    if args.write:
        RECORD.write_text(f"{HEAD}\n{table}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
