"""The verb close: the order of the safe end, what it reports, and what it refuses to touch."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Callable

from rig import WITH_TX, Answer, Rig, noted


def close(rig: Rig, talk: Callable[[socket.socket], None], *args: str) -> Answer:
    """Run close on one end of a TCP connection, by the fake kernel, while `talk` has the other end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = noted(socket.create_connection(listener.getsockname()), WITH_TX)
        far = listener.accept()[0]
    with far:
        far.settimeout(120)
        argv = [rig.program, "close", "--fd", str(near.fileno()), *(args or ("--timeout", rig.patience))]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        child = subprocess.Popen(argv, pass_fds=[near.fileno()], env=rig.env({}), **pipes)
        near.close()
        talk(far)
        out, err = child.communicate(timeout=120)
    return Answer(child.returncode, json.loads(out), None, err.splitlines(), out)


def check_order(rig: Rig) -> None:
    """Alert (as plain bytes: the kernel is a fake), end of sending, then all of the peer is read."""

    def talk(far: socket.socket) -> None:
        assert far.recv(2, socket.MSG_WAITALL) == b"\x01\x00" and far.recv(1) == b""
        far.sendall(b"x" * 300_000)
        far.close()

    got = close(rig, talk)
    assert got.rc == 0 and got.json == {"ok": True, "drained": 300_000, "alert": None}, got


def check_peer_that_stays(rig: Rig) -> None:
    """A peer that does not close ends in time-out, exit 6; one that sends for ever too."""
    got = close(rig, lambda far: far.recv(10), "--timeout", "0.3")
    assert (got.rc, got.json["cause"]) == (6, "timeout"), got

    def flood(far: socket.socket) -> None:
        try:
            while True:
                far.sendall(b"x" * 65536)
        except OSError:
            pass

    got = close(rig, flood, "--timeout", "0.3")
    assert (got.rc, got.json["cause"]) == (6, "timeout"), got


def check_reset(rig: Rig) -> None:
    """A reset by the peer is not a good end: exit 5, and the message says that data may be lost."""

    def reset(far: socket.socket) -> None:
        far.recv(10)
        far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        far.close()

    got = close(rig, reset)
    assert (got.rc, got.json["cause"]) == (5, "connect") and "may not have arrived" in got.json["message"]


def check_plain_socket(rig: Rig) -> None:
    """A socket without kTLS is refused with exit 3, and nothing is sent on it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far = listener.accept()[0]
    with near, far:
        got = rig.plain("close", "--fd", str(near.fileno()), fds=(near.fileno(),))
        assert (got.rc, got.json["cause"]) == (3, "ktls"), got
        near.sendall(b"still mine")
        assert far.recv(100) == b"still mine"


def check_not_a_socket(rig: Rig) -> None:
    """A file and a number that is not open are refused with exit 3."""
    r, w = os.pipe()
    for fd in (r, 999):
        assert rig.plain("close", "--fd", str(fd), fds=(r,)).rc == 3
    os.close(r)
    os.close(w)
