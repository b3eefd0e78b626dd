"""Switch tls-hw-tx-offload and tls-hw-rx-offload; undo exactly on failure, Ctrl-C, kill -9 and restore."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from offload.card.nic import Feature, Match, Nic, features, seen
from offload.card.profile import DIRECTIONS, FEATURES, WORDS
from offload.cmd import shielded
from offload.errors import NoPermission, OffloadError, SwitchFailed
from offload.host.base import Host
from offload.host.tools import tool
from offload.switch.journal import Entry, Journal
from offload.switch.plan import Action, describe, directions_on, known, loaded, plan_off, plan_on, profile_for

Say = Callable[[str], None]
Rows = Mapping[str, dict[str, Any]]


class Wish(NamedTuple):
    """What a person asked for: `directions` empty means all that make sense."""

    dev: str
    on: bool
    directions: tuple[str, ...] = ()
    profile: str | None = None
    dry_run: bool = False


class Plan(NamedTuple):
    """What is there, and what there is to do."""

    wish: Wish
    nic: Nic
    found: Match
    actions: list[Action]


def planned(host: Host, wish: Wish, rows: Rows) -> Plan:
    """Look and plan. Refused and the like; changes nothing. `rows`: the interfaces, as nic.links has them."""
    nic = seen(host, wish.dev, rows)
    if not wish.on:
        return Plan(wish, nic, known(nic), plan_off(nic, wish.directions))
    found = profile_for(nic, wish.profile)
    actions = plan_on(host, nic, found, directions_on(host, nic, found, wish.directions))
    return Plan(wish, nic, found, actions)


def switch(host: Host, plan: Plan, journal: Journal, say: Say) -> None:
    """Do what was planned and say what was done; with dry_run only say it. SwitchFailed: it was put back.

    The journal's lock is held since before the plan was made: what it says is still so.
    """
    wish, nic, found, actions = plan
    if wish.dry_run:
        _say_plan(nic, found, actions, journal, say)
        return
    now = _carry_out(host, nic, actions, journal) if actions else nic.features
    _say_done(nic, found, wish, actions, now, say)


def identity(host: Host) -> tuple[str, str]:
    """Which boot of which namespace this is."""
    boot = host.read("/proc/sys/kernel/random/boot_id").decode("ascii", "replace").strip()
    return boot, host.run(["readlink", "/proc/self/ns/net"]).text.strip()


def _carry_out(host: Host, nic: Nic, actions: list[Action], journal: Journal) -> Mapping[str, Feature]:
    """Journal, change, verify, one by one; on any trouble put back all of it. Return the state after the
    last change."""
    boot, netns = identity(host)
    undo: list[tuple[Entry, bool]] = []
    now = nic.features
    try:
        for action in actions:
            found = nic.features.get(action.what)
            state = (found.active, found.requested) if found else (False, False)
            entry = Entry(
                action.kind, action.what, nic.dev, nic.ifindex, nic.bus, nic.driver, netns, boot, *state
            )
            undo.append((entry, journal.lacks(entry)))  # before the write: a signal may come in between
            journal.add(entry)
            now = _do(host, nic.dev, action)
    except BaseException as trouble:
        with shielded():
            stuck = _put_back(host, nic.dev, undo, journal)
        raise _failure(trouble, stuck) from None
    return now or features(host, nic.dev)


def _failure(trouble: BaseException, stuck: list[str]) -> BaseException:
    """Return what to raise after a roll-back."""
    if stuck:
        hint = "the journal has the original values; `ktls-offload restore` tries again"
        return SwitchFailed(f"{trouble or 'interrupted'}; and could NOT put back: {'; '.join(stuck)}", hint)
    if isinstance(trouble, OffloadError) and not isinstance(trouble, NoPermission):
        return SwitchFailed(f"{trouble}; everything was put back")
    return trouble


def _do(host: Host, dev: str, action: Action) -> Mapping[str, Feature]:
    """One change, and the features after it ({} of a module): an exit code is not evidence.

    SwitchFailed if it did not take.
    """
    done = tool(host, action.argv, timeout=180)  # mlx5 re-opens all channels, T6 waits for its firmware
    said = " ".join(done.stderr.decode("utf-8", "replace").split())[:300]
    because = f" (it said: {said})" if said else ""
    if action.kind == "module":
        if done.rc != 0 or not loaded(host, action.what):
            raise SwitchFailed(f"{' '.join(action.argv)}: exit {done.rc}{because}")
        return {}
    after = features(host, dev)
    now = after.get(action.what)
    if now is None or now.active != action.on or done.rc != 0:
        raise SwitchFailed(
            f"{' '.join(action.argv)}: exit {done.rc}{because}, and it is {now or 'gone'} after that"
        )
    return after


def _put_back(host: Host, dev: str, undo: list[tuple[Entry, bool]], journal: Journal) -> list[str]:
    """Undo in reverse; what could not be undone, in words (its journal entry stays)."""
    stuck = []
    for entry, fresh in reversed(undo):
        try:
            problem = put_back(host, dev, entry)
            if not problem and fresh:
                journal.remove(entry)
        except OffloadError as exc:
            problem = str(exc)
        if problem:
            stuck.append(problem)
    return stuck


def put_back(host: Host, dev: str, entry: Entry) -> str:
    """Make one thing what the entry says it was; '' or what is wrong. Harmless if it is so already."""
    if entry.kind == "module":
        return _unload(host, entry.what)
    now = features(host, dev).get(entry.what)
    if now is None:
        return f"{dev} has no {entry.what} now"
    if (now.active, now.requested) == (entry.active, entry.requested):
        return ""
    # what was asked for is what can be set; whether it is active follows from it
    done = tool(host, ["ethtool", "-K", dev, entry.what, "on" if entry.requested else "off"], timeout=180)
    now = features(host, dev).get(entry.what)
    if now is not None and (now.active, now.requested) == (entry.active, entry.requested):
        return ""
    if now is not None and now.requested == entry.requested:
        waits = "it waits for something else, such as checksum offload"
        return f"{entry.what} of {dev} was {entry.found()} and is {now}: {waits}"
    said = " ".join(done.stderr.decode("utf-8", "replace").split())[:200]
    return f"{entry.what} of {dev} was {entry.found()} and is {now} ({said or f'exit {done.rc}'})"


def _unload(host: Host, module: str) -> str:
    """Take a module out that we put in; only this one, whatever it used was noted by itself."""
    if not loaded(host, module):
        return ""
    done = tool(host, ["rmmod", module])
    if done.rc == 0 or not loaded(host, module):
        return ""
    return f"module {module} stays: {' '.join(done.stderr.decode('utf-8', 'replace').split())[:200]}"


def _say_plan(nic: Nic, found: Match, actions: list[Action], journal: Journal, say: Say) -> None:
    """Every action as root, in order."""
    if not actions:
        say(f"{nic.dev}: nothing to do")
        return
    say(
        f"{nic.dev}: {describe(found.profile, found, nic)}: would run as root:"
        if found.profile
        else f"{nic.dev}: would run as root:"
    )
    for number, action in enumerate(actions, 1):
        now = nic.features.get(action.what)
        state = f"now {now}" if now else "not loaded now"
        say(f"  {number}. write to {journal.file}: {action.what} was {state.removeprefix('now ')}")
        say(f"     {' '.join(action.argv)}    # {state}{' - ' + action.why if action.why else ''}")
    say("nothing was done (--dry-run)")


def _say_done(
    nic: Nic, found: Match, wish: Wish, actions: list[Action], now: Mapping[str, Feature], say: Say
) -> None:
    """Print the state, read after the last change, and how to undo it."""
    say(f"{nic.dev}: {describe(found.profile, found, nic)}" if found.profile else f"{nic.dev}:")
    why = {a.direction or a.what: f": {a.why}" if a.why else "" for a in actions}
    promised = found.profile.directions() if found.profile else DIRECTIONS
    for direction in wish.directions or promised:
        was = f"was {nic.feature(direction)}{why[direction]}" if direction in why else "was so already"
        say(f"  {WORDS[direction]:<9} {now.get(FEATURES[direction])}   ({was})")
    for action in actions:
        if action.kind == "module":
            say(f"  module    {action.what} loaded{why[action.what]}")
    if wish.on and not nic.up:
        say("  the interface is down; the kernel offloads connections only while it is up")
    if actions:
        say("  new connections follow this; open connections do not change")
        say(f"  undo: ktls-offload restore {nic.dev}")
