"""One host as a bench: its other ports go into network namespaces, and back with all that they had."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from offload.card.nic import links
from offload.cmd import settles, shielded
from offload.errors import Refused, RigError, SwitchFailed
from offload.host.base import Host
from offload.host.local import LocalHost
from offload.suite.bench.lab import settings
from offload.suite.bench.lab.cables import cabled
from offload.suite.bench.lab.discover import PROPOSED
from offload.suite.bench.lab.model import ONE_HOST, ONE_WIRE, Target
from offload.suite.bench.lab.onehost import check as onehost_check
from offload.suite.bench.lab.onehost import note
from offload.suite.bench.lab.onehost.note import Before
from offload.suite.bench.lab.onehost.port import Words, failed, find, ip, put_back
from offload.switch.enable import identity
from offload.switch.journal import Journal

Say = Callable[[str], None]
CARRIER = 30.0  # seconds: a link of 100 Gbit/s negotiates and trains for some of them
BRIDGE = "br0"
UNDO = "`ktls-offload lab restore` puts it back"
RETRY = "the journal keeps the rest: fix the cause, then run `ktls-offload lab restore`"


@contextmanager
def bench(wanted: Sequence[str], say: Say, journal: Journal | None = None) -> Iterator[tuple[str, ...]]:
    """Make a bench of two cabled ports, or of four, two of them the wire; yield their names. It stays.

    Everything is put back if the block fails. NoPermission, ConfigError, NoDevice, Refused or RigError.
    """
    onehost_check.root()
    host, journal = LocalHost(), journal or Journal()
    with journal.locked():
        _free(host, journal)
        before = _look(host, onehost_check.ports(host, wanted))
        note.write(journal, before)
        try:
            _make(host, before, say)
            yield before.names
        except BaseException as trouble:
            with shielded():
                stuck = _undo(host, before, journal)
            if stuck:
                why = str(trouble).partition("\n")[0] or type(trouble).__name__
                raise SwitchFailed(f"{why}; not put back: {'; '.join(stuck)}", RETRY) from None
            raise


def restore(say: Say, journal: Journal | None = None) -> None:
    """Put all ports back to where they were; harmless if there is no bench. Refused while it is in use."""
    onehost_check.root()
    host, journal = LocalHost(), journal or Journal()
    with journal.locked():
        before = note.read(journal)
        if before is None or before.boot != identity(host)[0]:
            note.forget(journal)
            say("no one-host bench here: nothing to put back")
            return
        if before.netns != identity(host)[1]:
            raise Refused("the bench was made in another network namespace", "run it there")
        _idle(host, before)
        _settings(say)
        with shielded():
            stuck = _undo(host, before, journal)
    if stuck:
        raise SwitchFailed(f"not put back: {'; '.join(stuck)}", RETRY)
    say(f"{', '.join(before.names)}: as found")


def _free(host: Host, journal: Journal) -> None:
    """Refused if a bench is there, or half of one."""
    before = note.read(journal)
    if before and before.boot == identity(host)[0]:
        names = " and ".join(before.names)
        raise Refused(f"{names} already form a bench, or `init` was interrupted", UNDO.replace("it", "them"))


def _look(host: Host, names: Sequence[str]) -> Before:
    """The ports as they are."""
    ports = tuple(find(host, name) for name in names)
    had = {words[0].partition("/")[0] for words in ports[0].addresses}
    ours = (words[0] for words in _addresses("dut"))
    return Before(*identity(host), ports, tuple(a for a in ours if a.partition("/")[0] not in had))


def _addresses(role: str) -> tuple[Words, ...]:
    """The addresses of an end; without `nodad` the IPv6 one could not be used for seconds."""
    v4, v6 = PROPOSED[role]
    return (f"{v4}/24",), (f"{v6}/64", "nodad")


def _make(host: Host, before: Before, say: Say) -> None:
    """Every change, in order: the cables are looked for before a port is moved."""
    for port in before.ports:
        if not port.up:
            ip(host, "link", "set", "dev", port.dev, "up")
    _linked(dict.fromkeys(before.names, host), 0 if all(port.up for port in before.ports) else CARRIER)
    near, far, *wires = before.names
    for one, other in [(near, wires[0]), (far, wires[1])] if wires else [(near, far)]:
        if not cabled(host, one, other):
            hint = f"one cable, from {one} to {other}, with nothing in between"
            raise RigError(f"{other} receives no frames from {one}: they are not cabled to each other", hint)
        say(f"cable: {one} to {other}")
    for space in before.spaces:
        ip(host, "netns", "add", space)
        ip(host, "-n", space, "link", "set", "dev", "lo", "up")
    for dev, space in before.moved.items():
        ip(host, "link", "set", "dev", dev, "netns", space)
        say(f"{dev} is in network namespace {space} now: {UNDO}")
    _ends(host, before)
    _wire(host, wires)
    _linked({near: host, **{dev: LocalHost(space) for dev, space in before.moved.items()}}, CARRIER)


def _ends(host: Host, before: Before) -> None:
    """Give DUT and peer their addresses."""
    near, far = before.names[:2]
    ip(host, "-n", ONE_HOST, "link", "set", "dev", far, "up")
    for address in _addresses("peer"):
        ip(host, "-n", ONE_HOST, "address", "replace", *address, "dev", far)
    for address in _addresses("dut"):
        if address[0] in before.added:
            ip(host, "address", "replace", *address, "dev", near)


def _wire(host: Host, ports: Sequence[str]) -> None:
    """Join two ports to a cable: without a spanning tree it carries from the first frame."""
    if not ports:
        return
    words = ["type", "bridge", "stp_state", "0", "forward_delay", "0", "mcast_snooping", "0"]
    ip(host, "-n", ONE_WIRE, "link", "add", BRIDGE, *words)
    for dev in ports:
        ip(host, "-n", ONE_WIRE, "link", "set", "dev", dev, "master", BRIDGE, "up")
    ip(host, "-n", ONE_WIRE, "link", "set", "dev", BRIDGE, "up")


def _linked(ends: Mapping[str, Host], patience: float) -> None:
    """Wait for every port's carrier; RigError naming those without."""

    def dark() -> list[str]:
        return [dev for dev, host in ends.items() if "LOWER_UP" not in links(host)[dev]["flags"]]

    if not settles(lambda: not dark(), patience):
        hint = "is the cable plugged in at both ends? the ports are unchanged"
        raise RigError(f"no link on {' and '.join(dark())}", hint)


def _idle(host: Host, before: Before) -> None:
    """Refused while a program runs in a namespace of the bench."""
    for space in before.spaces:
        if pids := host.run(["ip", "netns", "pids", space], check=False).text.split():
            hint = "stop it first, or wait for it"
            raise Refused(f"the bench is in use: process {', '.join(pids[:5])} runs in {space}", hint)


def _settings(say: Say) -> None:
    """Put back what a killed run left changed: nobody finds the namespaces later."""
    for target in (Target("dut", None), Target("peer", None, ONE_HOST), Target("wire", None, ONE_WIRE)):
        if target.netns and not _mounted(target.netns):
            continue
        try:
            settings.put_back(LocalHost(target.netns or None), target, say)
        except SwitchFailed as exc:  # the port comes home all the same
            say(f"{target.place}: {exc.args[0]}")


def _mounted(space: str) -> bool:
    """Say whether a namespace is there; `ip netns add` that was killed leaves an empty file."""
    path = onehost_check.SPACES / space
    return path.exists() and path.stat().st_dev != path.parent.stat().st_dev


def _undo(host: Host, before: Before, journal: Journal) -> list[str]:
    """Put all ports back from wherever they are, and forget them; what is stuck, which keeps the journal."""
    stuck = [problem for dev, space in before.moved.items() for problem in _home(host, dev, space)]
    here = links(host)
    stuck += [f"no interface {dev} here" for dev in before.names if dev not in here]
    if not stuck:
        stuck = [problem for port in before.ports[1:] for problem in put_back(host, port)]
        stuck += _near(host, before)
    for space in before.spaces:
        if not stuck and (onehost_check.SPACES / space).exists():
            stuck = _tried(host, "netns", "del", space)  # every port is here: none is lost with it
    if not stuck:
        note.forget(journal)
    return stuck


def _home(host: Host, dev: str, space: str) -> list[str]:
    """Move a port here, if it is in the namespace; what is stuck."""
    if not _mounted(space) or dev not in links(LocalHost(space)):
        return []
    return _tried(host, "-n", space, "link", "set", "dev", dev, "netns", str(os.getpid()))


def _near(host: Host, before: Before) -> list[str]:
    """Take our addresses from the DUT's port."""
    near, stuck = before.ports[0], list[str]()
    have = {words[0] for words in find(host, near.dev).addresses}
    for address in before.added:
        if address in have:
            stuck += _tried(host, "address", "del", address, "dev", near.dev)
    return stuck if near.up else stuck + _tried(host, "link", "set", "dev", near.dev, "down")


def _tried(host: Host, *words: str) -> list[str]:
    """Run `ip WORDS`: what it said if it failed, as a list."""
    problem = failed(host, words)
    return [problem] if problem else []
