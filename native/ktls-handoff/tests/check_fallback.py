"""--fallback: stunnel carries the connection, with the same verification, after exactly one warning line."""

from __future__ import annotations

import socket
import subprocess

from rig import STUNNEL, Rig, mute, receive, refusing_port

ABSENT = {"FAKE_KTLS_ABSENT": "1"}


def go(rig: Rig, port: str, *args: str, stunnel: str = STUNNEL):
    """Connect where the tls module is absent, with a fallback."""
    return rig.run("connect", "127.0.0.1", port, *args, "--fallback", stunnel, fake=ABSENT)


def echo(sock: socket.socket) -> bytes:
    """Send a line and read the answer of `openssl s_server -rev`."""
    sock.settimeout(120)
    sock.sendall(b"through stunnel\n")
    answer = b""
    while not answer.endswith(b"\n"):
        answer += sock.recv(100) or b"(closed)\n"
    return answer


def check_payload(rig: Rig) -> None:
    """Each way of verification: payload goes through a real stunnel, after one warning."""
    ca, pin = rig.file("ca"), rig.file("server")
    for tls, cipher in (("1.2", "ECDHE-RSA-AES256-GCM-SHA384"), ("1.3", "TLS_AES_256_GCM_SHA384")):
        for args in (("--ca", ca), ("--ca", ca, "--name", "server.test"), ("--pin", pin), ("--no-verify",)):
            with rig.server(tls=tls) as port:
                got = go(rig, port, *args, "--tls", tls)
                assert got.rc == 0 and got.sock, (args, got)
                assert echo(got.sock) == b"lennuts hguorht\n"
                got.sock.close()
            assert len(got.errors) == 1 and got.errors[0].startswith("ktls-handoff: warning: "), got
            assert f"127.0.0.1 port {port}" in got.errors[0] and "not available here" in got.errors[0]
            assert (got.json["via"], got.json["version"], got.json["tx"]) == ("stunnel", tls, "none")
            assert got.json["peer"] == f"127.0.0.1:{port}" and got.json["kernel_cipher"] is None
            assert got.json["cipher"] == cipher


def check_same_verification(rig: Rig) -> None:
    """stunnel refuses whom we would refuse: wrong CA, wrong name, wrong pin."""
    wrong = (("--ca", "other"), ("--ca", "ca", "--name", "other.test"), ("--pin", "ca"), ("--pin", "other"))
    for args in wrong:
        with rig.server() as port:
            got = go(rig, port, *(rig.file(a) if a in ("ca", "other") else a for a in args))
        assert got.rc == 4 and got.sock is None, (args, got)
        assert "the fallback failed too: stunnel: " in got.json["message"], got


def check_spent_connection(rig: Rig) -> None:
    """After kTLS was refused on a connection, stunnel opens a second one and the payload goes through."""
    with rig.server() as port:
        args = ("--no-verify", "--fallback", STUNNEL)
        got = rig.run("connect", "127.0.0.1", port, *args, fake={"FAKE_KTLS_TX": "0"})
        assert got.rc == 0 and got.json["via"] == "stunnel" and got.sock, got
        assert echo(got.sock) == b"lennuts hguorht\n"
        got.sock.close()


def check_stunnel_missing(rig: Rig) -> None:
    """No stunnel there: the first cause keeps its exit code, the message names both, no warning."""
    with rig.server() as port:
        got = go(rig, port, "--no-verify", stunnel="/nowhere/stunnel")
    assert (got.rc, got.json["cause"]) == (4, "ktls"), got
    assert "modprobe tls" in got.json["message"] and "/nowhere/stunnel" in got.json["message"]
    assert len(got.errors) == 1 and "warning" not in got.errors[0]


def check_not_stunnel(rig: Rig) -> None:
    """A program that is no stunnel ends as a failure, not as a success."""
    with rig.server() as port:
        got = go(rig, port, "--no-verify", stunnel="/bin/false")
    assert got.rc == 4 and "ended without a message" in got.json["message"], got


def check_nobody_listens(rig: Rig) -> None:
    """Both fail: the exit code is that of the first attempt."""
    got = rig.run("connect", "127.0.0.1", refusing_port(), "--no-verify", "--fallback", STUNNEL, fake={})
    assert got.rc == 5 and got.json["message"].count("refused") == 2, got


def check_mute_server(rig: Rig) -> None:
    """A mute server holds up the fallback no longer than its time, and no stunnel stays behind."""
    with mute() as port:
        args = ("--no-verify", "--timeout", "0.3", "--fallback", STUNNEL)
        got = rig.run("connect", "127.0.0.1", port, *args, fake={})
        assert got.rc == 6 and "stunnel" in got.json["message"], got


def check_usage_is_not_papered_over(rig: Rig) -> None:
    """A wrong option is an error, not a reason for stunnel."""
    got = go(rig, "1", "--ca", "/nowhere.pem")
    assert got.rc == 1 and not any("warning" in line for line in got.errors)


def check_accept(rig: Rig) -> None:
    """accept falls back too: the client that comes is served by stunnel, and no folder stays behind."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    scratch = rig.folder / "scratch"
    scratch.mkdir()
    argv = [rig.program, "accept", "127.0.0.1", "0", "--cert", rig.file("server")]
    argv += [
        "--key",
        rig.file("server-key"),
        "--announce",
        "--fallback",
        STUNNEL,
        "--fd",
        str(theirs.fileno()),
    ]
    env = {**rig.env(ABSENT), "TMPDIR": str(scratch)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with ours, theirs, subprocess.Popen(argv, pass_fds=[theirs.fileno()], env=env, **pipes) as child:
        port = child.stdout.readline().rsplit(":", 1)[1].strip()
        argv = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-CAfile", rig.file("ca"), "-quiet"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        client = subprocess.Popen(argv, **pipes)
        line, sock = receive(ours)
        assert child.wait(120) == 0 and '"via":"stunnel"' in line and sock, line
        client.stdin.write(b"to the server\n")
        client.stdin.flush()
        assert sock.recv(100) == b"to the server\n"
        sock.sendall(b"to the client\n")
        assert client.stdout.readline() == b"to the client\n"
        sock.close()
        client.kill()
        client.communicate()
        assert len(child.stderr.readlines()) == 1 and not list(scratch.iterdir())
