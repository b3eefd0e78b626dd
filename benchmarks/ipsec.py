"""What does ESP cost beside kernel TLS, by every part of the segmentation offloads? In instructions per byte.

usage: python -m benchmarks.ipsec [--kernel 6.1] [--parts on soft gso gro] [--json FILE]

One boot of the cost VM (cost-mode.md), so all arms stand side by side in one run, and a busy machine is
not seen. Missed, and exit 1: ESP that costs no more than plain TCP, a cipher no more than the null one,
kernel TLS by the card as much as by software or as ESP. SIMULATED: the order, and nothing of any card.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from offload.errors import OffloadError
from offload.suite.measure.cost.ipsec import PARTS, costs, measure, part, text, total

# not esp-128 and esp-256: four rounds more are less than what the batches of two rows may differ by
LESS = (
    ("plain", "esp-null"),
    ("esp-null", "esp-128"),
    ("esp-null", "esp-256"),
    ("hw", "esp-128"),
    ("hw", "sw"),
)


def bars(document: Mapping[str, Any]) -> list[str]:
    """What is missed, in words."""
    parts: dict[str, dict[str, dict[str, float]]] = {}
    for row in document["rows"]:
        parts.setdefault(part(row), {})[row["arm"]] = costs(row)
    missed = []
    for stayed, arms in parts.items():
        whole = {arm: total(found, arms["plain"]) for arm, found in arms.items()}
        for less, more in LESS:
            if whole[less] >= whole[more]:
                missed.append(f"{stayed}: {less} costs {whole[less]:.3f}, {more} {whole[more]:.3f}")
    return missed


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if a bar is missed, else as the error says."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--kernel", default="6.1")
    parser.add_argument("--parts", nargs="+", default=["on", "soft", "gso", "gro"], choices=PARTS)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    began = time.monotonic()
    try:
        found = measure(args.kernel, parts=args.parts)
    except OffloadError as exc:
        print(f"bench: error: {exc}", file=sys.stderr)
        return exc.exit_code
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    print(text(found), end="")
    missed = bars(found)
    for line in missed:
        print(f"MISSED {line}")
    print(f"{len(found['rows'])} rows in {time.monotonic() - began:.0f} s, {len(missed)} bars missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
