"""What is a setting of a host now, and which command makes it what it was?"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from offload.errors import Refused
from offload.host.base import Host
from offload.suite.bench.lab.changes.asked import THERE, route_key
from offload.suite.bench.lab.changes.notes import Change
from offload.suite.bench.lab.onehost.port import ITSELF, address_words, route_words

SHOWN = {"feature": "-k", "ring": "-g", "channel": "-l", "coalesce": "-c"}
SET = {"feature": "-K", "ring": "-G", "channel": "-L", "coalesce": "-C"}
# the shell is where the port is to go; `ip -n` enters the other namespace, so it must not be the shell itself
HOME = ("sh", "-c", 'ip -n "$0" link set dev "$1" netns $$ || exit 1')
Row = Mapping[str, Any]


def look(host: Host, one: Change) -> str | None:
    """A setting's value now, '' for something that is not there; None if the host does not say."""
    return LOOK[one.kind](host, one)


def command(one: Change, now: str) -> list[str]:
    """The command that makes a setting what was found."""
    return PUT[one.kind](one, now)


def lost_with(host: Host, change: Change) -> list[Change]:
    """Addresses, routes and sysctls that a port can lose when it goes down, moves, or has a small MTU.

    They come back from the end of the list. A port that moves is down where it arrives.
    """
    link = Change("link", change.dev, "", "up", ("down",))
    up = [link] if change.kind == "home" and _link(host, link) == "up" else []
    return addresses_and_routes(host, change.dev) + _sysctls(host, change.dev) + up


def addresses_and_routes(host: Host, dev: str) -> list[Change]:
    """Those of a port, without the ones that the kernel makes by itself.

    They come back from the end of the list: a route through a gateway after the one that leads to it, and
    addresses in the order that they had (the kernel lists an IPv6 address before older ones).
    """
    found = []
    for family in ("-4", "-6"):
        rows = _json(host, family, "route", "show", "table", "all", "dev", dev)
        for row in sorted(rows, key=lambda row: "gateway" not in row):
            if row.get("protocol") not in ITSELF and (words := _words({"dev": dev, **row})):
                found.append(Change("route", "", _key(family, row), words, ("",)))
    rows = _json(host, "address", "show", "dev", dev)
    pairs = [pair for row in rows for pair in _addresses(row)]
    pairs = [p for p in reversed(pairs) if ":" not in p[0]] + [p for p in pairs if ":" in p[0]]
    return found + [Change("address", dev, *pair, ("",)) for pair in pairs]


def _sysctls(host: Host, dev: str) -> list[Change]:
    """A port's sysctls that differ from the default, to which an MTU below 1280 resets them.

    The secret of its addresses is left out: it does not belong in the words of a command.
    """
    name = dev.replace(".", "/")  # as sysctl writes eth0.7
    pattern = rf"^net\.ipv[46]\.(conf|neigh)\.({re.escape(name)}|default)\."
    text = host.run(["sysctl", "-a", "--pattern", pattern], check=False).text
    values = dict(line.split(" = ", 1) for line in text.splitlines() if " = " in line)
    found = []
    for key, value in values.items():
        *head, which, last = key.split(".")
        default = values.get(".".join((*head, "default", last)), value)
        if which == name and default != value and last not in ("mtu", "stable_secret"):
            found.append(Change("sysctl", "", key, " ".join(value.split()), (" ".join(default.split()),)))
    return found


def _json(host: Host, *words: str) -> list[dict[str, Any]]:
    """The rows of `ip -j -d WORDS`; none if it fails."""
    done = host.run(["ip", "-j", "-d", *words], check=False)
    return json.loads(done.text or "[]") if done.rc == 0 else []


def _row(host: Host, dev: str) -> Row:
    return next(iter(_json(host, "link", "show", "dev", dev)), {})


def _addresses(row: Row) -> Iterator[tuple[str, str]]:
    """Each address of a port, and how `ip address replace` takes it; link-local ones are the kernel's."""
    for one in row.get("addr_info", []):
        if one.get("scope") == "global" and not one.get("temporary"):
            yield f"{one['local']}/{one['prefixlen']}", " ".join(address_words(one))


def _key(family: str, row: Row) -> str:
    return route_key(family, str(row["dst"]), str(row.get("metric", "")), str(row.get("table", "main")))


def _words(row: Row) -> str:
    """A route as `ip route replace` takes it; '' for one with keys that we do not know."""
    try:
        return " ".join((*route_words(str(row["dev"]), row), "dev", str(row["dev"])))
    except (Refused, KeyError):
        return ""


def _mtu(host: Host, one: Change) -> str | None:
    row = _row(host, one.dev)
    return str(row["mtu"]) if row else None


def _link(host: Host, one: Change) -> str | None:
    row = _row(host, one.dev)
    return ("up" if "UP" in row["flags"] else "down") if row else None


def _master(host: Host, one: Change) -> str | None:
    row = _row(host, one.dev)
    return str(row.get("master", "")) if row else None


def _device(host: Host, one: Change) -> str:
    return THERE if _row(host, one.dev) else ""


def _home(host: Host, one: Change) -> str | None:
    if _row(host, one.dev):
        return "here"
    away = host.run(["ip", "-n", one.what, "link", "show", "dev", one.dev], check=False)
    return one.what if away.rc == 0 else None


def _netns(host: Host, one: Change) -> str:
    lines = host.run(["ip", "netns", "list"], check=False).text.splitlines()
    return THERE if one.what in [line.partition(" ")[0] for line in lines] else ""


def _address(host: Host, one: Change) -> str | None:
    rows = _json(host, "address", "show", "dev", one.dev)
    return dict(pair for row in rows for pair in _addresses(row)).get(one.what, "") if rows else None


def _route(host: Host, one: Change) -> str:
    family, to, _, _, _, table = one.what.split()
    rows = _json(host, family, "route", "show", to, "table", table)
    whole = [{**row, "table": table} for row in rows]  # `ip` leaves out the table that it was asked for
    there = [_words(row) for row in whole if _key(family, row) == one.what]
    return one.found if one.found in there else next(iter(there), "")


def _sysctl(host: Host, one: Change) -> str | None:
    done = host.run(["sysctl", "-n", one.what], check=False)
    return " ".join(done.text.split()) if done.rc == 0 else None


def _figure(host: Host, one: Change) -> str | None:
    """The value that ethtool shows; of rings and channels it shows the limits first."""
    text = host.run(["ethtool", SHOWN[one.kind], one.dev], check=False).text
    lines = text.rpartition("Current hardware settings:")[2].splitlines()
    shown = {
        name.strip().lower(): value.split() for name, _, value in (line.partition(":") for line in lines)
    }
    words = shown.get(one.what) or [""]
    return words[0] if "[fixed]" not in words and re.fullmatch(r"\d+|on|off", words[0]) else None


def _qdisc(host: Host, one: Change) -> str | None:
    done = host.run(["tc", "-j", "qdisc", "show", "dev", one.dev], check=False)
    rows = json.loads(done.text or "[]") if done.rc == 0 else []
    if one.what == "root":  # the kernel's own has the handle 0
        rows = [row for row in rows if row.get("root") and row.get("handle") != "0:"]
    else:
        rows = [row for row in rows if row.get("kind") == one.what]
    return next((str(row.get("kind", "")) for row in rows), "") if done.rc == 0 else None


def _put_address(one: Change, now: str) -> list[str]:
    if not one.found:
        return ["ip", "address", "del", one.what, "dev", one.dev]
    words = [word for word in one.found.split() if word != "nodad"]
    return ["ip", "address", "replace", *words, "dev", one.dev, *(["nodad"] if ":" in one.what else [])]


def _put_route(one: Change, now: str) -> list[str]:
    if one.found:
        family, *words = one.found.split()
        return ["ip", family, "route", "replace", *words]
    family, to, *which = one.what.split()
    return ["ip", family, "route", "del", to, *which, "dev", now.rpartition("dev ")[2]]


def _put_figure(one: Change, now: str) -> list[str]:
    return ["ethtool", SET[one.kind], one.dev, one.what, one.found]


LOOK: dict[str, Callable[[Host, Change], str | None]] = {
    "mtu": _mtu,
    "link": _link,
    "master": _master,
    "device": _device,
    "home": _home,
    "netns": _netns,
    "address": _address,
    "route": _route,
    "sysctl": _sysctl,
    "qdisc": _qdisc,
    **dict.fromkeys(SHOWN, _figure),
}
PUT: dict[str, Callable[[Change, str], list[str]]] = {
    "mtu": lambda one, now: ["ip", "link", "set", "dev", one.dev, "mtu", one.found],
    "link": lambda one, now: ["ip", "link", "set", "dev", one.dev, one.found],
    "master": lambda one, now: [
        *("ip", "link", "set", "dev", one.dev),
        *(["master", one.found] if one.found else ["nomaster"]),
    ],
    "device": lambda one, now: ["ip", "link", "del", "dev", one.dev],
    "home": lambda one, now: [*HOME, one.what, one.dev],
    "netns": lambda one, now: ["ip", "netns", "del", one.what],
    "address": _put_address,
    "route": _put_route,
    "sysctl": lambda one, now: ["sysctl", "-qw", f"{one.what}={one.found}"],
    "qdisc": lambda one, now: ["tc", "qdisc", "del", "dev", one.dev, one.what],
    **dict.fromkeys(SET, _put_figure),
}
