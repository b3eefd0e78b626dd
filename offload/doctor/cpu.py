"""Does the kernel's software TLS use the processor's AES instructions, and is it in FIPS mode?"""

from __future__ import annotations

import re

from offload.doctor.reasons import Notes
from offload.host.base import Host

MOST = 1 << 20  # bytes of either file
FIPS = "/proc/sys/crypto/fips_enabled"
VECTORS = {"vaes", "vpclmulqdq"}


def examine(host: Host, notes: Notes) -> None:
    """Note FIPS mode, and an AES-GCM slower than this processor allows; nothing where none is loaded yet."""
    if _read(host, FIPS).strip() == "1":
        notes.add("D115", f"{FIPS}: 1")
    driver, flags = gcm(_read(host, "/proc/crypto")), _flags(_read(host, "/proc/cpuinfo"))
    if not driver or "aes" not in flags:
        return
    if not re.search(r"aesni|vaes", driver):
        notes.add("D113", f"/proc/crypto: gcm(aes) by {driver}; flags: aes", driver=driver)
    elif flags >= VECTORS and "vaes" not in driver:
        notes.add("D114", f"/proc/crypto: gcm(aes) by {driver}; flags: vaes vpclmulqdq", driver=driver)
    else:
        notes.ok(f"software TLS uses the processor's AES instructions ({driver})")


def gcm(text: str) -> str:
    """Return the driver that the kernel takes for gcm(aes): that of the highest priority; ''."""
    found: dict[str, int] = {}
    for block in text.split("\n\n"):
        row = dict(re.findall(r"^(name|driver|priority) +: (\S.*)$", block, re.M))
        if row.get("name") == "gcm(aes)" and row.get("priority", "").isdigit():
            found[row.get("driver", "")] = int(row["priority"])
    return max(found, key=lambda name: found[name], default="")


def _flags(text: str) -> set[str]:
    """The flags of the first processor (x86)."""
    found = re.search(r"^flags\s*:(.*)$", text, re.M)
    return set(found[1].split()) if found else set()


def _read(host: Host, path: str) -> str:
    """The beginning of a file; '' if it cannot be read."""
    try:
        return host.read(path)[:MOST].decode("utf-8", "replace")
    except OSError:
        return ""
