"""The `openssl` program as the other end: s_server takes payload, s_client sends it."""

from __future__ import annotations

from collections.abc import Mapping

from offload.host.base import Host
from offload.suite.traffic.certs import NAME, Placed
from offload.suite.traffic.handoff import CIPHERS

# A configuration file of its own: the system's one is neither read nor touched.
CONFIG = (
    "openssl_conf = init\n[init]\nssl_conf = ssl\n[ssl]\nsystem_default = tls\n[tls]\nOptions = {options}\n"
)


def environment(host: Host, at: Placed, *, ktls: bool) -> Mapping[str, str]:
    """Write the configuration on the host; the environment that makes openssl read it."""
    path = f"{at.folder}/openssl-{'ktls' if ktls else 'user'}.cnf"
    host.write(path, CONFIG.format(options="KTLS" if ktls else "-KTLS").encode(), 0o644)
    return {"OPENSSL_CONF": path}


def _suite(version: str, cipher: str) -> list[str]:
    name = CIPHERS[version, cipher]
    return ["-tls1_3", "-ciphersuites", name] if version == "1.3" else ["-tls1_2", "-cipher", name]


def server(port: int, at: Placed, *, version: str = "1.2", cipher: str = "aes-gcm-256") -> list[str]:
    """Return the command that takes one connection and writes what arrives to standard output.

    Without the system's certificates, of which it needs none: to read them costs an emulated guest 0.5 s.
    """
    where = ["-accept", str(port), "-naccept", "1", "-quiet", "-cert", at.cert, "-key", at.key]
    return ["openssl", "s_server", *where, "-no-CAfile", "-no-CApath", *_suite(version, cipher)]


def client(
    host: str, port: int, at: Placed, *, version: str = "1.2", cipher: str = "aes-gcm-256"
) -> list[str]:
    """Return the command that connects, verifies the certificate, and sends standard input to its end."""
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    verify = ["-CAfile", at.ca, "-verify_return_error", "-verify_hostname", NAME, "-servername", NAME]
    quiet = ["-quiet", "-no_ign_eof", "-nocommands"]
    return ["openssl", "s_client", "-connect", target, *verify, *quiet, *_suite(version, cipher)]
