"""The preload by itself (`run.py LIBRARY`): where a connection begins, and what it refuses; as root."""

from __future__ import annotations

import os
import subprocess
import sys

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


def main() -> int:
    """Every check; the exit code."""
    library, failed = os.path.abspath(sys.argv[1]), 0  # noqa: PTH100
    for v6 in (False, True):
        for number in ("1", "4294926336", "4294967295"):
            done, wanted = run(library, number, v6), str((int(number) + 1) % 2**32)
            if (done.returncode, done.stdout.strip()) != (0, wanted):
                print(f"FAIL {number}, IPv6 {v6}: {done}")
                failed += 1
    for wrong in (None, "", "0", "-1", "x", "7x", "4294967296"):
        done = run(library, wrong)
        if (done.returncode, done.stderr.count("\n")) != (125, 1) or "KTLS_ISN" not in done.stderr:
            print(f"FAIL {wrong!r}: {done}")
            failed += 1
    print(f"{13 - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
