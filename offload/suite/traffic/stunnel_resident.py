"""A stunnel that stays up and takes one configuration after another: a reload costs a fifth of a start."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from offload.cmd import wait_until
from offload.errors import RigError
from offload.host.base import Host, Process
from offload.suite.traffic.certs import Placed
from offload.suite.traffic.stunnel import PROGRAM, UP, Service, config

KEPT = b"Failed to reload"  # stunnel then keeps the configuration that it had (src/stunnel.c)
BEGUN, OVER = b" accepted connection from ", b" sent to socket\n"  # src/client.c, at debug = notice
CALM = 2.0  # seconds in which a connection that is over has said so
SOON = 10.0  # seconds for a reload


class Resident:
    """One stunnel on a host, started when first asked for.

    It is ended, and the next use starts another, after a block that failed, and when a connection of a block
    was not over at its end: nothing of a test reaches the next one.
    """

    def __init__(self, host: Host, at: Placed) -> None:
        self._host, self._at, self._path = host, at, f"{at.folder}/resident.conf"
        self._process: Process | None = None

    @property
    def pid(self) -> int:
        """Its process id; 0 if there is none."""
        return self._process.pid if self._process else 0

    @contextmanager
    def serving(self, services: Sequence[Service], timeout: float = 60) -> Iterator[Callable[[], str]]:
        """Serve these and nothing else; what is yielded returns the log of this use.

        RigError with the log if stunnel does not come up. The ports stay open until the next use.
        """
        self._host.write(self._path, config(services, self._at).encode(), 0o600)
        process, mark = self._reloaded() or self._started(timeout)
        try:
            yield lambda: _log(process, mark).decode("utf-8", "replace")[-4000:]
            if not _all_over(process, mark):
                self.stop()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it, and so every connection that it has."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    def _reloaded(self) -> tuple[Process, int] | None:
        """Let the one that is up read its configuration: it, and where its log begins. None if none is."""
        process = self._process
        if process is None or not process.running():
            return None
        mark = len(process.output()[1])
        process.kill(signal.SIGHUP)
        with suppress(RigError):  # a new one tells what is wrong
            wait_until(lambda: _said(process, mark, UP, KEPT), SOON, "stunnel to reload")
        if UP in _log(process, mark):
            return process, mark
        self.stop()
        return None

    def _started(self, timeout: float) -> tuple[Process, int]:
        process = self._process = self._host.start([PROGRAM, self._path])
        try:
            wait_until(lambda: _said(process, 0, UP), timeout, "stunnel to listen")
            if UP not in _log(process, 0):
                raise RigError(
                    f"stunnel ended at once:\n{_log(process, 0).decode('utf-8', 'replace')[-4000:]}"
                )
        except BaseException:
            self.stop()
            raise
        return process, 0


def _log(process: Process, mark: int) -> bytes:
    """Return what it has said from a mark on."""
    return process.output()[1][mark:]


def _said(process: Process, mark: int, *words: bytes) -> bool:
    """Say whether one of the words has come, or nothing more can; wait a little for it."""
    log = process.news(1.0)[1][mark:]
    return any(word in log for word in words) or not process.running()


def _all_over(process: Process, mark: int) -> bool:
    """Say whether every connection that began has ended, now or soon; False also if stunnel has ended."""

    def over() -> bool:
        log = _log(process, mark)
        return log.count(BEGUN) == log.count(OVER) or not process.running()

    with suppress(RigError):
        wait_until(over, CALM, "stunnel's connections to be over")
        return process.running()
    return False
