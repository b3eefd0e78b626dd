"""A recorded process: its map, sockets and connections, and per reason code a host on which it is found."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from tests.unit.doctor.fake_doctor import READER, STAT, FakeHost, feature

PID = 1234
SSL = "/usr/lib/x86_64-linux-gnu/libssl.so.3"
GNUTLS = "/usr/lib/x86_64-linux-gnu/libgnutls.so.30.34.3"
SOFTWARE, CARD, NOT = 2, 3, 1  # TLS_CONF_*
TLS12, TLS13, GCM, CHACHA = 0x0303, 0x0304, 51, 54


def row(
    inode: int = 77,
    *,
    version: int = TLS12,
    cipher: int = GCM,
    tx: int = CARD,
    rx: int = CARD,
    device: str = "eth0",
    port: int = 50000,
) -> list[Any]:
    """One connection as the reader of sockets shows it."""
    kind = (0, 0, 0, 1, 0, inode, 5, version, cipher, tx, rx, 0, 5000, 0, 700)
    return ["192.0.2.1", 443, "192.0.2.2", port, *kind, device]


def process(
    host: FakeHost,
    rows: Sequence[list[Any]] = (),
    *,
    maps: Sequence[str] = (SSL,),
    version: str = "OpenSSL 3.6.3",
    plain: Sequence[int] = (),
    name: str = "nginx",
    root: bool = True,
) -> None:
    """Process 1234 with these connections under kernel TLS, and those of `plain` (inodes) without."""
    at, inodes = f"/proc/{PID}", [*(one[9] for one in rows), *plain]
    lines = [
        f"   {n}: 010200C0:01BB 020200C0:C350 01 00000000:00000000 00:00000000 00000000 0 0 {i} 1"
        for n, i in enumerate(inodes)
    ]
    space = {"inode": 1, "names": [], "path": f"{at}/ns/net", "here": True, "error": "", "notes": []}
    space |= {"sockets": list(rows), "tls_stat": {"TlsCurrTxSw": len(rows)}}
    owners = {str(one[9]): [PID, name, 60.0, 1] for one in rows}
    reported = {"at": 1.0, "owners": owners, "notes": [], "root": root, "spaces": [space]}
    host.answers |= {
        ("cat", f"{at}/comm"): (0, f"{name}\n", ""),
        ("readlink", f"{at}/exe"): (0, f"/usr/sbin/{name}\n", ""),
        ("grep", "-aoE"): (int(not maps), "".join(f"{line}\n" for line in maps), ""),
        ("grep", "-aqm1"): (1, "", ""),
        ("grep", "-aom1"): (int(not version), f"{version}\n", ""),
        ("grep", "-iE"): (1, "", ""),
        ("find", f"{at}/fd"): (0, "".join(f"socket:[{n}]\n" for n in inodes), ""),
        ("cat", f"{at}/net/tcp"): (0, "  sl  local_address\n" + "\n".join(lines) + "\n", ""),
        READER: (0, json.dumps(reported), ""),
        ("cat", "/proc/net/tls_stat"): (0, STAT, ""),
        ("ethtool", "-S", "eth0"): (
            0,
            "NIC statistics:\n     tx_tls_ctx: 9\n     tx_tls_del: 0\n"
            "     rx_tls_ctx: 9\n     rx_tls_del: 0\n",
            "",
        ),
    }


Make = Callable[[FakeHost], None]


def made(*rows: list[Any], **more: Any) -> Make:
    """A host with the process and these connections."""
    return lambda host: process(host, rows, **more)


def denied(host: FakeHost) -> None:
    """Somebody else's process."""
    process(host, [row()], root=False)
    host.answers["grep", "-aoE"] = (2, "", "grep: /proc/1234/maps: Permission denied\n")


def go(host: FakeHost) -> None:
    process(host, plain=[5], maps=(), name="caddy")
    host.answers["grep", "-aqm1"] = (0, "", "")


def reported(host: FakeHost) -> None:
    """GnuTLS whose configuration switches kernel TLS on."""
    process(host, plain=[5], maps=(GNUTLS,), version="GnuTLS 3.8.9")
    host.answers["grep", "-iE"] = (0, "ktls = true\n", "")


def switched_off(host: FakeHost) -> None:
    """The connection began while transmit was off, and it still is."""
    process(host, [row(tx=SOFTWARE)])
    host.change("tls-hw-tx-offload", feature(False))


SW = {"tx": SOFTWARE, "rx": SOFTWARE}
PID_CASES: dict[str, Make] = {
    "D901": denied,
    "D902": made(),
    "D903": made(plain=[5], maps=(), version=""),
    "D904": go,
    "D905": made(plain=[5], version="OpenSSL 1.1.1"),
    "D906": made(plain=[5], maps=(GNUTLS,), version="GnuTLS 3.8.9"),
    "D907": made(plain=[5, 6]),
    "D908": made(row(version=TLS13, **SW)),
    "D909": made(row(cipher=CHACHA, **SW)),
    "D910": made(row(device="lo", **SW)),
    "D911": made(row(rx=NOT)),
    "D912": made(row(tx=SOFTWARE)),
    "D913": made(row(), maps=(f"{SSL} (deleted)",)),
}
