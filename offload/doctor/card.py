"""Can this device offload at all? Its kind, driver, card; and why its features are fixed."""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Sequence

from offload.card.nic import PCI_ADDRESS, UPPERS, Match, Nic
from offload.card.nic_tools import answer, below
from offload.card.profile import FEATURES, WORDS, Profile
from offload.card.profile_ids import named
from offload.doctor import firmware, vpd
from offload.doctor.kernel import Machine, facts, missing_for
from offload.doctor.reasons import Notes
from offload.host.base import Host


def stands_on_others(nic: Nic, notes: Notes) -> bool:
    """Note a device that the kernel never asks (a bond is another matter); say whether it is one."""
    if nic.kind not in UPPERS or nic.kind == "bond":
        return False
    below = ", ".join(nic.lower)
    hint = (
        f"move the addresses to {below}, or: ktls-offload doctor {shlex.quote(nic.lower[0])}"
        if below
        else "route past it"
    )
    notes.add("D202", f"ip -d link show {nic.dev}: {nic.kind}", kind=nic.kind, below=hint)
    return True


def describe(nic: Nic, found: Match, notes: Notes) -> None:
    """Note what is known of the card."""
    profile = found.profile
    if profile is None:
        _undescribed(nic, notes)
        return
    for direction, word in WORDS.items():
        if why := profile.why_no_direction(direction):
            notes.add("D211", f"profile {profile.id}", [direction], card=profile.title(), word=word, why=why)
    if not found.simulated:
        _hazards(nic, profile, notes)
        _firmware(nic, profile, notes)


def _hazards(nic: Nic, profile: Profile, notes: Notes) -> None:
    """Note what the profile warns of, of each direction that is on."""
    for known in profile.notes:
        if known.warn and (shown := nic.feature(known.warn)) and shown.active:
            seen = f"profile {profile.id}: {known.id}"
            notes.add("D220", seen, [known.warn], what=known.what, seen=known.seen)


def _undescribed(nic: Nic, notes: Notes) -> None:
    """Note that no profile describes the card, and what is known of its id."""
    seen = f"ethtool -i {nic.dev}: driver {nic.driver}"
    if card := named(nic.driver, nic.pci):
        notes.add("D219", f"{seen}; PCI id {nic.pci}", card=card.name, pci=nic.pci, words=card.in_words())
    elif nic.driver in facts()["drivers"] or _can_switch(nic):
        notes.add("D206", seen, driver=nic.driver, pci=nic.pci)


def _firmware(nic: Nic, profile: Profile, notes: Notes) -> None:
    """Note what the profile knows of firmware versions, and one that is older than it should be."""
    seen, least = f"ethtool -i {nic.dev}", profile.firmware.minimum
    shown = nic.firmware or "unknown"
    hints = list(profile.firmware.hints)
    older = firmware.older(nic.firmware, least) if least else False
    if older:
        gives = profile.firmware.gives
        notes.add("D218", seen, firmware=shown, minimum=least, gives=gives, bus=nic.bus)
    elif older is None:
        hints.append(f"{least} or newer is recommended ({profile.firmware.gives})")
    elif least:
        notes.ok(f"firmware {shown} is not older than {least}")
    for hint in hints:
        notes.add("D214", seen, firmware=shown, hint=hint, bus=nic.bus)


def _can_switch(nic: Nic) -> bool:
    """Say whether any TLS feature is on or can be switched."""
    return any((f := nic.feature(d)) and (f.active or not f.fixed) for d in FEATURES)


def why_fixed(host: Host, machine: Machine, nic: Nic, found: Match, direction: str, notes: Notes) -> None:
    """Note why a direction that the card may have is `off [fixed]`; the first sure reason ends the search."""
    feature = FEATURES[direction]
    seen = f"ethtool -k {nic.dev}: {feature}: off [fixed]"
    if found.simulated:
        notes.add("D212", seen, [direction], plays=found.plays, word=WORDS[direction], feature=feature)
        return
    drivers = facts()["drivers"]
    if nic.driver not in drivers:
        names = ", ".join(drivers)
        notes.add(
            "D205",
            f"{seen}; ethtool -i: {nic.driver or 'no driver'}",
            [direction],
            driver=f"driver {nic.driver}" if nic.driver else f"a {nic.kind or 'device without driver'}",
            drivers=names,
        )
        return
    code, option, sure = missing_for(host, machine, nic.driver)
    if code and sure:
        notes.add(
            code,
            f"{seen}; {machine.path}: {option} is not set",
            [direction],
            option=option,
            driver=nic.driver,
            build=drivers[nic.driver].get("build", nic.driver),
        )
        return
    if code:
        symbol = facts()["witness"].get(option, "tls")
        notes.add(
            code,
            f"{seen}; {symbol} is not in /proc/kallsyms either",
            [direction],
            option=option,
            symbol=symbol,
            release=machine.release,
        )
        return
    _about_the_card(host, nic, found.profile, direction, seen, notes)


def _about_the_card(
    host: Host, nic: Nic, profile: Profile | None, direction: str, seen: str, notes: Notes
) -> None:
    """Note what about the card itself keeps the features fixed."""
    parent = virtual_function_of(host, nic)
    if parent:
        notes.add("D209", f"{seen}; physfn is {parent}", [direction], parent=parent)
        return
    if (mode := eswitch_mode(host, nic)) == "switchdev":
        notes.add("D210", f"{seen}; devlink: eswitch mode {mode}", [direction], mode=mode, bus=nic.bus)
        return
    part, why = vpd.of(host, nic.bus)
    board = firmware.board(host, nic)
    part = part or board.part
    parts = profile.sku.parts if profile else ()
    fits = [p for p in parts if part and fnmatch.fnmatchcase(part, p.pattern)]
    number = f"part {part}" if part else f"part number unknown: {why}"
    shown = board.text or f"firmware {nic.firmware or 'unknown'}"
    if (fits and not fits[0].crypto) or (not fits and board.crypto is False):
        wanted = ", ".join(p.pattern for p in parts if p.crypto) or (profile.sku.need if profile else "")
        notes.add(
            "D207", f"{seen}; {number}; {shown}", [direction], part=part or "of this card", wanted=wanted
        )
        return
    need = "; ".join((profile.sku.need, profile.firmware.need)) if profile else "part or firmware"
    notes.add(
        "D208",
        f"{seen}; {number}; {shown}",
        [direction],
        feature=FEATURES[direction],
        need=need,
        bus=nic.bus,
    )


def virtual_function_of(host: Host, nic: Nic) -> str:
    """The PCI address of the physical function of a virtual one; '' if it is none."""
    if not PCI_ADDRESS.fullmatch(nic.bus):
        return ""
    done = host.run(["readlink", f"/sys/bus/pci/devices/{nic.bus}/physfn"], check=False)
    return done.text.strip().rpartition("/")[2] if done.rc == 0 else ""


def eswitch_mode(host: Host, nic: Nic) -> str:
    """`legacy` or `switchdev`, by devlink; '' if it does not tell."""
    if not PCI_ADDRESS.fullmatch(nic.bus):
        return ""
    done = host.run(["devlink", "-j", "dev", "eswitch", "show", f"pci/{nic.bus}"], check=False)
    row = below(answer(done.text), "dev", f"pci/{nic.bus}") if done.rc == 0 else {}
    return str(row.get("mode", ""))


def helpers(host: Host, nic: Nic, found: Match, directions: Sequence[str], notes: Notes) -> None:
    """Note modules that the profile wants loaded and that are not."""
    for step in found.profile.steps if found.profile and not found.simulated else ():
        if step.kind != "modprobe" or step.direction not in directions:
            continue
        folder = f"/sys/module/{step.what.replace('-', '_')}"
        if host.run(["test", "-d", folder], check=False).rc != 0:
            notes.add("D213", f"{folder} is not there", [step.direction], module=step.what, why=step.why)
