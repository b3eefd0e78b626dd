"""iperf3-tls between DUT and peer: how it is called, and what its JSON says (native/iperf3/README.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from offload.cmd import wait_until
from offload.errors import RigError
from offload.host.base import Completed, Host, Process
from offload.paths import BUILD

PROGRAM = BUILD / "iperf3-tls"
PORT = 5201
MOST = 128  # MAX_STREAMS of iperf.h
# what the client must say, by arm: user space, kernel (software or card), zero-copy sendfile, no TLS
TLS = {
    "user": ("--ktls=off",),
    "sw": ("--ktls=both",),
    "hw": ("--ktls=both",),
    "hw-zc": ("--ktls=both", "-Z"),
}
CIPHERS = {
    ("1.2", "aes-gcm-128"): "ECDHE-ECDSA-AES128-GCM-SHA256",
    ("1.2", "aes-gcm-256"): "ECDHE-ECDSA-AES256-GCM-SHA384",
}
DIRECTIONS: dict[str, tuple[str, ...]] = {"tx": (), "rx": ("-R",), "both": ("--bidir",)}


@dataclass(frozen=True)
class Result:
    """What a client saw: bytes that were received, by the client's direction; seconds; who did its records.

    `tx` and `rx`: the words of the streams that carried data that way: user, sw, hw, kernel, none (no TLS).
    """

    sent: int
    received: int
    seconds: float
    tx: tuple[str, ...]
    rx: tuple[str, ...]
    zerocopy: bool

    @property
    def bytes(self) -> int:
        """Payload of both directions."""
        return self.sent + self.received


def missing(host: Host) -> str:
    """Return what this host lacks to run it, or ''."""
    done = host.run([str(PROGRAM), "--version"], check=False)
    if done.rc == 127:
        return "build/iperf3-tls is not built (make iperf3)"
    return "" if done.rc == 0 else f"build/iperf3-tls does not run on {host.name}: {_last(done)}"


def argv(
    address: str, port: int, arm: str, direction: str, streams: int, seconds: float, **more: Any
) -> list[str]:
    """The client's command. `more`: `version`, `cipher` (kernel's name), `size` (bytes of a write)."""
    words = [str(PROGRAM), "-c", address, "-p", str(port), "-J", "-t", str(max(1, round(seconds)))]
    words += ["-P", str(streams), *DIRECTIONS[direction]]
    if size := more.get("size"):
        words += ["-l", str(size)]
    if arm == "plain":
        return words
    version, cipher = more.get("version", "1.2"), more.get("cipher", "aes-gcm-128")
    return [*words, f"--tls={version}", f"--tls-ciphers={CIPHERS[version, cipher]}", *TLS[arm]]


@contextmanager
def server(host: Host, port: int = PORT) -> Iterator[Process]:
    """Run a server on the host until the block ends. RigError with its words if it does not come up."""
    vacant(host, port)
    process = host.start([str(PROGRAM), "-s", "-p", str(port)])

    def up() -> bool:
        if not process.running():
            out, err = process.output()
            raise RigError(
                f"iperf3-tls -s ended at once: {(out + err).decode(errors='replace').strip()[-300:]}"
            )
        return listens(host, port)

    try:
        wait_until(up, 60, f"iperf3-tls to listen on port {port} of {host.name}")
        yield process
    finally:
        process.kill()


def vacant(host: Host, port: int, patience: float = 20) -> None:
    """Wait until nobody listens on a port: another listener would pass for ours. RigError after this many
    seconds."""
    who = f"`ss -tlnp sport = :{port}` there shows the listening program"
    wait_until(lambda: not listens(host, port), patience, f"port {port} of {host.name} to be free: {who}")


def listens(host: Host, port: int) -> bool:
    """Say whether something listens on a TCP port there (state 0A)."""
    tables = host.run(["cat", "/proc/net/tcp", "/proc/net/tcp6"], check=False).text
    return any(f":{port:04X} " in row and " 0A " in row for row in tables.splitlines())


def parse(done: Completed) -> Result:
    """The client's answer. RigError with its own words if it failed, or if its JSON makes no sense."""
    try:
        said = json.loads(done.stdout) if done.stdout.strip() else {}
    except ValueError:
        said = {}
    if not isinstance(said, dict):
        said = {}
    if done.rc or said.get("error") or "end" not in said:
        raise RigError(
            f"iperf3-tls, exit {done.rc} ({done.where}): {str(said.get('error') or _last(done))[:300]}"
        )
    try:
        return _result(said["end"])
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise RigError(f"iperf3-tls: JSON without the expected fields: {type(exc).__name__} {exc}") from None


def _result(end: Mapping[str, Any]) -> Result:
    """From the object `end`: a stream of the client says `sender`: whether the client sent."""
    rows = [(bool(row["sender"]["sender"]), row) for row in end["streams"]]
    if not rows:
        raise RigError("iperf3-tls: a result without streams")
    moved = [0, 0]
    for sends, row in rows:
        moved[sends] += _number(row["receiver"]["bytes"])
    seconds = max(float(row["receiver"]["seconds"]) for _, row in rows)
    tls = [(sends, row.get("tls") or {}) for sends, row in rows]
    tx = tuple(str(t.get("tx", "none")) for sends, t in tls if sends)
    rx = tuple(str(t.get("rx", "none")) for sends, t in tls if not sends)
    zerocopy = bool(tx) and all(t.get("zerocopy_sendfile") is True for sends, t in tls if sends)
    return Result(moved[1], moved[0], seconds, tx, rx, zerocopy)


def _number(value: object) -> int:
    """A count of bytes."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise ValueError(f"{value!r} is not a byte count")
    return value


def _last(done: Completed) -> str:
    """The last line of what a program said."""
    lines = (done.stderr + done.stdout).decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else "it said nothing"


def words(result: Result) -> Sequence[str]:
    """Return who did the records of all streams, each word once."""
    return sorted({*result.tx, *result.rx})
