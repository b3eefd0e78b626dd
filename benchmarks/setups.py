"""What it costs to give a connection to the kernel's TLS: with the card, and in software.

usage: python -m benchmarks.setups [--kernel 6.1] [--count 200] [--rounds 3]

In a lab with the simulated card, in rounds A/B/A/B; of each figure the median. One process opens,
secures and closes; a set-up is its three calls to setsockopt: TCP_ULP, TLS_TX, TLS_RX.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from contextlib import ExitStack

from offload.errors import OffloadError
from offload.profile import FEATURES, find
from offload.vm.kernels import fetch
from offload.vm.lab import Lab
from tests.lib.life import churn, life_of
from tests.lib.rig import Rig

BATCH = 100
PROFILE = "connectx-6-dx"


def measure(lab: Lab, count: int, rounds: int) -> dict[str, list[dict[str, float]]]:
    """The figures of each arm in every round."""
    found: dict[str, list[dict[str, float]]] = {"on": [], "off": []}
    with ExitStack() as undo:
        rig = Rig(lab, "nicsim", find(PROFILE), undo)
        life, dut = life_of(rig), lab.bench.dut
        churn(life, BATCH, BATCH)  # warm: modules and programs are read for the first time
        for _ in range(rounds):
            for word, figures in found.items():
                pairs = [text for name in FEATURES.values() for text in (name, word)]
                dut.host.run(["ethtool", "-K", dut.dev, *pairs])
                figures.append(churn(life, count, BATCH))
    return found


def table(found: dict[str, list[dict[str, float]]]) -> str:
    """The medians, as lines of a page."""
    names = [name for name in found["on"][0] if name != "connections"]
    lines = ["| | offload on | offload off |", "|---|---|---|"]
    for name in names:
        cells = [f"{statistics.median(one[name] for one in figures):.1f}" for figures in found.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """Boot, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", default="6.1")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    ask = parser.parse_args()
    try:
        with Lab.boot(fetch(ask.kernel, say=print), kind="nicsim", personality=PROFILE) as lab:
            print(table(measure(lab, max(BATCH, ask.count), ask.rounds)))
    except OffloadError as exc:
        print(f"setups: {exc}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
