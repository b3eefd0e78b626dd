"""What must be done to switch a direction, and why it cannot be done: decides, changes nothing."""

from __future__ import annotations

from typing import NamedTuple

from offload.card.nic import Match, Nic, match, no_offload_because_of_kind
from offload.card.nic_why import refusal
from offload.card.profile import DIRECTIONS, FEATURES, WORDS, Profile, Step, find, load_all
from offload.errors import ConfigError, Refused
from offload.host.base import Host
from offload.host.tools import tool


class Action(NamedTuple):
    """One change as root: `argv` does it."""

    kind: str  # "module" or "feature"
    what: str
    on: bool
    argv: tuple[str, ...]
    why: str
    direction: str = ""


def profile_for(nic: Nic, named: str | None) -> Match:
    """The profile of an interface, or the one that the person named if it can be meant for it."""
    if named is None:
        return match(nic, load_all())
    wanted = find(named)
    own = match(nic, load_all())
    if wanted.driver == nic.driver:
        return Match(wanted, own.simulated, own.plays)
    if own.simulated and own.plays == wanted.id:
        return own
    plays = f", which plays {own.plays}" if own.plays else ""
    raise Refused(
        f"profile {wanted.id} is for driver {wanted.driver}; {nic.dev} has {nic.driver or 'none'}{plays}",
        "omit --profile to use the matching one",
    )


def known(nic: Nic) -> Match:
    """The profile of an interface for a title only: switching off works without."""
    try:
        return match(nic, load_all())
    except ConfigError:
        return Match(None)


def directions_on(host: Host, nic: Nic, found: Match, asked: tuple[str, ...]) -> tuple[str, ...]:
    """The directions to switch on: those asked for, else all that are promised. Refused with the reason."""
    if because := no_offload_because_of_kind(nic):
        raise Refused(because)
    profile = found.profile
    if profile is None:
        raise _no_profile(host, nic, found, asked or DIRECTIONS)
    for direction in asked:
        if why := profile.why_no_direction(direction):
            raise Refused(f"{nic.dev}: {profile.title()} has no {WORDS[direction]} offload: {why}")
    return asked or profile.directions()


def _no_profile(host: Host, nic: Nic, found: Match, asked: tuple[str, ...]) -> Refused | ConfigError:
    """Without a profile: the card cannot (features fixed), or it could and nobody has described it."""
    changeable = [d for d in DIRECTIONS if (f := nic.feature(d)) and not f.fixed]
    if not changeable:
        return Refused(*refusal(host, nic, found, asked[0]))
    who = f"driver {nic.driver}" + (f", PCI {nic.pci}" if nic.pci else "")
    return ConfigError(
        f"{nic.dev}: no profile in nic-profiles fits ({who})",
        f"write one (docs/contribute/add-a-nic.md) or name one with --profile; the device offers: "
        f"{', '.join(FEATURES[d] for d in changeable)}",
    )


def plan_on(host: Host, nic: Nic, found: Match, directions: tuple[str, ...]) -> list[Action]:
    """Return what is to be done, in the profile's order; nothing for what is on already. Refused if one
    cannot."""
    for direction in directions:
        _check(host, nic, found, direction)
    actions: list[Action] = []
    for step in found.profile.steps if found.profile else ():
        if step.direction not in directions:
            continue
        if step.kind == "modprobe":
            # the simulated card is one module and needs no helper
            actions += [] if found.simulated else _modules(host, nic, step)
        elif not _active(nic, step.direction):
            actions.append(_switch(nic, step.direction, True, step.why))
    return actions


def plan_off(nic: Nic, asked: tuple[str, ...]) -> list[Action]:
    """Return what is to be switched off: what is on or would come back on (requested)."""
    actions = []
    for direction in asked or DIRECTIONS:
        feature = nic.feature(direction)
        if feature is None or not (feature.active or feature.requested):
            continue
        if feature.fixed:
            raise Refused(f"{nic.dev}: {feature.name} is {feature}: the driver does not allow a change")
        actions.append(_switch(nic, direction, False, ""))
    return actions


def _active(nic: Nic, direction: str) -> bool:
    """Say whether a direction is on."""
    feature = nic.feature(direction)
    return feature is not None and feature.active


def _switch(nic: Nic, direction: str, on: bool, why: str) -> Action:
    """A feature of `ethtool -K`."""
    name = FEATURES[direction]
    argv = ("ethtool", "-K", nic.dev, name, "on" if on else "off")
    return Action("feature", name, on, argv, why, direction)


def _check(host: Host, nic: Nic, found: Match, direction: str) -> None:
    """Refuse what cannot come on: a fixed feature, or one that the kernel drops without checksum offload."""
    feature = nic.feature(direction)
    if feature is None:
        raise Refused(f"{nic.dev}: this kernel or ethtool does not know {FEATURES[direction]}")
    if feature.active:
        return
    if feature.fixed:
        raise Refused(*refusal(host, nic, found, direction))
    if missing := nic.checksum_missing(direction):
        state = f" ({feature.name} is {feature}: it returns with it)" if feature.requested else ""
        word = WORDS[missing]
        raise Refused(
            f"{nic.dev}: {WORDS[direction]} TLS offload needs {word} checksum offload, which is off{state}",
            f"ethtool -K {nic.dev} {missing} on",
        )


def loaded(host: Host, module: str) -> bool:
    """Say whether a module is loaded or built in."""
    return host.run(["test", "-d", f"/sys/module/{module.replace('-', '_')}"], check=False).rc == 0


def _modules(host: Host, nic: Nic, step: Step) -> list[Action]:
    """Every module that `modprobe` would load now, one by one, so that each can be taken out again."""
    done = tool(host, ["modprobe", "--show-depends", step.what])
    if done.rc != 0:
        message = f"{nic.dev}: module {step.what} is missing for this kernel: {step.why}"
        raise Refused(message, done.stderr.decode("utf-8", "replace").strip()[:300])
    names = [line.split()[1] for line in done.text.splitlines() if line.startswith("insmod ")]
    modules = [name.rpartition("/")[2].partition(".ko")[0].replace("-", "_") for name in names]
    return [
        Action(
            "module", name, True, ("modprobe", name), step.why if name == step.what else f"for {step.what}"
        )
        for name in modules
        if not loaded(host, name)
    ]


def describe(profile: Profile | None, found: Match, nic: Nic) -> str:
    """The card in a few words."""
    if profile is None:
        return f"driver {nic.driver or '-'}, no profile"
    simulated = f", SIMULATED by {nic.driver}" if found.simulated else ""
    return f"{profile.title()}{simulated} (profile {profile.id})"
