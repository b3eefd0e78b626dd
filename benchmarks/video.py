"""What does a byte of a film cost the server: software kernel TLS, the card, the card without a copy, plain?

usage: python -m benchmarks.video [--kernel 6.1] [--boots 1] [--host]

Counted in a cost VM (cost-mode.md): a file sent by sendfile, in user space by read and SSL_write, as
nginx does it; instructions per byte of payload of the process that sends. Recovered is the part of what TLS
costs over plain TCP that the arm takes away. Simulated: nothing of any card.

--host: also nginx on this machine over a pair of veth, by time: what needs no kernel TLS, with the memory
traffic per byte where this machine can tell.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.channels import here
from offload.errors import OffloadError
from offload.suite.measure.cost.figures import costs
from offload.suite.measure.cost.run import measure

ARMS = ("plain", "user", "sw", "hw", "hw-zc")


def table(found: Mapping[str, Any]) -> Iterator[str]:
    """A line per arm."""
    each = {arm: costs(found, arm, "tx", load="file")["sender"] for arm in ARMS}
    mean = {arm: sum(values) / len(values) for arm, values in each.items()}
    yield "| arm | instructions per byte | of software | recovered |"
    yield "|---|---|---|---|"
    for arm, value in mean.items():
        part = (mean["sw"] - value) / (mean["sw"] - mean["plain"])
        share = f"{100 * part:.0f} %" if part > 0 else ""
        yield f"| {arm} | {value:.2f} | {value / mean['sw']:.2f} | {share} |"


def main(argv: Sequence[str] | None = None) -> int:
    """Count, print, and with --host measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", default="6.1")
    parser.add_argument("--boots", type=int, default=1)
    parser.add_argument("--host", action="store_true", help="also nginx on this machine, by time")
    args = parser.parse_args(argv)
    try:
        found = measure(args.kernel, boots=args.boots, arms=ARMS, directions=("tx",), loads=("file",))
        print(f"SIMULATED, {found['about']['kernel']}: a file, one connection")
        print("\n".join(table(found)), flush=True)
        return here("--arm", "user,plain", "--workload", "video", "--seconds", "1") if args.host else 0
    except OffloadError as exc:
        print(f"bench: error: {exc}", file=sys.stderr)
        return exc.exit_code


if __name__ == "__main__":
    sys.exit(main())
