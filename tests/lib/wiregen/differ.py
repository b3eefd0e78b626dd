"""A long run of both engines side by side: `python -m tests.lib.wiregen.differ --count 100000`.

Each seed is a capture of `any_case`; where the engines part, the seed and the places are printed. With
`--keep DIR` the files of such a seed stay. `--from N` begins elsewhere; two of these may run side by side.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.lib.wiregen.any_case import any_case
from tests.lib.wiregen.engines import both, parting, write


def run(start: int, count: int, keep: Path | None) -> int:
    """Compare this many captures; how many parted."""
    parted, began = 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        cases = ((seed, any_case(seed)) for seed in range(start, start + count))
        for seed, ours, theirs in both(cases, Path(folder)):
            if lines := list(parting(ours, theirs)):
                parted += 1
                sys.stdout.write(f"any_case({seed}):\n" + "".join(f"  {line}\n" for line in lines[:6]))
                if keep:
                    write(any_case(seed), keep / str(seed))
            if (seed + 1 - start) % 1000 == 0:
                took = time.monotonic() - began
                sys.stdout.write(f"{seed + 1 - start} captures, {parted} parted, {took:.0f} s\n")
                sys.stdout.flush()
    return parted


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="start", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--keep", type=Path)
    args = parser.parse_args()
    if args.keep:
        args.keep.mkdir(exist_ok=True)
    return 1 if run(args.start, args.count, args.keep) else 0


if __name__ == "__main__":
    sys.exit(main())
