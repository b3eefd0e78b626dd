"""`make hunt HOURS=N`: runs random scenarios on a lab or a bench for hours, and keeps each failure.

Ctrl-C ends it early, with the same table. Exit codes: 0 nothing failed, 20 something did, 7 no lab stays up
or a program is not built, 2 a wrong option.
"""

from __future__ import annotations

import argparse
import secrets
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from offload.card.profile import find
from offload.debian.kernels import fetch
from offload.errors import ConfigError, OffloadError
from offload.suite.bench.lab.bench import RealLab
from offload.suite.bench.lab.source import load_any
from offload.suite.bench.vm.lab import Lab
from tests.lib.rig.needs import built
from tests.lib.rig.rig import Rig
from tests.lib.scenario.check import check
from tests.lib.scenario.hunt_book import Kept
from tests.lib.scenario.hunting import Hunt, Outcome
from tests.lib.scenario.space import SEEDS, Scenario, Space, load
from tests.lib.scenario.stand import Stand, ended, stand_of

FOUND = 20  # as certify's for a card that breaks a promise
PEER = "connectx-6-dx"


class Ground:
    """A lab that is up, with its stand."""

    def __init__(self, stand: Stand, space: Space, book: Kept, folder: Path) -> None:
        self.stand, self.space, self.book = stand, space, book
        self.stand.keep = folder / "last"
        self._mark = stand.rig.lab.console_mark()

    def play(self, scenario: Scenario, evidence: dict[str, Any]) -> tuple[str, ...]:
        """Run one, and look at what the kernel said meanwhile: that is a failure, too."""
        self.stand.refill(scenario)
        missing = check(self.stand, self.space, scenario, evidence)
        mark, self._mark = self._mark, self.stand.rig.lab.console_mark()
        faults = self.stand.rig.lab.console_faults(mark)
        assert not faults, f"the kernel log: {' | '.join(faults[:5])}"
        return missing

    def keep(self, outcome: Outcome) -> None:
        """Put away the captures of the plainest run that failed, and the kernel's words."""
        folder = self.book.of(outcome)
        last = self.stand.keep
        if last is not None and last.exists():
            last.rename(folder / "captures")
        (folder / "kernel.txt").write_text(self.stand.rig.lab.console_text(0)[-100_000:])


@contextmanager
def ground(args: argparse.Namespace, book: Kept) -> Iterator[Ground]:
    """A lab of this run, booted and with its stand. RigError if there is none."""
    with ExitStack() as undo:
        lab = undo.enter_context(_lab(args, book.say))
        rig = Rig(lab, args.kind, find(args.nic), undo.enter_context(ExitStack()))
        undo.callback(_ended, rig)
        stand, _ = stand_of(rig)
        yield Ground(stand, book.space, book, book.folder)


def _ended(rig: Rig) -> None:
    """End the stand; a lab that is dead has none."""
    with suppress(OffloadError):
        ended(rig)


def _lab(args: argparse.Namespace, say: Callable[[str], None]) -> AbstractContextManager[Any]:
    if args.lab:
        return RealLab.open(Path(args.lab), say)
    if args.attach:
        return Lab.attach(args.attach, project=True)
    kernel = fetch(args.kernel, say=say)
    return Lab.boot(kernel, kind=args.kind, personality=f"{args.nic},{PEER}", say=say)


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """The options. ConfigError for a lab file that cannot be read."""
    parser = argparse.ArgumentParser(prog="make hunt", description=__doc__)
    parser.add_argument("--hours", type=_hours, default=1.0, help="how long (default 1; 0.1 is six minutes)")
    parser.add_argument("--seed", type=int, default=None, help="the first one (default: by chance)")
    parser.add_argument("--scenario", action="append", metavar="LINE|SEED", default=[], help="only these")
    parser.add_argument("--kernel", default="6.1")
    parser.add_argument(
        "--nic", default="", help="profile of the card (default connectx-6-dx, or as --lab says)"
    )
    parser.add_argument("--kind", choices=("nicsim", "veth"), default="nicsim", help="veth: no card at all")
    parser.add_argument("--attach", metavar="NAME", default="", help="use the running lab of this name")
    parser.add_argument("--lab", metavar="FILE", default="", help="use the real hosts of this lab file")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=None, help="default results/hunt-<UTC time>"
    )
    args = parser.parse_args(argv)
    if args.lab and not args.nic:
        port = load_any(Path(args.lab)).dut.port
        args.nic = port.profile if port else ""
    args.nic = args.nic or PEER
    return args


def _hours(text: str) -> float:
    hours = float(text)
    if not 0 < hours < 10_000:
        raise argparse.ArgumentTypeError("more than 0, and less than 10,000")
    return hours


def scenarios(args: argparse.Namespace, space: Space) -> Iterator[Scenario]:
    """Those that were asked for; else one per seed, for ever. ConfigError for a line that is no scenario."""
    if args.scenario:
        return iter([space.parse(line) for line in args.scenario])
    first = secrets.randbelow(SEEDS) if args.seed is None else args.seed
    return (space.draw(seed % SEEDS) for seed in count(first))


def folder_of(out: Path | None) -> Path:
    """The folder of this hunt, made. ConfigError if it is there already."""
    folder = out or Path("results") / f"hunt-{datetime.now(UTC).strftime('%Y%m%dT%H%M%SZ')}"
    try:
        folder.mkdir(parents=True)
    except OSError as exc:
        raise ConfigError(f"cannot make {folder}: {exc.strerror}", "name another folder with --out") from None
    return folder


def hunt(args: argparse.Namespace) -> int:
    """Hunt, and print the table; the exit code."""
    space = load(find(args.nic))
    wanted = scenarios(args, space)
    built()
    book, rc = Kept(folder_of(args.out), space), 0
    try:
        Hunt(partial(ground, args, book), book).run(wanted, args.hours * 3600)
    except KeyboardInterrupt:
        book.say("stopped by Ctrl-C or SIGTERM")
    except OffloadError as exc:
        book.say(f"ended: {exc}")
        rc = exc.exit_code
    sys.stdout.write(f"{book.table()}\n")
    return FOUND if book.found else rc


def main(argv: Sequence[str]) -> int:
    """Hunt; the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):  # also as a job of a script's background
        signal.signal(number, signal.default_int_handler)
    try:
        return hunt(parsed(argv))
    except OffloadError as exc:
        sys.stderr.write(f"make hunt: {exc}\n")
        return exc.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
