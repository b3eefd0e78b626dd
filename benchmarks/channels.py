"""How much do 1 to 8 channels carry, and from how many on is one core's crypto no longer the limit?

usage: python -m benchmarks.channels [--kernel 6.1] [--boots 1] [--rate 6e9] [--link 100] [--host]

Counted in a cost VM (cost-mode.md): instructions per byte of the sending processes, one per channel, for
plain TCP, user-space TLS, software kernel TLS and the simulated card. From that a model, no more: a channel
is one thread, so at most one core; a core does --rate instructions a second (6e9: 3 GHz, two a cycle: an
assumption, and the same for every arm); the card keeps up; acknowledgements are other cores' work. Then one
channel carries rate / (instructions per byte), and the link is full with so many channels as the table says.

--host: also this machine, by time, what needs no kernel TLS: stunnel and plain TCP over a pair of veth, both
ends and their cores in one. For QEMU's multifd: python -m benchmarks.migration.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from offload.cmd import run
from offload.errors import ConfigError, OffloadError
from offload.suite.measure.cost.figures import costs, title
from offload.suite.measure.cost.plan import CHANNELS
from offload.suite.measure.cost.run import measure

ARMS = ("plain", "user", "sw", "hw")
SPACE, NEAR, FAR = "kchannels", "kch0", "kch1"
ADDRESSES = ("198.51.100.1", "198.51.100.2")  # RFC 5737


def gbits(per_byte: float, rate: float) -> float:
    """What a core that does `rate` instructions a second carries, in Gbit/s."""
    return rate / per_byte * 8 / 1e9


def needed(by_count: Mapping[int, float], rate: float, link: float) -> str:
    """From how many channels on the link is full; beyond those that were measured at the cost of the last."""
    for count, per_byte in sorted(by_count.items()):
        if count * gbits(per_byte, rate) >= link:
            return str(next(n for n in range(1, count + 1) if n * gbits(per_byte, rate) >= link))
    last = max(by_count)
    return f"{math.ceil(link / gbits(by_count[last], rate))} (as at {last})"


def sender(found: Mapping[str, Any], arm: str) -> dict[int, float]:
    """Instructions per byte of an arm's senders by number of channels, the mean over boots."""
    each = {n: costs(found, arm, "tx", n).get("sender") for n in CHANNELS}
    return {n: sum(values) / len(values) for n, values in each.items() if values}


def table(found: Mapping[str, Any], rate: float, link: float) -> Iterator[str]:
    """A line per arm: what a byte costs, what the channels carry together, how many fill the link."""
    heads = [f"{n} ch" for n in CHANNELS]
    yield (
        f"| arm   | instructions per byte: {' | '.join(heads)} | Gbit/s: {' | '.join(heads)} "
        f"| fill {link:g} Gbit/s |"
    )
    yield f"|---|{'---|' * (2 * len(CHANNELS) + 1)}"
    for arm in ARMS:
        by_count = sender(found, arm)
        spent = " | ".join(f"{by_count[n]:.2f}" for n in CHANNELS)
        carried = " | ".join(f"{min(link, n * gbits(by_count[n], rate)):.1f}" for n in CHANNELS)
        yield f"| {arm:5} | {spent} | {carried} | {needed(by_count, rate, link)} |"


@contextmanager
def cable() -> Iterator[None]:
    """A namespace of this machine with a pair of veth into it; gone after the block."""
    lines = (
        f"netns add {SPACE}",
        f"link add {NEAR} type veth peer name {FAR} netns {SPACE}",
        f"address add {ADDRESSES[0]}/24 dev {NEAR}",
        f"link set {NEAR} up",
        f"-n {SPACE} address add {ADDRESSES[1]}/24 dev {FAR}",
        f"-n {SPACE} link set {FAR} up",
        f"-n {SPACE} link set lo up",
    )
    with ExitStack() as undo:
        undo.callback(run, ["ip", "netns", "del", SPACE])
        for line in lines:
            rc, _, err, _ = run(["ip", *line.split()])
            if rc:
                raise ConfigError(f"ip {line}: {err.decode().strip()}", "root, and iproute2")
        yield


def here(*words: str) -> int:
    """`ktls-offload measure` on that cable, its table as it prints it."""
    argv = [sys.executable, "-m", "offload", "measure", NEAR, "--peer", f"netns:{SPACE}", *words]
    with cable():
        return subprocess.run(argv).returncode


def whole(text: str) -> float:
    """A number above 0."""
    value = float(text)
    if not 0 < value < 1e15:
        raise argparse.ArgumentTypeError(f"{text!r}: wanted a number above 0")
    return value


def main(argv: Sequence[str] | None = None) -> int:
    """Count, print, and with --host measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", default="6.1")
    parser.add_argument("--boots", type=int, default=1)
    parser.add_argument("--rate", type=whole, default=6e9, help="instructions a core does in a second")
    parser.add_argument("--link", type=whole, default=100.0, help="Gbit/s")
    parser.add_argument("--host", action="store_true", help="also this machine, by time")
    args = parser.parse_args(argv)
    try:
        found = measure(args.kernel, boots=args.boots, arms=ARMS, directions=("tx",), channels=CHANNELS)
        print(f"SIMULATED, {found['about']['kernel']}: {title(found['rows'][0])}; a model, see --help")
        print("\n".join(table(found, args.rate, args.link)), flush=True)
        words = ("--arm", "user,plain", "--streams", ",".join(map(str, CHANNELS)), "--seconds", "1")
        return here(*words) if args.host else 0
    except OffloadError as exc:
        print(f"bench: error: {exc}", file=sys.stderr)
        return exc.exit_code


if __name__ == "__main__":
    sys.exit(main())
