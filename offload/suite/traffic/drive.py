"""The runner's end of a pump: start it on a host, ask for transfers, wait for what it reports."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from offload.cmd import Pace, wait_until
from offload.errors import OffloadError, RigError
from offload.host.base import Host
from offload.host.vm import talk
from offload.paths import PACKAGE, ROOT
from offload.suite.traffic.handoff import Line, parse

PROGRAM = PACKAGE / "suite/traffic/pump.py"
STEP = 40.0  # seconds that one step of a transfer may take
LOOK = 1.0  # seconds that one look at the pump may wait for something new
PATIENCE = 180.0  # seconds for an event of the pump: longer than a step after a slow start (SLOW there)
PYTHON = ["/usr/bin/python3", "-I", "-S"]  # isolated, no site: a third of the start-up time


@dataclass(frozen=True)
class Sending:
    """What to send: the size of each write, and `how` (a function of pump_methods.METHODS).

    `gate`: wait before that write for the order to go on. `offset`: the payload's place in the
    file. `alter`: stand at the gate after the last write, then change the file (first, count).
    """

    seed: str
    sizes: tuple[int, ...]
    how: str = "write"
    gate: int = -1
    offset: int = 0
    alter: tuple[int, int] | None = None

    @property
    def total(self) -> int:
        """Bytes in all."""
        return sum(self.sizes)

    def content(self) -> bytes:
        """Return what a sink must see; computed here, not by the program that sends."""
        return hashlib.shake_128(self.seed.encode()).digest(self.total)

    def sha256(self) -> str:
        """Return the SHA-256 of the content, hexadecimal."""
        return hashlib.sha256(self.content()).hexdigest()


def sending(seed: str, total: int, write: int = 65536, **more: Any) -> Sending:
    """Return a plan of `total` bytes in writes of `write` bytes; the last one is what is left."""
    sizes = [write] * (total // write) + ([total % write] if total % write else [])
    return Sending(seed, tuple(sizes), **more)


@dataclass(frozen=True)
class Part:
    """What went one way, as the end that reports it saw it."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Report:
    """What one end saw: seconds from open to end, how the peer ended the stream, what failed."""

    sent: Part
    taken: Part
    seconds: float
    error: str
    closed: str
    handoff: Line | None

    def took(self, plan: Sending) -> bool:
        """Say whether exactly this payload arrived."""
        return self.taken == Part(plan.total, plan.sha256())


def send(plan: Sending, pace: int | None = None) -> dict[str, Any]:
    """The step that sends a payload. `pace`: number of a listener; each write waits for its taker there."""
    return {"do": "send", **vars(plan), "sizes": list(plan.sizes), "pace": pace}


def take(count: int = -1, pace: tuple[str, int] | None = None, buffer: int = 0) -> dict[str, Any]:
    """The step that takes this many bytes, or all until the peer ends the stream.

    `pace`: address and port of the sender's listener, where the taker says how much it has. `buffer`: bytes
    of the socket's receive buffer (SO_RCVBUF); 0: the kernel lets it grow.
    """
    return {"do": "take", "bytes": count, "pace": pace, "buffer": buffer}


def flood(seed: str, size: int, how: str = "write", unsent: int = 0) -> dict[str, Any]:
    """The step that loads a connection until `go`: `size` bytes a call; `how`: write, sendfile, zerocopy.

    `unsent`: bytes that may wait in the socket before they are sent (TCP_NOTSENT_LOWAT); 0: any.
    """
    return {"do": "flood", "seed": seed, "size": size, "how": how, "unsent": unsent}


def drain(seed: str) -> dict[str, Any]:
    """The step that takes what `flood` sends, to the end; compared at its start, and after `go`."""
    return {"do": "drain", "seed": seed}


@dataclass(frozen=True)
class Count:
    """Bytes that some transfers have moved so far, and when that was (seconds of the host's clock)."""

    at: float
    sent: int
    taken: int


class Ended(OffloadError):
    """A transfer ended before it came so far; that may be the card's doing, so it is no broken rig."""


class Transfer:
    """A transfer that is under way on a host."""

    def __init__(self, pump: Pump, number: int) -> None:
        self._pump, self.number = pump, number

    def opened(self, timeout: float = PATIENCE) -> Line | None:
        """Wait until the connection is up: the helper's line if there is one. Ended if it never is."""
        event = self._pump.event(self.number, ("open", "done"), timeout)
        if event["event"] == "done":
            raise Ended(f"no connection on {self._pump.host.name}: {event['error']}")
        return parse(event["handoff"])

    def listening(self, timeout: float = PATIENCE) -> None:
        """Wait until it waits for somebody to connect."""
        event = self._pump.event(self.number, ("listening", "done"), timeout)
        if event["event"] == "done":
            raise Ended(f"no program listens on {self._pump.host.name}: {event['error']}")

    def at_gate(self, timeout: float = PATIENCE) -> None:
        """Wait until it stands at its gate."""
        event = self._pump.event(self.number, ("gate", "done"), timeout)
        if event["event"] == "done":
            raise Ended(f"ended before its gate on {self._pump.host.name}: {event['error']}")

    def altered(self, timeout: float = PATIENCE) -> None:
        """Wait until it has changed the file that it sent."""
        event = self._pump.event(self.number, ("altered", "done"), timeout)
        if event["event"] == "done":
            raise Ended(f"ended with its file as it was on {self._pump.host.name}: {event['error']}")

    def go(self) -> None:
        """Open the gate."""
        self._pump.tell("go", id=self.number)

    def report(self, timeout: float = PATIENCE) -> Report:
        """Wait for the end: what this side saw, errors included."""
        event = self._pump.event(self.number, ("done",), timeout)
        return Report(
            Part(**event["sent"]),
            Part(**event["taken"]),
            event["seconds"],
            event["error"] or "",
            event["closed"],
            parse(event["handoff"]),
        )

    def over(self) -> bool:
        """Say whether it has ended, by what the pump has said so far."""
        return bool(self._pump.said(self.number, ("done",)))

    def give_up(self) -> None:
        """End it, whatever it is doing."""
        self._pump.tell("close", id=self.number)


class Pump:
    """One pump process on a host; `running()` makes it."""

    def __init__(self, host: Host, path: str, before: Sequence[str] = ()) -> None:
        self.host, self._next, self._seen = host, 0, 0
        self._events: list[dict[str, Any]] = []
        self._process = talk(host, [*before, *PYTHON, path])

    def ready(self) -> None:
        """Wait until it takes commands. RigError if it never does."""
        self.event(0, ("ready",), 60)

    def tell(self, do: str, **fields: Any) -> None:
        """Send a command."""
        self._process.stdin(json.dumps({"do": do, **fields}).encode() + b"\n")

    def listen(self, port: int = 0, host: str = "127.0.0.1") -> tuple[int, int]:
        """Open a plain listener, on the loopback if no address is given: its number and port."""
        number = self._number()
        self.tell("listen", id=number, port=port, host=host)
        return number, int(self.event(number, ("listening",), 60)["port"])

    def close(self, number: int) -> None:
        """Close a listener."""
        self.tell("close", id=number)

    def transfer(
        self, via: Mapping[str, Any], *steps: Mapping[str, Any], timeout: float = STEP, end: str = "safe"
    ) -> Transfer:
        """Begin a transfer of these steps. `timeout`: seconds that one step may take."""
        number = self._number()
        plan = [dict(step) for step in steps]
        self.tell("transfer", id=number, via=dict(via), steps=plan, timeout=timeout * Pace.factor, end=end)
        return Transfer(self, number)

    def accept(
        self, listener: int, *steps: Mapping[str, Any], timeout: float = STEP, keys: str = ""
    ) -> Transfer:
        """Begin a transfer on the next connection to a listener of ours. `keys`: see rawkeys.py."""
        return self.transfer({"kind": "accept", "listener": listener, "keys": keys}, *steps, timeout=timeout)

    def connect(
        self, host: str, port: int, *steps: Mapping[str, Any], timeout: float = STEP, keys: str = ""
    ) -> Transfer:
        """Begin a transfer on a plain connection that we make. `keys`: see rawkeys.py."""
        via = {"kind": "connect", "host": host, "port": port, "keys": keys}
        return self.transfer(via, *steps, timeout=timeout)

    def handoff(
        self,
        argv: Sequence[str],
        *steps: Mapping[str, Any],
        env: Mapping[str, str] | None = None,
        timeout: float = STEP,
        end: str = "safe",
    ) -> Transfer:
        """Begin a transfer on the socket that ktls-handoff hands over."""
        via = {"kind": "handoff", "argv": list(argv), "env": dict(env or {})}
        return self.transfer(via, *steps, timeout=timeout, end=end)

    def spawn(
        self,
        argv: Sequence[str],
        *steps: Mapping[str, Any],
        env: Mapping[str, str],
        port: int = 0,
    ) -> Transfer:
        """Begin a transfer through a program's stdin and stdout; wait for its TCP `port` if not 0."""
        via = {"kind": "spawn", "argv": list(argv), "env": dict(env), "port": port}
        return self.transfer(via, *steps)

    def count(self, transfers: Sequence[Transfer]) -> Count:
        """How far they are together, now."""
        number = self._number()
        self.tell("count", id=number, of=[transfer.number for transfer in transfers])
        said = self.event(number, ("count",), 60)
        return Count(said["at"], said["sent"], said["taken"])

    def event(self, number: int, names: tuple[str, ...], timeout: float) -> dict[str, Any]:
        """Wait for an event of a transfer. RigError if the pump died, refused a command, or stays silent."""
        look = min(LOOK, timeout)

        def arrived() -> bool:
            news = self._read(look)
            return bool(self.said(number, names)) or (not news and self._broken(number))

        if not self.said(number, names):
            what = f"{' or '.join(names)} of transfer {number} on {self.host.name}"
            wait_until(arrived, timeout, what, every=0.02)
        return self.said(number, names)[0]

    def said(self, number: int, names: tuple[str, ...]) -> list[dict[str, Any]]:
        """The events of a transfer that have been read."""
        return [e for e in self._events if e["id"] == number and e["event"] in names]

    def _broken(self, number: int) -> bool:
        """Raise if nothing more can come; else say that nothing has come yet."""
        refused = [e for e in self._events if e["event"] == "refused"]
        if refused:
            raise RigError(
                f"the pump on {self.host.name} refused {refused[0]['line']!r}: {refused[0]['error']}"
            )
        if not self._process.running():
            raise RigError(f"the pump on {self.host.name} died (transfer {number}):\n{self.trouble()}")
        return False

    def trouble(self) -> str:
        """Return the end of what the pump and its programs wrote to standard error."""
        return self._process.output()[1].decode("utf-8", "replace")[-2000:]

    def _number(self) -> int:
        self._next += 1
        return self._next

    def _read(self, patience: float) -> bool:
        """Take in the whole lines that came since the last time, or come now; False if there are none."""
        out = self._process.news(patience)[0]
        end = out.rfind(b"\n") + 1
        lines, self._seen = out[self._seen : end].splitlines(), end
        self._events += [json.loads(line) for line in lines]
        return bool(lines)

    def stop(self) -> None:
        """End the process and what it started."""
        self._process.stdin(b"", eof=True)
        self._process.kill()


def archive() -> bytes:
    """Return the pump as one file that `python3 -I -S` runs: pump.py and every pump_*.py of its folder."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as into:
        into.writestr(zipfile.ZipInfo("__main__.py"), PROGRAM.read_bytes())
        for folder in PROGRAM.relative_to(ROOT).parents[:-1]:
            into.writestr(zipfile.ZipInfo(f"{folder}/__init__.py"), b"")
        for part in sorted(PROGRAM.parent.glob("pump_*.py")):
            into.writestr(zipfile.ZipInfo(str(part.relative_to(ROOT))), part.read_bytes())
    return out.getvalue()


@contextmanager
def running(host: Host, folder: str, wait: bool = True, before: Sequence[str] = ()) -> Iterator[Pump]:
    """Copy the pump to `folder` of the host, run it until the block ends; `wait`: until it is ready.

    `before`: the command that runs it, such as nice.
    """
    path = f"{folder}/pump.zip"
    host.write(path, archive(), 0o644)
    pump = Pump(host, path, before)
    try:
        if wait:
            pump.ready()
        yield pump
    finally:
        pump.stop()
