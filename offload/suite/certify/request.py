"""What was typed to `certify`, as one frozen value; one table says which options exclude each other."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields
from pathlib import Path

from offload.errors import ConfigError
from offload.suite.certify.defaults import DEPTHS


@dataclass(frozen=True)
class Request:
    """The options of `certify`, by their names; what was not typed is empty or None."""

    kernel: str = ""
    modules: str = ""
    nic: str = ""
    card: str = ""
    driver: Path | None = None
    out: Path | None = None
    only: str = ""
    replay: Path | None = None
    depth: str = ""
    scenario: tuple[str, ...] = ()
    nicsim_patch: Path | None = None
    jobs: int | None = None
    attach: str = ""
    lab: str = ""
    retry: bool = False
    all_benches: tuple[str, ...] = ()
    coordinator: str | None = None
    wait: float | None = None
    hang: float | None = None
    timing: bool = False
    keep_lab: bool = False

    def typed(self, name: str) -> bool:
        """Say whether an option was typed so that it matters: one lab is what any run may have."""
        value = getattr(self, name)
        if name == "jobs":
            return value not in (None, 1)
        return value not in (None, "", ()) and value is not False

    @property
    def one_lab(self) -> bool:
        """Only one lab can run: it is somebody else's, stays up, or repeats a run."""
        return any(map(self.typed, ("attach", "keep_lab", "replay", "lab")))

    @property
    def crossed(self) -> str:
        """How many conditions the scenarios cross."""
        return self.depth or DEPTHS[0]


# an option, those that it excludes, and a hint with the other's name; the first row that applies is reported
EXCLUDES = (
    (
        "all_benches",
        (
            "scenario",
            "replay",
            "nicsim_patch",
            "keep_lab",
            "attach",
            "lab",
            "kernel",
            "modules",
            "nic",
            "card",
            "driver",
            "jobs",
        ),
        "each place defines its own bench",
    ),
    (
        "lab",
        ("attach", "replay", "nicsim_patch", "keep_lab", "kernel", "modules", "card", "driver", "jobs"),
        "--lab names a bench that already exists",
    ),
    ("attach", ("replay", "nicsim_patch", "keep_lab"), "{other} boots its own lab"),
    ("attach", ("card", "driver"), "the lab determines the card"),
    ("replay", ("card",), "a replay takes the card of the earlier run"),
    ("attach", ("jobs",), "--attach uses one lab only"),
    ("keep_lab", ("jobs",), "--keep-lab uses one lab only"),
    ("replay", ("jobs",), "--replay uses one lab only"),
    ("replay", ("depth", "scenario"), "a replay runs the scenarios of the earlier run"),
    ("scenario", ("depth",), "a scenario runs alone"),
)
# an option, those of which it needs one, and a hint
NEEDS = (
    ("driver", ("card", "replay"), "--card mlx5 is the one that your mlx5_core can drive"),
    ("modules", ("kernel",), "--kernel PATH names the image to which they belong"),
    ("retry", ("lab", "all_benches"), "a lab in a VM is new in every run"),
    ("coordinator", ("all_benches",), "name the tags of the benches"),
    ("wait", ("all_benches",), "name the tags of the benches"),
    ("hang", ("all_benches",), "name the tags of the benches"),
)


def read(args: argparse.Namespace) -> Request:
    """Return what was typed. ConfigError for options that exclude, or lack, each other."""
    given = {field.name: getattr(args, field.name) for field in fields(Request)}
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    request = Request(**{name: value for name, value in given.items() if value is not None})
    for name in [name for name, value in given.items() if value == ""]:
        raise ConfigError(f"{flag(name)} is empty", "leave it out, or say what it is")
    for option, others, hint in EXCLUDES:
        for other in filter(request.typed, others) if request.typed(option) else ():
            raise ConfigError(
                f"{flag(option)} and {flag(other)} exclude each other", hint.format(other=flag(other))
            )
    for option, others, hint in NEEDS:
        if request.typed(option) and not any(map(request.typed, others)):
            raise ConfigError(f"{flag(option)} needs {' or '.join(map(flag, others))}", hint)
    return request


def flag(name: str) -> str:
    """Return an option as it is typed."""
    return f"--{name.replace('_', '-')}"
