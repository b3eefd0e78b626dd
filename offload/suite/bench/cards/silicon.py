"""Asks the ConnectX cards of cx6sim what they did, and turns their knobs, through its control socket."""

from __future__ import annotations

import json
import socket
from pathlib import Path

from offload.errors import ConfigError, RigError

LIMIT = 60.0  # seconds for an answer that takes a millisecond: the machine may be busy


class Silicon:
    """The cards of a lab, by number: DUT, peer, and the two on the wire."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def truth(self, card: int) -> dict[str, int]:
        """Return what a card did by its own count (native/cx6sim/README.md). RigError if it does not
        answer."""
        return self._ask({"card": card})

    def turn(self, card: int, fault: str, every: int) -> None:
        """Let a card go wrong every N times; 0: never. ConfigError for a fault that there is not."""
        self._ask({"card": card, "fault": fault, "every": every})

    def _ask(self, what: dict[str, object]) -> dict[str, int]:
        try:
            with socket.socket(socket.AF_UNIX) as sock:
                sock.settimeout(LIMIT)
                sock.connect(str(self._path))
                sock.sendall(json.dumps(what).encode() + b"\n")
                with sock.makefile("rb") as said:
                    answer = json.loads(said.readline())
        except (OSError, ValueError) as exc:
            raise RigError(f"cx6sim does not answer at {self._path}: {exc}") from None
        if "error" in answer:
            raise ConfigError(f"cx6sim: {answer['error']}")
        return dict(answer)
