"""The evidence `captured` of a test: how many frames its captures hold, and which nothing explains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

UNEXPLAINED = "captured frames are unexplained"
MOST = 8  # findings that a test names; `unexplained` counts them all


class Code(StrEnum):
    """Why no sender puts a frame on the wire: the codes of wire.md, and two of whole captures."""

    STRAY_DATA = "stray-data"
    SECOND_SYN = "second-syn"
    SECOND_FIN = "second-fin"
    URGENT = "urgent"
    CLEAR_RECORD = "clear-record"
    CHANGE_CIPHER_SPEC = "change-cipher-spec"
    UNREAD_TCP = "unread-tcp"
    LONE_DATA = "lone-data"  # payload of a connection that nobody opened and nobody answers
    PROTOCOL = "protocol"  # between the two ends, and neither TCP, ICMP nor what the test makes


@dataclass(frozen=True)
class Stray:
    """A frame that nothing explains: why, its number (or the stream's offset), from where to where."""

    code: Code
    at: int
    between: str

    def __str__(self) -> str:
        return f"{self.code} at {self.at} ({self.between})"


@dataclass(frozen=True)
class Captured:
    """What a test's captures hold: frames, those without an explanation, and the first of these."""

    frames: int
    unexplained: int
    first: tuple[Stray, ...] = ()

    def evidence(self) -> dict[str, Any]:
        """Return it as the evidence of a test."""
        first = [{"code": str(s.code), "at": s.at, "between": s.between} for s in self.first[:MOST]]
        return {"frames": self.frames, "unexplained": self.unexplained, "first": first}


def read(test: Mapping[str, Any]) -> Captured | None:
    """Return what a test says of its captures, if it made any; ValueError if that makes no sense."""
    if "captured" not in test["evidence"]:
        return None
    found = test["evidence"]["captured"]
    if not isinstance(found, Mapping) or not isinstance(found.get("first"), list):
        raise ValueError("no object")
    first = tuple(_stray(one) for one in found["first"][:MOST])
    return Captured(_whole(found.get("frames")), _whole(found.get("unexplained")), first)


def denial(test: Mapping[str, Any]) -> str:
    """Return why a test's captures deny that only ciphertext leaves the card; else nothing."""
    try:
        found = read(test)
    except ValueError:
        return "the evidence of the captures does not have the form that the report reads"
    if found is None or not found.unexplained:
        return ""
    first = f": {found.first[0]}" if found.first else ""
    return f"{found.unexplained} of {found.frames} {UNEXPLAINED}{first}"


def _stray(one: Any) -> Stray:
    if not isinstance(one, Mapping) or not isinstance(one.get("between"), str):
        raise ValueError("no frame")
    return Stray(Code(str(one.get("code"))), _whole(one.get("at")), one["between"][:120])


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise ValueError("no number")
    return value
