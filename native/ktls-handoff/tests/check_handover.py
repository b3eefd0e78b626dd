"""What the parent gets: the line, the socket, its mode; and every reason of the kernel to get nothing."""

from __future__ import annotations

import fcntl
import os
import select
import socket
import subprocess

from rig import Rig


def go(rig: Rig, *args: str, tls: str = "1.2", kind: int = socket.SOCK_SEQPACKET, **fake: str):
    """Connect to a fresh openssl s_server by the fake kernel."""
    with rig.server(tls=tls) as port:
        return rig.run("connect", "127.0.0.1", port, "--no-verify", *args, fake=dict(fake), kind=kind)


def check_line_and_socket(rig: Rig) -> None:
    """Both kinds of unix socket carry the documented line and a connected, blocking TCP socket."""
    for kind in (socket.SOCK_SEQPACKET, socket.SOCK_STREAM):
        got = go(rig, kind=kind)
        assert got.rc == 0 and not got.errors, got
        keys = "ok via version cipher kernel_cipher tx rx tx_by rx_by tx_seq rx_seq peer pending"
        assert list(got.json) == keys.split()
        assert (got.json["via"], got.json["version"], got.json["pending"]) == ("ktls", "1.2", 0)
        assert got.json["cipher"] == "ECDHE-RSA-AES256-GCM-SHA384"
        assert got.json["kernel_cipher"] == "aes-gcm-256" and got.json["tx_seq"] == "0" * 15 + "1"
        assert got.sock and got.sock.type == socket.SOCK_STREAM and got.sock.getpeername()
        assert not fcntl.fcntl(got.sock, fcntl.F_GETFL) & os.O_NONBLOCK
        got.sock.close()


def check_no_close_notify(rig: Rig) -> None:
    """The program says nothing on the connection after the handshake: no alert, no FIN."""
    seen: list[bytes] = []
    with rig.server() as port, socket.create_server(("127.0.0.1", 0)) as tap:
        argv = [rig.program, "connect", "127.0.0.1", str(tap.getsockname()[1]), "--no-verify", "--fd"]
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with (
            ours,
            theirs,
            subprocess.Popen(
                [*argv, str(theirs.fileno())], pass_fds=[theirs.fileno()], env=rig.env({})
            ) as child,
        ):
            near, far = tap.accept()[0], socket.create_connection(("127.0.0.1", int(port)))
            while child.poll() is None:
                for a in select.select([near, far], [], [], 0.05)[0]:
                    relay(a, far if a is near else near, seen if a is near else None)
            assert child.returncode == 0
            while select.select([near], [], [], 0.2)[0] and seen[-1] != b"":
                relay(near, far, seen)
            assert all(record[0] != 21 for record in seen) and seen[-1] != b"", seen
            os.close(socket.recv_fds(ours, 4096, 1)[1][0])
        near.close()
        far.close()


def relay(a: socket.socket, b: socket.socket, seen: list[bytes] | None) -> None:
    """Pass on what `a` has; note it."""
    data = a.recv(65536)
    if seen is not None:
        seen.append(data)
    b.sendall(data)


def check_refused_send(rig: Rig) -> None:
    """No kTLS send: exit 3, cause ktls, whichever direction was wanted."""
    for want in ("tx", "rx", "both"):
        got = go(rig, "--want", want, FAKE_KTLS_TX="0")
        assert (got.rc, got.json["cause"], got.sock) == (3, "ktls", None), want
        assert "send refused" in got.json["message"]


def check_refused_receive(rig: Rig) -> None:
    """No kTLS receive: an error only when wanted; else reported as none, without a sequence number."""
    for want in ("rx", "both"):
        got = go(rig, "--want", want, FAKE_KTLS_RX="0")
        assert (got.rc, got.json["cause"]) == (3, "ktls") and "receive refused" in got.json["message"]
    got = go(rig, FAKE_KTLS_RX="0")
    assert (got.rc, got.json["rx"], got.json["rx_seq"]) == (0, "none", None)


def check_refused_cipher_is_named(rig: Rig) -> None:
    """A CBC suite has no kTLS at all; the message says so."""
    with rig.server("-cipher", "ECDHE-RSA-AES256-SHA384") as port:
        args = ("--no-verify", "--ciphers", "ECDHE-RSA-AES256-SHA384")
        got = rig.run("connect", "127.0.0.1", port, *args, fake={"FAKE_KTLS_TX": "0"})
    assert got.rc == 3 and "does not support this cipher" in got.json["message"], got


def check_other_cipher_in_kernel(rig: Rig) -> None:
    """A kernel that says another cipher than the negotiated one (or one unknown to us) is not believed."""
    for number in ("51", "54", "99"):
        got = go(rig, FAKE_KTLS_CIPHER=number)
        assert (got.rc, got.json["cause"], got.sock) == (3, "ktls", None), number


def check_other_version_in_kernel(rig: Rig) -> None:
    """A kernel that says TLS 1.2 after a TLS 1.3 handshake is not believed."""
    got = go(rig, "--tls", "1.3", tls="1.3")
    assert (got.rc, got.json["cause"]) == (3, "ktls") and "0x303" in got.json["message"]


def check_pending(rig: Rig) -> None:
    """Data inside OpenSSL would be lost: cause pending, no socket."""
    got = go(rig, FAKE_KTLS_PENDING="1")
    assert (got.rc, got.json["cause"], got.sock) == (3, "pending", None)


def check_parent_gone(rig: Rig) -> None:
    """The parent closed its end: exit 7, one line on standard error."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.close()
    with theirs, rig.server() as port:
        args = ("connect", "127.0.0.1", port, "--no-verify", "--fd", str(theirs.fileno()))
        got = rig.plain(*args, fake={}, fds=(theirs.fileno(),))
    assert got.rc == 7 and len(got.errors) == 1 and "parent" in got.errors[0], got


def check_parent_does_not_read(rig: Rig) -> None:
    """The parent's queue is full and stays so: exit 7 after --timeout, no hang."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    theirs.setblocking(False)
    with ours, theirs, rig.server() as port:
        try:
            while True:
                theirs.send(b"x" * 1000)
        except BlockingIOError:
            theirs.setblocking(True)
        for limit in ("1", "5", "25"):  # a busy machine may need longer for the handshake before it
            args = ("connect", "127.0.0.1", port, "--no-verify", "--timeout", limit)
            got = rig.plain(*args, "--fd", str(theirs.fileno()), fake={}, fds=(theirs.fileno(),))
            if got.rc != 6:
                break
    assert got.rc == 7 and "did not read" in got.errors[0], got


def check_without_parent(rig: Rig) -> None:
    """Without --fd the line is on standard output and the connection is closed."""
    with rig.server() as port:
        got = rig.plain("connect", "127.0.0.1", port, "--no-verify", "--timeout", rig.patience, fake={})
    assert got.rc == 0 and got.json["ok"] and not got.errors
