"""The same connection twice: programs with the same random numbers, fed in lock step (proof C, wire.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from offload.errors import RigError
from offload.host.base import Host
from offload.paths import BUILD, ROOT
from offload.suite.traffic.drive import Sending

PROVIDER = BUILD / "detrand.so"  # native/detrand: it refuses to load unless the variable is set
SSLWRITE = BUILD / "ktls-sslwrite"
VARIABLE = "KTLS_OFFLOAD_TEST_RANDOM"
CONFIG = ROOT / "native/detrand/openssl.cnf"
# Writes of at most one record: stunnel makes one of each if it has taken the one before. The edges of a
# record, of a segment (MSS 1448, 29 bytes around a record's payload) and of a page; many full ones.
SIZES = (1, 16383, 16384, 2, 16384, 1419, 1420, 2867, 4095, 4096, 4097, 15, 16, 17, *(16384,) * 5, 9999, 1)


def environment(host: Host, folder: str, seed: str) -> Mapping[str, str]:
    """Write the configuration; the environment that makes a program's random numbers follow from `seed`.

    Of one program only, and only against another one of ours: anyone who knows the seed can read the
    connection. The two ends of a connection need different seeds. RigError if the provider is not built.
    """
    if not PROVIDER.exists():
        raise RigError(f"{PROVIDER.name} is not built", "make build")
    path = f"{folder}/detrand.cnf"
    host.write(path, CONFIG.read_text().format(module=PROVIDER).encode(), 0o644)
    return {"OPENSSL_CONF": path, VARIABLE: seed}


def payload(seed: str, how: str = "write") -> Sending:
    """Return the plan of what is sent: about 150 kB in the sizes above; `how`: write or sendfile."""
    return Sending(seed, SIZES, how)


def sslwrite(connect: Sequence[str]) -> list[str]:
    """Return the command that sends by SSL_write() what `connect` (of handoff.py) would hand over."""
    return [str(SSLWRITE), *connect[1:]]
