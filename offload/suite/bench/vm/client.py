"""The host's end of the talk with the guest agent: requests by number, answers in any order."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import Any

from offload.errors import RigError
from offload.host.direct import Direct, free
from offload.suite.bench.vm.console import faults

Answer = dict[str, Any]
GRACE = 30.0  # seconds beyond a command's own time-out: the guest may share a busy core


class Client:
    """Talks to one agent over a socket; safe in several threads.

    `what`: its machine, in messages. `folder`: of the lab, whose lines past the agent are for programs.
    """

    def __init__(
        self,
        sock: socket.socket,
        last_words: Callable[[], str] = str,
        what: str = "the lab VM",
        folder: Path | None = None,
    ) -> None:
        self._sock, self._last_words, self._what = sock, last_words, what
        self._folder = folder
        self._numbers = itertools.count(1)
        self._pending: dict[int, Future[Answer]] = {}
        self._lock = threading.Lock()
        self._gone = ""
        self.on_event: Callable[[Answer], None] = lambda event: None
        self._reader = threading.Thread(target=self._read, name="lab-agent", daemon=True)
        self._reader.start()

    def hello(self, timeout: float) -> Answer:
        """Begin: end what an earlier client left, and skip what was meant for it.

        Asked again every two seconds: the guest drops what it reads before it knows that the port is open.
        """
        nonce, deadline = os.urandom(8).hex(), time.monotonic() + timeout
        while True:
            patience = min(2.0, deadline - time.monotonic())
            self._write(b"\n")  # ends a request that an earlier client did not finish
            try:
                answer = self.call("hello", patience, nonce=nonce)
            except RigError:
                if self._gone or time.monotonic() >= deadline:
                    raise
                continue
            if answer.get("nonce") != nonce:
                raise RigError("the lab's agent answered another client")
            return answer

    def call(self, op: str, patience: float = GRACE, **fields: object) -> Answer:
        """One request and its answer.

        FileNotFoundError and other OSErrors keep their type; RigError if the VM is gone or silent.
        """
        future: Future[Answer] = Future()
        number = next(self._numbers)
        with self._lock:
            if self._gone:
                raise RigError(self._gone)
            self._pending[number] = future
        self._write(json.dumps({"id": number, "op": op, **fields}).encode() + b"\n")
        try:
            answer = future.result(patience)
        except FutureTimeout:
            late = f"did not answer {op} within {patience:g} s{self._console()}"
            raise RigError(f"{self._what} {late}") from None
        finally:
            with self._lock:
                self._pending.pop(number, None)
        if answer.get("error"):
            self._raise(op, answer, fields)
        return answer

    def tell(self, op: str, **fields: object) -> None:
        """One request that is not answered, not even if it fails. RigError if the VM is gone."""
        with self._lock:
            if self._gone:
                raise RigError(self._gone)
        self._write(json.dumps({"id": None, "op": op, **fields}).encode() + b"\n")

    def direct(self) -> Direct | None:
        """Take a line past the agent; None if there is none, or none left."""
        return free(self._folder) if self._folder else None

    def _raise(self, op: str, answer: Answer, fields: dict[str, object]) -> None:
        if isinstance(answer.get("errno"), int):
            argv = fields.get("argv")
            subject = fields.get("path") or (argv[0] if isinstance(argv, list) else op)
            raise OSError(answer["errno"], str(answer["error"]), str(subject))
        raise RigError(f"the agent of {self._what} failed at {op}: {answer['error']}")

    def close(self) -> None:
        """Leave; the agent then ends what this client started."""
        self._fail("the lab connection is closed")
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()
        if threading.current_thread() is not self._reader:
            self._reader.join(5)

    def _console(self) -> str:
        """Return what the console said last; a fault of the kernel comes first, since a headline is one
        line."""
        words = self._last_words()
        fault = next((f": {line}" for line in faults(words.replace("  | ", ""))), "")
        return f"{fault}; the console says:\n{words}" if words else ""

    def _write(self, data: bytes) -> None:
        try:
            with self._lock:
                self._sock.sendall(data)
        except OSError:
            self._fail(f"{self._what} is gone{self._console()}")

    def _read(self) -> None:
        try:
            with self._sock.makefile("rb") as lines:
                for line in lines:
                    self._dispatch(line)
        except (OSError, ValueError):
            pass
        self._fail(f"{self._what} is gone{self._console()}")

    def _dispatch(self, line: bytes) -> None:
        """Hand an answer to whoever waits; lines for nobody (an earlier client) are dropped."""
        try:
            answer = json.loads(line)
            number = answer.get("id")
        except (ValueError, AttributeError):
            return
        with self._lock:
            future = self._pending.pop(number, None)
        if future:
            future.set_result(answer)
        elif "event" in answer:
            self.on_event(answer)

    def _fail(self, why: str) -> None:
        with self._lock:
            self._gone = self._gone or why
            pending, self._pending = self._pending, {}
        for future in pending.values():
            future.set_exception(RigError(self._gone))


def connect(path: Path, timeout: float, alive: Callable[[], bool]) -> socket.socket:
    """Connect to a unix socket that may not be there yet; RigError if `alive()` ends or after `timeout` s."""
    deadline = time.monotonic() + timeout
    while True:
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.connect(str(path))
            return sock
        except OSError as exc:
            sock.close()
            if not alive() or time.monotonic() > deadline:
                raise RigError(f"cannot reach the lab VM at {path}: {exc.strerror}") from None
        time.sleep(0.02)
