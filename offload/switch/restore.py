"""Put back, from the journal, what was there before the first change; safe to call any number of times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from offload.card.nic import links, seen
from offload.cmd import shielded
from offload.errors import NoDevice, OffloadError, SwitchFailed
from offload.host.base import Host
from offload.switch.enable import identity, put_back
from offload.switch.journal import Entry, Journal
from offload.switch.many import ports

Say = Callable[[str], None]


def restore(host: Host, dev: str | None, journal: Journal, say: Say, dry_run: bool = False) -> None:
    """Undo what the journal holds for `dev`, a bond's ports with it, or for all of this namespace if None.

    Entries of an earlier boot or of a device that has been replaced are dropped: the change went with it.
    SwitchFailed if something could not be put back; its entry stays.
    """
    rows = links(host)
    with journal.locked():
        entries = journal.entries()
        meant = [dev, *ports(rows, dev)] if dev else []
        mine = [e for e in entries if dev is None or any(_is(e, one, rows) for one in meant)]
        if not mine and dev is not None and dev not in rows:
            seen(host, dev, rows)  # says NoDevice, with the nearest name
        if not mine:
            say(f"{dev}: nothing to put back" if dev else "nothing to put back")
            return
        _all(host, mine, rows, journal, say, dry_run)


def _all(
    host: Host, mine: list[Entry], rows: Mapping[str, Any], journal: Journal, say: Say, dry: bool
) -> None:
    """Features first, last one first; then the modules that no journalled device needs any more."""
    stuck: list[str] = []
    here = identity(host)
    for entry in reversed([e for e in mine if e.kind == "feature"]):
        _one(host, entry, rows, here, journal, say, stuck, dry)
    left = {e.driver for e in journal.entries() if e.kind == "feature" and e not in (mine if dry else ())}
    drivers = {e.driver for e in mine}
    for entry in reversed([e for e in journal.entries() if e.kind == "module" and e.driver in drivers]):
        if entry.driver in left:
            say(f"module {entry.what} stays: another device of the journal uses it")
        else:
            _one(host, entry, rows, here, journal, say, stuck, dry)
    if stuck:
        raise SwitchFailed(f"not put back: {'; '.join(stuck)}", "the journal keeps them; run restore again")


def _is(entry: Entry, dev: str, rows: Mapping[str, Any]) -> bool:
    """Say whether an entry is about the device that is, or was, called so."""
    return entry.dev == dev or (dev in rows and rows[dev].get("ifindex") == entry.ifindex)


def _one(
    host: Host,
    entry: Entry,
    rows: Mapping[str, Any],
    here: tuple[str, str],
    journal: Journal,
    say: Say,
    stuck: list[str],
    dry: bool,
) -> None:
    """One entry: put back, dropped, or kept with a reason."""
    where, why_drop, why_keep = _target(host, entry, rows, here)
    label = f"module {entry.what}" if entry.kind == "module" else f"{where or entry.dev}: {entry.what}"
    if why_keep:
        say(f"{label}: kept in the journal: {why_keep}")
        return
    if dry:
        say(f"{label}: would {'forget: ' + why_drop if why_drop else 'put back: ' + entry.found()}")
        return
    if why_drop:
        journal.remove(entry)
        say(f"{label}: nothing to put back: {why_drop}")
        return
    with shielded():
        try:
            problem = put_back(host, where, entry)
        except OffloadError as exc:
            problem = str(exc)
        if not problem:
            journal.remove(entry)
    if problem:
        stuck.append(problem)
    else:
        renamed = f" (it was called {entry.dev})" if where not in ("", entry.dev) else ""
        say(f"{label}: {entry.found()}, as before{renamed}")


def _target(host: Host, entry: Entry, rows: Mapping[str, Any], here: tuple[str, str]) -> tuple[str, str, str]:
    """(interface today, why the entry is void, why it cannot be applied here)."""
    if entry.boot != here[0]:
        return "", "the change was before the last boot and did not survive it", ""
    if entry.kind == "module":
        return "", "", ""
    if entry.netns != here[1]:
        return "", "", "the device is in another network namespace; run restore there"
    name = next((n for n, r in rows.items() if r.get("ifindex") == entry.ifindex), "")
    if not name:
        if entry.dev in rows:
            return entry.dev, "a new device has that name, and never had the change", ""
        return "", "", "the interface is not here (removed, or moved to another network namespace)"
    try:
        nic = seen(host, name, rows)
    except NoDevice:
        return "", "", "the interface is going away"
    if (nic.bus, nic.driver) != (entry.bus, entry.driver):
        return name, f"{name} is another device now ({nic.driver} {nic.bus})", ""
    return name, "", ""
