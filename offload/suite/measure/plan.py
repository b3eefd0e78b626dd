"""What a person asked `measure` to do: checked before anything starts, one clear line if not."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from offload.card.profile import near
from offload.errors import ConfigError

ARMS = ("user", "sw", "hw", "hw-zc", "plain")
ESP_ARMS = ("esp-null", "esp-128", "esp-256", "esp-128-hw", "esp-256-hw")
EVERY = (*ARMS, *ESP_ARMS)
IPSEC = ("plain", "sw", "hw", *ESP_ARMS)  # what --arm ipsec stands for
PARTS = ("on", "off", "soft", "gso", "gro")  # of the segmentation offloads
WORKLOADS = ("stream", "file", "iperf3", "nginx", "video")
DIRECTIONS = ("tx", "rx", "both")
VERSION, CIPHER = "1.2", "aes-gcm-128"
FILMS = (2 << 20, 10 << 20)  # bytes of a segment of `video` by default: 2 to 10 s of a film at 8 Mbit/s
CLIENTS = 8  # connections of `video` by default
FILES = (4 << 10, 64 << 10, 1 << 20, 4 << 20)  # bytes: what nginx serves by default
WRITE = 256 << 10  # bytes of a call where nobody asked for a size
MOST_STREAMS, MOST_SIZE = 1024, 1 << 30
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


SIZES: dict[str, tuple[int | None, ...]] = {"nginx": FILES, "video": FILMS}


@dataclass(frozen=True)
class Setting:
    """What stays the same while the arms take turns. `size`: bytes per request or call (None: ours).

    `close`: nginx only: a new connection for each request. `only`: the part of the segmentation offloads that
    stays (soft, gso, gro), where not all of them do.
    """

    workload: str
    direction: str
    streams: int
    size: int | None
    segmentation: bool = True
    close: bool = False
    only: str = ""

    def say(self) -> str:
        """In a few words."""
        words = [self.workload, self.direction, f"{self.streams} connection{'s' * (self.streams > 1)}"]
        words += [f"{amount(self.size)} each"] if self.size else []
        words += [] if self.segmentation else [f"segmentation {self.only or 'off'}"]
        return ", ".join(words + (["a connection per request"] if self.close else []))


@dataclass(frozen=True)
class Plan:
    """Which arms take turns at which settings; `seconds` a turn, `rounds` that count, `warm` that do not."""

    arms: tuple[str, ...]
    settings: tuple[Setting, ...]
    seconds: float = 2.0
    rounds: int = 5
    warm: int = 1

    def turns(self) -> int:
        """How often something is measured at most."""
        return len(self.arms) * len(self.settings) * (self.rounds + self.warm)


def add_arguments(parser: argparse.ArgumentParser, more: argparse._ArgumentGroup) -> None:
    """Add the options that `plan` reads; to `more` those that do not fit on the first screen."""
    add = parser.add_argument
    add("--arm", metavar="A,..", help="configurations to compare (default: all but esp)")
    add("--workload", metavar="W,..", help=", ".join(WORKLOADS))
    add("--direction", metavar="D,..", help="tx (default), rx, both, from this host's side")
    add("--streams", metavar="N,..", help="connections at once, 1 to 1024 (default 1)")
    add = more.add_argument
    add(
        "--size",
        metavar="B,..",
        help="bytes per request (nginx) or call, as in 64K (default: see docs/use/measure.md)",
    )
    add(
        "--segmentation",
        metavar="S",
        default="on",
        help="TSO, GSO and GRO: on (default), off, both (on and off in turn); soft: all but TSO; gso; gro",
    )
    add("--close", action="store_true", help="nginx: open a new connection for each request")
    add("--seconds", metavar="S", help="seconds of one turn (default: 2; simulated: 1)")
    add("--rounds", metavar="N", help="turns of each arm that count (default: 5; simulated: 1)")


def plan(args: argparse.Namespace, *, short: bool) -> Plan:
    """Return the plan; `short`: the defaults of a first look. ConfigError if an option makes no sense."""
    seconds = number(args.seconds, "--seconds", 1.0 if short else 2.0, 0.1, 600)
    rounds = whole(args.rounds, "--rounds", 1 if short else 5, 100)
    arms = chosen(args.arm)
    return Plan(arms, tuple(settings(args)), seconds, rounds, 0 if short and not args.rounds else 1)


def settings(args: argparse.Namespace) -> Iterator[Setting]:
    """Every combination that was asked for."""
    workloads = names(args.workload, "--workload", WORKLOADS, ("stream",))
    directions = names(args.direction, "--direction", DIRECTIONS, ("tx",))
    sizes = [size(word) for word in listed(args.size, "--size")] if args.size else []
    if args.close and workloads != ("nginx",):
        raise ConfigError("--close is for --workload nginx only")
    for workload in workloads:
        default = SIZES.get(workload, (None,))
        words = listed(args.streams or str(CLIENTS if workload == "video" else 1), "--streams")
        streams = [whole(word, "--streams", 1, MOST_STREAMS) for word in words]
        for direction in directions:
            for each in sizes or default:
                for count in streams:
                    for part in parts(args.segmentation):
                        only = part if part not in ("on", "off") else ""
                        yield Setting(workload, direction, count, each, part == "on", args.close, only)


def listed(text: str, option: str) -> list[str]:
    """The words of a list, each once."""
    words = list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not words:
        raise ConfigError(f"{option}: empty value {text!r}", "give a comma-separated list")
    return words


def names(text: str | None, option: str, known: Sequence[str], default: Sequence[str]) -> tuple[str, ...]:
    """Words of a known list, in its order."""
    if text is None:
        return tuple(default)
    words = listed(text, option)
    for word in words:
        if word not in known:
            raise ConfigError(
                f"{option}: no {word!r}{near(word, known)}", f"choose one of {', '.join(known)}"
            )
    return tuple(word for word in known if word in words)


def chosen(text: str | None) -> tuple[str, ...]:
    """The arms that were asked for; `ipsec` stands for ESP and its counterparts."""
    words = [word.strip() for word in (text or "").split(",")]
    if "ipsec" in words:
        text = ",".join([*(word for word in words if word != "ipsec"), *IPSEC])
    return names(text, "--arm", EVERY, ARMS)


def parts(text: str) -> tuple[str, ...]:
    """Return what of the segmentation offloads stays, in turn."""
    words = [
        part
        for word in listed(text, "--segmentation")
        for part in (("on", "off") if word == "both" else (word,))
    ]
    return names(",".join(words), "--segmentation", PARTS, PARTS)


def whole(text: str | None, option: str, default: int, most: int) -> int:
    """A whole number from 1."""
    if text is None:
        return default
    if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= most:
        raise ConfigError(f"{option}: {text!r}", f"a whole number, 1 to {most}")
    return int(text)


def number(text: str | None, option: str, default: float, least: float, most: float) -> float:
    """A number within limits."""
    if text is None:
        return default
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not least <= found <= most:
        raise ConfigError(f"{option}: {text!r}", f"{least:g} to {most:g}")
    return found


def size(text: str) -> int:
    """Bytes, with a unit of 1024: 4096, 4K, 1M."""
    found = re.fullmatch(r"([0-9]{1,12})([kmg]?)", text.lower())
    value = int(found[1]) * UNITS[found[2]] if found else 0
    if not 1 <= value <= MOST_SIZE:
        raise ConfigError(f"--size: {text!r}", "bytes as in 4096, 64K or 1M, up to 1G")
    return value


def amount(count: int) -> str:
    """Bytes for people: 64 KiB."""
    for unit, bits in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << bits and count % (1 << bits) == 0:
            return f"{count >> bits} {unit}"
    return f"{count} B"
