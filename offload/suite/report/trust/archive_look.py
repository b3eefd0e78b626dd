"""May this file go into an archive? Never one that holds key material."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

# What a run leaves (docs/certify/outputs.md); anything else stays behind, and is named.
SUFFIXES = (".html", ".json", ".jsonl", ".ktap", ".txt", ".xml", ".log", ".patch", ".sig", ".pcapng", ".svg")
KEYS = re.compile(
    r"\.(key|keys|keylog|sslkeylog|pem|p12|pfx)\Z|\A(keys|keylog|sslkeylog)([._-].*)?\Z|\Aid_(rsa|dsa|ecdsa|ed25519)",
    re.I,
)
# NSS key log lines (SSLKEYLOGFILE), what `openssl s_client` prints of a session, and PEM.
MATERIAL = re.compile(
    rb"(?:CLIENT_RANDOM|(?:CLIENT|SERVER)_(?:EARLY_|HANDSHAKE_)?TRAFFIC_SECRET(?:_\d+)?|EARLY_EXPORTER_SECRET"
    rb"|EXPORTER_SECRET|ECH_SECRET)\s+[0-9a-fA-F]{32,}\s+[0-9a-fA-F]{32,}"
    rb"|(?:Master-Key|Resumption PSK):\s*[0-9a-fA-F]{32,}"
    rb"|-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----"
)


def is_key_file(name: str) -> bool:
    """Say whether a file is named like one of keys."""
    return KEYS.search(PurePosixPath(name).name) is not None


def left_out(name: str) -> str:
    """Say why a file of this name stays behind; empty if it may go."""
    if PurePosixPath(name).suffix.lower() not in SUFFIXES:
        return "not a file type that a run produces"
    return "" if name.isprintable() and "\\" not in name else "a name that does not print"


def key_material(data: bytes) -> str:
    """Say where text that is a key stands; empty if there is none."""
    found = MATERIAL.search(data)
    if found is None:
        return ""
    line = data.count(b"\n", 0, found.start()) + 1
    return f"key material in line {line} ({found[0][:16].decode('ascii', 'replace').split()[0]} ...)"
