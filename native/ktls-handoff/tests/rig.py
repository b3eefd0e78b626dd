"""What the checks stand on: certificates, peers on loopback, and one call that runs ktls-handoff."""

from __future__ import annotations

import array
import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))  # for the Python client
WITH_ULP, WITH_TX = 3101, 3102  # of fake_ktls.c
SEQPACKET = socket.SOCK_SEQPACKET
STUNNEL = next((p for p in ("/usr/bin/stunnel4", "/usr/bin/stunnel") if os.access(p, os.X_OK)), "")


@dataclass
class Answer:
    """What the program did: exit code, JSON line, the socket it gave (or None), its error lines."""

    rc: int
    json: dict
    sock: socket.socket | None
    errors: list[str]
    out: str = ""


@dataclass
class Rig:
    """The program, the fake kernel library and a folder of certificates."""

    program: str
    fake: str
    folder: Path
    patience: str = "60"  # seconds for each step of a connection, where a check does not say

    def file(self, name: str) -> str:
        """Path of a certificate or key: ca other server expired pin (.pem), server-key (.pem)."""
        return str(self.folder / f"{name}.pem")

    def env(self, fake: dict[str, str] | None) -> dict[str, str]:
        """The environment; with `fake` (even empty) the fake kernel library is preloaded."""
        env = {**os.environ, "LC_ALL": "C"}
        if fake is not None:
            env |= {"LD_PRELOAD": self.fake, "ASAN_OPTIONS": "verify_asan_link_order=0", **fake}
        return env

    def run(self, *args: str, fake: dict[str, str] | None = None, kind: int = SEQPACKET) -> Answer:
        """Run with a unix socket as --fd and read the answer; a given socket is in `sock`."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
        with ours, theirs:
            argv = [self.program, *args, "--fd", str(theirs.fileno())]
            argv += [] if "--timeout" in args or "serve" in args else ["--timeout", self.patience]
            child = subprocess.Popen(
                argv, pass_fds=[theirs.fileno()], env=self.env(fake), stderr=subprocess.PIPE, text=True
            )
            theirs.close()
            line, sock = receive(ours)
            _, err = child.communicate(timeout=300)
        return Answer(child.returncode, json.loads(line) if line else {}, sock, err.splitlines())

    def plain(self, *args: str, fake: dict[str, str] | None = None, fds: tuple[int, ...] = ()) -> Answer:
        """Run without --fd: the JSON line is on standard output."""
        argv = [self.program, *args]
        how = {"capture_output": True, "text": True, "timeout": 60}
        done = subprocess.run(argv, pass_fds=fds, env=self.env(fake), **how)
        line = done.stdout if done.stdout.startswith("{") else "{}"
        return Answer(done.returncode, json.loads(line), None, done.stderr.splitlines(), done.stdout)

    @contextmanager
    def server(self, *args: str, cert: str = "server", tls: str = "1.2") -> Iterator[str]:
        """An openssl s_server that answers each line reversed; its port."""
        argv = ["openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", self.file(cert)]
        argv += ["-key", self.file("server-key"), "-rev", f"-tls{tls.replace('.', '_')}", *args]
        child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            found = next(m for m in (re.search(r"ACCEPT.*:(\d+)", line) for line in child.stdout or ()) if m)
            yield found[1]
        finally:
            child.kill()
            child.communicate()


def receive(sock: socket.socket) -> tuple[str, socket.socket | None]:
    """One line and one descriptor from a unix socket; ("", None) when the other end is closed."""
    sock.settimeout(120)
    data, given = b"", None
    while not data.endswith(b"\n"):
        part, control, _, _ = sock.recvmsg(8192, socket.CMSG_SPACE(4))
        for level, kind, payload in control:
            assert (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
            given = socket.socket(fileno=array.array("i", payload)[0])
        if not part:
            break
        data += part
    return data.decode("ascii"), given


def noted(sock: socket.socket, what: int) -> socket.socket:
    """The same socket, on which the fake kernel takes this for installed."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, what)
    return sock


@contextmanager
def mute(backlog: int = 5) -> Iterator[str]:
    """A TCP server that accepts and says nothing; its port."""
    with socket.create_server(("127.0.0.1", 0), backlog=backlog) as listener:
        yield str(listener.getsockname()[1])


@contextmanager
def peer(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """A TCP server that lets `talk` have its first connection; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(120)

        def serve() -> None:
            with listener.accept()[0] as conn:
                talk(conn)

        thread = threading.Thread(target=serve)
        thread.start()
        yield str(listener.getsockname()[1])
        thread.join(120)


def listening(path: Path) -> bool:
    """Say whether somebody listens on a unix socket: between bind() and listen() it is there, and refuses."""
    rows = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return any(row[3] == "00010000" and row[7:] == [str(path)] for row in rows)


_held: list[socket.socket] = []


def refusing_port() -> str:
    """A port on which nobody listens, nor will: a socket of ours is bound to it."""
    _held.append(socket.socket())
    _held[-1].bind(("127.0.0.1", 0))
    return str(_held[-1].getsockname()[1])


def openssl(folder: Path, *args: str) -> None:
    """Run openssl in `folder`."""
    subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)


def expired_dates() -> list[str]:
    """Options that make a certificate of the past: OpenSSL 3.5 refuses negative days, 3.0 knows no dates."""
    known = subprocess.run(["openssl", "x509", "-help"], capture_output=True).stderr
    past = ["-not_before", "20200101000000Z", "-not_after", "20200102000000Z"]
    return past if b"-not_after" in known else ["-days", "-1"]


def make_certificates(folder: Path) -> None:
    """ca -> server (server.test, 127.0.0.1) and expired; other: a CA that signed nothing."""
    for ca in ("ca", "other"):
        args = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        args += ["-subj", f"/CN={ca}", "-keyout", f"{ca}-key.pem", "-out", f"{ca}.pem"]
        openssl(folder, "req", "-x509", *args)
    names = "subjectAltName=DNS:server.test,IP:127.0.0.1"
    request = ["-newkey", "rsa:2048", "-nodes", "-subj", "/CN=server.test", "-addext", names]
    openssl(folder, "req", *request, "-keyout", "server-key.pem", "-out", "server.csr")
    for name, dates in (("server", ["-days", "2"]), ("expired", expired_dates())):
        sign = ["-CA", "ca.pem", "-CAkey", "ca-key.pem", "-copy_extensions", "copy", *dates]
        openssl(folder, "x509", "-req", "-in", "server.csr", *sign, "-out", f"{name}.pem")
    (folder / "server-key.pem").chmod(0o600)
