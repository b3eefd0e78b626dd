"""The reference peer: Debian's unmodified stunnel4, in the foreground, with a configuration of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from offload.cmd import wait_until
from offload.errors import RigError
from offload.host.base import Host, Process
from offload.suite.traffic.certs import Placed

PROGRAM = "stunnel4"
UP = b"Configuration successful"  # stunnel says so after it has bound every port (src/stunnel.c)


@dataclass(frozen=True)
class Service:
    """One service: TLS on `accept` and plain on `connect`, the other way round for a client.

    Addresses are HOST:PORT (`:::4433` is every IPv4 and IPv6 address). With `ktls` the kernel makes the
    records of this stunnel (`options = ENABLE_KTLS`); everything else is stunnel's default.
    """

    name: str
    accept: str
    connect: str
    client: bool = False
    ktls: bool = False
    version: str = ""  # "1.2" or "1.3": only this one
    ciphers: str = ""  # OpenSSL names; TLS 1.3 has its own list
    sni: str = ""  # of a client: the server name to send, instead of the address
    resume: bool = True  # sessions: without them a server sends no tickets, which hold the time of day

    def text(self, at: Placed) -> str:
        """Return the section of the configuration."""
        lines = [
            f"[{self.name}]",
            f"accept = {self.accept}",
            f"connect = {self.connect}",
            "TIMEOUTclose = 20",
        ]
        if self.client:
            lines += ["client = yes", f"CAfile = {at.ca}", "verifyChain = yes"]
        else:
            lines += [f"cert = {at.cert}", f"key = {at.key}"]
        if self.ktls:
            lines += ["options = ENABLE_KTLS"]
        if self.sni:
            lines += [f"sni = {self.sni}"]
        if not self.resume:
            lines += ["sessionResume = no"]
        if self.version:
            lines += [f"sslVersion = TLSv{self.version}"]
        if self.ciphers:
            lines += [f"{'ciphersuites' if self.version == '1.3' else 'ciphers'} = {self.ciphers}"]
        return "\n".join(lines) + "\n"


def config(services: Sequence[Service], at: Placed) -> str:
    """Return the whole configuration: foreground, no pid file, log to standard error."""
    head = ["foreground = yes", "pid =", "syslog = no", "debug = notice", ""]
    return "\n".join(head) + "".join(service.text(at) for service in services)


@contextmanager
def running(
    host: Host,
    services: Sequence[Service],
    at: Placed,
    *,
    name: str = "stunnel",
    timeout: float = 60,
    env: Mapping[str, str] | None = None,
) -> Iterator[Process]:
    """Run stunnel on the host until the block ends, with `env` added to its environment (keylog.py).

    RigError with its log if it does not come up.
    """
    path = f"{at.folder}/{name}.conf"
    host.write(path, config(services, at).encode(), 0o600)
    process = host.start([PROGRAM, path], env=env)

    def up() -> bool:
        if UP in process.news(1.0)[1]:
            return True
        if not process.running():
            raise RigError(f"stunnel ended at once:\n{log(process)}")
        return False

    try:
        wait_until(up, timeout, "stunnel to listen")
        yield process
    finally:
        process.kill()


def log(process: Process) -> str:
    """Return what stunnel said so far; no key material is ever in it."""
    return process.output()[1].decode("utf-8", "replace")[-4000:]
