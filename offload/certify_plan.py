"""What a certification run is going to do: checked before anything starts, one clear line if it cannot."""

from __future__ import annotations

import argparse
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from offload.certify_attach import attached
from offload.certify_defaults import DEPTHS, KERNEL, NIC
from offload.certify_lab import Hosts, card, hosts
from offload.certify_labs import how_many
from offload.certify_patch import PATCH, RIG, Patch, apply_patch, read_patch, try_patch
from offload.certify_replay import Replay, check_suite, plan_replay
from offload.certify_suite import check_scenarios, collect
from offload.errors import ConfigError, RigError
from offload.paths import ROOT
from offload.profile import Profile, find, near

CARDS = ("connectx-6-dx", "chelsio-t6", "nicsim")  # personalities of the simulated NIC
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
    depth: str = DEPTHS[0]
    scenarios: tuple[str, ...] = ()  # only these, by line or seed

    @property
    def played(self) -> str:
        """The card that the simulated NIC plays: a profile from elsewhere is tried on one that can all."""
        return self.profile.id if self.profile.id in CARDS else CARDS[-1]

    @property
    def source(self) -> Path | None:
        """The patched copy of the simulated NIC's source, below the folder of the run."""
        return self.out / "nicsim" if self.patch else None


def plan(args: argparse.Namespace) -> Plan:
    """Return the plan, with the folder of the run made. ConfigError or RigError if it cannot work."""
    missing = [
        name for name in ("native/nicsim", "native/ktls-handoff", "tests/hw") if not (ROOT / name).is_dir()
    ]
    if missing:
        raise ConfigError(f"certify needs a checkout of the project: {', '.join(missing)} is not there")
    depth, scenarios = crossed(args)
    if args.lab:
        return real(args, depth, scenarios)
    replay = plan_replay(args) if args.replay else None
    lab = attached(args) if args.attach else None
    from offload.vm.recipe import cpus_wanted

    kernel = known(lab.kernel if lab else replay.kernel if replay else args.kernel or KERNEL)
    patch = read_patch(args.nicsim_patch) if args.nicsim_patch else None
    if patch:
        try_patch(patch)  # before the folder of the run is made
    if replay:
        same_card(replay, patch)
    profile = find(lab.nic if lab else replay.former.profile if replay else args.nic or NIC)
    jobs = how_many(args.jobs, alone(args), cpus_wanted(replay.cpus if replay else None))
    if replay:
        replay = check_suite(replay, collect(kernel, profile.id, replay.tests))
    only, out = "" if replay else args.only or "", folder(args.out)
    found = Plan(
        kernel,
        profile,
        out,
        only,
        args.keep_lab,
        replay,
        patch,
        args.attach or "",
        given(args.nic),
        jobs=jobs if args.jobs or not (only or scenarios) else 1,
        depth=depth,
        scenarios=scenarios,
    )
    if patch and found.source:
        apply_patch(patch, found.source)
        (out / PATCH).write_bytes(patch.raw)
    return found


def crossed(args: argparse.Namespace) -> tuple[str, tuple[str, ...]]:
    """Return the depth and the scenarios that were asked for. ConfigError for one that cannot be."""
    depth, scenarios = args.depth or DEPTHS[0], tuple(args.scenario or ())
    for name, asked in (("depth", args.depth), ("scenario", scenarios)):
        if asked and args.replay:
            raise ConfigError(
                f"--replay and --{name} exclude each other", "a replay has the scenarios of the former run"
            )
    if scenarios and args.depth:
        raise ConfigError("--scenario and --depth exclude each other", "a scenario runs alone")
    if scenarios:
        check_scenarios(args.nic or NIC, scenarios)
    return depth, scenarios


def real(args: argparse.Namespace, depth: str, scenarios: tuple[str, ...]) -> Plan:
    """Return the plan for a bench of real hosts, which nobody has asked anything yet. ConfigError."""
    how_many(args.jobs, "lab", 1)
    bench = hosts(args)
    name = card(bench, args.nic)
    return Plan(
        "",
        find(name),
        folder(args.out),
        args.only or "",
        False,
        given=given(name),
        hosts=bench,
        depth=depth,
        scenarios=scenarios,
    )


def known(kernel: str) -> str:
    """Return a kernel series that the lab boots. ConfigError with the nearest."""
    from offload.vm.kernels import SERIES

    if kernel not in SERIES:
        raise ConfigError(
            f"no kernel series {kernel!r}{near(kernel, SERIES)}",
            f"the lab knows {', '.join(SERIES)}",
        )
    return kernel


def given(nic: str | None) -> str:
    """The absolute path of a profile that was given as a file; else ''."""
    return str(Path(nic).absolute()) if nic and nic.endswith(".yaml") else ""


def alone(args: argparse.Namespace) -> str:
    """The option of this run that allows one lab only, or ''."""
    names = ("attach", "keep_lab", "replay")
    return next((name.replace("_", "-") for name in names if getattr(args, name)), "")


def same_card(replay: Replay, patch: Patch | None) -> None:
    """ConfigError if the simulated NIC of the former run was patched in another way, or was not."""
    had = replay.former.rig.get(RIG, "")
    if (patch.sha256 in had) if patch else not had:
        return
    kept = replay.result / PATCH  # a run on a lab of somebody else has none
    raise ConfigError(
        f"{replay.former.name} was a run with nicsim {had or 'as it is'}",
        f"--nicsim-patch {kept if kept.exists() else 'PATCH'}" if had else "leave --nicsim-patch away",
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
            raise ConfigError(f"{out} is not empty", "every run needs a folder of its own; leave --out away")
        free = shutil.disk_usage(out).free
    except OSError as exc:
        raise ConfigError(
            f"cannot use {out} for the results: {exc.strerror}", "name another folder with --out"
        ) from None
    if free < DISK:
        raise RigError(
            f"no room for the results: {out} has {free >> 20} MiB free, {DISK >> 20} MiB are needed"
        )
    return out
