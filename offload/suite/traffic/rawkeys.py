"""Kernel TLS without a handshake: random keys for both ends, and the record numbers that a test asks for.

For tests alone: nobody vouches for the far end of such a connection.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from offload.errors import ConfigError, RigError
from offload.host.base import Host

VERSIONS = {"1.2": 0x0303, "1.3": 0x0304}
# cipher: (its number, length of the key), include/uapi/linux/tls.h
CIPHERS = {"aes-gcm-128": (51, 16), "aes-gcm-256": (52, 32)}


def info(cipher: str, number: int, version: str = "1.2") -> bytes:
    """Return a tls12_crypto_info_* with a random key, salt and first nonce, and the first record's number.

    ConfigError for a cipher that is not here, or a number that is none of 64 bits.
    """
    if cipher not in CIPHERS:
        raise ConfigError(f"cannot derive keys for {cipher!r}", f"choose one of {' and '.join(CIPHERS)}")
    if not 0 <= number < 1 << 64:
        raise ConfigError(f"record number {number}", "0 to 2^64 - 1")
    kind, size = CIPHERS[cipher]
    iv, key, salt = (secrets.token_bytes(count) for count in (8, size, 4))
    return struct.pack("=HH", VERSIONS[version], kind) + iv + key + salt + number.to_bytes(8, "big")


def _remove(host: Host, path: str) -> None:
    done = host.run(["shred", "--remove", path], check=False)
    if host.run(["test", "-e", path], check=False).rc != 1:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise RigError(f"keys remain on {host.name}: {path}: {said}", "remove them manually")


@contextmanager
def placed(
    ends: tuple[tuple[Host, str], tuple[Host, str]],
    cipher: str,
    there: int = 0,
    back: int = 0,
    version: str = "1.2",
) -> Iterator[tuple[str, str]]:
    """Place keys in a folder (in memory) of each of two hosts; the paths, for `keys` of drive.Pump.

    `there` and `back`: the number of the first record that the first (second) end sends. The files are 0600,
    overwritten and removed when the block ends. ConfigError as `info`.
    """
    halves, name = (info(cipher, there, version), info(cipher, back, version)), f"raw-{secrets.token_hex(4)}"
    paths = (f"{ends[0][1]}/{name}-a", f"{ends[1][1]}/{name}-b")
    with ExitStack() as undo:
        for (host, _), path, mine in zip(ends, paths, (halves, halves[::-1]), strict=True):
            undo.callback(_remove, host, path)
            host.write(path, b"".join(mine), 0o600)
        yield paths
