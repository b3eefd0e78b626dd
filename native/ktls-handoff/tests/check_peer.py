"""Who is at the other end: CA, name, pin, no verification; and what a failed handshake is called."""

from __future__ import annotations

import socket
import subprocess
import threading

from rig import STUNNEL, Rig, peer


def go(rig: Rig, port: str, *args: str):
    """Connect by the fake kernel, without a parent."""
    return rig.run("connect", "127.0.0.1", port, *args, fake={})


def check_ca_and_address(rig: Rig) -> None:
    """With --ca, HOST itself has to be in the certificate; here as an IP address."""
    with rig.server() as port:
        got = go(rig, port, "--ca", rig.file("ca"))
    assert got.rc == 0 and got.json["ok"], got
    assert got.json["peer"] == f"127.0.0.1:{port}"


def check_name(rig: Rig) -> None:
    """--name replaces HOST in the check; a name that is not in the certificate fails."""
    with rig.server() as port:
        assert go(rig, port, "--ca", rig.file("ca"), "--name", "server.test").rc == 0
        for wrong in ("other.test", "127.0.0.2", "test", "xserver.test"):
            got = go(rig, port, "--ca", rig.file("ca"), "--name", wrong)
            assert (got.rc, got.json["cause"], got.sock) == (2, "verify", None), wrong


def check_wrong_ca_and_expired(rig: Rig) -> None:
    """A certificate of another CA and one past its date fail as verify, with OpenSSL's words."""
    with rig.server() as port:
        got = go(rig, port, "--ca", rig.file("other"))
        assert (got.rc, got.json["cause"]) == (2, "verify")
        assert "local issuer" in got.json["message"]
    with rig.server(cert="expired") as port:
        got = go(rig, port, "--ca", rig.file("ca"))
        assert (got.rc, got.json["cause"]) == (2, "verify") and "expired" in got.json["message"]


def check_pin(rig: Rig) -> None:
    """--pin takes exactly this certificate: not its CA, not another one with the same key."""
    with rig.server() as port:
        assert go(rig, port, "--pin", rig.file("server")).rc == 0
        for wrong in ("ca", "expired"):
            got = go(rig, port, "--pin", rig.file(wrong))
            assert (got.rc, got.json["cause"]) == (2, "verify"), wrong
    with rig.server(cert="expired") as port:
        got = go(rig, port, "--pin", rig.file("expired"))
        assert (got.rc, got.json["cause"]) == (2, "verify") and "expired" in got.json["message"], got


def check_no_verify(rig: Rig) -> None:
    """--no-verify takes anybody, in TLS 1.3 too."""
    with rig.server(cert="expired") as port:
        assert go(rig, port, "--no-verify").rc == 0
    with rig.server("-sigalgs", "RSA-PSS+SHA256", tls="1.3") as port:
        got = go(rig, port, "--no-verify", "--tls", "1.3")
        assert got.rc == 3 and "version" in got.json["message"], "the fake kernel says 1.2"


def sni_of(hello: bytes) -> bytes:
    """The server name in a ClientHello (RFC 6066 section 3), or b""."""
    at = 5 + 4 + 2 + 32
    at += 1 + hello[at]
    at += 2 + int.from_bytes(hello[at : at + 2])
    at += 1 + hello[at] + 2
    while at + 4 <= len(hello):
        kind, size = int.from_bytes(hello[at : at + 2]), int.from_bytes(hello[at + 2 : at + 4])
        if kind == 0:
            return hello[at + 9 : at + 4 + size]
        at += 4 + size
    return b""


def check_sni(rig: Rig) -> None:
    """SNI is --sni, else the name; never an IP address; nothing for an empty --sni."""
    cases = [
        (["--no-verify"], b""),
        (["--no-verify", "--sni", "a.test"], b"a.test"),
        (["--ca", rig.file("ca"), "--name", "server.test"], b"server.test"),
        (["--ca", rig.file("ca"), "--name", "server.test", "--sni", ""], b""),
    ]
    for args, wanted in cases:
        seen: list[bytes] = []
        with peer(lambda conn, seen=seen: seen.append(conn.recv(4096))) as port:
            got = go(rig, port, *args)
        assert (got.rc, got.json["cause"]) == (2, "handshake"), got
        assert sni_of(seen[0]) == wanted, args


KEY_SHARE = bytes.fromhex("003300260024001d0020")  # one key, of X25519, in 32 bytes


def without_random(hello: bytes) -> bytes:
    """A ClientHello without client random, session id and key share."""
    rest = hello[:11] + hello[44 + hello[43] :]
    before, found, after = rest.partition(KEY_SHARE)
    return before + found + after[32:]


STAPLE = bytes.fromhex("000500050100000000")  # status_request: OCSP, no responders, no extensions


def check_hello_is_that_of_stunnel(rig: Rig) -> None:
    """ClientHello is stunnel's but for its random numbers: the fallback repeats it."""
    for tls in ("1.2", "1.3"):
        first, second = two_hellos(rig, "--tls", tls)
        assert STAPLE not in first and first != second
        if STAPLE in second:  # stunnel from 5.71 on
            first, second = two_hellos(rig, "--tls", tls, "--staple")
        assert without_random(first) == without_random(second), (first.hex(), second.hex())
        assert STAPLE in two_hellos(rig, "--tls", tls, "--staple")[0]


def two_hellos(rig: Rig, *args: str) -> list[bytes]:
    """The hello of the program, and that of the stunnel that it falls back to."""
    hellos: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=hang_up_twice, args=(listener, hellos))
        thread.start()
        verify = ("--ca", rig.file("ca"), "--name", "a.test")
        got = go(rig, str(listener.getsockname()[1]), *verify, "--fallback", STUNNEL, *args)
        thread.join(120)
    assert (got.rc, len(hellos)) == (2, 2), got
    return hellos


def hang_up_twice(listener: socket.socket, hellos: list[bytes]) -> None:
    """Take what two clients say first, and close."""
    listener.settimeout(120)
    for _ in range(2):
        with listener.accept()[0] as conn:
            hellos.append(conn.recv(4096))


def check_handshake_failures(rig: Rig) -> None:
    """No common cipher or version, no TLS at all, hang-up: cause handshake, exit 2, and the reason."""
    with rig.server("-cipher", "ECDHE-RSA-AES128-GCM-SHA256") as port:
        got = go(rig, port, "--no-verify")
        assert (got.rc, got.json["cause"]) == (2, "handshake") and "alert" in got.json["message"]
    with rig.server() as port:
        assert go(rig, port, "--no-verify", "--tls", "1.3").rc == 2
    with peer(lambda conn: (conn.recv(4096), conn.sendall(b"SSH-2.0-OpenSSH_9.2\r\n"))) as port:
        assert go(rig, port, "--no-verify").json["cause"] == "handshake"
    with peer(lambda conn: conn.recv(4096)) as port:
        got = go(rig, port, "--no-verify")
        assert got.rc == 2 and "eof" in got.json["message"], got


def check_accept_serves(rig: Rig) -> None:
    """accept announces its port, shakes hands with openssl s_client and hands the socket over."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    args = ["accept", "127.0.0.1", "0", "--cert", rig.file("server"), "--key", rig.file("server-key")]
    argv = [rig.program, *args, "--announce", "--timeout", rig.patience, "--fd", str(theirs.fileno())]
    with (
        ours,
        theirs,
        subprocess.Popen(
            argv, pass_fds=[theirs.fileno()], env=rig.env({}), stdout=subprocess.PIPE, text=True
        ) as child,
    ):
        port = (child.stdout or []).readline().rsplit(":", 1)[1].strip()
        argv = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-CAfile", rig.file("ca"), "-brief"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        client = subprocess.Popen(argv, **pipes)
        data, fds, _, _ = socket.recv_fds(ours, 4096, 1)
        assert child.wait(120) == 0 and len(fds) == 1 and b'"ok":true' in data
        assert any(line == b"Verification: OK\n" for line in client.stderr or ())
        client.kill()
        client.communicate()
    socket.close(fds[0])
