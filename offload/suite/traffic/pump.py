"""What runs on a host under test to make and take payload: JSON commands on stdin, JSON events on stdout.

Only the standard library; this file and pump_*.py go to the host as one archive, run by its plain
`python3 -I -S`. One process serves many transfers, because starting Python costs about a second in an
emulated guest.

Commands, one JSON object per line:
  {"do": "listen", "id": N, "host": "127.0.0.1", "port": 0}
      -> {"id": N, "event": "listening", "port": P}; the listener stays until "close" with the same id
  {"do": "transfer", "id": N, "via": VIA, "steps": [STEP, ...], "timeout": seconds for each step}
      -> "listening" (where VIA waits for somebody), "open", "gate" (once), and at last "done"
  {"do": "go", "id": N}      let a transfer that stands at its gate go on
  {"do": "count", "id": N, "of": [ids of transfers]}
      -> {"id": N, "event": "count", "at": seconds of a clock, "sent": bytes, "taken": bytes} of all of them
  {"do": "close", "id": N}   close a listener, or give a transfer up
VIA: {"kind": "accept", "listener": N, "keys": path or ""}
     | {"kind": "connect", "host": H, "port": P, "keys": path or ""}
     | {"kind": "handoff", "argv": [...], "env": {...}}
     | {"kind": "spawn", "argv": [...], "env": {...}, "port": P or 0}
     keys: kernel TLS without a handshake, with the keys of this file (pump_channel.install_keys)
     spawn: the program's stdin and stdout carry the payload; it is waited for on TCP port P if not 0
STEP: {"do": "take", "bytes": N, or -1 for all until the peer ends the stream, "pace": [host, port] or null,
        "buffer": bytes of SO_RCVBUF, or 0: the kernel lets it grow}
     | {"do": "send", "seed": text, "sizes": [bytes of each write], "how": a name of pump_methods.METHODS,
        "gate": index of the write to stand before, or -1, "pace": number of a listener or null,
        "offset": bytes in the file before the payload, "alter": null or [first byte, bytes]}
     alter: when all is written stand at the gate, then change this part of the file that was sent from, and
     say "altered"
     | {"do": "flood", "seed": text, "size": bytes of a call, "how": write, sendfile or zerocopy,
        "unsent": bytes of TCP_NOTSENT_LOWAT, or 0}
     | {"do": "drain", "seed": text}     the two ends of a load (pump_flood.py), until "go": not hashed
     pace: the taker connects there and says how much it has; the sender's next write waits for all before it
Event "done": {"sent": PART, "taken": PART, "seconds", "error": text or null,
      "closed": how the peer ended the stream, "handoff": the line of ktls-handoff or null}
PART: {"bytes", "sha256"}
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from typing import Any

from offload.suite.traffic.pump_channel import Channel, Peerless, install_keys, payload
from offload.suite.traffic.pump_flood import drain, flood
from offload.suite.traffic.pump_methods import METHODS, Source

SLOW = 60.0  # seconds more until a connection is up: on a busy machine programs start late
CLOSES = (
    "close",
    "close-wr",
)  # endings that lose data with unread bytes in the queue; only a test asks for them


def _listens(port: int) -> bool:
    """Say whether something in this network namespace listens on a TCP port (state 0A)."""
    wanted = f":{port:04X}"
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError), open(name) as table:  # noqa: PTH123 - pathlib costs start-up time
            for line in table:
                fields = line.split()
                if fields[1].endswith(wanted) and fields[3] == "0A":
                    return True
    return False


class Part:
    """What went one way: bytes and their SHA-256."""

    def __init__(self) -> None:
        self.count, self.hash = 0, hashlib.sha256()

    def add(self, data: bytes) -> None:
        """Count and hash."""
        self.count += len(data)
        self.hash.update(data)

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"bytes": self.count, "sha256": self.hash.hexdigest()}


class Transfer(threading.Thread):
    """One connection: bring it up, send or receive, end it, report."""

    def __init__(self, pump: Pump, ask: dict[str, Any]) -> None:
        super().__init__(daemon=True)
        self.pump, self.ask, self.id = pump, ask, int(ask["id"])
        self.timeout = float(ask.get("timeout", 60))
        self.gate, self.given_up = threading.Event(), False
        self.channel: Channel | None = None
        self.child: subprocess.Popen[bytes] | None = None
        self.handoff: dict[str, Any] | None = None
        self.sent, self.taken = Part(), Part()

    def say(self, event: str, **fields: Any) -> None:
        """Report an event of this transfer."""
        self.pump.say(id=self.id, event=event, **fields)

    def run(self) -> None:
        """Do the transfer; the report has every error."""
        began, error = time.monotonic(), None
        try:
            self.channel = channel = self.open()
            self.say("open", handoff=self.handoff)
            began = time.monotonic()
            for step in self.ask["steps"]:
                self.step(channel, step)
            self.end(channel)
        except OSError as exc:
            error = f"{errno.errorcode.get(exc.errno or 0, '?')}: {exc.strerror or exc}"
        except Peerless as exc:
            error = str(exc)
        except Exception as exc:
            error = f"{type(exc).__name__}: {exc}"
        seconds = time.monotonic() - began
        if self.channel is not None:
            self.channel.close()
        self.say(
            "done",
            sent=self.sent.plain(),
            taken=self.taken.plain(),
            seconds=round(seconds, 4),
            error=error,
            closed=self.channel.closed if self.channel else "",
            handoff=self.handoff,
        )

    def open(self) -> Channel:
        """Bring the connection up the way that was asked for."""
        via = self.ask["via"]
        if via["kind"] == "accept":
            return self.with_keys(self.next_client(self.pump.listeners[via["listener"]]))
        if via["kind"] == "connect":
            return self.with_keys(socket.create_connection((via["host"], via["port"]), self.timeout))
        env = {**os.environ, **via.get("env", {})}
        return self.open_handoff(via["argv"], env) if via["kind"] == "handoff" else self.open_spawn(via, env)

    def with_keys(self, sock: socket.socket) -> Channel:
        """Return the channel on a plain connection, or on one that kernel TLS now has."""
        if path := self.ask["via"].get("keys"):
            sock.setblocking(True)
            install_keys(sock, path)
        return Channel(sock, self.timeout)

    def next_client(self, listener: socket.socket) -> socket.socket:
        """Wait for somebody to connect, and for being told that nobody will."""
        deadline = time.monotonic() + self.timeout + SLOW
        listener.settimeout(0.1)
        while time.monotonic() < deadline and not self.given_up:
            with contextlib.suppress(TimeoutError):
                return listener.accept()[0]
        raise Peerless("nobody connected")

    def open_handoff(self, argv: list[str], env: dict[str, str]) -> Channel:
        """Run ktls-handoff and take the socket that it hands over."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            fd = theirs.fileno()
            child = subprocess.Popen(
                [*argv, "--fd", str(fd)],
                pass_fds=[fd],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            self.child = child
            theirs.close()
            if "--announce" in argv and child.stdout is not None and child.stdout.readline():
                self.say("listening", port=0)
            ours.settimeout(self.timeout + SLOW)
            line, fds, _, _ = socket.recv_fds(ours, 65536, 1)
        return self.handed_over(child, line, fds)

    def handed_over(self, child: subprocess.Popen[bytes], line: bytes, fds: list[int]) -> Channel:
        """Return the channel on the socket that came, or raise with the helper's own words."""
        _, err = child.communicate(timeout=self.timeout)  # it ends once it has answered
        said = err.decode(errors="replace").strip()[-500:]
        self.handoff = json.loads(line) if line else {"ok": False, "message": "no answer"}
        self.handoff |= {"said": said, "exit": child.returncode}
        if fds:
            return Channel(socket.socket(fileno=fds[0]), self.timeout)
        raise Peerless(f"ktls-handoff, exit {child.returncode}: {said}")

    def open_spawn(self, via: dict[str, Any], env: dict[str, str]) -> Channel:
        """Run a program whose standard input and output are the payload."""
        ours, theirs = socket.socketpair()
        with theirs:
            child: subprocess.Popen[bytes] = subprocess.Popen(
                [str(word) for word in via["argv"]], stdin=theirs.fileno(), stdout=theirs.fileno(), env=env
            )
        self.child = child
        deadline = time.monotonic() + self.timeout
        while via.get("port") and not _listens(via["port"]):
            if child.poll() is not None or time.monotonic() > deadline:
                raise Peerless(
                    f"{via['argv'][0]} does not listen on port {via['port']} (exit {child.poll()})"
                )
            time.sleep(0.02)
        if via.get("port"):
            self.say("listening", port=via["port"])
        return Channel(ours, self.timeout, child)

    def step(self, channel: Channel, plan: dict[str, Any]) -> None:
        if plan["do"] == "flood":
            flood(channel, plan, self.gate, self.sent)
        elif plan["do"] == "drain":
            drain(channel, plan["seed"], self.gate, self.taken)
        else:
            self.send(channel, plan) if plan["do"] == "send" else self.take(channel, plan)

    def send(self, channel: Channel, plan: dict[str, Any]) -> None:
        """Send the payload, write by write."""
        source = Source(payload(plan["seed"], sum(plan["sizes"])), plan.get("offset", 0))
        method, last, at, pace = (
            METHODS[plan.get("how", "write")],
            len(plan["sizes"]) - 1,
            0,
            plan.get("pace"),
        )
        far = self.next_client(self.pump.listeners[pace]) if pace is not None else None
        for number, size in enumerate(plan["sizes"]):
            if number == plan.get("gate", -1):
                self.stand()
            method(channel, source, at, size, number == last)
            self.sent.add(source.data[at : at + size])
            at += size
            if far is not None:
                self.until_taken(far, at)
        if plan.get("alter"):
            self.stand()
            source.invert(*plan["alter"])
            self.say("altered")
        source.close()

    def until_taken(self, far: socket.socket, count: int) -> None:
        """Wait until the taker says that it has this many bytes."""
        far.settimeout(self.timeout)
        while len(said := far.recv(8, socket.MSG_WAITALL)) == 8:
            if int.from_bytes(said, "big") >= count:
                return
        raise Peerless(f"the receiver closed before it had {count} bytes")

    def stand(self) -> None:
        """Wait at the gate until told to go on."""
        self.say("gate", bytes=self.sent.count)
        if not self.gate.wait(self.timeout):
            raise Peerless("nobody opened the gate")

    def take(self, channel: Channel, plan: dict[str, Any]) -> None:
        """Receive this many bytes, or to the end of the stream."""
        wanted, far = plan["bytes"], None
        until = self.taken.count + wanted if wanted >= 0 else -1
        if plan.get("buffer"):
            channel.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, plan["buffer"])
        if plan.get("pace"):
            far = socket.create_connection(tuple(plan["pace"]), self.timeout)
            far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while until < 0 or self.taken.count < until:
            data = channel.receive(65536 if until < 0 else min(65536, until - self.taken.count))
            if not data:
                break
            self.taken.add(data)
            if far is not None:
                far.sendall(self.taken.count.to_bytes(8, "big"))

    def end(self, channel: Channel) -> None:
        """End the stream: safely, or in the careless way that a test of data loss asks for."""
        how = self.ask.get("end", "safe")
        if how not in CLOSES:
            channel.finish()
        elif how == "close-wr":
            channel.sock.shutdown(socket.SHUT_WR)

    def give_up(self) -> None:
        """End whatever runs."""
        self.given_up = True
        self.gate.set()
        if self.child is not None and self.child.poll() is None:
            self.child.kill()
        if self.channel is not None:
            with contextlib.suppress(OSError):
                self.channel.sock.shutdown(socket.SHUT_RDWR)


class Pump:
    """The command loop."""

    def __init__(self) -> None:
        self.listeners: dict[int, socket.socket] = {}
        self.transfers: dict[int, Transfer] = {}
        self.lock = threading.Lock()

    def say(self, **fields: Any) -> None:
        """Write one event."""
        with self.lock:
            sys.stdout.write(json.dumps(fields) + "\n")
            sys.stdout.flush()

    def obey(self, ask: dict[str, Any]) -> None:
        """Carry out one command."""
        number = int(ask["id"])
        if ask["do"] == "listen":
            listener = socket.create_server((ask.get("host", "127.0.0.1"), ask.get("port", 0)), backlog=16)
            self.listeners[number] = listener
            self.say(id=number, event="listening", port=listener.getsockname()[1])
        elif ask["do"] == "transfer":
            self.transfers[number] = Transfer(self, ask)
            self.transfers[number].start()
        elif ask["do"] == "go":
            self.transfers[number].gate.set()
        elif ask["do"] == "count":
            of = [self.transfers[each] for each in ask["of"]]
            sent, taken = sum(t.sent.count for t in of), sum(t.taken.count for t in of)
            self.say(id=number, event="count", at=time.monotonic(), sent=sent, taken=taken)
        elif number in self.transfers:
            self.transfers.pop(number).give_up()
        elif number in self.listeners:
            self.listeners.pop(number).close()

    def serve(self) -> None:
        """Obey until standard input ends; a command that makes no sense is answered, not fatal."""
        self.say(id=0, event="ready", pid=os.getpid(), python=sys.version.split()[0])
        for line in sys.stdin:
            try:
                self.obey(json.loads(line))
            except Exception as exc:
                self.say(id=0, event="refused", error=f"{type(exc).__name__}: {exc}", line=line[:200])
        for transfer in self.transfers.values():
            transfer.give_up()


if __name__ == "__main__":
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # 1,024 connections and their pipes
    Pump().serve()
