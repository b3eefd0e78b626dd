"""Keep a switch over reboot, driver reload and link flap: write the file that the network manager obeys."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from offload.card.nic import links, seen
from offload.card.profile import DIRECTIONS, FEATURES
from offload.cmd import shielded
from offload.errors import CommandFailed, NoPermission, OffloadError, Refused, SwitchFailed
from offload.host.base import Host
from offload.switch.enable import Plan, Rows, Wish, planned, switch
from offload.switch.journal import Journal
from offload.switch.many import agreed, spread
from offload.switch.persist_files import MANAGERS, MARK, NAME, Kept, made, path_of
from offload.switch.plan import directions_on

Say = Callable[[str], None]
FOLDERS = {  # what must be there for a manager to be asked for by name
    "systemd": "/etc/systemd/system",
    "networkmanager": "/etc/NetworkManager/dispatcher.d",
    "ifupdown": "/etc/network/if-up.d",
}
NETPLAN = (
    "netplan has no key for TLS offload, and what it writes is for NetworkManager or systemd-networkd",
    "--persist auto chooses the one that manages the device; both keep features that they do not set",
)


class Task(NamedTuple):
    """What there is to do for one device; `kept` None: until the next reboot."""

    plan: Plan
    kept: Kept | None


def each(host: Host, wishes: Sequence[Wish], how: str | None, journal: Journal, say: Say) -> None:
    """Switch one device after the other, a bond's ports for it, and keep it by `how` (None: until reboot).

    Refused, NoDevice and ConfigError, of any of them: nothing was changed. Else the first that fails ends it,
    as enable.switch and `persist` do; those before it stay as asked. Nobody else switches in between.
    """
    dry = wishes[0].dry_run
    with ExitStack() as held:
        ours_alone = not dry and held.enter_context(journal.at_hand())
        rows = links(host)
        wishes = spread(rows, wishes, say)
        if how == "none":
            if not dry:
                held.enter_context(journal.locked())
            for wish in wishes:
                remove_all(host, wish, rows, journal, say)
            return
        tasks = _tasks(host, wishes, how, rows)
        if not (dry or ours_alone) and any(kept or plan.actions for plan, kept in tasks):
            held.enter_context(journal.locked())
            if not journal.first:  # another call may have switched since we looked
                tasks = _tasks(host, wishes, how, links(host))
        _one_by_one(host, tasks, journal, say)


def _tasks(host: Host, wishes: Sequence[Wish], how: str | None, rows: Rows) -> list[Task]:
    """Return what there is to do for each device; a module that is loaded for one is there for the next."""

    def task(wish: Wish) -> Task:
        plan = planned(host, wish, rows)
        return Task(plan, decide(host, plan, how) if how else None)

    found, loaded = list[Task](), set[str]()
    for plan, kept in agreed(wishes, task):
        actions = [a for a in plan.actions if a.kind != "module" or a.what not in loaded]
        loaded |= {a.what for a in actions if a.kind == "module"}
        found.append(Task(plan._replace(actions=actions), kept))
    return found


def _one_by_one(host: Host, tasks: Sequence[Task], journal: Journal, say: Say) -> None:
    for number, (plan, kept) in enumerate(tasks):
        try:
            switch(host, plan, journal, say)
            if kept:
                persist(host, plan.wish, kept, journal, say)
        except OffloadError:
            if number:
                say(f"{', '.join(p.wish.dev for p, _ in tasks[:number])}: done before the error, not undone")
            raise


def persist(host: Host, wish: Wish, kept: Kept, journal: Journal, say: Say) -> None:
    """Write the file, show it, and say how to remove it.

    Refused: a file that is not ours; NoPermission. Then nothing was changed.
    SwitchFailed: the manager did not take the file, and what was there before is there again.
    """
    for line in (f"{wish.dev}: kept by {kept.manager}: {kept.path}", *_shown(kept)):
        say(line)
    if wish.dry_run:
        say("nothing was written (--dry-run)")
        return
    with journal.locked():
        _write(host, kept, ours(host, kept.path))
        for manager in _others(host, wish.dev, kept):
            _remove(host, manager, wish.dev)
            say(f"  {path_of(manager, wish.dev)} removed: only one manager may own the setting")
    say(f"  remove it: ktls-offload enable {wish.dev} --persist none")


def decide(host: Host, plan: Plan, how: str) -> Kept:
    """Which manager, and the text for it. Refused with the reason; changes nothing."""
    dev = plan.nic.dev
    if not NAME.fullmatch(dev):
        raise Refused(f"{dev!r} cannot persist: its name must contain only letters, digits, - and _")
    commands = list(_commands(host, plan))
    return made(_manager(host, dev, how), dev, "enable" if plan.wish.on else "disable", commands)


def _commands(host: Host, plan: Plan) -> Iterator[list[str]]:
    """Modules that the profile names, and one ethtool for all features."""
    wish, nic, found, _ = plan
    directions = (
        directions_on(host, nic, found, wish.directions) if wish.on else wish.directions or DIRECTIONS
    )
    steps = found.profile.steps if wish.on and found.profile and not found.simulated else ()
    for step in steps:
        if step.kind == "modprobe" and step.direction in directions:
            yield [_found(host, "modprobe"), step.what]
    words = [w for d in directions for w in (FEATURES[d], "on" if wish.on else "off")]
    yield [_found(host, "ethtool"), "-K", nic.dev, *words]


def _found(host: Host, program: str) -> str:
    """The full path of a program: a manager's own search path may lack sbin."""
    done = host.run(["sh", "-c", f"command -v {program}"], check=False)
    path = done.text.strip()
    if done.rc != 0 or not path.startswith("/"):
        raise Refused(f"program {program} is not installed ({host.name})")
    return path


def _manager(host: Host, dev: str, how: str) -> str:
    """The manager that was asked for, or the one that has the device."""
    if how == "netplan":
        raise Refused(*NETPLAN)
    if how != "auto":
        if not _there(host, FOLDERS[how]):
            raise Refused(f"no {how} here: {FOLDERS[how]} is missing", "--persist auto finds the right one")
        return how
    state = host.run(["nmcli", "-g", "GENERAL.STATE", "device", "show", dev], check=False)
    if state.rc == 0 and state.text.strip() and not state.text.startswith("10 "):  # NM_DEVICE_STATE_UNMANAGED
        return "networkmanager"
    if host.run(["ifquery", dev], check=False).rc == 0 and _there(host, FOLDERS["ifupdown"]):
        return "ifupdown"
    if _there(host, "/run/systemd/system"):
        return "systemd"
    raise Refused(
        f"{dev}: neither NetworkManager nor ifupdown manages it, and systemd is not running here",
        f"choose one anyway: --persist {'|'.join(MANAGERS)}",
    )


def _there(host: Host, path: str) -> bool:
    return host.run(["test", "-d", path], check=False).rc == 0


def _shown(kept: Kept) -> list[str]:
    """The file and the commands, as lines for a person."""
    lines = [f"  | {line}" for line in kept.text.splitlines()]
    return [*lines, *(f"  then: {shlex.join(words)}" for words in kept.after)]


def ours(host: Host, path: str) -> str | None:
    """The text of our file; None if there is none. Refused if it is somebody else's."""
    try:
        text = host.read(path).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise Refused(f"{path} cannot be read: {exc.strerror}") from None
    if MARK not in text:
        raise Refused(f"{path} exists, and this command did not write it", "inspect it, then move it away")
    return text


def _others(host: Host, dev: str, kept: Kept) -> list[str]:
    """The managers that have a file of ours for this device, except the wanted one."""
    return [m for m in MANAGERS if m != kept.manager and ours(host, path_of(m, dev)) is not None]


def _write(host: Host, kept: Kept, old: str | None) -> None:
    """Put the file there as a whole, and have the manager take it; on failure what was there comes back.

    When this returns it is on disk: without that, power that fails took it along (seen on ext4).
    """
    try:
        _replace(host, kept.path, kept.text, kept.mode)
        _all(host, kept.after)
        _settle(host, kept)
    except BaseException as trouble:
        with shielded():
            if old is None:
                _erase(host, kept)
            else:
                _replace(host, kept.path, old, kept.mode)
                _reload(host, kept)
        if isinstance(trouble, CommandFailed):
            raise SwitchFailed(
                f"{kept.manager} did not accept {kept.path}: {trouble}; it was put back"
            ) from None
        raise


def _replace(host: Host, path: str, text: str, mode: int) -> None:
    """Replace a file in one step, by one that is on disk."""
    fresh = _fresh(path)
    try:
        host.write(fresh, text.encode(), mode)
        host.run(["sync", fresh])
        host.run(["mv", "-T", fresh, path])
    except PermissionError:
        raise NoPermission(f"cannot write {path}", "run it as root") from None
    except OSError as exc:
        raise Refused(f"cannot write {path}: {exc.strerror}") from None


def _settle(host: Host, kept: Kept) -> None:
    """Have the folders on disk in which names came or went; one of them may not be there."""
    host.run(["sync", *kept.folders()], check=False, timeout=180)


def _fresh(path: str) -> str:
    """The name of a file that is being written: run-parts, NetworkManager and systemd skip such names."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name}.new"


def _all(host: Host, commands: tuple[tuple[str, ...], ...]) -> None:
    """Run each; CommandFailed at the first that fails. daemon-reload needs a systemd that runs."""
    for words in commands:
        if words[0] == "systemctl" and not _there(host, "/run/systemd/system"):
            if words[1] == "daemon-reload":
                continue
            words = tuple(word for word in words if word != "--now")
        host.run(words, timeout=180)


def _erase(host: Host, kept: Kept) -> None:
    """Take a file away, and tell the manager; what it says of a unit that it did not take is no matter."""
    for words in kept.before_removal:
        host.run(words, check=False, timeout=180)
    host.run(["rm", "-f", kept.path, _fresh(kept.path)])
    _reload(host, kept)
    _settle(host, kept)


def _reload(host: Host, kept: Kept) -> None:
    """Have systemd read its files again; another manager reads them when it needs them."""
    for words in kept.after:
        if words[1] == "daemon-reload":
            host.run(words, check=False, timeout=180)


def _remove(host: Host, manager: str, dev: str) -> None:
    _erase(host, made(manager, dev, "enable", []))


def remove_all(host: Host, wish: Wish, rows: Rows, journal: Journal, say: Say) -> None:
    """Remove every file of ours for a device, which need not be here any more."""
    dev = wish.dev
    if dev not in rows and not NAME.fullmatch(dev):
        seen(host, dev, rows)  # says NoDevice, with the nearest name
    with ExitStack() as held:
        if not wish.dry_run:
            held.enter_context(journal.locked())
            host.run(["rm", "-f", *(_fresh(path_of(m, dev)) for m in MANAGERS)])  # of a call that was killed
        found = {path_of(m, dev): m for m in MANAGERS if path_of(m, dev) in kept_by(host, dev)}
        for path, manager in found.items():
            if not wish.dry_run:
                _remove(host, manager, dev)
            say(f"{dev}: {path} {'would be removed' if wish.dry_run else 'removed'}")
    if not found:
        say(f"{dev}: no file persists its switches")


def kept_by(host: Host, dev: str) -> list[str]:
    """The files of ours that keep a device's switches."""
    if not NAME.fullmatch(dev):
        return []
    found = []
    for manager in MANAGERS:
        try:
            if ours(host, path_of(manager, dev)) is not None:
                found.append(path_of(manager, dev))
        except OffloadError:
            continue  # not ours, or not ours to read
    return found
