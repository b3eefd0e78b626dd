"""Does an answer have the form that wire.md gives it? Until then it is somebody else's bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

PRINTABLE = re.compile(r"[ -~]{0,200}")  # nothing in it can steer a terminal or break a line
OUTCOMES = ("equal", "different", "inconclusive")


@dataclass(frozen=True)
class Maybe:
    """A value of this shape, or null."""

    shape: Any


PROBLEM = {"code": str, "direction": ("client", "server", ""), "at": int}
DIFFERENCE = {
    "record": int,
    "sequence": int,
    "offset": int,
    "field": ("header", "nonce", "ciphertext", "tag", "length", "payload"),
    "at": int,
    "expected": str,
    "got": str,
    "class": str,
    "detail": str,
}
NUMBERS = (
    *("bytes", "records", "protected", "app_records", "app_bytes", "payload_bytes", "authentic_bytes"),
    *("retransmissions", "retransmitted_bytes", "out_of_order", "strange", "cut_bytes", "epochs"),
    "different_records",
)
DIRECTION = dict.fromkeys(NUMBERS, int) | {
    "proof": ("payload", "tag", "none"),
    "nonce_first": str,
    "closed": ("close_notify", "fin", "rst", ""),
    "sizes": {str: int},
    "first_difference": Maybe(DIFFERENCE),
    "retransmission": Maybe({"offset": int, "frame": int, "expected": str, "got": str, "class": str}),
}
CONNECTION = {
    "client": str,
    "server": str,
    "first_frame": int,
    "version": ("1.2", "1.3", ""),
    "cipher": ("aes-gcm-128", "aes-gcm-256", "chacha20-poly1305", ""),
    "suite": str,
    "outcome": OUTCOMES,
    "problems": [PROBLEM],
    "from_client": DIRECTION,
    "from_server": DIRECTION,
}
COUNTED = ("frames", "tcp", "other", "fragments", "bad_checksum", "truncated", "not_tls")
DOCUMENT = {
    "schema": (1,),
    "engine": ("core", "python"),
    "outcome": OUTCOMES,
    "capture": dict.fromkeys(COUNTED, int) | {"format": ("pcap", "pcapng")},
    "keylog": {"keys": int, "bad": int},
    "problems": [PROBLEM],
    "leak": Maybe(
        {"frame": int, "at": int, "payload_offset": int, "frames": int, "of": ("payload", "reply")}
    ),
    "connections": [CONNECTION],
}


def misfit(value: Any, shape: Any = DOCUMENT, where: str = "") -> str:
    """Return the first place where a value is not of its shape, in words; nothing if it is."""
    if isinstance(shape, Maybe):
        return "" if value is None else misfit(value, shape.shape, where)
    if isinstance(shape, dict):
        return _object(value, shape, where)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{where}: no list"
        found = (misfit(item, shape[0], f"{where}[{number}]") for number, item in enumerate(value))
        return next((words for words in found if words), "")
    if isinstance(shape, tuple):
        good = type(value) in (str, int) and value in shape
    elif shape is int:
        good = type(value) is int and value >= 0
    else:
        good = isinstance(value, str) and PRINTABLE.fullmatch(value) is not None
    return "" if good else f"{where}: {value!r:.60}"


def _object(value: Any, shape: dict[Any, Any], where: str) -> str:
    """Return what misfits in an object: a missing key, or a value; more keys are welcome."""
    if not isinstance(value, dict):
        return f"{where or 'it'}: no object"
    if str in shape:
        keys = [misfit(key, str, where) for key in value]
        found = [misfit(item, shape[str], f"{where}.{key:.20}") for key, item in value.items()]
        return next((words for words in (*keys, *found) if words), "")
    for key, inner in shape.items():
        place = f"{where}.{key}" if where else key
        words = misfit(value[key], inner, place) if key in value else f"{place}: missing"
        if words:
            return words
    return ""
