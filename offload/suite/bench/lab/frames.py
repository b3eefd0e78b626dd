"""What runs on a host to find its cables: sends broadcast frames, or says which port hears which.

`frames.py listen SECONDS NONCE DEV...` prints a JSON line {"dev", "from"} per frame with NONCE that is heard;
`frames.py send NONCE DEV...` sends one from each port, five times.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time

ETHERTYPE = 0x88B5  # IEEE Std 802 local experimental: no switch and no host has a meaning for it
TIMES, PAUSE = 5, 0.2  # a link that has just come up may lose the first


def say(**event: object) -> None:
    """One line, at once."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def send(nonce: str, devs: list[str]) -> None:
    """One frame from each port, some times: broadcast, our ethertype, the nonce and the port's name."""
    socks = []
    for dev in devs:
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        sock.bind((dev, 0))
        socks.append((dev, sock))
    for _ in range(TIMES):
        for dev, sock in socks:
            head = b"\xff" * 6 + sock.getsockname()[4] + ETHERTYPE.to_bytes(2, "big")
            sock.send((head + f"{nonce} {dev}".encode()).ljust(60, b"\0"))
        time.sleep(PAUSE)


def listen(seconds: float, nonce: str, devs: list[str]) -> None:
    """Say what every port hears."""
    socks = {}
    for dev in devs:
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
        sock.bind((dev, ETHERTYPE))
        socks[sock] = dev
    say(ready=len(socks))
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        for sock in select.select(list(socks), [], [], left)[0]:
            words = sock.recv(256)[14:].rstrip(b"\0").decode("ascii", "replace").split()
            if len(words) == 2 and words[0] == nonce:
                say(**{"dev": socks[sock], "from": words[1]})


if __name__ == "__main__":
    if sys.argv[1] == "send":
        send(sys.argv[2], sys.argv[3:])
    else:
        listen(float(sys.argv[2]), sys.argv[3], sys.argv[4:])
