"""What a certification run is going to do: checked before anything starts, one clear line if it cannot."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from offload.card.profile import Profile, find, near
from offload.errors import ConfigError, RigError
from offload.paths import ROOT
from offload.suite.certify.attach import attached
from offload.suite.certify.collect import check_scenarios, collect
from offload.suite.certify.defaults import CARDS, DEPTHS, KERNEL, NIC
from offload.suite.certify.lab import Hosts, card, hosts
from offload.suite.certify.labs import how_many, working
from offload.suite.certify.patch import PATCH, RIG, Patch, apply_patch, read_patch, try_patch
from offload.suite.certify.replay import Replay, check_suite, plan_replay
from offload.suite.certify.request import Request

DISK = 100 << 20  # bytes below the run's folder; the kernel cache checks its own needs


@dataclass(frozen=True)
class Plan:
    """One run: which kernel ('': what runs there) and profile, which tests, where the results go."""

    kernel: str
    profile: Profile
    out: Path
    only: str
    keep_lab: bool
    replay: Replay | None = None
    patch: Patch | None = None
    attach: str = ""  # the name of a running lab, which stays up
    given: str = ""  # the file of the profile, if it is not one of those that are shipped
    hosts: Hosts | None = None  # real hosts instead of a lab in a VM
    jobs: int = 1  # labs side by side
    working: int = 1  # how many of them work at once; the others wait, or are silent
    depth: str = DEPTHS[0]
    scenarios: tuple[str, ...] = ()  # only these, by line or seed
    card: str = CARDS[0]  # which simulated card
    driver: Path | None = None  # one's own mlx5_core, or the folder in which it is built

    @property
    def played(self) -> str:
        """The card that the simulated NIC plays: that of the profile."""
        return self.given or self.profile.id

    @property
    def source(self) -> Path | None:
        """The patched copy of the simulated NIC's source, below the folder of the run."""
        return self.out / "nicsim" if self.patch else None


def plan(request: Request) -> Plan:
    """Return the plan, with the folder of the run made. ConfigError or RigError if it cannot work."""
    missing = [
        name for name in ("native/nicsim", "native/ktls-handoff", "tests/hw") if not (ROOT / name).is_dir()
    ]
    if missing:
        raise ConfigError(f"certify needs a checkout of the project: {', '.join(missing)} is missing")
    if request.scenario:
        check_scenarios(request.nic or NIC, request.scenario)
    return real(request) if request.lab else simulated(request)


def simulated(request: Request) -> Plan:
    """Return the plan for labs of ours: new ones, or one that is up. ConfigError or RigError."""
    replay = plan_replay(request.replay, request) if request.replay else None
    lab = attached(request) if request.attach else None
    kernel = known(
        lab.kernel if lab else replay.kernel if replay else request.kernel or KERNEL, request.modules
    )
    patch = read_patch(request.nicsim_patch) if request.nicsim_patch else None
    if patch:
        try_patch(patch)  # before the folder of the run is made
    if replay:
        same_card(replay, patch)
    profile = find(lab.nic if lab else replay.former.profile if replay else request.nic or NIC)
    profile = profile.on(hands_over(kernel))
    card = lab.card if lab else replay.card if replay else request.card or CARDS[0]
    check_card(card, profile, patch)
    check_driver(card, request.driver, replay)
    jobs, working = labs(request, replay)
    if replay:
        replay = check_suite(replay, collect(kernel, profile.id, replay.tests))
    found = Plan(
        kernel,
        profile,
        folder(request.out),
        "" if replay else request.only,
        request.keep_lab,
        replay,
        patch,
        request.attach,
        given(request.nic),
        jobs=jobs,
        working=working,
        depth=request.crossed,
        scenarios=request.scenario,
        card=card,
        driver=request.driver.absolute() if request.driver else None,
    )
    if patch and found.source:
        apply_patch(patch, found.source)
        (found.out / PATCH).write_bytes(patch.raw)
    return found


def check_card(card: str, profile: Profile, patch: Patch | None) -> None:
    """ConfigError for a profile that the simulated card cannot be tested as, or a patch of another card."""
    from offload.suite.bench.vm.cards import check_profile

    if card == CARDS[0]:
        return
    check_profile(profile)
    if patch:
        raise ConfigError("--nicsim-patch changes nicsim, not cx6sim", "omit --card")


def check_driver(card: str, driver: Path | None, replay: Replay | None) -> None:
    """ConfigError for a driver that cannot be loaded, or one that a replay lacks."""
    from offload.suite.bench.vm.own_driver import OWN, check_path

    if driver and card == CARDS[0]:
        raise ConfigError("--driver replaces mlx5_core, which the simulated card nicsim does not use")
    if driver:
        check_path(driver)
    elif replay and replay.former.rig.get("driver under test", "").startswith(OWN):
        raise ConfigError(f"{replay.former.name} was a run with a driver of your own", "add --driver PATH")


def labs(request: Request, replay: Replay | None) -> tuple[int, int]:
    """Return how many labs run side by side, and work at once; one for a few tests, unless more are asked."""
    from offload.suite.bench.vm.recipe import cpus_wanted

    cpus = cpus_wanted(replay.cpus if replay else None)
    most = how_many(request.jobs, request.one_lab, cpus, waits=request.crossed != DEPTHS[0])
    return most if request.jobs or not (request.only or request.scenario) else 1, working(cpus)


def real(request: Request) -> Plan:
    """Return the plan for a bench of real hosts, which nobody has asked anything yet. ConfigError."""
    bench = hosts(request.lab, request.retry)
    name = card(bench, request.nic)
    return Plan(
        "",
        find(name),
        folder(request.out),
        request.only,
        False,
        given=given(name),
        hosts=bench,
        depth=request.crossed,
        scenarios=request.scenario,
    )


def hands_over(kernel: str) -> bool:
    """Say whether the lab's kernel hands TLS 1.3 to cards."""
    from offload.debian.kernels import hands_over_tls13

    return hands_over_tls13(kernel)


def known(kernel: str, modules: str = "") -> str:
    """Return a series that the lab boots, or the name of one's own kernel. ConfigError if it is neither."""
    from offload.debian.kernels import SERIES
    from offload.debian.own import NAME, is_path, take

    if is_path(kernel):
        return take(kernel, modules, partial(print, file=sys.stderr))
    if modules:
        raise ConfigError("--modules belongs to --kernel PATH", f"{kernel} is a series of Debian")
    if kernel not in SERIES and not NAME.fullmatch(kernel):
        raise ConfigError(
            f"no kernel series {kernel!r}{near(kernel, SERIES)}",
            f"choose one of {', '.join(SERIES)}, or name a path",
        )
    return kernel


def given(nic: str) -> str:
    """The absolute path of a profile that was given as a file; else ''."""
    return str(Path(nic).absolute()) if nic.endswith(".yaml") else ""


def same_card(replay: Replay, patch: Patch | None) -> None:
    """ConfigError if the simulated NIC of the former run was patched in another way, or was not."""
    had = replay.former.rig.get(RIG, "")
    if (patch.sha256 in had) if patch else not had:
        return
    kept = replay.result / PATCH  # a run on a lab of somebody else has none
    raise ConfigError(
        f"{replay.former.name} was a run with nicsim {had or 'as it is'}",
        f"--nicsim-patch {kept if kept.exists() else 'PATCH'}" if had else "omit --nicsim-patch",
    )


def folder(wanted: Path | None) -> Path:
    """Make and return the folder of the run: the one asked for if it is empty, else one named by the time."""
    base = Path("results") / datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    out = (wanted or base).absolute()
    try:
        number = 1
        while wanted is None and out.exists():  # two runs in one second
            number += 1
            out = base.with_name(f"{base.name}-{number}").absolute()
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise ConfigError(f"{out} is not empty", "every run needs its own folder; omit --out")
        free = shutil.disk_usage(out).free
    except OSError as exc:
        raise ConfigError(
            f"cannot use {out} for the results: {exc.strerror}", "name another folder with --out"
        ) from None
    if free < DISK:
        raise RigError(
            f"not enough space for the results: {out} has {free >> 20} MiB free, {DISK >> 20} MiB are needed"
        )
    return out
