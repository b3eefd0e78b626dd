"""A throw-away CA and one server certificate: made with `openssl`, kept in memory only, wiped."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from offload.cmd import run
from offload.errors import CommandFailed
from offload.host.base import Host

NAME = "peer.test"  # RFC 6761: never resolves


@dataclass(frozen=True)
class Certs:
    """PEM texts. The CA's key is gone: it signed one certificate and was wiped."""

    ca: bytes
    cert: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True)
class Placed:
    """Where they lie on a host: the CA (world-readable), the certificate, and the key (0600)."""

    folder: str
    ca: str
    cert: str
    key: str


def _openssl(*argv: str) -> None:
    rc, out, err, _ = run(["openssl", *argv])
    if rc:
        raise CommandFailed(["openssl", *argv], rc, out, err)


def wipe_here(folder: Path) -> None:
    """Overwrite and remove every file of a folder in memory, and the folder."""
    for path in folder.iterdir():
        size = path.stat().st_size
        with path.open("r+b") as out:
            out.write(b"\0" * size)
    shutil.rmtree(folder)


def make(addresses: list[str], *, kind: str = "rsa:2048", days: int = 2) -> Certs:
    """Return a new CA and a certificate for NAME and the IP addresses. `kind`: as for `openssl req -newkey`.

    Made in /dev/shm (memory), in a folder that only we can read. CommandFailed if openssl does not do it.
    """
    names = ",".join([f"DNS:{NAME}", *(f"IP:{address}" for address in addresses)])
    folder = Path(tempfile.mkdtemp(prefix="ktls-offload-", dir="/dev/shm"))
    ca, ca_key, cert, key = (str(folder / name) for name in ("ca.pem", "ca.key", "cert.pem", "key.pem"))
    new = ["req", "-x509", "-nodes", "-newkey", *kind.split(), "-days", str(days)]
    try:
        _openssl(*new, "-subj", "/CN=ktls-offload test CA", "-keyout", ca_key, "-out", ca)
        _openssl(
            *new,
            "-subj",
            f"/CN={NAME}",
            "-keyout",
            key,
            "-out",
            cert,
            "-CA",
            ca,
            "-CAkey",
            ca_key,
            "-addext",
            f"subjectAltName={names}",
            "-addext",
            "basicConstraints=CA:FALSE",
        )
        return Certs(Path(ca).read_bytes(), Path(cert).read_bytes(), Path(key).read_bytes())
    finally:
        wipe_here(folder)


@contextmanager
def placed(certs: Certs, host: Host, folder: str) -> Iterator[Placed]:
    """Write them into `folder` of the host, which must be in memory there (tmpfs), and wipe them after."""
    at = Placed(folder, f"{folder}/ca.pem", f"{folder}/cert.pem", f"{folder}/key.pem")
    host.write(at.ca, certs.ca, 0o644)
    host.write(at.cert, certs.cert, 0o644)
    host.write(at.key, certs.key, 0o600)
    try:
        yield at
    finally:
        host.run(["shred", "--remove", at.key])
        host.run(["rm", "-f", at.ca, at.cert])
