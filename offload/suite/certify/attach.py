"""`certify --attach NAME`: which kernel and card a running lab has, checked against what was asked for."""

from __future__ import annotations

from dataclasses import dataclass

from offload.errors import ConfigError
from offload.suite.certify.defaults import CARDS
from offload.suite.certify.request import Request


@dataclass(frozen=True)
class Attached:
    """A lab that somebody else booted, and ends: its name and kernel series.

    nic: the profile that its card plays, or the file of one that the card is to be judged by; card: which
    of the simulated ones it is.
    """

    name: str
    kernel: str
    nic: str
    card: str = CARDS[0]


def attached(request: Request) -> Attached:
    """Look at the lab without joining it. ConfigError if it is not up, or not what the other options say."""
    from offload.debian.kernels import SERIES
    from offload.suite.bench.vm.lab import described

    state = described(request.attach)
    if state["kind"] not in CARDS:
        raise ConfigError(
            f"lab {request.attach} is of kind {state['kind']}, and certify wants {' or '.join(CARDS)}",
            "ktls-offload lab up --kind nicsim",
        )
    by_release = next((s for s in SERIES if state["kernel"].startswith(f"{s}.")), "")
    series = state.get("series") or by_release  # labs of an older version do not say
    nic = state["personality"].split(",")[0]
    if request.nic and request.nic.endswith(".yaml"):
        nic = request.nic  # a draft of `probe` is of the card that plays there, whatever it is called
    for option, given, has in (("--kernel", request.kernel, series), ("--nic", request.nic, nic)):
        if given and given != has:
            raise ConfigError(f"{option} {given}: lab {request.attach} has {has}", f"leave {option} away")
    return Attached(request.attach, series, nic, state["kind"])
