"""Do IPsec policies of this host take what the device's card is to encrypt, before it gets there?"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from offload.card.nic import Nic
from offload.doctor.reasons import Notes
from offload.host.base import Host

NETLINK = "/proc/net/netlink"
NETLINK_XFRM = "6"  # include/uapi/linux/netlink.h
READ, SHOWN = 64, 4  # policies that are asked about, and named
HOST = re.compile(r"([0-9.]+)(?:/32)?|([0-9a-fA-F:.]+)(?:/128)?")  # one address, with its length or without
TEMPLATE = re.compile(r"\btmpl src \S+ dst (\S+)\s+proto (esp|ah|comp)\b.*?\bmode (\w+)", re.DOTALL)


class Policy(NamedTuple):
    """One that transforms what leaves: selector in words, its device, what it makes, where that goes."""

    traffic: str
    dev: str
    protocol: str
    mode: str
    goes_to: str


def examine(host: Host, nic: Nic, notes: Notes) -> None:
    """Note policies that put TCP from this device into ESP, where its card is to encrypt TLS.

    The kernel chooses the card by the route alone, and its driver then takes the ESP header for TCP's.
    """
    feature = nic.feature("tx")
    if feature is None or not feature.active:
        return
    if not in_use(host):
        notes.ok("no IPsec")
        return
    done = host.run(["ip", "xfrm", "policy", "list"], check=False)
    if done.rc != 0:
        said = done.stderr.decode("utf-8", "replace").strip() or f"exit {done.rc}"
        notes.add("D407", f"ip xfrm policy list: {said}", ["tx"])
        return
    here = (p for p in islice(policies(done.text), READ) if _here(host, p, nic.dev))
    mine = list(islice(here, SHOWN + 1))
    if mine:
        _tell(mine, notes)
    else:
        notes.ok("no IPsec policy takes its connections")


def in_use(host: Host) -> bool:
    """Whether anybody can have set a policy: asking `ip xfrm` without that would load a module."""
    try:
        rows = host.read(NETLINK).decode("ascii", "replace").splitlines()
    except OSError:
        return True
    return any(row.split()[1:3] == [NETLINK_XFRM, "0"] for row in rows)  # the kernel's own end


def policies(text: str) -> Iterator[Policy]:
    """Those of `ip xfrm policy list` that transform TCP on its way out; nonsense is left out."""
    for block in re.split(r"\n(?=src )", text):
        head, _, body = block.partition("\n")
        words = head.split()
        named = dict(zip(words[::2], words[1::2]))
        template = TEMPLATE.search(body)
        if template is None or not _takes_tcp(named.get("proto", "tcp"), body):
            continue
        goes_to = template[1] if template[3] == "tunnel" else named.get("dst", "")
        yield Policy(" ".join(words), named.get("dev", ""), template[2], template[3], goes_to)


def _takes_tcp(protocol: str, body: str) -> bool:
    """Whether a policy is for what leaves, is for TCP, and changes it before the driver sees it.

    Left out: `if_id`, for traffic through an xfrm interface, which never offloads; and packet offload, where
    the card itself makes ESP.
    """
    elsewhere = re.search(r"^\s*if_id 0x0*[1-9a-f]|\baction block\b|parameters:.*\bmode packet", body, re.M)
    out = re.search(r"\b(dir|socket) out\b", body)
    return protocol in ("tcp", "6") and out is not None and elsewhere is None


def _here(host: Host, policy: Policy, dev: str) -> bool:
    """Whether it can meet traffic of a device; only what surely leaves by another one is left out."""
    if policy.dev and policy.dev != dev:
        return False
    address = HOST.fullmatch(policy.goes_to)
    if address is None:
        return True
    done = host.run(["ip", "-j", "route", "get", address[1] or address[2]], check=False)
    return _routed(done.text) in ("", dev)


def _routed(text: str) -> str:
    """The device that `ip -j route get` names, or nothing."""
    try:
        found = json.loads(text)
        return str(found[0].get("dev", ""))
    except (ValueError, RecursionError, AttributeError, LookupError, TypeError):
        return ""


def _tell(mine: list[Policy], notes: Notes) -> None:
    """Note them; one more than can be named stands for all the others."""
    traffic = "; ".join(p.traffic for p in mine[:SHOWN]) + (" and more" if len(mine) > SHOWN else "")
    kinds = ", ".join(sorted({f"{p.protocol} {p.mode}" for p in mine}))
    notes.add("D406", f"ip xfrm policy list: dir out, {kinds}", ["tx"], traffic=traffic, kinds=kinds)
