"""After a run: make a host's settings what was found, last change first; safe to call any number of times."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace

from offload.cmd import shielded
from offload.host.base import Host
from offload.suite.bench.lab.changes import notes
from offload.suite.bench.lab.changes.notes import Change, Notes
from offload.suite.bench.lab.changes.values import command, look
from offload.switch.enable import identity
from offload.switch.journal import Journal

Say = Callable[[str], None]


def put_back(host: Host, journal: Journal, say: Say, namespace: str = "") -> tuple[int, list[str]]:
    """Put back what is noted: how many settings that were, and what is stuck, with the command to type.

    A setting that is as found is forgotten without a word; one that somebody else changed is left alone.
    `namespace`: the name of the host's network namespace, if it has one: with that, the changes are gone.
    """
    if not notes.read(journal).changes:
        return 0, []
    with journal.locked():
        found = notes.read(journal)
        boot, netns = identity(host)
        if (found.boot, found.netns) == (boot, netns):
            return _all(host, journal, found, say)
        if found.boot == boot and not namespace:
            return 0, ["settings were changed in another network namespace; run this there"]
        gone = "network namespace" if found.boot == boot else "boot"
        say(f"{len(found.changes)} settings of an unfinished run: nothing to put back: that {gone} is gone")
        notes.write(journal, Notes())
        return 0, []


def _all(host: Host, journal: Journal, found: Notes, say: Say) -> tuple[int, list[str]]:
    """Each change, last one first; one that is settled leaves the file at once."""
    count, stuck = 0, list[str]()
    for one in reversed(found.changes):
        now = look(host, one)
        if not one.is_found(now) and now is not None and one.is_ours(now):
            if problem := _one(host, one, now):
                stuck.append(problem)
                continue
            count += 1
            say(f"{_name(one)}: {_shown(one, one.found)}, as before (was {_shown(one, now)})")
        elif not one.is_found(now):
            say(_left_alone(one, now))
        found = replace(found, changes=tuple(c for c in found.changes if c.key != one.key))
        notes.write(journal, found)
    return count, stuck


def _one(host: Host, one: Change, now: str) -> str:
    """Put one setting back, and look: '', or what is wrong and what to type."""
    argv = command(one, now)
    with shielded():
        done = host.run(argv, check=False)
        if one.is_found(look(host, one)):
            return ""
    said = " ".join(done.stderr.decode("utf-8", "replace").split())[-200:] or f"exit {done.rc}"
    return f"{_name(one)} not put back ({said}); type: {shlex.join(argv)}"


def _left_alone(one: Change, now: str | None) -> str:
    """The message on a setting that is neither as found nor ours."""
    if now is None:
        return f"{_name(one)}: not on this host any more; it was {_shown(one, one.found)}"
    hint = f"`{shlex.join(command(one, now))}` restores {_shown(one, one.found)}"
    return f"{_name(one)}: {_shown(one, now)} is not of a test: left alone; {hint}"


def _name(one: Change) -> str:
    """A setting in a message."""
    return " ".join(word for word in (one.dev, one.kind, one.what) if word)


def _shown(one: Change, value: str) -> str:
    """A value in a message: of a thing that comes and goes, whether it is there."""
    if one.kind in ("device", "netns", "address", "route"):
        return "present" if value else "absent"
    return value or "none"
