"""One client's line to the agent: JSON lines in, JSON lines out, never blocking."""

from __future__ import annotations

import binascii
import json
import os

TYPE_CHECKING = False  # type checkers know the name; importing typing costs the boot 0.2 s
if TYPE_CHECKING:
    from typing import Any

    Message = dict[str, Any]
LONGEST = 96 << 20  # bytes; a line beyond this is not a request
CHUNK = 1 << 20


def b64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode()


def unb64(text: str) -> bytes:
    return binascii.a2b_base64(text)


class Port:
    """One line of talk with one client: lines in, lines out, never blocking."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd, self._in, self._out = fd, bytearray(), bytearray()
        self.doubtful = False  # said something, and seems to have nobody at the other end: ask again

    def read_lines(self) -> tuple[list[bytes], bool]:
        """Whole lines that have arrived, and whether a client is there.

        Data can arrive before the kernel has noted that the host opened the port (virtio_console's
        control_work_handler runs in a work queue): an end right after data is not believed at once.
        """
        self.doubtful, had = False, len(self._in)
        while True:
            try:
                data = os.read(self.fd, CHUNK)
            except BlockingIOError:
                break
            except OSError:
                return [], False
            if not data:  # virtio: nobody has the other end open
                self.doubtful = len(self._in) > had
                if self.doubtful:
                    break
                return [], False
            self._in += data
        *lines, rest = self._in.split(b"\n")
        self._in = bytearray() if len(rest) > LONGEST else rest
        return [bytes(line) for line in lines if line.strip()], True

    @property
    def behind(self) -> bool:
        """Whether the queue is so full that more must wait."""
        return len(self._out) > CHUNK

    def forget(self) -> None:
        """Drop what a client that went away had begun to say, or had not yet read."""
        self._in.clear()
        self._out.clear()

    def send(self, message: Message) -> None:
        """Queue a line and write as much as goes at once."""
        self._out += json.dumps(message).encode() + b"\n"
        self.flush()

    def flush(self) -> None:
        """Write what is queued, until the line is full."""
        try:
            while self._out:
                del self._out[: os.write(self.fd, self._out[: 1 << 15])]
        except BlockingIOError:
            pass
        except OSError:
            self._out.clear()
