"""Which faults the simulated cards of a lab have been given, as one line that a later run can turn again."""

from __future__ import annotations

import re

from offload.errors import ConfigError
from offload.host.base import Host

FOLDER = "/sys/kernel/debug/nicsim"
LINE = re.compile(rf"{FOLDER}/(\d+/\w+):(\d+)")
WORD = re.compile(r"(\d+/\w+)=(\d+)")


def turned(root: Host) -> str:
    """Return the knobs that are not at 0, as `0/tx_leak=1 1/rx_garble=3`; empty for good cards."""
    said = root.run(["sh", "-c", f"grep -sH '' {FOLDER}/*/*"], check=False).text
    found = [match for line in said.splitlines() if (match := LINE.fullmatch(line)) and match[2] != "0"]
    return " ".join(f"{match[1]}={match[2]}" for match in sorted(found, key=lambda match: match[1]))


def check(text: str) -> dict[str, str]:
    """Return knob -> value of what `turned` returned; ConfigError for anything else."""
    found = [WORD.fullmatch(word) for word in text.split()]
    if not all(found):
        raise ConfigError(f"{text!r} are not knobs of the simulated card", "0/tx_leak=1 is one")
    return {match[1]: match[2] for match in found if match}


def turn(root: Host, text: str) -> None:
    """Turn the knobs of a lab that is up. ConfigError for what is none; CommandFailed for an unknown one."""
    for name, value in check(text).items():
        root.run(["tee", f"{FOLDER}/{name}"], input=f"{value}\n".encode())
