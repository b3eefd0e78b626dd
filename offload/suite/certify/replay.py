"""What `certify --replay` repeats: read from a former result, refused in one sentence if it cannot be."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from offload.card.profile import find, near
from offload.errors import ConfigError
from offload.suite.certify.defaults import CARDS
from offload.suite.certify.request import Request
from offload.suite.report.former import Former, choose, read


@dataclass(frozen=True)
class Replay:
    """A repetition: of `tests` of a former run, on its kernel series, with its vCPUs and knobs."""

    result: Path
    pattern: str
    former: Former
    tests: tuple[str, ...]
    kernel: str
    cpus: int | None
    knobs: str
    gone: tuple[str, ...] = ()
    card: str = CARDS[0]

    def words(self) -> str:
        """Return what is repeated, in a line, and in another one what cannot be."""
        here = len(self.tests) - len(self.gone)
        what = "1 test" if here == 1 else f"{here} tests"
        knobs = f", with the fault that its card had: {self.knobs}" if self.knobs else ""
        gone = f"\nno longer in tests/hw, so left out: {', '.join(self.gone)}" if self.gone else ""
        return f"repeating {what} of {self.former.name}{knobs}{gone}"


def plan_replay(result: Path, request: Request) -> Replay:
    """Return what is to be repeated. ConfigError for no result, or one that this lab cannot repeat."""
    from offload.suite.bench.cards.knobs import check

    former = read(result)
    kernel = series(former)
    for option, asked, had in (("--kernel", request.kernel, kernel), ("--nic", request.nic, former.profile)):
        if asked not in ("", had):
            raise ConfigError(
                f"{former.name} was a run with {option} {had}, not {asked}", f"leave {option} away"
            )
    known(former)
    tests = choose(former, request.only)
    knobs = former.rig.get("knobs", "")
    check(knobs)
    vcpus = re.match(r"([1-4]) vCPU", former.rig.get("vm", ""))
    cpus = int(vcpus[1]) if vcpus else None
    card = CARDS["cx6sim" in former.rig.get("card", "")]
    return Replay(result.absolute(), request.only, former, tests, kernel, cpus, knobs, card=card)


def series(former: Former) -> str:
    """Return the kernel series of a former run; ConfigError if it has none that the lab boots."""
    from offload.debian.kernels import SERIES
    from offload.debian.own import NAME

    if not former.kernel:
        raise ConfigError(f"{former.name} does not say on which kernel it ran: its rig never started")
    package = former.rig.get("kernel-package", "")
    if NAME.fullmatch(package):
        return package  # of one's own; the cache has it, or says that it has not
    match = re.match(r"\d+\.\d+", former.kernel)
    if match is None or match[0] not in SERIES:
        raise ConfigError(
            f"{former.name} ran on kernel {former.kernel}, which the lab does not boot",
            f"choose one of {', '.join(SERIES)}",
        )
    return match[0]


def known(former: Former) -> None:
    """ConfigError for a card that is not simulated, or that has no profile here."""
    if not former.simulated:
        raise ConfigError(f"{former.name} was a run on a physical card: the lab cannot repeat it")
    try:
        find(former.profile)
    except ConfigError as exc:
        raise ConfigError(f"{former.name} was of another profile: {exc.args[0]}") from None


def check_suite(found: Replay, suite: tuple[str, ...]) -> Replay:
    """Return it with the tests that the suite no longer has as `gone`; ConfigError if it has none of them."""
    missing = tuple(name for name in found.tests if name not in suite)
    if len(missing) == len(found.tests):
        hint = near(missing[0], suite).strip(" ()")
        raise ConfigError(
            f"none of the tests to repeat is in tests/hw today: {missing[0]}"
            + (f" and {len(missing) - 1} more" if len(missing) > 1 else ""),
            hint or "the suite has changed since: use the version of the project that made the result",
        )
    return replace(found, gone=missing)
