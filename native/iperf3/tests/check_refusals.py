"""What happens when the two ends do not fit, or the data is not what was sent?"""

from __future__ import annotations

import socket
import time

from rig import COOKIE, READY, STOCK, Rig, accepted, hand_made, refusal, relay, stream

SIZE = ("-n", "3M")
WISH = {"protocol": 1, "version": 13, "record_size": 0, "seed": 1, "verify": True, "ktls": "off"}
BAD = (
    {**WISH, "protocol": 2},
    {**WISH, "version": 11},
    {**WISH, "version": "1.3"},
    {**WISH, "record_size": 100},
    {**WISH, "record_size": 1e9},
    {**WISH, "seed": -1},
    {**WISH, "ktls": "yes"},
    {**WISH, "ktls": 1},
    {},
    [],
    "tls",
    None,
)


def served_again(rig: Rig, port: int) -> None:
    """Assert that the server does the next test."""
    accepted(port).close()
    end = time.monotonic() + 120
    while (got := rig.client(port, "--tls", "--tls-verify-payload", *SIZE)).rc:
        assert got.rc == 1 and time.monotonic() < end, got  # 1: came between two tests


def check_server_without_tls(rig: Rig) -> None:
    """A stock server: the client says so at once, in words, and sends no data as if it were TLS."""
    for mode in ((), ("-R",), ("-P", "3"), ("--bidir",)):
        with rig.server(program=STOCK) as server:
            got = rig.client(server.port, "--tls", *SIZE, *mode)
        assert got.rc == 5 and "without TLS" in got.words, got


def check_server_that_wants_tls(rig: Rig) -> None:
    """`-s --tls` refuses plain clients, ours and stock ones, and another version; then it serves on."""
    with rig.server("--tls=1.2") as server:
        got = rig.client(server.port, *SIZE)
        assert got.rc == 5 and "accepts only TLS" in got.words, got
        got = rig.client(server.port, *SIZE, program=STOCK)
        assert "901" in got.words, got
        got = rig.client(server.port, "--tls=1.3", *SIZE)
        assert got.rc == 5 and "accepts only TLS" in got.words, got
        assert rig.client(server.port, "--tls=1.2", *SIZE).rc == 0
    assert server.answer and "refused a client without --tls" in server.answer.err, server.answer


def check_bad_parameters(rig: Rig) -> None:
    """Parameters that are none: refused by number, named on the server, and the next client is served."""
    with rig.server() as server:
        for tls in BAD:
            with hand_made(server.port, tls) as control:
                assert refusal(control) == 902, tls
        served_again(rig, server.port)
    assert server.answer and "parameter tls.version: expected a number from 12 to 13" in server.answer.err


def check_no_handshake(rig: Rig) -> None:
    """A client that asks for TLS and then talks something else: refused by number, the server goes on."""
    with rig.server() as server:
        there = ("127.0.0.1", server.port)
        with hand_made(server.port, WISH) as control, socket.create_connection(there) as data:
            assert control.recv(1)[0] == READY
            data.sendall(COOKIE + b"GET / HTTP/1.0\r\n\r\n")
            assert refusal(control) == 903
        served_again(rig, server.port)


def check_payload_that_differs(rig: Rig) -> None:
    """Valid TLS, other bytes: the server finds the first one, and both ends know."""
    with rig.server() as server:
        with hand_made(server.port, WISH) as control, stream(server.port) as data:
            data.sendall(bytes(100_000))
            assert refusal(control) == 906
        served_again(rig, server.port)
    assert server.answer and "payload differs from what was sent at byte 0" in server.answer.err, server


def check_damage_on_the_wire(rig: Rig) -> None:
    """One byte changed under way: the record is refused at both ends, exit 2 with the reason."""
    total = 0

    def damage(number: int, data: bytes) -> bytes:
        nonlocal total
        total += len(data) if number else 0
        if number and total > 1_000_000:
            total = -(1 << 40)
            return data[:-1] + bytes([data[-1] ^ 1])
        return data

    with rig.server("-1") as server, relay(server.port, damage) as (port, _):
        got = rig.client(port, "--tls", "-t", "60")
    assert got.rc == 2 and "bad TLS record" in got.words, got
    assert server.answer and server.answer.rc == 2 and "bad record mac" in server.answer.err, server.answer


def check_ktls_required_of_a_server(rig: Rig) -> None:
    """A client that requires kTLS of a server without it: exit 4, and the words are the server's."""
    with rig.server() as server:
        got = rig.client(server.port, "--tls", "--ktls=require", *SIZE, fake="FAKE_KTLS_TX=1")
        assert got.rc == 4 and "the server's kernel" in got.words, got


def check_ktls_refused(rig: Rig) -> None:
    """A kernel with the tls ULP that takes no keys: require is exit 3, and names version and cipher."""
    with rig.server("--ktls=off") as server:
        got = rig.client(server.port, "--tls=1.2", "--ktls=require", *SIZE, fake="FAKE_KTLS_TX=0")
        assert got.rc == 3 and "kTLS send refused for TLSv1.2 ECDHE" in got.words, got
        got = rig.client(server.port, "--tls", "--ktls=require", "-R", *SIZE, fake="FAKE_KTLS_RX=0")
        assert got.rc == 3 and "kTLS receive refused for TLSv1.3" in got.words, got


def check_nobody_there(rig: Rig) -> None:
    """A port that nobody listens on is iperf3's own error, exit as it was."""
    got = rig.run("-c", "127.0.0.1", "-p", "9", "--tls")
    assert got.rc == 1 and "unable to connect to server" in got.err, got
