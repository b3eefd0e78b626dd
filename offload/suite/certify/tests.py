"""Run tests/hw as a process of its own, on the terminal of the caller, and end it gently."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from offload.cmd import ended, interrupts_wait
from offload.paths import ROOT
from offload.suite.certify.collect import SCENARIOS, SUITE, each
from offload.suite.certify.defaults import DEPTHS
from offload.suite.certify.plan import Plan
from offload.suite.report.trust.saved import EVENTS

PR_SET_PDEATHSIG = 1  # prctl(2): the child gets the signal when we are gone, kill -9 included


PARALLEL = ["--dist", "load", "--max-worker-restart", "0"]  # in the order of tests/lib/labs/order.py


def command(plan: Plan, lab: str) -> list[str]:
    """Return the pytest command for the tests of a run against labs that are up, or real hosts.

    lab: the name of the lab, or the names with commas, one for each of pytest's workers.
    """
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rN",
        "--no-header",
        "--tb=short",
        "-p",
        "offload.suite.report.record.plugin",
    ]
    argv += ["--events", str(plan.out / EVENTS)]
    argv += plan.hosts.options if plan.hosts else ["--attach", lab]
    argv += ["--profile", plan.given or plan.profile.id]
    argv += [] if plan.hosts else ["--kernel", plan.kernel]
    argv += ["-n", str(plan.jobs), *PARALLEL, "--working", str(plan.working)] if plan.jobs > 1 else []
    if plan.replay:
        argv += ["--replay", str(plan.replay.result), "--replay-only", plan.replay.pattern]
    argv += ["--depth", plan.depth] if plan.depth != DEPTHS[0] else []
    argv += each("--scenario", plan.scenarios)
    argv += ["-k", plan.only] if plan.only else []
    return [*argv, SCENARIOS if plan.scenarios else SUITE]


def run_tests(plan: Plan, lab: str, grace: float = 15.0) -> int:
    """Run the tests to the end and return pytest's exit code, which the events know too.

    On Ctrl-C pytest gets a signal, and has `grace` seconds to run its undos and write the end of the run.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def tied() -> None:
        """Make it end when we interrupt it and when we end, also where we ignore the signal."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGINT)

    child = None
    try:
        with interrupts_wait():
            child = subprocess.Popen(
                command(plan, lab),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                preexec_fn=tied,
            )
        return ended(child)
    except BaseException:
        if child:
            _end(child, grace)
        raise


def _end(child: subprocess.Popen[bytes], grace: float) -> None:
    """Interrupt pytest once: Ctrl-C on a terminal has reached it already, SIGTERM to us alone has not.

    A second Ctrl-C waits no longer. After this, pytest writes no event.
    """
    try:
        with suppress(subprocess.TimeoutExpired):
            child.wait(1)
            return
        child.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            child.wait(grace)
    finally:
        with uninterrupted():
            child.kill()
            child.wait()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM off for the moment that it takes to end, or to write the report."""
    held = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
