"""What runs on a host at one end of a live migration: it starts QEMU, tells it what to do, and looks inside.

Only the standard library, one file: copied to the host and run by its plain `python3 -I -S`. Each line on
stdin is a JSON list of commands, and the next one on stdout that of their answers:
  {"do": "start", "argv": [...], "socket": path}   QEMU, with its monitor (QMP) there -> {"pid"}
  {"do": "qmp", "execute": name, "arguments": {...}}                 -> {"return": what QEMU answers}
  {"do": "ready", "at": address, "magic": number}  wait until this word is in the guest's memory -> {}
  {"do": "later", "at": address, "than": number}   wait until the word there is greater -> {}
  {"do": "word", "at": address, "size": bytes}     what is in the guest's memory now -> {"hex"}
  {"do": "memory", "from": address, "size": bytes, "area": address}
      -> {"sha256": of all, "counts": [word 0 of each page of the area], "rest": SHA-256 of the rest}
  {"do": "handoff", "argv": [...]}   a kernel TLS socket by ktls-handoff, kept here -> {"line": its JSON}
  {"do": "getfd", "name": text}      the socket goes to QEMU; we keep a copy, to end the stream in order
  {"do": "notify", "argv": [...]}    `ktls-handoff close --fd` for that copy -> {"line"}
  {"do": "migrated", "timeout": seconds, "rounds": most}   wait until the migration is over; after this many
      rounds (0: any number) the guest is stopped whatever is left -> {"info": query-migrate, "forced": bool}
  {"do": "waits", "timeout"}         wait until the guest that came in may go on -> {"status"}
  {"do": "spent", "pids": [more processes]}   seconds of CPU so far -> {"qemu", "PID"...}
A command that fails answers {"error": words}.
"""

from __future__ import annotations

import array
import contextlib
import hashlib
import json
import os
import socket
import subprocess
import sys
import time
from typing import Any

PAGE = 4096
PATIENCE = 120  # seconds until QEMU answers: emulated in an emulated machine it needs some
LONGEST = 2000 * 1000  # ms: the longest downtime that QEMU lets be asked for (MAX_MIGRATE_DOWNTIME)
TICKS = os.sysconf("SC_CLK_TCK")


class Trouble(Exception):
    """What went wrong, in words."""


class End:
    """One QEMU, the socket for its migration, and one method per command (do_*)."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[bytes] | None = None
        self.monitor = socket.socket(socket.AF_UNIX)
        self.link: socket.socket | None = None
        self.folder, self.number = "", 0

    def do_start(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Start QEMU and greet it; one that has ended before is forgotten."""
        self.quit()
        self.folder = os.path.dirname(ask["socket"])  # noqa: PTH120 - pathlib costs start-up time
        self.child = subprocess.Popen(ask["argv"], stdin=subprocess.DEVNULL, stdout=sys.stderr)
        self.monitor = socket.socket(socket.AF_UNIX)
        self.monitor.settimeout(PATIENCE)
        ends = time.monotonic() + PATIENCE
        while True:
            try:
                self.monitor.connect(ask["socket"])
                break
            except OSError:
                self.alive(ends)
                time.sleep(0.05)
        self.lines = self.monitor.makefile("rb")
        self.heard()
        self.qmp("qmp_capabilities")
        return {"pid": self.child.pid}

    def alive(self, ends: float) -> None:
        """Trouble if QEMU is gone, or too much time."""
        if self.child is None or self.child.poll() is not None:
            raise Trouble(f"QEMU ended with {self.child.returncode if self.child else 'nothing'}")
        if time.monotonic() > ends:
            raise Trouble("QEMU did not come so far in time")

    def heard(self) -> dict[str, Any]:
        """The next message of the monitor."""
        line = self.lines.readline()
        if not line:
            raise Trouble("QEMU closed its monitor")
        return dict(json.loads(line))

    def qmp(self, execute: str, fd: socket.socket | None = None, **arguments: Any) -> Any:
        """Tell QEMU something, with a descriptor if given; events in between are passed over."""
        text = json.dumps({"execute": execute, "arguments": arguments}).encode() + b"\n"
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd.fileno()]))] if fd else []
        self.monitor.sendmsg([text], rights)
        while True:
            answer = self.heard()
            if "error" in answer:
                raise Trouble(f"{execute}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

    def do_qmp(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Tell QEMU something."""
        return {"return": self.qmp(ask["execute"], **ask.get("arguments", {}))}

    def dump(self, at: int, size: int) -> bytes:
        """A part of the guest's memory; read through a file, because QMP gives no bytes."""
        path = f"{self.folder}/memory-{os.getpid()}"
        try:
            self.qmp("pmemsave", val=at, size=size, filename=path)
            with open(path, "rb") as dumped:  # noqa: PTH123
                return dumped.read()
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)  # noqa: PTH108

    def word(self, at: int) -> int:
        """A word of the guest's memory."""
        return int.from_bytes(self.dump(at, 4), "little")

    def do_ready(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Wait for a word in the guest's memory."""
        ends = time.monotonic() + PATIENCE
        while self.word(ask["at"]) != ask["magic"]:
            self.alive(ends)
            time.sleep(0.1)
        return {}

    def do_later(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Wait until a word of the guest's memory has grown."""
        ends = time.monotonic() + PATIENCE
        while self.word(ask["at"]) <= ask["than"]:
            self.alive(ends)
            time.sleep(0.05)
        return {}

    def do_word(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Return what is in the guest's memory."""
        return {"hex": self.dump(ask["at"], ask["size"]).hex()}

    def do_memory(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Digests of the guest's memory."""
        content = self.dump(ask["from"], ask["size"])
        rest, counts = hashlib.sha256(), array.array("I")
        for at in range(ask["area"] - ask["from"], ask["size"], PAGE):
            counts.frombytes(content[at : at + 4])
            rest.update(memoryview(content)[at + 4 : at + PAGE])
        found = {"sha256": hashlib.sha256(content).hexdigest(), "rest": rest.hexdigest()}
        return {**found, "counts": list(counts)}

    def do_handoff(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Let ktls-handoff connect, and take its socket."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            argv = [*ask["argv"], "--fd", str(theirs.fileno())]
            child = subprocess.Popen(argv, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
            theirs.close()
            text, fds, _, _ = socket.recv_fds(ours, 65536, 4)
            child.wait(PATIENCE)
        line = json.loads(text)
        if len(fds) != 1:
            raise Trouble(line.get("message", "no socket came"))
        self.link = socket.socket(fileno=fds[0])
        return {"line": line, "port": self.link.getsockname()[1]}

    def do_getfd(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Give QEMU the socket."""
        self.qmp("getfd", self.link, fdname=ask["name"])
        return {}

    def do_notify(self, ask: dict[str, Any]) -> dict[str, Any]:
        """End the stream in order."""
        assert self.link is not None
        fd = self.link.fileno()
        done = subprocess.run([*ask["argv"], "--fd", str(fd)], pass_fds=[fd], capture_output=True)
        self.link.close()
        return {"line": json.loads(done.stdout)}

    def do_migrated(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Wait until it is over; whether it went well is in the answer."""
        ends, most, forced = time.monotonic() + ask["timeout"], ask.get("rounds", 0), False
        while (info := self.qmp("query-migrate")).get("status") not in ("completed", "failed", "cancelled"):
            self.alive(ends)
            if most and not forced and info.get("ram", {}).get("dirty-sync-count", 0) > most:
                self.qmp("migrate-set-parameters", **{"downtime-limit": LONGEST})
                forced = True
            time.sleep(0.05)
        # "completed" comes first, its figures and the end of the source's guest a moment later
        while info["status"] == "completed" and self.qmp("query-status")["status"] != "postmigrate":
            self.alive(ends)
            time.sleep(0.02)
        return {"info": self.qmp("query-migrate"), "forced": forced}

    def do_waits(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Wait until all has come in."""
        ends = time.monotonic() + ask["timeout"]
        while (status := self.qmp("query-status")["status"]) == "inmigrate":
            self.alive(ends)
            time.sleep(0.02)
        return {"status": status}

    def do_spent(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Seconds of CPU, of threads that have ended too."""
        assert self.child is not None
        found = {}
        for pid in [self.child.pid, *ask.get("pids", [])]:
            with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123
                fields = stat.read().rpartition(")")[2].split()
            found["qemu" if pid == self.child.pid else str(pid)] = (int(fields[11]) + int(fields[12])) / TICKS
        return found

    def quit(self) -> None:
        """End QEMU."""
        if self.child is not None:
            self.child.kill()
            self.child.wait()


def obeyed(end: End, ask: dict[str, Any]) -> dict[str, Any]:
    """Answer one command."""
    try:
        answer: dict[str, Any] = getattr(end, f"do_{ask['do']}")(ask)
        return answer
    except (Trouble, OSError, ValueError, subprocess.SubprocessError) as exc:
        return {"error": f"{ask['do']}: {exc}"}


def say(answers: list[dict[str, Any]]) -> None:
    """Answer a list of commands."""
    sys.stdout.write(json.dumps(answers) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Obey until standard input ends."""
    end = End()
    say([{"ready": os.getpid()}])
    try:
        for line in sys.stdin:
            say([obeyed(end, ask) for ask in json.loads(line)])
    finally:
        end.quit()


if __name__ == "__main__":
    main()
