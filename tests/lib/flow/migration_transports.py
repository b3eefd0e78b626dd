"""How a migration's stream is carried: plain, by stunnel at both ends, by QEMU's own TLS, by kernel TLS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from offload.host.base import Side
from offload.suite.traffic import handoff, stunnel
from offload.suite.traffic.certs import NAME, Certs, Placed, placed
from tests.lib.flow import migration
from tests.lib.flow.migration import End, Guest

VERSION, CIPHER = "1.2", "aes-gcm-256"
# GnuTLS's words for the same
PRIORITY = "NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+"
GROUP = ("openssl", "genpkey", "-genparam", "-algorithm", "DH", "-pkeyopt", "group:ffdhe2048")  # RFC 7919
NAMES = {"aes-gcm-128": "AES-128-GCM", "aes-gcm-256": "AES-256-GCM"}


@dataclass
class Stand:
    """Both ends of a migration, their certificates, and ports that nobody has used."""

    near: End
    far: End
    at: tuple[Placed, Placed]
    next_port: Callable[[], int]
    undo: ExitStack
    cipher: str = CIPHER
    pids: dict[str, list[int]] = field(default_factory=lambda: {"near": [], "far": []})
    line: dict[str, Any] = field(default_factory=dict)  # of ktls-handoff

    @property
    def address(self) -> str:
        """Where the far end is."""
        return self.far.side.v4

    def tunnel(self, which: str, service: stunnel.Service) -> None:
        """Run stunnel at one end."""
        host, at = (self.near.side.host, self.at[0]) if which == "near" else (self.far.side.host, self.at[1])
        running = stunnel.running(host, [service], at, name=f"stunnel-{service.name}", timeout=180)
        self.pids[which].append(self.undo.enter_context(running).pid)


def _plain(stand: Stand) -> str:
    migration.start(stand.near, stand.far)
    uri = f"tcp:{stand.address}:{stand.next_port()}"
    stand.far.qmp("migrate-incoming", uri=uri)
    return uri


def _behind_stunnel(stand: Stand) -> int:
    """The receiving end of today's tool stacks: QEMU behind an unmodified stunnel. Its port."""
    port, plain = stand.next_port(), stand.next_port()
    migration.start(stand.near, stand.far)
    stand.far.qmp("migrate-incoming", uri=f"tcp:127.0.0.1:{plain}")
    stand.tunnel("far", stunnel.Service("in", f":::{port}", f"127.0.0.1:{plain}"))
    return port


def _stunnel(stand: Stand) -> str:
    port, entry = _behind_stunnel(stand), stand.next_port()
    addresses = f"127.0.0.1:{entry}", f"{stand.address}:{port}"
    ciphers = handoff.CIPHERS[VERSION, stand.cipher]
    stand.tunnel("near", stunnel.Service("out", *addresses, client=True, version=VERSION, ciphers=ciphers))
    return f"tcp:127.0.0.1:{entry}"


def _ktls(stand: Stand) -> str:
    """Connect with ktls-handoff and give its socket to QEMU: nobody stands in between."""
    argv = handoff.connect(
        stand.address,
        _behind_stunnel(stand),
        stand.at[0].ca,
        version=VERSION,
        cipher=stand.cipher,
        timeout=120,
    )
    stand.line = stand.near.call("handoff", argv=argv)["line"]
    stand.near.call("getfd", name="stream")
    stand.undo.callback(_ended, stand.near)
    return "fd:stream"


def _ended(near: End) -> None:
    """Say close_notify: QEMU only closes, and its peer could not tell that from a line that was cut."""
    near.call("notify", argv=[handoff.PROGRAM, "close", "--timeout", "60"])


def _credentials(stand: Stand, end: End, at: Placed, role: str) -> None:
    """Give a QEMU that runs the certificates, under its names for them; taken away after."""
    pairs = [(at.ca, "ca-cert.pem"), (at.cert, "server-cert.pem"), (at.key, "server-key.pem")]
    folder, host = f"{at.folder}/qemu-{role}", end.side.host
    host.run(["mkdir", "-p", folder])
    for source, name in pairs if role == "server" else pairs[:1]:
        host.run(["ln", "-sf", source, f"{folder}/{name}"])
    if role == "server":  # else QEMU looks for a prime of its own, at length
        host.run([*GROUP, "-out", f"{folder}/dh-params.pem"], timeout=120)
    which = {"dir": folder, "endpoint": role, "verify-peer": role == "client"}
    which["priority"] = PRIORITY + NAMES[stand.cipher]
    end.qmp("object-add", **{"qom-type": "tls-creds-x509", "id": "tls", **which})
    stand.undo.callback(end.qmp, "object-del", id="tls")
    end.qmp("migrate-set-parameters", **{"tls-creds": "tls", "tls-hostname": NAME * (role == "client")})
    stand.undo.callback(end.qmp, "migrate-set-parameters", **{"tls-creds": "", "tls-hostname": ""})


def _tls(stand: Stand, channels: int = 0) -> str:
    """QEMU's own TLS (GnuTLS); `channels`: multifd with this many more than the first."""
    migration.start(stand.near, stand.far)
    _credentials(stand, stand.near, stand.at[0], "client")
    _credentials(stand, stand.far, stand.at[1], "server")
    _multifd(stand, channels)
    uri = f"tcp:{stand.address}:{stand.next_port()}"
    stand.far.qmp("migrate-incoming", uri=uri)
    return uri


def _multifd(stand: Stand, channels: int) -> None:
    if not channels:
        return
    on, off = ([{"capability": "multifd", "state": state}] for state in (True, False))
    for end in (stand.near, stand.far):
        end.qmp("migrate-set-capabilities", capabilities=on)
        end.qmp("migrate-set-parameters", **{"multifd-channels": channels})
    stand.undo.callback(stand.near.qmp, "migrate-set-capabilities", capabilities=off)


TRANSPORTS: dict[str, Callable[[Stand], str]] = {
    "plain": _plain,
    "stunnel": _stunnel,
    "qemu-tls": _tls,
    **{f"multifd-{n}": lambda stand, n=n: _tls(stand, n) for n in (1, 2, 4, 8)},
    "ktls": _ktls,
}


@contextmanager
def ends(
    dut: Side, peer: Side, guest: Guest, pair: Certs
) -> Iterator[tuple[End, End, tuple[Placed, Placed]]]:
    """Both ends, without QEMU yet, and where their certificates are."""
    with ExitStack() as undo:
        near, far = (undo.enter_context(migration.end(side, guest)) for side in (dut, peer))
        places = [undo.enter_context(placed(pair, end.side.host, f"{end.folder}/tls")) for end in (near, far)]
        yield near, far, (places[0], places[1])


@contextmanager
def standing(
    near: End, far: End, at: tuple[Placed, Placed], next_port: Callable[[], int], cipher: str = CIPHER
) -> Iterator[Stand]:
    """Yield what a way needs; what it started is ended after."""
    with ExitStack() as undo:
        yield Stand(near, far, at, next_port, undo, cipher)
