"""Which settings would a command change? Read off its words, before it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath

from offload.card.profile import FEATURES
from offload.suite.bench.lab.changes.notes import Change

THERE = "there"
METRIC6 = "1024"  # of an IPv6 route that names none (IP6_RT_PRIO_USER, include/uapi/linux/ipv6_route.h)
NAMES = {  # of ethtool -K, and what ethtool -k calls them
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
    "lro": "large-receive-offload",
    "rx": "rx-checksumming",
    "tx": "tx-checksumming",
    "sg": "scatter-gather",
}
ETHTOOL = {"-K": "feature", "-G": "ring", "-L": "channel", "-C": "coalesce"}


def asked(argv: Sequence[str]) -> list[Change]:
    """Return the settings that a command changes, each with the value that it sets.

    None of a command that only looks, nor of what goes by itself: neighbors go with the device that a test
    made, IPsec states and policies have a time limit.
    """
    read = PROGRAMS.get(PurePath(argv[0]).name) if argv else None
    try:
        return list(read([*argv[1:]])) if read else []
    except IndexError:  # a word is missing: the program itself says so, and changes nothing
        return []


def _ip(words: list[str]) -> Iterator[Change]:
    family = ""
    while words and words[0] in ("-4", "-6"):
        family = words.pop(0)
    if len(words) < 3 or words[0].startswith("-"):
        return  # -j only looks; with -n a port comes home from a namespace that is noted
    thing, verb, *rest = words
    if thing == "link" and verb == "add":
        yield Change("device", _new(rest), ours=(THERE,))
    elif thing == "link" and verb == "set":
        yield from _link(rest[1:] if rest[0] == "dev" else rest)
    elif thing == "netns" and verb == "add":
        yield Change("netns", "", rest[0], ours=(THERE,))
    elif thing == "address" and verb in ("add", "replace", "del"):
        yield Change("address", _after(rest, "dev"), rest[0], ours=("" if verb == "del" else rest[0],))
    elif thing == "route" and verb in ("add", "replace", "del"):
        yield _route(family, verb, rest)


def _new(rest: list[str]) -> str:
    """The name in `ip link add [link DEV] [name] NAME type ...`."""
    rest = rest[2:] if rest[0] == "link" else rest
    return rest[1] if rest[0] in ("name", "dev") else rest[0]


def _after(words: Sequence[str], key: str) -> str:
    return words[words.index(key) + 1] if key in words[:-1] else ""


def _link(rest: list[str]) -> Iterator[Change]:
    """Of `ip link set DEV ...`; each other key word has one value."""
    dev, words = rest[0], iter(rest[1:])
    for word in words:
        if word in ("up", "down"):
            yield Change("link", dev, ours=(word,))
        elif word == "nomaster":
            yield Change("master", dev, ours=("",))
        else:
            value = next(words, "")
            if word in ("mtu", "master"):
                yield Change(word, dev, ours=(value,))
            elif word == "netns":
                yield Change("home", dev, value, "here", (value,))


def route_key(family: str, to: str, metric: str, table: str = "main") -> str:
    """Which route it is, as the kernel tells them apart."""
    short = to.removesuffix("/32" if family == "-4" else "/128")
    metric = metric or (METRIC6 if family == "-6" else "0")
    return f"{family} {short} metric {metric} table {table}"


def _route(family: str, verb: str, rest: list[str]) -> Change:
    rest = rest[rest[0] == "unicast" :]  # the type of a route through a port, if it is named
    family = family or ("-6" if any(":" in word for word in rest) else "-4")
    what = route_key(family, rest[0], _after(rest, "metric"), _after(rest, "table") or "main")
    words = [w for key in ("via", "dev") if (value := _after(rest, key)) for w in (key, value)]
    return Change("route", "", what, ours=("" if verb == "del" else " ".join(words),))


def _sysctl(words: list[str]) -> Iterator[Change]:
    for word in words:
        name, found, value = word.partition("=")
        if found:
            yield Change("sysctl", "", name, ours=(" ".join(value.split()),))


def _ethtool(words: list[str]) -> Iterator[Change]:
    kind = ETHTOOL.get(words[0] if words else "")
    for name, value in zip(words[2::2], words[3::2], strict=False) if kind else ():
        name = NAMES.get(name, name) if kind == "feature" else name
        if name not in FEATURES.values():  # they have a journal of their own (settings.py)
            yield Change(str(kind), words[1], name, ours=(value,))


def _tc(words: list[str]) -> Iterator[Change]:
    if words[:2] in (["qdisc", "add"], ["qdisc", "replace"]) and "dev" in words:
        at = words.index("dev")
        where = words[at + 2]
        kind = words[at + 3] if where == "root" else where
        yield Change("qdisc", words[at + 1], where, ours=(kind,))


def _wirebox(words: list[str]) -> Iterator[Change]:
    """It takes both ports out of their bridge, and puts them back unless it is killed."""
    if "--bridge" in words:
        yield from (Change("master", dev, ours=("",)) for dev in words[:2])


PROGRAMS: dict[str, Callable[[list[str]], Iterator[Change]]] = {
    "ip": _ip,
    "sysctl": _sysctl,
    "ethtool": _ethtool,
    "tc": _tc,
    "wirebox": _wirebox,
}
