"""`ktls-offload certify`: prepare, boot, test, report; one folder per run, one verdict, one exit code."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from offload.errors import ConfigError, OffloadError
from offload.suite.certify.defaults import CARDS, DEPTHS, KERNEL, NIC
from offload.suite.certify.request import Request, read

if TYPE_CHECKING:
    from offload.suite.certify.run import Run

WAIT, HANG = 86400.0, 900.0  # seconds, by default
EXIT = {"certified": 0, "certified with limitations": 0, "failed": 20, "incomplete": 21, "void": 22}
HELP = """\
Certify a NIC: prepare a lab, run the tests, and write a report with a verdict.
The default is a simulated card in a VM. --nic names a profile by its id or by
a FILE.yaml; the simulated card emulates it and the tests judge the card by it."""
EPILOG = """\
exit codes:
  0    certified (limitations, if any, are listed)
  20   failed: the NIC breaks a promise
  21   incomplete: a required promise is unproved, nothing failed
  22   void: the rig broke during the tests; says nothing about the NIC
  2    wrong usage or configuration; 4 no permission; 7 the rig broke before
       the tests; 130 interrupted

All results stay in the run's folder, whatever happens. `ktls-offload report
show DIR` prints them. `report recompute DIR` checks that report.json follows
from the events. `report make DIR` writes the report of a killed run.

--replay RESULT repeats the failed tests of an earlier run: with its kernel,
profile, vCPUs, simulated faults, and impairments (rules and seed). It reports
for each test whether the outcome is the same, and whether the same frames
occurred. Exit code 20: it fails again; 21: it does not (a partial run can
never produce a certificate).

--lab FILE certifies the card in real hosts, on the kernel that runs there and
with the profile that the file names. If a host is unreachable, or differs
from the file, the run ends before the tests (exit codes 2, 4, 5, 7). At its
end the run puts back what it changed on the hosts; if it lost a host, the
next run does so first. Without --retry, the run does not repeat a test
during which a host or an earlier run died, and the result is void.

--depth sets how many conditions scenarios combine (docs/certify/conditions.md):
quick is the default, standard covers all pairs of conditions, deep also the
important triples. --scenario runs one scenario: a line that a failed test
printed, or a bare number, from which it draws conditions (seed=7 as a line
draws none). It needs the --kernel and --nic of that run, or --lab; exit code
20: it fails, 21: it passes.

--card mlx5 runs the real driver: Debian's own mlx5_core, built with TLS (once
per kernel, which takes minutes), on a ConnectX-6 Dx that native/cx6sim
simulates. The report lists what was real. --driver PATH runs your own
mlx5_core instead (docs/certify/change-mlx5e.md).

--nicsim-patch FILE tests the suite itself: it builds your own defect into a
private copy of native/nicsim (docs/certify/try-to-fool-us.md). It rejects a
patch that does not apply or build; the report records the patch's SHA-256.
"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `certify`; nothing heavy is imported for it."""
    parser = verbs.add_parser(
        "certify",
        usage="%(prog)s [options]",
        help="",
        description=HELP,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--kernel", metavar="SERIES|PATH", help=f"Debian's, debug, or your own, to boot (default {KERNEL})")
    add("--nic", metavar="ID|FILE", help=f"profile of the card (default {NIC})")
    add("--lab", metavar="FILE", help="test the real hosts of this lab file, by SSH")
    add("--only", metavar="EXPR", help="run matching tests only; never certifies")
    add("--replay", type=Path, metavar="RESULT", help="repeat the failed tests of an earlier run")
    add("--depth", metavar="DEPTH", choices=DEPTHS, help=f"{', '.join(DEPTHS)} (default {DEPTHS[0]})")
    add("--out", type=Path, metavar="DIR", help="folder of this run (default results/<UTC time>)")
    add("--jobs", type=int, metavar="N", help="parallel labs (default: one or two per core; 1 with --only)")
    _more(parser)
    _benches(parser)
    parser.set_defaults(func=main)


def _more(parser: argparse.ArgumentParser) -> None:
    """Add the options that do not fit on the first screen."""
    more = parser.add_argument_group("more options")
    add = more.add_argument
    add(
        "--card",
        choices=CARDS,
        help=f"simulated card: {CARDS[0]} (default), or {CARDS[1]}: Debian's own driver on cx6sim",
    )
    add(
        "--driver",
        type=Path,
        metavar="PATH",
        help="with --card mlx5: your own mlx5_core.ko, or the folder of `driver build`, compiled first",
    )
    add(
        "--scenario",
        action="append",
        metavar="LINE|SEED",
        help="run this scenario only; may be repeated; never certifies",
    )
    add(
        "--nicsim-patch",
        type=Path,
        metavar="FILE",
        help="build the simulated NIC with this patch (or a folder's *.patch); the report names it",
    )
    add("--modules", metavar="DIR", help="with --kernel PATH: its lib/modules/RELEASE")
    add("--attach", metavar="NAME", help="use the running lab of this name, and leave it up")
    add(
        "--retry",
        action="store_true",
        help="with --lab or --all-benches: repeat tests during which a host or a run died",
    )
    add("--timing", action="store_true", help="show where the slowest tests spent their time")
    add("--keep-lab", action="store_true", help="leave the lab running after the tests")


def _benches(parser: argparse.ArgumentParser) -> None:
    """Add the options for many benches."""
    benches = parser.add_argument_group("many benches", "places of a labgrid coordinator (labgrid.md)")
    benches.add_argument(
        "--all-benches",
        nargs="+",
        metavar="TAG=VALUE",
        help="certify every place that has these tags in parallel, into one report",
    )
    benches.add_argument(
        "--coordinator", metavar="HOST:PORT", help="default $LG_COORDINATOR, or 127.0.0.1:20408"
    )
    benches.add_argument(
        "--wait", type=float, metavar="S", help="seconds to wait for a place that is in use (default: a day)"
    )
    benches.add_argument(
        "--hang",
        type=float,
        metavar="S",
        help="seconds without an event before a power cycle; the run is void (default 900)",
    )


def main(args: argparse.Namespace) -> int:
    """Run the whole thing. OffloadError before the tests; afterwards the verdict's exit code."""
    from offload.suite.certify.plan import plan
    from offload.suite.certify.run import Run
    from offload.suite.certify.tests import uninterrupted

    need_extras()
    request = read(args)
    if request.all_benches:
        return all_benches(request)
    run = Run(plan(request), say)
    try:
        run.prepare()
        run.test()
    except BaseException as exc:
        with uninterrupted():
            run.log.aborted(exc)
            word = finish(run)
        if isinstance(exc, Exception) and run.tested:
            say(f"\n{exc}\n")
            return EXIT[word]
        raise
    return EXIT[finish(run, timing=request.timing)]


def all_benches(request: Request) -> int:
    """Certify every bench with these tags. ConfigError for a time that is none."""
    from offload.suite.certify.fleet.grid import Grid, tags
    from offload.suite.certify.fleet.run import run_all
    from offload.suite.certify.plan import folder
    from offload.suite.report.trust import manifest

    wait = WAIT if request.wait is None else request.wait
    hang = HANG if request.hang is None else request.hang
    if not (wait > 0 and hang > 0):
        raise ConfigError("--wait and --hang must be more than 0 seconds")
    wanted, grid = tags(request.all_benches), Grid(request.coordinator or "")
    options = [*(["--only", request.only] if request.only else []), *(["--retry"] if request.retry else [])]
    options += ["--depth", request.depth] if request.depth else []
    there = bool(request.out and request.out.exists())
    out = folder(request.out)
    try:
        code = run_all(grid, wanted, out, options, say, wait=wait, hang=hang)
    except OffloadError:
        if not there:
            with suppress(OSError):  # there is something in it
                out.rmdir()
        raise
    manifest.write(out)  # over every bench's files, their own manifests among them: `report verify` takes it
    return code


def need_extras() -> None:
    """ConfigError before anything is done if a library that the run ends with is not there."""
    missing = [name for name in ("pytest", "jinja2", "cryptography") if find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"certify needs {', '.join(missing)}", "pip install 'ktls-offload[report,test,wire]'"
        )


def finish(run: Run, *, timing: bool = False) -> str:
    """Write the report, print summary and paths; return the word of the verdict."""
    from offload.suite.certify.end import again, files, summary
    from offload.suite.report.timing import text

    document = run.report()
    if timing:
        say(f"\n{text(document)}")
    say(f"\n{summary(document)}\nfiles:\n{files(run.plan)}{again(run.plan, document)}")
    return str(document["verdict"])


def say(text: str) -> None:
    """Write to standard output at once, so that a log can be followed."""
    sys.stdout.write(text)
    sys.stdout.flush()
