"""One host as a bench: its far port goes into a network namespace, and back with all that it had."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from offload.cmd import settles
from offload.enable import identity, shielded
from offload.errors import ConfigError, Refused, RigError, SwitchFailed
from offload.host.base import Host
from offload.host.local import LocalHost
from offload.journal import Journal, durable
from offload.lab import onehost_check
from offload.lab.cables import cabled
from offload.lab.discover import PROPOSED
from offload.lab.model import ONE_HOST
from offload.lab.onehost_port import Found, Words, failed, find, ip, put_back
from offload.nic import links

Say = Callable[[str], None]
NAME = "one-host.json"
CARRIER = 30.0  # seconds: a link of 100 Gbit/s negotiates and trains for some of them
UNDO = "`ktls-offload lab restore` puts it back"


@dataclass(frozen=True)
class Moved:
    """What was there before: both ports, and which of the bench's addresses the near one got from us."""

    boot: str
    netns: str
    near: Found
    far: Found
    added: tuple[str, ...]


@contextmanager
def bench(near: str, far: str, say: Say, journal: Journal | None = None) -> Iterator[tuple[str, str]]:
    """Make a bench of two ports that are cabled to each other; yield their names. It stays after the block.

    Everything is put back if the block fails. NoPermission, ConfigError, NoDevice, Refused or RigError.
    """
    onehost_check.root()
    host, journal = LocalHost(), journal or Journal()
    with journal.locked():
        _free(host, journal)
        names = onehost_check.ports(host, near, far)
        found = _find(host, *names)
        durable(journal.place / NAME, json.dumps({"schema": 1, **asdict(found)}, indent=1) + "\n")
        try:
            _make(host, found)
            say(f"cable: {names[0]} to {names[1]}")
            say(f"{names[1]} is in network namespace {ONE_HOST} now: {UNDO}")
            yield names
        except BaseException as trouble:
            with shielded():
                stuck = _undo(host, found, journal)
            if stuck:
                why = str(trouble).partition("\n")[0] or type(trouble).__name__
                raise SwitchFailed(f"{why}; not put back: {'; '.join(stuck)}", _retry()) from None
            raise


def restore(say: Say, journal: Journal | None = None) -> None:
    """Put the far port back to where it was; harmless if there is no bench. Refused while it is in use."""
    onehost_check.root()
    host, journal = LocalHost(), journal or Journal()
    with journal.locked():
        found = _noted(journal)
        if found is None or found.boot != identity(host)[0]:
            (journal.place / NAME).unlink(missing_ok=True)
            say("no port is in use as a one-host bench: nothing to put back")
            return
        if found.netns != identity(host)[1]:
            raise Refused("the bench was made in another network namespace", "call it there")
        _idle(host)
        with shielded():
            stuck = _undo(host, found, journal)
    if stuck:
        raise SwitchFailed(f"not put back: {'; '.join(stuck)}", _retry())
    say(f"{found.far.dev}, {found.near.dev}: as found")


def _retry() -> str:
    return "the journal keeps it: mend that, and call `ktls-offload lab restore`"


def _free(host: Host, journal: Journal) -> None:
    """Refused if a bench is there, or half of one."""
    found = _noted(journal)
    if found and found.boot == identity(host)[0]:
        ends = f"{found.near.dev} and {found.far.dev}"
        raise Refused(f"{ends} are a bench already, or were about to be", UNDO.replace("it", "them"))


def _noted(journal: Journal) -> Moved | None:
    """What is on disk; None if nothing is. ConfigError if it is damaged."""
    file = journal.place / NAME
    try:
        row = json.loads(file.read_text())
        if row.pop("schema") != 1:
            raise ValueError("another schema")
        ends = {end: _port(row.pop(end)) for end in ("near", "far")}
        return Moved(str(row["boot"]), str(row["netns"]), added=tuple(map(str, row["added"])), **ends)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, TypeError, KeyError, AttributeError) as exc:
        hint = f"look at it, then move it away; the far port is in `ip netns exec {ONE_HOST} ip link`"
        raise ConfigError(f"{file}: damaged: {' '.join(str(exc).split())[:120]}", hint) from None


def _port(row: dict[str, Any]) -> Found:
    """A port of the journal: texts become parts of commands, so lists of texts they have to be."""
    lists = {name: tuple(tuple(map(str, words)) for words in row[name]) for name in ("addresses", "routes")}
    sysctls = {str(name): str(value) for name, value in row["sysctls"].items()}
    if any(".." in Path(name).parts or name.startswith("/") for name in sysctls):
        raise ValueError("a sysctl elsewhere")
    return Found(str(row["dev"]), row["up"] is True, sysctls=sysctls, **lists)


def _find(host: Host, near: str, far: str) -> Moved:
    """Both ports as they are."""
    ends = find(host, near), find(host, far)
    had = {words[0].partition("/")[0] for words in ends[0].addresses}
    ours = (words[0] for words in _addresses("dut"))
    return Moved(*identity(host), *ends, tuple(a for a in ours if a.partition("/")[0] not in had))


def _addresses(role: str) -> tuple[Words, ...]:
    """The addresses of an end; without `nodad` the IPv6 one could not be used for seconds."""
    v4, v6 = PROPOSED[role]
    return (f"{v4}/24",), (f"{v6}/64", "nodad")


def _make(host: Host, found: Moved) -> None:
    """Every change, in order: the cable is looked for before a port is moved."""
    near, far = found.near, found.far
    for port in (near, far):
        if not port.up:
            ip(host, "link", "set", "dev", port.dev, "up")
    _linked({near.dev: host, far.dev: host}, 0 if near.up and far.up else CARRIER)
    if not cabled(host, near.dev, far.dev):
        hint = f"one cable, from {near.dev} to {far.dev}, with nothing in between"
        raise RigError(f"{far.dev} does not hear {near.dev}: they are not cabled to each other", hint)
    ip(host, "netns", "add", ONE_HOST)
    ip(host, "link", "set", "dev", far.dev, "netns", ONE_HOST)
    for words in (("link", "set", "dev", "lo", "up"), ("link", "set", "dev", far.dev, "up")):
        ip(host, "-n", ONE_HOST, *words)
    for address in _addresses("peer"):
        ip(host, "-n", ONE_HOST, "address", "replace", *address, "dev", far.dev)
    for address in _addresses("dut"):
        if address[0] in found.added:
            ip(host, "address", "replace", *address, "dev", near.dev)
    _linked({near.dev: host, far.dev: LocalHost(ONE_HOST)}, CARRIER)


def _linked(ends: dict[str, Host], patience: float) -> None:
    """Wait for both ends' carrier; RigError naming those without."""

    def dark() -> list[str]:
        return [dev for dev, host in ends.items() if "LOWER_UP" not in links(host)[dev]["flags"]]

    if not settles(lambda: not dark(), patience):
        raise RigError(f"no link on {' and '.join(dark())}", "is the cable in both ports? all is as before")


def _idle(host: Host) -> None:
    """Refused while a program runs in the namespace."""
    if pids := host.run(["ip", "netns", "pids", ONE_HOST], check=False).text.split():
        raise Refused(f"the bench is in use: process {', '.join(pids[:5])}", "end it first, or wait for it")


def _undo(host: Host, found: Moved, journal: Journal) -> list[str]:
    """Put both ports back from wherever they are, and forget them; what is stuck, which keeps the journal."""
    stuck = _home(host, found.far.dev)
    here = links(host)
    stuck += [f"there is no {port.dev} here" for port in (found.near, found.far) if port.dev not in here]
    if not stuck:
        stuck = put_back(host, found.far) + _near(host, found)
    if not stuck and (onehost_check.SPACES / ONE_HOST).exists():
        stuck = _tried(host, "netns", "del", ONE_HOST)  # the far port is here: nothing is lost with it
    if not stuck:
        (journal.place / NAME).unlink()
    return stuck


def _home(host: Host, far: str) -> list[str]:
    """Move the far port here, if it is in the namespace; what is stuck."""
    space = onehost_check.SPACES / ONE_HOST
    if not space.exists() or space.stat().st_dev == space.parent.stat().st_dev:
        return []  # none, or `ip netns add` was killed before it mounted one
    if far not in links(LocalHost(ONE_HOST)):
        return []
    return _tried(host, "-n", ONE_HOST, "link", "set", "dev", far, "netns", str(os.getpid()))


def _near(host: Host, found: Moved) -> list[str]:
    """Take our addresses from the near port."""
    dev, stuck = found.near.dev, list[str]()
    have = {words[0] for words in find(host, dev).addresses}
    for address in found.added:
        if address in have:
            stuck += _tried(host, "address", "del", address, "dev", dev)
    return stuck if found.near.up else stuck + _tried(host, "link", "set", "dev", dev, "down")


def _tried(host: Host, *words: str) -> list[str]:
    """Run `ip WORDS`: what it said if it failed, as a list."""
    problem = failed(host, words)
    return [problem] if problem else []
