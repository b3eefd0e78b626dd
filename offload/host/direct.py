"""A program's own line out of the lab VM, past the agent: a virtio-serial port, here a socket."""

from __future__ import annotations

import fcntl
import os
import select
import socket
from pathlib import Path

from offload.errors import RigError

PIECE = 1 << 16
SILENT = 60.0  # seconds in which a program reads nothing, nor says anything, before that is an error


class Direct:
    """One end of a line, for one program at a time; for one thread. `name`: of the port in the guest."""

    def __init__(self, sock: socket.socket, name: str, lock: int) -> None:
        self.name, self._sock, self._lock = name, sock, lock
        self.ended = False  # the VM is gone, or `close` was called
        sock.setblocking(False)

    def send(self, data: bytes) -> bytes:
        """Say something; what the program said meanwhile, since one that is not heard stops listening.

        RigError if it does not listen; nothing happens if it has ended.
        """
        heard = b""
        while data and not self.ended:
            readable, writable, _ = select.select([self._sock], [self._sock], [], SILENT)
            if not readable and not writable:
                raise RigError(f"the program on {self.name} has read nothing for {SILENT:g} s")
            if readable:
                heard += self._take()
            if writable:
                data = data[self._sent(data) :]
        return heard

    def _sent(self, data: bytes) -> int:
        try:
            return self._sock.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            self.ended = True
            return 0

    def take(self, patience: float) -> bytes:
        """Return what the program said since, once it says something; b"" after `patience` s, or at the
        end."""
        if self.ended or not select.select([self._sock], [], [], patience)[0]:
            return b""
        return self._take()

    def _take(self) -> bytes:
        heard = b""
        try:
            while piece := self._sock.recv(PIECE):
                heard += piece
            self.ended = True
        except BlockingIOError:
            pass
        except OSError:
            self.ended = True
        return heard

    def close(self) -> None:
        """Leave, as happens when nobody holds it any more: the program reads the end of its input."""
        self.ended = True
        self._sock.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __del__(self) -> None:
        self.close()


def free(folder: Path) -> Direct | None:
    """Take a line of a lab that nobody uses; None if there is none."""
    for path in sorted(folder.glob("own[0-9][0-9]")):
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        sock = socket.socket(socket.AF_UNIX)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            sock.connect(str(path))
            return Direct(sock, path.name, lock)
        except OSError:
            sock.close()
            os.close(lock)
    return None
