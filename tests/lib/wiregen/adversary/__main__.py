"""A long hunt: `python -m tests.lib.wiregen.adversary --examples 50000` or `--seconds 600`.

Prints what was tried, and leaves the smallest capture of a finding in `--keep DIR`. Exit 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.lib.wiregen.adversary.play import hunt

CHUNK = 500


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.lib.wiregen.adversary", description=__doc__)
    parser.add_argument("--examples", type=int, default=sys.maxsize)
    parser.add_argument("--seconds", type=float, default=sys.maxsize)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("build/adversary"))
    args = parser.parse_args()
    began, done, tally = time.monotonic(), 0, Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        while done < args.examples and time.monotonic() - began < args.seconds:
            count = min(CHUNK, args.examples - done)
            if why := hunt(args.seed + done, count, Path(folder), args.keep, tally):
                sys.stdout.write(f"finding, in {args.keep}: {why}\n")
                return 1
            done += count
    counts = ", ".join(f"{count} {name}" for name, count in tally.most_common())
    sys.stdout.write(f"{counts}: nothing found, {time.monotonic() - began:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
