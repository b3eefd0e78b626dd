"""What is this kernel, does it have TLS and TLS offload, and is the module there?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import yaml

from offload.card.counters import tls_stat
from offload.card.nic_why import kernel_config
from offload.card.profile import Kconfig
from offload.doctor.reasons import LOADER, Notes, plain
from offload.errata.match import Kernel, kernel
from offload.host.base import Host
from offload.paths import PACKAGE

TLS = Kconfig("CONFIG_TLS", "m", "kernel TLS itself")
DEVICE = Kconfig("CONFIG_TLS_DEVICE", "y", "the part of kernel TLS that hands records to a card")
LOADED, LOADABLE, BLOCKED, MISSING, UNKNOWN = "loaded", "loadable", "blocked", "missing", "unknown"


class Machine(NamedTuple):
    """The kernel that runs: `config` is what it is built with (empty, with path '', if that is unknown).

    `module` says how it stands with tls: loaded (or built in), loadable, blocked, missing or unknown; `rule`
    is what says so. `stat` is /proc/net/tls_stat of this namespace, None if there is none.
    """

    release: str
    machine: str
    kernel: Kernel
    path: str
    config: Mapping[str, str]
    module: str
    rule: str
    stat: Mapping[str, int] | None


@cache
def facts() -> dict[str, Any]:
    """facts.yaml."""
    text = (PACKAGE / "doctor/facts.yaml").read_text("utf-8")
    return dict(yaml.load(text, Loader=LOADER))  # noqa: S506  (a safe loader)


def look(host: Host) -> Machine:
    """The kernel of a host; changes nothing, loads nothing."""
    words = plain(host.run(["uname", "-r", "-v", "-m"], check=False).text).split()
    release = words[0] if words else ""
    # Debian's kernels say their package's version: `#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-11-16)`
    package = next((b for a, b in zip(words, words[1:]) if a == "Debian"), "")
    stat, _ = tls_stat(host)
    module, rule = (LOADED, "/proc/net/tls_stat is there") if stat is not None else _module(host)
    path, config = kernel_config(host, release)
    machine = words[-1] if words else ""
    return Machine(release, machine, kernel(release, package), path, config, module, rule, stat)


def _module(host: Host) -> tuple[str, str]:
    """How it stands with a module tls that is not loaded, and what says so."""
    done = host.run(["modprobe", "--show-depends", "tls"], check=False)
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    if done.rc != 0:
        lost = [line for line in said if "not found in directory" in line]
        return (MISSING, lost[0]) if lost else (UNKNOWN, said[0] if said else f"modprobe ends with {done.rc}")
    rules = [line.strip() for line in done.text.splitlines() if line.startswith("install ")]
    if rules and not re.fullmatch(r"install .*modprobe .*", rules[-1]):
        return BLOCKED, rules[-1].removeprefix("install ")
    return LOADABLE, "modprobe --show-depends tls finds it"


def examine(machine: Machine, notes: Notes) -> None:
    """Note what keeps any device of this host from offloading."""
    series = machine.kernel.series
    if machine.kernel.candidate:
        notes.add("D111", f"uname -r: {machine.release}", release=machine.release)
    for direction, oldest in facts()["oldest"].items():
        if series is not None and series < tuple(oldest):
            notes.add("D101", f"uname -r: {machine.release}", [direction], release=machine.release)
    if _built_without(machine, notes):
        return
    _tell_module(machine, notes)


def _built_without(machine: Machine, notes: Notes) -> bool:
    """Note an option of kernel TLS that is known not to be set; say whether there is one."""
    if not machine.path or machine.module == LOADED:
        return False
    if not TLS.met_by(machine.config.get(TLS.symbol, "")):
        notes.add("D102", f"{machine.path}: {TLS.symbol} is not set", option=TLS.symbol)
        return True
    return False


def _tell_module(machine: Machine, notes: Notes) -> None:
    """Note how it stands with the module."""
    seen, release = machine.rule, machine.release
    if machine.module == LOADED:
        notes.ok("kernel TLS is loaded")
    elif machine.module == LOADABLE:
        notes.add("D106", f"no /proc/net/tls_stat; {seen}")
    elif machine.module == BLOCKED:
        notes.add("D108", f"modprobe --show-depends tls: install {seen}", rule=seen)
    elif machine.module == MISSING:
        notes.add("D107", f"no /proc/net/tls_stat; {seen}", release=release)
    else:
        notes.add("D112", seen)


def option_set(host: Host, machine: Machine, option: str, wanted: str) -> bool | None:
    """Whether the kernel is built with an option; None if neither its configuration nor its symbols tell."""
    if machine.path:
        return Kconfig(option, wanted, "").met_by(machine.config.get(option, ""))
    symbol = facts()["witness"].get(option)
    if not symbol:
        return None
    done = host.run(["grep", "-m1", "-cw", symbol, "/proc/kallsyms"], check=False)
    return True if done.rc == 0 else None


def missing_for(host: Host, machine: Machine, driver: str) -> tuple[str, str, bool]:
    """Return what the kernel lacks for a driver's features: (code, option, whether it is sure); '' if
    nothing."""
    row = facts()["drivers"].get(driver, {})
    wanted = [("D103", DEVICE.symbol, "y")]
    wanted += [("D104", str(row["option"]), str(row["wanted"]))] if row else []
    unsure = ("", "", True)
    for code, option, value in wanted:
        is_set = option_set(host, machine, option, value)
        if is_set is False:
            return code, option, True
        if is_set is None and not unsure[0]:
            unsure = "D105", option, False
    return unsure
