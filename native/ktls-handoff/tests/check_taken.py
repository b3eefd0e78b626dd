"""A socket that is taken over is asked whether the kernel encrypts on it: by both clients and the helper."""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Callable

from check_client import CLIENTS, call, chain, falls_back, liar
from rig import WITH_TX, WITH_ULP, Rig, noted, peer

GOOD = b'{"ok":true,"via":"ktls","version":"1.2","cipher":"x","tx":"hw","rx":"hw"}\n'
CHANGE = bytes.fromhex(
    "140303000101"
)  # TLS 1.2: the server's ChangeCipherSpec; its Finished follows, AES-GCM
FINISHED = 5 + 8 + 16 + 16
TRIES = 50  # for a reset that comes right behind the last message


def connection(kind: int = socket.SOCK_STREAM) -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection on loopback."""
    if kind == socket.SOCK_DGRAM:
        far, near = socket.socket(type=kind), socket.socket(type=kind)
        far.bind(("127.0.0.1", 0))
        near.connect(far.getsockname())
        return near, far
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        return near, listener.accept()[0]


def gives(make: Callable[[list[socket.socket]], socket.socket]) -> Callable[[], list[int]]:
    """The descriptor of a socket; its other end is open until the next one is made."""
    kept: list[socket.socket] = []

    def give() -> list[int]:
        kept.clear()
        return [make(kept).detach()]

    return give


def plain(kept: list[socket.socket]) -> socket.socket:
    """TCP, and nothing more."""
    near, far = connection()
    kept.append(far)
    return near


def keyless(kept: list[socket.socket]) -> socket.socket:
    """TLS was asked for, and no key was given."""
    return noted(plain(kept), WITH_ULP)


def datagrams(kept: list[socket.socket]) -> socket.socket:
    """Connected, but UDP."""
    near, far = connection(socket.SOCK_DGRAM)
    kept.append(far)
    return near


def encrypting(kept: list[socket.socket]) -> socket.socket:
    """As it should be."""
    return noted(plain(kept), WITH_TX)


def reset(kept: list[socket.socket]) -> socket.socket:
    """As it should be, until the peer reset the connection."""
    near = encrypting(kept)
    break_off(kept.pop())
    ended = select.poll()
    ended.register(near, select.POLLHUP)
    assert ended.poll(20_000)
    return near


def break_off(sock: socket.socket) -> None:
    """Close with a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


WRONG = (
    (plain, "the kernel does not encrypt on the socket"),
    (keyless, "the kernel does not encrypt on the socket"),
    (datagrams, "the kernel does not encrypt on the socket"),
    (reset, "the connection ended right after the handshake: Connection reset by peer"),
)


def check_clients_ask_the_socket(rig: Rig) -> None:
    """A resident that says "hw" is believed only if the socket says so itself; a reset is told as one."""
    for kind in CLIENTS:
        for make, why in WRONG:
            with liar(rig, GOOD, gives(make)) as path:
                assert why in falls_back(rig, path, kind=kind), (kind, make)
        with liar(rig, GOOD, gives(encrypting)) as path:
            got = call(rig, "1", chain(rig), path, kind=kind)
        assert got.returncode == 0 and not got.stderr and b'"ktls"' in got.stdout, (kind, got)


def check_close_asks_the_socket(rig: Rig) -> None:
    """The helper refuses what is not kTLS, untouched, where the kernel has TLS too."""
    for make in (plain, keyless):
        kept: list[socket.socket] = []
        with make(kept) as near, kept[0] as far:
            got = rig.plain("close", "--fd", str(near.fileno()), fake={}, fds=(near.fileno(),))
            assert (got.rc, got.json["cause"]) == (3, "ktls"), (make, got)
            near.sendall(b"still mine")
            assert far.recv(100) == b"still mine"


def check_peer_that_resets_after_the_handshake(rig: Rig) -> None:
    """A peer that sends its last message and a reset is told as such, and no socket is given."""

    def talk(near: socket.socket) -> None:
        sent = b""
        with socket.create_connection(("127.0.0.1", int(port))) as far:
            while len(sent.partition(CHANGE)[2]) < FINISHED:
                for sock in select.select([near, far], [], [], 20)[0]:
                    data = sock.recv(65536)
                    (far if sock is near else near).sendall(data)
                    sent += data if sock is far else b""
        break_off(near)

    for _ in range(TRIES):
        with rig.server() as port, peer(talk) as relay:
            got = rig.run("connect", "127.0.0.1", relay, "--no-verify", fake={})
        if got.sock is None:
            break
        got.sock.close()  # on a busy machine the reset came after the socket had been given: no fault
    assert (got.rc, got.json.get("cause"), got.sock) == (2, "handshake", None), got
    assert "ended right after the handshake: Connection reset by peer" in got.json["message"], got
