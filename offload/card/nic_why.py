"""Why a TLS feature is `off [fixed]`: the kernel's configuration, the card's part number, or the driver."""

from __future__ import annotations

import re
import zlib

from offload.card.nic import Match, Nic, no_offload_because_of_kind
from offload.card.profile import FEATURES, WORDS, Kconfig
from offload.host.base import Host

MAX_CONFIG = 4 * 1024 * 1024  # a distribution's kernel configuration is about 300 KiB


def kernel_config(host: Host, release: str = "") -> tuple[str, dict[str, str]]:
    """Where the running kernel's configuration is, and the symbols it sets; ('', {}) if there is none.

    `release`: what `uname -r` says, where that is known.
    """
    release = release or host.run(["uname", "-r"], check=False).text.strip()
    for path in (f"/boot/config-{release}", f"/lib/modules/{release}/config", "/proc/config.gz"):
        try:
            raw = host.read(path)
            text = (
                zlib.decompressobj(31).decompress(raw, MAX_CONFIG)
                if path.endswith(".gz")
                else raw[:MAX_CONFIG]
            )
        except (OSError, zlib.error):
            continue
        rows = re.findall(r"^(CONFIG_[A-Za-z0-9_]+)=(.*)$", text.decode("ascii", "replace"), re.M)
        return path, dict(rows)
    return "", {}


def without_ktls(host: Host) -> str:
    """Why no module can bring kernel TLS here, by the kernel's configuration; '' if one may."""
    path, config = kernel_config(host)
    lacking = path and not Kconfig("CONFIG_TLS", "m", "").met_by(config.get("CONFIG_TLS", ""))
    return f"not in this kernel ({path}: CONFIG_TLS is not set)" if lacking else ""


def missing_options(host: Host, wanted: tuple[Kconfig, ...]) -> tuple[str, list[Kconfig]]:
    """Where the configuration was read, and the wanted options that it lacks; ('', []) if it is unknown."""
    path, config = kernel_config(host)
    return path, [k for k in wanted if path and not k.met_by(config.get(k.symbol, ""))]


def why_fixed(host: Host, nic: Nic, found: Match, direction: str) -> list[str]:
    """Likely reasons, most certain first, each one sentence."""
    if because := no_offload_because_of_kind(nic):
        return [because]
    profile = found.profile
    if found.simulated:
        should = profile is not None and direction in profile.directions()
        which = "but offers no" if should else "which has no"
        return [f"the simulated card plays {found.plays}, {which} {WORDS[direction]} offload"]
    if profile is None:
        return [f"driver {nic.driver or 'of this device'} has no {WORDS[direction]} TLS offload"]
    path, missing = missing_options(host, profile.kconfig)
    if missing:
        return [f"{path}: {k.symbol} is not {_wanted(k)}: {k.why}" for k in missing]
    symbols = ", ".join(f"{k.symbol}={k.wanted}" for k in profile.kconfig)
    built = (
        f"the kernel has all that it needs ({path})"
        if path
        else f"kernel configuration not found; wanted {symbols}"
    )
    return [built, f"the card: {profile.sku.need}", *profile.sku.hints, f"firmware: {profile.firmware.need}"]


def _wanted(option: Kconfig) -> str:
    """The values that will do."""
    return "y" if option.wanted == "y" else "y or m"


def refusal(host: Host, nic: Nic, found: Match, direction: str) -> tuple[str, str]:
    """Message and hint for a direction that cannot be switched because its feature is fixed."""
    reasons = why_fixed(host, nic, found, direction)
    message = f"{nic.dev}: {FEATURES[direction]} is off [fixed]: {reasons[0]}"
    return message, "\n        ".join(reasons[1:])
