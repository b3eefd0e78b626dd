"""Which secrets does a key log hold? The SSLKEYLOGFILE format, by wire.md; no line is ever shown."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from offload.errors import ConfigError
from offload.suite.wire.files import content

MAX_SIZE = 64 << 20
TLS13 = (
    b"CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    b"SERVER_HANDSHAKE_TRAFFIC_SECRET",
    b"CLIENT_TRAFFIC_SECRET_0",
    b"SERVER_TRAFFIC_SECRET_0",
    b"CLIENT_EARLY_TRAFFIC_SECRET",
)
# label: lengths of its secret in hexadecimal digits
LABELS = {b"CLIENT_RANDOM": (96,), **dict.fromkeys(TLS13, (64, 96))}
LABEL = re.compile(rb"[A-Z0-9_]+")
HEX = re.compile(rb"[0-9a-fA-F]+")


@dataclass
class Keylog:
    """Secrets by (label, client random); `keys`: valid lines, `bad`: lines that are none."""

    secrets: dict[tuple[str, bytes], bytes] = field(default_factory=dict, repr=False)
    keys: int = 0
    bad: int = 0

    def get(self, label: str, random: bytes) -> bytes | None:
        """The secret of this label for a connection."""
        return self.secrets.get((label, random))


def load(source: Path | bytes) -> Keylog:
    """A key log from a file or its content; ConfigError if it cannot be read or has no valid line."""
    name = "keylog" if isinstance(source, bytes) else str(source)
    log = parse(source if isinstance(source, bytes) else content(source, MAX_SIZE))
    if not log.keys:
        raise ConfigError(
            f"{name}: no valid key line",
            "wanted: lines of an SSLKEYLOGFILE, e.g. CLIENT_RANDOM <hex> <hex>",
        )
    return log


def parse(data: bytes) -> Keylog:
    """Every line; for a label and random given twice the first counts."""
    log = Keylog()
    for line in data.split(b"\n"):
        words = line.split()
        if not words or words[0].startswith(b"#"):
            continue
        if (key := secret(words)) is not None:
            log.keys += 1
            log.secrets.setdefault(key[0], key[1])
        elif words[0] in LABELS or len(words) == 1 or not LABEL.fullmatch(words[0]):
            log.bad += 1
    return log


def secret(words: list[bytes]) -> tuple[tuple[str, bytes], bytes] | None:
    """((label, client random), secret) of a line; None if it is no valid line of a known label."""
    if len(words) != 3 or words[0] not in LABELS:
        return None
    label, random, value = words
    if len(random) != 64 or len(value) not in LABELS[label]:
        return None
    if not HEX.fullmatch(random) or not HEX.fullmatch(value):
        return None
    return (label.decode(), bytes.fromhex(random.decode())), bytes.fromhex(value.decode())
