"""A payload that came wrong is told byte by byte, where its SHA-256 alone says nothing."""

from __future__ import annotations

import hashlib
import json
import socket
import struct
import subprocess
import sys
from typing import Any

import pytest

from tests.lib.life import many_connections
from tests.lib.life.life import arrived
from tests.lib.life.many_connections import ManyConnections

SIZE = 4096
SENT = hashlib.shake_128(b"part").digest(SIZE)
WANTED = hashlib.sha256(SENT).hexdigest()


def taken(data: bytes, how: str = "read", **ask: Any) -> dict[str, Any]:
    """What a program says of these bytes, which come by a socket and are read by these calls."""
    one, other = socket.socketpair()
    with one, other:
        one.sendall(data)
        many = ManyConnections()
        many.sockets[0] = other
        many.listener.close()
        many.do_reads({"at": [0], "how": how})
        return many.do_take({"at": 0, "size": len(data), **ask})


def test_wrong_bytes_are_reported() -> None:
    """The failure says how many bytes are wrong, from where to where, and what came."""
    bad = bytearray(SENT)
    for at in range(100, 300):
        bad[at] ^= 0x55
    seen = taken(bytes(bad), seed="part", wanted=WANTED)
    assert seen["unlike"].startswith(
        "200 bytes are wrong, from 100 to 299; at 100 came " + bad[100:116].hex()
    )
    with pytest.raises(
        AssertionError, match="part: 4096 bytes, and their SHA-256 differs: 200 bytes are wrong"
    ):
        arrived(seen, "part", SIZE)


@pytest.mark.parametrize(("how", "reads"), [("read", 1), ("read-pieces", 11), ("peek", 2)])
def test_each_method_of_reading_takes_the_same(how: str, reads: int) -> None:
    """A payload is the same by whichever call it is read, and the calls are counted."""
    seen = taken(SENT, how)
    arrived(seen, "part", SIZE)
    assert (seen["sha256"], seen["reads"]) == (WANTED, reads)


class Fickle:
    """A socket that shows other bytes than it gives."""

    def recvmsg(self, size: int, _: int, flags: int = 0) -> tuple[bytes, list[Any], int, Any]:
        return (b"B" if flags & socket.MSG_PEEK else b"A") * size, [], 0, None


def test_a_look_ahead_that_was_wrong_is_reported() -> None:
    """What MSG_PEEK saw must be what is read."""
    many = ManyConnections()
    many.listener.close()
    many.sockets[0] = Fickle()  # type: ignore[assignment]
    many.do_reads({"at": [0], "how": "peek"})
    assert "MSG_PEEK saw other bytes" in many.do_take({"at": 0, "size": 9})["error"]


def test_a_sum_that_was_wrong_is_reported() -> None:
    """Right bytes under another SHA-256 are told apart from wrong ones."""
    seen = taken(SENT, seed="part", wanted="0" * 64)
    assert seen["unlike"] == "each byte is right when looked at again"


def test_right_bytes_cost_no_words() -> None:
    """A payload that is right, or is held against nothing, has no such word."""
    assert "unlike" not in taken(SENT, seed="part", wanted=WANTED)
    assert "unlike" not in taken(SENT)
    arrived(taken(SENT, seed="part", wanted=WANTED), "part", SIZE)


@pytest.mark.parametrize(
    ("call", "calls"),
    [("write", 4), ("more", 12 - 2), ("gather", 4), ("splice", 4), ("sendfile", 4), ("zerocopy", 4)],
)
def test_each_call_sends_the_same(call: str, calls: int) -> None:
    """A payload is the same by whichever call it is sent, and the calls are counted."""
    sizes = [16384, 1000, 1, 400]
    one, other = socket.socketpair()
    with one, other:
        many = ManyConnections()
        many.listener.close()
        many.sockets[0] = one
        said = many.do_send({"at": 0, "seed": "part", "writes": sizes, "call": call})
        got = other.recv(1 << 20, socket.MSG_WAITALL | socket.MSG_DONTWAIT)
    assert said == {"sent": sum(sizes), "calls": calls}
    assert got == hashlib.shake_128(b"part").digest(sum(sizes))


def test_splice_without_pythons_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host whose Python is older than 3.10 splices, too."""
    monkeypatch.delattr("os.splice", raising=False)
    test_each_call_sends_the_same("splice", 4)


def test_what_tcp_sent_is_reported() -> None:
    """A connection says how much payload its TCP has sent, once all of it has arrived."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as one,
    ):
        other, _ = server.accept()
        many = ManyConnections()
        many.listener.close()
        many.sockets[0] = one
        with other:
            assert many.do_sent({"at": 0}) == {"sent": 0}
            one.sendall(SENT)
            assert many.do_sent({"at": 0}) == {"sent": SIZE}


def test_answers_of_many_commands_leave_together() -> None:
    """A list of commands is answered by one line, in order, and one that fails stops none of the others."""
    asked = [{"do": "listen", "host": "127.0.0.1"}, {"do": "dance"}, {"do": "close", "at": []}]
    lines = f"{json.dumps(asked)}\n[]\n"
    code = "from tests.lib.life.many_connections import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, input=lines.encode())
    ready, answers, none = map(json.loads, done.stdout.splitlines())
    assert ready[0]["ready"] and none == []
    assert answers[0]["port"] and "do_dance" in answers[1]["error"] and answers[2] == {}


def test_who_waits_for_acknowledgments_asks_ever_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look wakes an emulated guest; after a while there is an error instead."""
    left, naps = [7, 7, 7, 0], list[float]()
    answer = lambda *_: struct.pack("i", left.pop(0))  # noqa: E731
    monkeypatch.setattr(many_connections.fcntl, "ioctl", answer)
    monkeypatch.setattr(many_connections.time, "sleep", naps.append)
    with socket.socket() as sock:
        many_connections.acknowledged(sock)
        assert naps == [0.0002, 0.0004, 0.0008] and not left
        left[:] = [7] * 9
        monkeypatch.setattr(many_connections, "PATIENCE", -1)
        with pytest.raises(OSError, match="not acknowledged"):
            many_connections.acknowledged(sock)


def test_the_window_of_a_new_connection_is_named_in_segments() -> None:
    """TCP says how much a segment holds, and how many may be in flight: ten at first (RFC 6928)."""
    many = ManyConnections()
    many.listener.close()
    with (
        socket.create_server(("127.0.0.1", 0)) as there,
        socket.create_connection(there.getsockname()) as sock,
    ):
        many.sockets[0] = sock
        mss = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
        assert many.do_mss({"at": 0}) == {"mss": mss, "window": 10}


def test_connections_inherit_the_options_of_their_listener() -> None:
    """So an accepted socket has an option from its first packet on."""
    many = ManyConnections()
    option = [socket.IPPROTO_IP, socket.IP_TOS, "b8000000"]
    port = many.do_listen({"host": "127.0.0.1", "options": [option]})["port"]
    many.do_connect({"host": "127.0.0.1", "port": port, "count": 1})
    many.do_accept({"count": 1})
    client, server = many.sockets.values()
    with many.listener, client, server:
        has = [one.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) for one in (client, server)]
    assert has == [0, 0xB8]
