"""What does a port of this machine have, and how does it get that back after it was in a network namespace?

A move takes addresses, routes and the interface's sysctls (net/core/dev.c, __dev_change_net_namespace); name,
MAC address, MTU and features stay with the port.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offload.card.nic import links
from offload.errors import Refused, RigError
from offload.host.base import Host
from offload.host.tools import tool

SYSCTLS = Path("/proc/sys/net")
FOREVER = 0xFFFFFFFF  # a lifetime without end, include/net/addrconf.h
ITSELF = ("kernel", "ra", "redirect")  # routes that come back without us
FLAGS = ("noprefixroute", "nodad", "mngtmpaddr", "home")
ROUTE = {
    "gateway": "via",
    "table": "table",
    "protocol": "proto",
    "scope": "scope",
    "prefsrc": "src",
    "metric": "metric",
    "pref": "pref",
}
PLAIN = {"type", "dst", "dev", "flags", "metrics", *ROUTE}
Words = tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """A port as it was: addresses and routes in the words of `ip`, sysctls by path below /proc/sys/net."""

    dev: str
    up: bool
    addresses: tuple[Words, ...]
    routes: tuple[Words, ...]
    sysctls: Mapping[str, str]


def find(host: Host, dev: str) -> Found:
    """A port as it is now. Refused if something of it could not be put back."""
    sysctls = dict(_sysctls(dev))
    found = json.loads(tool(host, ["ip", "-j", "address", "show", "dev", dev]).checked().text)
    rows = [row for one in found for row in one.get("addr_info", [])]
    made = sysctls.get(f"ipv6/conf/{dev}/addr_gen_mode") != "1"  # 1: none, include/uapi/linux/if_link.h
    kept = [row for row in rows if not (row.get("temporary") or (made and _link_local(row)))]
    routes = json.loads(
        tool(host, ["ip", "-j", "-d", "route", "show", "table", "all", "dev", dev]).text or "[]"
    )
    ours = [row for row in routes if row.get("protocol") not in ITSELF]
    up = "UP" in links(host)[dev]["flags"]
    return Found(
        dev, up, tuple(map(address_words, kept)), tuple(route_words(dev, row) for row in ours), sysctls
    )


def _link_local(row: Mapping[str, Any]) -> bool:
    """Say whether the kernel makes this address by itself."""
    return row.get("family") == "inet6" and row.get("scope") == "link"


def address_words(row: Mapping[str, Any]) -> Words:
    """An address as `ip address replace` takes it."""
    local, length = str(row["local"]), row["prefixlen"]
    words = [local, "peer", f"{row['address']}/{length}"] if "address" in row else [f"{local}/{length}"]
    for key in ("broadcast", "scope", "label", "metric"):
        words += [key, str(row[key])] if key in row else []
    if row.get("valid_life_time", FOREVER) != FOREVER:
        words += ["valid_lft", str(row["valid_life_time"]), "preferred_lft", str(row["preferred_life_time"])]
    return (*words, *(flag for flag in FLAGS if row.get(flag)))


def route_words(dev: str, row: Mapping[str, Any]) -> Words:
    """A route as `ip route replace` takes it; Refused for one with keys that we do not know."""
    metrics = [pair for one in row.get("metrics", []) for pair in one.items()]
    if odd := [*(set(row) - PLAIN), *(key for key, value in metrics if type(value) is not int)]:
        hint = f"ip route del {row.get('dst')} dev {dev}; add it again when the port is back"
        raise Refused(f"{dev} has a route that could not be put back ({', '.join(sorted(odd))})", hint)
    words = ["-6" if ":" in str(row.get("dst")) + str(row.get("gateway")) else "-4"]
    words += [str(row.get("type", "unicast")), str(row["dst"])]
    for key, word in ROUTE.items():
        words += [word, str(row[key])] if key in row else []
    words += [str(word) for pair in metrics for word in pair]
    return (*words, *(flag for flag in row.get("flags", []) if flag == "onlink"))


def _sysctls(dev: str) -> Iterator[tuple[str, str]]:
    """Yield what can be set of an interface, and is readable."""
    for kind in ("ipv4/conf", "ipv6/conf", "ipv4/neigh", "ipv6/neigh"):
        for path in sorted((SYSCTLS / kind / dev).glob("*")):
            with suppress(OSError, UnicodeDecodeError):  # stable_secret, if there is none
                if path.stat().st_mode & 0o200:
                    yield str(path.relative_to(SYSCTLS)), path.read_text().rstrip("\n")


def put_back(host: Host, found: Found) -> list[str]:
    """Make a port what it was; what could not be put back."""
    dev, stuck = found.dev, _set(found)
    ip: list[Sequence[str]] = [["link", "set", "dev", dev, "up" if found.up else "down"]]
    ip += [["address", "replace", *words, "dev", dev] for words in found.addresses]
    ip += [[words[0], "route", "replace", *words[1:], "dev", dev] for words in found.routes]
    return stuck + [problem for words in ip if (problem := failed(host, words))]


def _set(found: Found) -> list[str]:
    """Write the sysctls that a move has changed."""
    stuck, now = [], dict(_sysctls(found.dev))
    for name, value in found.sysctls.items():
        if now.get(name) != value:
            try:
                (SYSCTLS / name).write_text(f"{value}\n")
            except OSError as exc:
                stuck.append(f"sysctl net/{name}={value}: {exc.strerror}")
    return stuck


def failed(host: Host, words: Sequence[str]) -> str:
    """Run `ip WORDS`: what it said if it failed, else ''."""
    done = host.run(["ip", *words], check=False)
    said = " ".join(done.stderr.decode("utf-8", "replace").split())[-200:]
    return f"ip {' '.join(words)}: {said or f'exit {done.rc}'}" if done.rc else ""


def ip(host: Host, *words: str) -> None:
    """Run `ip WORDS`; RigError with what it said."""
    if problem := failed(host, words):
        raise RigError(problem)
