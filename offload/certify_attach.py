"""`certify --attach NAME`: which kernel and card a running lab has, checked against what was asked for."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from offload.errors import ConfigError


@dataclass(frozen=True)
class Attached:
    """A lab that somebody else booted, and ends: its name and kernel series.

    nic: the profile that its card plays, or the file of one that the card is to be judged by.
    """

    name: str
    kernel: str
    nic: str


def attached(args: argparse.Namespace) -> Attached:
    """Look at the lab without joining it. ConfigError if it is not up, or not what the other options say."""
    from offload.vm.kernels import SERIES
    from offload.vm.lab import described

    for option in ("replay", "nicsim_patch", "keep_lab"):
        if getattr(args, option):
            word = option.replace("_", "-")
            raise ConfigError(f"--attach and --{word} exclude each other", f"--{word} boots a lab of its own")
    state = described(args.attach)
    if state["kind"] != "nicsim":
        raise ConfigError(
            f"lab {args.attach} has no card: it is of kind {state['kind']}",
            "ktls-offload lab up --kind nicsim",
        )
    series = next((s for s in SERIES if state["kernel"].startswith(f"{s}.")), "")
    nic = state["personality"].split(",")[0]
    if args.nic and args.nic.endswith(".yaml"):
        nic = args.nic  # a draft of `probe` is of the card that plays there, whatever it is called
    for option, given, has in (("--kernel", args.kernel, series), ("--nic", args.nic, nic)):
        if given and given != has:
            raise ConfigError(f"{option} {given}: lab {args.attach} has {has}", f"leave {option} away")
    return Attached(args.attach, series, nic)
