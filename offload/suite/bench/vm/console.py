"""What the kernel of the VM said on its console, and which of it means that the rig is broken."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

# lines after which nothing that the kernel did can be trusted: stock kernels and those built with debugging
FAULT = re.compile(
    r"BUG:|\bOops\b|WARNING:|Call Trace|Kernel panic|general protection fault|"
    r"possible (?:circular|recursive) locking|inconsistent lock state|suspicious RCU usage|"
    r"ref_tracker:|unreferenced object|rcu.*(?:detected stalls|self-detected stall)|"
    r"blocked for more than|unregister_netdevice: waiting|"
    r"unencrypted skb with no associated socket|refcount_t:|"
    r"Unable to handle|double fault|Out of memory:"
)
# a processor's known weakness, reported once at boot, says nothing of the rig
HARMLESS = re.compile(
    r"(?:Spectre|Speculative|Retbleed|RETBleed|MDS|MMIO|TAA|SRSO|GDS|ITS|VMSCAPE|TSA)\b.*WARNING:"
)
TRACE = 100  # lines: more than a panic prints
STAMP = re.compile(r"^\[ *\d+\.\d+\] ?")


class Console:
    """The console's log file; a mark is a position in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mark(self) -> int:
        """The end of the messages so far."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def text(self, since: int = 0) -> str:
        """Return the messages since a mark."""
        try:
            with self.path.open("rb") as file:
                file.seek(since)
                return file.read().decode("utf-8", "replace").replace("\r", "")
        except FileNotFoundError:
            return ""

    def faults(self, since: int = 0) -> list[str]:
        """Lines since a mark that mean a broken rig, without their time stamps."""
        return faults(self.text(since))

    def tail(self, lines: int = 12) -> str:
        """The last lines, indented, for an error message; before them a panic, whose trace is longer."""
        said = self.text().splitlines()
        panic = [line for line in said[-TRACE:-lines] if "Kernel panic" in line][-1:]
        return "\n".join(f"  | {line}" for line in (*panic, *said[-lines:]))


def faults(text: str) -> list[str]:
    """Lines of a kernel log that mean a broken rig, without their time stamps."""
    lines = (STAMP.sub("", line).strip() for line in text.splitlines())
    return [line for line in lines if FAULT.search(line) and not HARMLESS.search(line)]


def unlisted(found: Sequence[str], warnings: Collection[str]) -> list[str]:
    """Leave out the warnings of these functions, each with its trace; no other kind of fault is left out."""
    names = "|".join(map(re.escape, warnings)) or "(?!)"
    known = re.compile(rf"\bWARNING:.*\b(?:{names})\+0x")
    kept, inside = [], False
    for line in found:
        inside = bool(known.search(line)) or (inside and "Call Trace" in line)
        kept += [] if inside else [line]
    return kept
