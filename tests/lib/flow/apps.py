"""A program's connections, seen from outside: who does the records of each, by the DUT's counters."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from offload.card.counters import parse
from offload.card.profile import DIRECTIONS
from offload.cmd import wait_until
from offload.doctor.apps.judge import Answer, Ruling
from offload.errors import RigError
from offload.host.base import Host, Process
from tests.lib.rig.rig import Rig

NAMES = {
    ("tx", "hw"): "TlsTxDevice",
    ("tx", "sw"): "TlsTxSw",
    ("rx", "hw"): "TlsRxDevice",
    ("rx", "sw"): "TlsRxSw",
}
# Connect, say `ask`, read to `end` bytes (0: to the end), say what was agreed on; a line of JSON each way.
CLIENT = """
import hashlib, json, socket, ssl, sys
for line in sys.stdin:
    want = json.loads(line)
    head = want["after"].encode()
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(want["ca"])
        context.check_hostname = False
        context.maximum_version = getattr(ssl.TLSVersion, "TLSv1_" + want["version"][2])
        context.set_ciphers(want["ciphers"])
        raw = socket.create_connection((want["host"], want["port"]), 30)
        with context.wrap_socket(raw, server_hostname=want["sni"] or None) as tls:
            tls.sendall(bytes.fromhex(want["ask"]))
            got = b""
            while not want["end"] or len(got) < want["end"]:
                more = tls.recv(65536)
                if not more:
                    break
                got += more
            said = {"version": tls.version()[4:], "cipher": tls.cipher()[0], "bytes": len(got),
                    "sha256": hashlib.sha256(got[got.find(head) + len(head):]).hexdigest()}
    except Exception as exc:
        said = {"error": f"{type(exc).__name__}: {exc}"}
    print(json.dumps(said), flush=True)
"""
CELLS = {
    "ECDHE-RSA-AES128-GCM-SHA256": "aes-gcm-128",
    "ECDHE-RSA-AES256-GCM-SHA384": "aes-gcm-256",
    "TLS_AES_128_GCM_SHA256": "aes-gcm-128",
    "TLS_AES_256_GCM_SHA384": "aes-gcm-256",
    "ECDHE-RSA-CHACHA20-POLY1305": "chacha20-poly1305",
}


@dataclass(frozen=True)
class Seen:
    """One finished connection: what was agreed on, the payload's digest, and who did each direction."""

    version: str
    cipher: str
    sha256: str
    who: Mapping[str, str]


class Client:
    """A process that makes TLS connections in user space, one at a time."""

    def __init__(self, host: Host, dut: Host, ca: str) -> None:
        self.host, self.dut, self.ca, self.lines = host, dut, ca, 0
        self.process: Process = host.start(["/usr/bin/python3", "-I", "-S", "-u", "-c", CLIENT])

    def connect(
        self,
        address: str,
        port: int,
        *,
        version: str = "1.2",
        ciphers: str = "ECDHE-RSA-AES256-GCM-SHA384",
        sni: str = "",
        ask: bytes = b"",
        end: int = 0,
        after: str = "",
    ) -> Seen:
        """Make one connection; `after`: what stands before the payload. AssertionError if it fails."""
        before = self._stat()
        want = {
            "host": address,
            "port": port,
            "version": version,
            "ciphers": ciphers,
            "sni": sni,
            "ask": ask.hex(),
            "end": end,
            "after": after,
            "ca": self.ca,
        }
        self.process.stdin(json.dumps(want).encode() + b"\n")
        wait_until(lambda: self.process.output()[0].count(b"\n") > self.lines, 120, f"port {port}", 0.2)
        said: dict[str, Any] = json.loads(self.process.output()[0].splitlines()[self.lines])
        self.lines += 1
        assert "error" not in said, f"port {port}: {said['error']}"
        after_it = self._stat()
        who = {direction: "user" for direction in DIRECTIONS}
        for (direction, word), name in NAMES.items():
            if (moved := after_it.get(name, 0) - before.get(name, 0)) != 0:
                assert moved == 1 and who[direction] == "user", f"port {port}: {name} counted {moved}"
                who[direction] = word
        return Seen(said["version"], CELLS.get(said["cipher"], "other"), said["sha256"], who)

    def _stat(self) -> Mapping[str, int]:
        return parse(self.dut.read("/proc/net/tls_stat").decode().replace("\t", ": "))[0]


@contextmanager
def client(rig: Rig, where: str = "peer") -> Iterator[Client]:
    """A client on the peer (or the DUT itself), until the block ends."""
    end = rig.end(where)
    found = Client(end.side.host, rig.bench.dut.host, end.at.ca)
    try:
        yield found
    finally:
        found.process.kill()


@contextmanager
def program(
    host: Host, argv: list[str], port: int, env: Mapping[str, str] | None = None
) -> Iterator[Process]:
    """A program that listens on a port, until the block ends. RigError with its words if it does not."""
    with ExitStack() as undo:
        process = host.start(argv, env=env)
        undo.callback(process.kill)

        def up() -> bool:
            if not process.running():
                raise RigError(
                    f"{argv[0]} ended at once: {process.output()[1].decode('utf-8', 'replace')[-2000:]}"
                )
            return host.run(["ss", "-Hltn", f"sport = :{port}"], check=False).text.strip() != ""

        wait_until(up, 120, f"{argv[0]} to listen on port {port}", 0.5)
        yield process


def of_port(answer: Answer, port: int, name: str = "") -> Ruling:
    """The ruling about the service on a port (of a name, where several share it)."""
    found = [
        r
        for r in answer.rulings
        if f"{r.service.name} {r.service.address}".endswith(f":{port}") and name in r.service.name
    ]
    assert len(found) == 1, f"{len(found)} services on port {port}"
    return found[0]


def codes(ruling: Ruling) -> set[str]:
    """The codes found of a service."""
    return {f.code for f in ruling.findings}


def as_reported(ruling: Ruling, seen: Seen) -> None:
    """Who did the records of a connection is who the table names for its version and cipher."""
    reported = {w.cell.direction: w.who for w in ruling.cells if w.cell[1:] == (seen.version, seen.cipher)}
    assert reported == dict(seen.who), (
        f"{ruling.service.title()}: TLS {seen.version} {seen.cipher}: reported {reported}, seen {seen.who}"
    )
