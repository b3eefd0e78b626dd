"""Where does a connection begin with the preload, and what does it refuse? As root."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# TCP_REPAIR 19, TCP_REPAIR_QUEUE 20 (send: 2), TCP_QUEUE_SEQ 21: include/uapi/linux/tcp.h
CLIENT = """
import socket, struct
family = socket.AF_INET6 if {v6} else socket.AF_INET
listener = socket.create_server(("::1" if {v6} else "127.0.0.1", 0), family=family)
client = socket.create_connection(listener.getsockname()[:2])
client.setsockopt(6, 19, 1)
client.setsockopt(6, 20, 2)
print(struct.unpack("I", struct.pack("i", client.getsockopt(6, 21)))[0])
client.setsockopt(6, 19, -1)
unix = socket.socket(socket.AF_UNIX)
unix.bind("\\0isn")
unix.listen()
socket.socket(socket.AF_UNIX).connect("\\0isn")
"""


def run(library: str, number: str | None, v6: bool = False) -> subprocess.CompletedProcess[str]:
    """Connect in a network namespace of its own, with the library preloaded."""
    env = {k: v for k, v in os.environ.items() if k != "KTLS_ISN"}
    env |= {"LD_PRELOAD": library, **({} if number is None else {"KTLS_ISN": number})}
    words = [f"{name}={env[name]}" for name in ("LD_PRELOAD", "KTLS_ISN") if name in env]
    client = ["env", *words, sys.executable, "-I", "-S", "-c", CLIENT.format(v6=v6)]
    argv = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *client]
    return subprocess.run(argv, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize("number", ["1", "4294926336", "4294967295"])
def check_connection_begins_there(program: str, number: str, v6: bool) -> None:
    """The first byte of a TCP connection has the number after the one asked for."""
    done = run(program, number, v6)
    assert (done.returncode, done.stdout.strip()) == (0, str((int(number) + 1) % 2**32)), done


@pytest.mark.parametrize("wrong", [None, "", "0", "-1", "x", "7x", "4294967296"])
def check_wrong_number_is_refused(program: str, wrong: str | None) -> None:
    """Anything but a number from 1 to 2^32 - 1 ends the program in one line."""
    done = run(program, wrong)
    assert (done.returncode, done.stderr.count("\n")) == (125, 1) and "KTLS_ISN" in done.stderr, done
