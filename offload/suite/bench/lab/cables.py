"""Which port of the DUT is cabled to which of the peer? Asked of the wire itself, by a frame with a nonce."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from offload.card.nic import links
from offload.cmd import wait_until
from offload.errors import RigError
from offload.host.base import Host
from offload.paths import PACKAGE

PROGRAM = PACKAGE / "suite/bench/lab/frames.py"
PYTHON = ["/usr/bin/python3", "-I", "-S", "-c"]
HEAR = 4.0  # seconds; five frames take one


@dataclass(frozen=True)
class Ports:
    """The ports of a host: those that may be under test, and why the others are not asked."""

    usable: tuple[str, ...]
    left_out: dict[str, str]


def ports(host: Host) -> Ports:
    """Look at a host. A port that carries our own way to the host is never asked: its LAN would answer."""
    usable, left_out = [], {}
    reached = routes(host)
    for dev, row in links(host).items():
        if dev == "lo" or row.get("link_type") != "ether":
            continue
        flags, kind = row.get("flags", []), row.get("linkinfo", {}).get("info_kind", "")
        if why := (
            "this host is reachable only through it"
            if dev in reached
            else f"{kind}, no port"
            if kind not in ("", "veth")
            else "it is down"
            if "UP" not in flags
            else "no carrier"
            if "LOWER_UP" not in flags
            else ""
        ):
            left_out[dev] = why
        else:
            usable.append(dev)
    return Ports(tuple(usable), left_out)


def routes(host: Host) -> dict[str, str]:
    """Interfaces with a default route, or with an address at which sshd serves us now: which of the two."""
    found = {}
    ssh = host.run(["sh", "-c", 'echo "$SSH_CONNECTION"'], check=False).text.split()
    for row in _rows(host.run(["ip", "-j", "address", "show"], check=False).text):
        have = {address.get("local") for address in row.get("addr_info", [])}
        if have & set(ssh[2:3]):
            found[str(row.get("ifname"))] = "your SSH session uses it"
    for family in ("-4", "-6"):
        text = host.run(["ip", family, "-j", "route", "show", "default"], check=False).text
        found |= {str(row.get("dev")): "the default route uses it" for row in _rows(text)}
    return found


def _rows(text: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(text or "[]")
    except ValueError:
        return []
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def heard(dut: Host, peer: Host, sends: Sequence[str], listens: Sequence[str]) -> dict[str, set[str]]:
    """Port of the DUT -> ports of the peer that hear it. RigError if a host cannot be asked."""
    source, nonce = PROGRAM.read_text(), uuid.uuid4().hex
    listener = peer.start([*PYTHON, source, "listen", f"{HEAR:g}", nonce, *listens])
    try:
        wait_until(lambda: b"\n" in listener.output()[0] or not listener.running(), 30, "the peer to listen")
        if listener.running():
            dut.run([*PYTHON, source, "send", nonce, *sends])
        done = listener.wait(HEAR + 30)
    finally:
        listener.kill()
    if done.rc:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise RigError(f"{peer.name} cannot listen for frames: {' '.join(said)}")
    found: dict[str, set[str]] = {}
    for line in done.text.splitlines()[1:]:
        event = json.loads(line)
        found.setdefault(str(event["from"]), set()).add(str(event["dev"]))
    return found


def cabled(host: Host, near: str, far: str) -> bool:
    """Say whether one port of a host hears the other, as soon as it does."""
    source, nonce = PROGRAM.read_text(), uuid.uuid4().hex
    running = [host.start([*PYTHON, source, "listen", f"{HEAR:g}", nonce, far])]

    def lines() -> int:
        return running[0].output()[0].count(b"\n")

    try:
        wait_until(lambda: lines() > 0 or not running[0].running(), 60, f"{far} to listen")
        if lines() == 0:
            said = running[0].output()[1].decode("utf-8", "replace").strip().splitlines()[-1:]
            raise RigError(f"{far} cannot listen for frames: {' '.join(said)}")
        running.append(host.start([*PYTHON, source, "send", nonce, near]))
        wait_until(lambda: lines() > 1 or not running[0].running(), HEAR + 60, f"{far} to have listened")
        return lines() > 1
    finally:
        for process in running:
            process.kill()


def pairs(found: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Ports that hear each other alone. RigError if there is none, or a switch between several."""
    alone = [(dev, next(iter(ears))) for dev, ears in found.items() if len(ears) == 1]
    ears = [ear for _, ear in alone]
    good = [(dev, ear) for dev, ear in alone if ears.count(ear) == 1]
    if good:
        return sorted(good)
    if not found:
        raise RigError(
            "no port of the peer receives frames from a port of the DUT", "are both ends of the cable up?"
        )
    seen = "; ".join(f"{dev} is received by {', '.join(sorted(who))}" for dev, who in sorted(found.items()))
    raise RigError(
        f"no two ports share a cable of their own: {seen}",
        "if a switch is between them, write lab.yaml by hand",
    )
