"""Documents of wire.md made by hand: one that is equal, one that differs, one that proves nothing."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

DIRECTION: dict[str, Any] = {
    "bytes": 1050000,
    "records": 71,
    "protected": 68,
    "app_records": 67,
    "app_bytes": 1048576,
    "proof": "payload",
    "payload_bytes": 1048576,
    "authentic_bytes": 1048594,
    "retransmissions": 3,
    "retransmitted_bytes": 4344,
    "out_of_order": 0,
    "strange": 0,
    "cut_bytes": 0,
    "epochs": 1,
    "nonce_first": "0011223344556677",
    "closed": "close_notify",
    "sizes": {"16384": 64, "3072": 2, "10": 1},
    "different_records": 0,
    "first_difference": None,
    "retransmission": None,
}
REPLY = DIRECTION | {
    "bytes": 3000,
    "records": 6,
    "protected": 2,
    "app_records": 0,
    "app_bytes": 0,
    "proof": "tag",
    "payload_bytes": 0,
    "authentic_bytes": 18,
    "retransmissions": 0,
    "retransmitted_bytes": 0,
    "sizes": {},
}
CONNECTION: dict[str, Any] = {
    "client": "192.0.2.1:40000",
    "server": "[2001:db8::2]:4433",
    "first_frame": 1,
    "version": "1.2",
    "cipher": "aes-gcm-256",
    "suite": "c030",
    "outcome": "equal",
    "problems": [],
    "from_client": DIRECTION,
    "from_server": REPLY,
}
DOCUMENT: dict[str, Any] = {
    "schema": 1,
    "engine": "core",
    "outcome": "equal",
    "capture": {
        "format": "pcapng",
        "frames": 1234,
        "tcp": 1200,
        "other": 34,
        "fragments": 0,
        "bad_checksum": 0,
        "truncated": 0,
        "not_tls": 0,
    },
    "keylog": {"keys": 2, "bad": 0},
    "problems": [],
    "leak": None,
    "connections": [CONNECTION],
}
DIFFERENCE = {
    "record": 12,
    "sequence": 11,
    "offset": 123456,
    "field": "ciphertext",
    "at": 17,
    "expected": "ab" * 16,
    "got": "ac" + "ab" * 15,
    "class": "bit flip",
    "detail": "bit 3",
}
AGAIN = {"offset": 5000, "frame": 44, "expected": "01" * 16, "got": "00" * 16, "class": "zero run"}
LEAK = {"frame": 77, "at": 66, "payload_offset": 4096, "frames": 5, "of": "payload"}


def equal() -> dict[str, Any]:
    """A connection of which everything is proven."""
    return deepcopy(DOCUMENT)


def _outcome(word: str) -> dict[str, Any]:
    document = equal()
    document["outcome"] = document["connections"][0]["outcome"] = word
    return document


def different() -> dict[str, Any]:
    """The same with a bit flip, in three records of the client."""
    document = _outcome("different")
    direction = document["connections"][0]["from_client"]
    direction.update(first_difference=dict(DIFFERENCE), different_records=3, payload_bytes=1000000)
    return document


def inconclusive(*problems: tuple[str, str, int]) -> dict[str, Any]:
    """The same without keys, and with these problems of the connection (default: no-key)."""
    document = _outcome("inconclusive")
    connection = document["connections"][0]
    found = problems or (("no-key", "", 0),)
    connection["problems"] = [dict(zip(("code", "direction", "at"), p, strict=True)) for p in found]
    for direction in ("from_client", "from_server"):
        none = {"proof": "none", "protected": 0, "payload_bytes": 0, "authentic_bytes": 0, "sizes": {}}
        connection[direction].update(none)
    return document
