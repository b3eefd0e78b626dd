"""What a program's configuration says of TLS, in the same words for every program."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from offload.doctor.apps.files import Files
from offload.doctor.reasons import Notes, plain
from offload.doctor.versions import dots, openssl_version

TLS12, TLS13 = "1.2", "1.3"
SUITES = "TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256"  # OpenSSL's default
DEFAULT = "the default"
# nginx CHANGES: ssl_conf_command; HAProxy: `ktls`; stunnel src/options.c: SSL_OP_ENABLE_KTLS; openssl CHANGES
OLDEST = {
    "nginx": (1, 19, 4),
    "haproxy": (3, 3),
    "stunnel": (5, 60),
    "openssl": (3, 0),
    "nfs": (6, 5),
    "nvme": (6, 7),
}


@dataclass(frozen=True)
class Said:
    """A setting as it stands, and where; `where` is 'the default' for one that nobody wrote."""

    text: str
    where: str = DEFAULT


@dataclass
class Service:
    """One end of TLS connections: a listener, or connections that the program opens (`side` client).

    ask: the last word about kernel TLS, with text 'on', 'off' or ''. versions: of 1.2 and 1.3 those that it
    offers. ciphers: OpenSSL's list for TLS 1.2. put: `after FILE:LINE`, where a new line belongs.
    """

    name: str
    where: str
    side: str
    address: str
    ask: Said
    versions: Said
    ciphers: Said
    suites: Said
    put: str
    line: str
    stop: str  # the line that stops at TLS 1.2
    gcm: str  # the line that leaves only AES-GCM
    notes: Notes = field(default_factory=Notes)

    def offers(self, version: str) -> bool:
        """Say whether it offers this version of TLS."""
        return version in self.versions.text.split()

    def title(self) -> str:
        """Name and address."""
        return plain(f"{self.name} {self.address}".strip())


@dataclass
class App:
    """One program on a host. `version` and `library` are () or '' where it is not installed."""

    name: str
    version: tuple[int, ...] = ()
    library: str = ""  # OpenSSL 3.0.19
    services: list[Service] = field(default_factory=list)
    notes: Notes = field(default_factory=Notes)
    files: Files | None = None
    title: str = ""  # where its name and version say too little
    lent: Said | None = None  # what openssl.cnf asks for every program

    @property
    def shown(self) -> str:
        """`nginx 1.22.1`."""
        return self.title or f"{self.name} {dots(self.version)}".strip()

    def library_version(self) -> tuple[int, ...]:
        """3, 0 of `OpenSSL 3.0.19`; () if that is not known, or of another library."""
        return openssl_version(self.library)


def span(lowest: str, highest: str) -> str:
    """Of 1.2 and 1.3 those between two versions, as `Service.versions` has them."""
    names = ["SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"]
    alias = {"TLSv1.0": "TLSv1", "": "", "None": "", "all": ""}
    first, last = (_index(names, alias.get(name, name), fall) for name, fall in ((lowest, 0), (highest, 4)))
    return " ".join(v for v, at in ((TLS12, 3), (TLS13, 4)) if first <= at <= last)


def _index(names: list[str], name: str, otherwise: int) -> int:
    lower = [n.lower() for n in names]
    return lower.index(name.lower()) if name.lower() in lower else otherwise


def only_here(addresses: Iterable[str]) -> bool:
    """Say whether every one of these addresses is this host's own loopback."""
    hosts = [_host(address) for address in addresses]
    return bool(hosts) and all(map(_loopback, hosts))


def _host(address: str) -> str:
    """`::1` of `[::1]:443`."""
    found = re.match(r"\[([^\]]*)\]", address)
    return found[1] if found else address.rpartition(":")[0] if address.count(":") == 1 else address


def _loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
