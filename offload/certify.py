"""`ktls-offload certify`: prepare, boot, test, report; one folder per run, one verdict, one exit code."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from offload.certify_defaults import DEPTHS, KERNEL, NIC
from offload.certify_request import Request, read
from offload.errors import ConfigError, OffloadError

if TYPE_CHECKING:
    from offload.certify_run import Run

WAIT, HANG = 86400.0, 900.0  # seconds, by default
EXIT = {"certified": 0, "certified with limitations": 0, "failed": 20, "incomplete": 21, "void": 22}
EPILOG = """\
exit codes:
  0    certified (limitations, if any, are listed)
  20   failed: the NIC breaks a promise
  21   incomplete: a promise could not be proved, nothing failed
  22   void: the rig broke during the tests; says nothing about the NIC
  2    usage or configuration is wrong; 4 not permitted; 7 the rig broke before the tests; 130 interrupted

What was found stays in the folder of the run, whatever happened. `ktls-offload report show DIR` prints it,
`report recompute DIR` checks that report.json follows from the events, `report make DIR` makes the report of
a run that was killed.

--replay RESULT repeats the failed tests of a former run: on its kernel series, as its profile, with its
vCPUs, the faults of its simulated card, and its weather by rules and seed. It tells for each test whether the
outcome is the same, and whether the same frames were met. Exit code 20: it fails again; 21: it does not (a
part of the tests never certifies).

--lab FILE certifies the card of real hosts: the kernel is the one that runs there, the profile that of the
file. Hosts that cannot be reached, or are not as the file says, end it before the tests (exit codes 2, 4, 5,
7). The TLS features of both ports are put back at the end, or first thing in the next run if a host was lost.
A test under which a host or the run itself died is not run again (the result is void) until --retry is given.

--depth says how many conditions the scenarios cross (docs/conditions.md): quick is the default; standard
crosses all pairs of conditions, deep also the triples that matter. --scenario runs one: the line that a
failed test printed, or a seed, which draws one. The report names what was crossed, and what never.

--nicsim-patch FILE tries to fool the suite: a defect of your own in a private copy of native/nicsim
(docs/try-to-fool-us.md). A patch that does not apply or build is refused; the report names its SHA-256.
"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `certify`; nothing heavy is imported for it."""
    words = "certify a NIC, in the simulated lab or (--lab) on real hosts: prepare, boot, test, report"
    parser = verbs.add_parser(
        "certify",
        help=words,
        description=words,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kernel", metavar="SERIES", help=f"stock Debian kernel to boot (default {KERNEL})")
    parser.add_argument(
        "--nic",
        metavar="ID|FILE",
        help="profile that the NIC is judged by, and that the simulated one plays: an id, or a FILE.yaml, as"
        f" `probe` drafts one (default {NIC})",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder of this run (default results/<UTC time>)"
    )
    parser.add_argument(
        "--only",
        metavar="EXPR",
        help="run only tests that match (pytest -k; with --replay: with EXPR in their id); never certifies",
    )
    parser.add_argument(
        "--replay",
        type=Path,
        metavar="RESULT",
        help="repeat the failed tests of a former run: its folder, events.jsonl or report.json",
    )
    _scenarios(parser)
    parser.add_argument(
        "--nicsim-patch",
        type=Path,
        metavar="FILE",
        help="build the simulated NIC with this patch (or a folder's *.patch); the report says so",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="labs side by side, one core each (default: as many as there are cores; 1 with --only)",
    )
    parser.add_argument("--attach", metavar="NAME", help="use the running lab of this name, and leave it up")
    parser.add_argument(
        "--lab", metavar="FILE", help="use the real hosts of this lab file, by ssh (docs/the-lab.md)"
    )
    parser.add_argument(
        "--retry",
        action="store_true",
        help="with --lab or --all-benches: run tests again under which a host or a run died",
    )
    _benches(parser)
    parser.add_argument("--timing", action="store_true", help="show where the time of the slowest tests went")
    parser.add_argument("--keep-lab", action="store_true", help="leave the lab running after the tests")
    parser.set_defaults(func=main)


def _scenarios(parser: argparse.ArgumentParser) -> None:
    """Add what chooses the scenarios."""
    parser.add_argument(
        "--depth", choices=DEPTHS, help="how many conditions the scenarios cross (default quick)"
    )
    parser.add_argument(
        "--scenario",
        action="append",
        metavar="LINE|SEED",
        help="run only this scenario; may be repeated; never certifies",
    )


def _benches(parser: argparse.ArgumentParser) -> None:
    """Add the options for many benches."""
    benches = parser.add_argument_group("many benches", "places of a labgrid coordinator (docs/labgrid.md)")
    benches.add_argument(
        "--all-benches",
        nargs="+",
        metavar="TAG=VALUE",
        help="certify every place that has these tags, side by side, into one report",
    )
    benches.add_argument(
        "--coordinator", metavar="HOST:PORT", help="default $LG_COORDINATOR, or 127.0.0.1:20408"
    )
    benches.add_argument("--wait", type=float, metavar="S", help="for a place that others hold (a day)")
    benches.add_argument("--hang", type=float, metavar="S", help="without an event: void, power-cycled (900)")


def main(args: argparse.Namespace) -> int:
    """Run the whole thing. OffloadError before the tests; afterwards the verdict's exit code."""
    from offload.certify_plan import plan
    from offload.certify_run import Run
    from offload.certify_tests import uninterrupted

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
    from offload.certify_plan import folder
    from offload.fleet import run_all
    from offload.fleet_grid import Grid, tags
    from offload.report import manifest

    wait = WAIT if request.wait is None else request.wait
    hang = HANG if request.hang is None else request.hang
    if not (wait > 0 and hang > 0):
        raise ConfigError("--wait and --hang are seconds, more than 0")
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
    from offload.certify_end import again, files, summary
    from offload.report.timing import text

    document = run.report()
    if timing:
        say(f"\n{text(document)}")
    say(f"\n{summary(document)}\nfiles:\n{files(run.plan)}{again(run.plan, document)}")
    return str(document["verdict"])


def say(text: str) -> None:
    """Write to standard output at once, so that a log can be followed."""
    sys.stdout.write(text)
    sys.stdout.flush()
