"""A host inside the lab VM: one of its network namespaces, reached through the agent."""

from __future__ import annotations

import binascii
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, Protocol

from offload.cmd import Pace
from offload.errors import TimedOut
from offload.host.base import Completed, Host, Process
from offload.host.direct import SILENT, Direct

LAST = 0.01  # seconds that the last words of a program may take when its end is known already
PIECE = 4 << 20  # bytes per request of a file
GRACE = 30.0  # seconds beyond a command's own time-out: the guest may share a busy core


class Agent(Protocol):
    """What answers requests inside the VM (offload/suite/bench/vm/client.py)."""

    def call(self, op: str, patience: float = GRACE, **fields: object) -> dict[str, Any]:
        """One request and its answer; OSError as in the guest, RigError if the VM is gone or silent."""
        ...

    def tell(self, op: str, **fields: object) -> None:
        """One request that is not answered, not even if it fails. RigError if the VM is gone."""
        ...

    def direct(self) -> Direct | None:
        """Take a line past the agent; None if there is none, or none left."""
        ...


def _b64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode()


class VmProcess:
    """A background command in the VM."""

    def __init__(self, agent: Agent, argv: Sequence[str], where: str, answer: Mapping[str, Any]) -> None:
        self._agent, self._argv, self._where = agent, tuple(argv), where
        self._job = int(answer["job"])
        self.pid = int(answer["pid"])
        self._out, self._err = b"", b""
        self._rc: int | None = None
        self._seconds = 0.0

    def _take(self, answer: Mapping[str, Any]) -> None:
        self._out += binascii.a2b_base64(answer["out"])
        self._err += binascii.a2b_base64(answer["err"])
        self._rc, self._seconds = answer["rc"], answer["seconds"]

    def _poll(self, wait: float = 0) -> None:
        if self._rc is None:
            since = [len(self._out), len(self._err)]
            self._take(self._agent.call("output", wait + GRACE, job=self._job, since=since, wait=wait))

    def running(self) -> bool:
        """Say whether it has not ended yet."""
        self._poll()
        return self._rc is None

    def stdin(self, data: bytes, *, eof: bool = False) -> None:
        """Write to its standard input; harmless if it has ended."""
        if self._rc is None:
            self._agent.tell("stdin", job=self._job, data=_b64(data), eof=eof)

    def output(self) -> tuple[bytes, bytes]:
        """Standard output and error so far."""
        self._poll()
        return self._out, self._err

    def news(self, patience: float) -> tuple[bytes, bytes]:
        """Both outputs, once there is more; the guest looks for it, which costs less than asking."""
        self._poll(patience)
        return self._out, self._err

    def wait(self, timeout: float) -> Completed:
        """Wait until it ends; RigError after `timeout` seconds (it is then killed)."""
        timeout *= Pace.factor
        if self._rc is None:
            self._agent.tell("stdin", job=self._job, eof=True)
            since = [len(self._out), len(self._err)]
            answer = self._agent.call("wait", timeout + GRACE, job=self._job, timeout=timeout, since=since)
            self._take(answer)
            if answer["timed_out"]:
                raise TimedOut(f"timed out after {timeout:g} s ({self._where}): {' '.join(self._argv)}")
        assert self._rc is not None
        return Completed(self._argv, self._rc, self._out, self._err, self._seconds, self._where)

    def kill(self, signal: int = 15) -> None:
        """Signal its process group; harmless if it has ended."""
        if self._rc is None:
            self._agent.call("kill", job=self._job, signal=int(signal))


class DirectProcess(VmProcess):
    """A background command whose input and standard output have a line of their own; for one thread."""

    def __init__(
        self, agent: Agent, argv: Sequence[str], where: str, answer: Mapping[str, Any], line: Direct
    ) -> None:
        super().__init__(agent, argv, where, answer)
        self._line = line

    def _take(self, answer: Mapping[str, Any]) -> None:
        super()._take(answer)  # without standard output
        while heard := self._line.take(0 if self._rc is None else LAST):
            self._out += heard

    def stdin(self, data: bytes, *, eof: bool = False) -> None:
        """Write to its standard input; with `eof` nothing that it says afterwards is heard."""
        if self._rc is None:
            self._out += self._line.send(data)
        if eof:
            self._line.close()

    def news(self, patience: float) -> tuple[bytes, bytes]:
        """Both outputs, once there is more of standard output; standard error as it was last asked for."""
        self._out += self._line.take(patience)
        return self._out, self._err

    def pieces(self, size: int) -> Iterator[bytes]:
        """Yield the next `size` bytes that it says, as they come; fewer if none come for a minute."""
        while size > 0 and (piece := self._line.take(SILENT)):
            size -= len(piece)
            yield piece


class VmHost:
    """The VM itself, or with `netns` one network namespace of it."""

    def __init__(self, agent: Agent, name: str, netns: str = "") -> None:
        self.name, self._agent, self._netns = name, agent, netns

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes = b"",
        timeout: float = 60.0,
        check: bool = True,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run to the end; see Host.run. A missing program gives exit code 127, as a shell would."""
        command, timeout = [str(word) for word in argv], timeout * Pace.factor
        fields = {"argv": command, "ns": self._netns, "env": dict(env or {}), "input": _b64(input)}
        try:
            answer = self._agent.call("run", timeout + GRACE, timeout=timeout, **fields)
        except (FileNotFoundError, PermissionError, NotADirectoryError) as exc:
            done = Completed(
                tuple(command), 127, b"", f"{command[0]}: {exc.strerror}".encode(), 0.0, self.name
            )
            return done.checked() if check else done
        if answer["timed_out"]:
            raise TimedOut(f"timed out after {timeout:g} s ({self.name}): {' '.join(command)}")
        out, err = (binascii.a2b_base64(answer[key]) for key in ("out", "err"))
        done = Completed(tuple(command), answer["rc"], out, err, answer["seconds"], self.name)
        return done.checked() if check else done

    def start(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> VmProcess:
        """Start in the background; it ends with the lab, or when the client that started it leaves."""
        command = [str(word) for word in argv]
        answer = self._agent.call("start", argv=command, ns=self._netns, env=dict(env or {}))
        return VmProcess(self._agent, command, self.name, answer)

    def direct(self, argv: Sequence[str]) -> DirectProcess | None:
        """Start one whose input and standard output go past the agent; None if it has no line for that.

        Each word through the agent wakes Python twice, and comes as base64 in JSON.
        """
        command, line = [str(word) for word in argv], self._agent.direct()
        if not line:
            return None
        try:
            answer = self._agent.call("start", argv=command, ns=self._netns, direct=line.name)
        except BaseException:
            line.close()
            raise
        return DirectProcess(self._agent, command, self.name, answer, line)

    def read(self, path: str) -> bytes:
        """Return a file's bytes as this namespace sees it; FileNotFoundError if there is none."""
        return binascii.a2b_base64(self._agent.call("read", 120.0, path=path, ns=self._netns)["data"])

    def write(self, path: str, data: bytes, mode: int = 0o600) -> None:
        """Create or replace a file with exactly this mode; parent folders are made."""
        self._agent.call("write", 120.0, path=path, data=_b64(data), mode=mode, ns=self._netns)


def talk(host: Host, argv: Sequence[str]) -> Process:
    """Start a program that answers its input line by line and ends with it; past the agent if that can be."""
    process = host.direct(argv) if isinstance(host, VmHost) else None
    return process or host.start(argv)


def pull(host: Host, path: str, size: int) -> Generator[bytes]:
    """Yield the first `size` bytes of a file, piece by piece; fewer if there are no more."""
    process = host.direct(["head", "-c", str(size), path]) if isinstance(host, VmHost) else None
    if process is None:
        for number in range(-(-size // PIECE)):
            argv = ["dd", f"if={path}", f"bs={PIECE}", f"skip={number}", "count=1", "status=none"]
            yield host.run(argv, timeout=120).stdout
        return
    try:
        yield from process.pieces(size)
    finally:
        process.stdin(b"", eof=True)
        process.kill(9)
        process.wait(60)
