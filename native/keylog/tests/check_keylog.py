"""What does the key log write, and what does it refuse?"""

from __future__ import annotations

import os
import re
import socket
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest

STUNNEL = next((p for p in ("/usr/bin/stunnel4", "/usr/bin/stunnel") if os.access(p, os.X_OK)), "")
EPOCHS = ("HANDSHAKE_TRAFFIC_SECRET", "TRAFFIC_SECRET_0")
PORTS = count(20_000)  # below those that the kernel gives away, in a network namespace of these checks alone
LABELS_13 = {f"{side}_{epoch}" for side in ("CLIENT", "SERVER") for epoch in EPOCHS} | {"EXPORTER_SECRET"}


class Rig:
    """The library, a folder in memory, one on a disk, and a certificate."""

    def __init__(self, library: Path, memory: Path, disk: Path) -> None:
        self.library, self.memory, self.disk = library, memory, disk
        self.cert, self.key = str(memory / "cert.pem"), str(memory / "key.pem")
        new = ["openssl", "req", "-x509", "-nodes", "-newkey", "rsa:2048", "-subj", "/CN=peer.test"]
        subprocess.run([*new, "-keyout", self.key, "-out", self.cert], check=True, capture_output=True)

    def env(self, log: Path | None) -> dict[str, str]:
        """The environment that makes a program log its keys."""
        rest = {k: v for k, v in os.environ.items() if k != "KTLS_KEYLOG"}
        return {**rest, "LD_PRELOAD": str(self.library), **({"KTLS_KEYLOG": str(log)} if log else {})}

    @contextmanager
    def stunnel(self, log: Path) -> Iterator[int]:
        """An unmodified stunnel that logs its keys, in front of nothing: its port."""
        port, conf = next(PORTS), self.memory / "stunnel.conf"
        lines = ["foreground = yes", "pid =", "syslog = no", "[x]", f"accept = 127.0.0.1:{port}"]
        lines += [f"connect = 127.0.0.1:{port}", f"cert = {self.cert}", f"key = {self.key}", ""]
        conf.write_text("\n".join(lines))
        child = subprocess.Popen([STUNNEL, str(conf)], env=self.env(log), stderr=subprocess.PIPE)
        try:
            wait(lambda: accepts(port) or child.poll() is not None)
            yield port
        finally:
            child.kill()
            child.communicate()

    def client(self, port: int, *args: str) -> str:
        """The keys that s_client itself logs of a connection to that port."""
        own = self.memory / "own"
        argv = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-keylogfile", str(own), *args]
        subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        text = own.read_text()
        own.unlink()
        return text

    def refused(self, log: Path | None) -> str:
        """What a program says whose keys may not go there; it has to end with the agreed exit code."""
        argv = ["openssl", "s_client", "-connect", "127.0.0.1:9"]
        done = subprocess.run(argv, env=self.env(log), capture_output=True, text=True, timeout=120)
        assert done.returncode == 125, (done.returncode, done.stderr)
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr


@pytest.fixture(scope="session")
def rig(program: str) -> Iterator[Rig]:
    """The library, with its folders."""
    library = Path(program)
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as memory,
        tempfile.TemporaryDirectory(dir=library.parent) as disk,
    ):
        yield Rig(library, Path(memory), Path(disk))


def accepts(port: int) -> bool:
    """Say whether somebody listens there."""
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def wait(condition: Callable[[], bool]) -> None:
    """Wait two minutes at most."""
    deadline = time.monotonic() + 120
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)


@contextmanager
def spoiled(port: int) -> Iterator[int]:
    """A port that leads to that one, for one connection: a bit of the client's Finished is flipped."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        relay = threading.Thread(target=spoil, args=(listener, port))
        relay.start()
        yield int(listener.getsockname()[1])
        relay.join(120)


def spoil(listener: socket.socket, port: int) -> None:
    """Pass on four records of the client, of which the last is its Finished, and what the server answers."""
    near, _ = listener.accept()
    with near, socket.create_connection(("127.0.0.1", port)) as far, near.makefile("rb") as reader:
        back = threading.Thread(
            target=lambda: [near.sendall(part) for part in iter(lambda: far.recv(4096), b"")]
        )
        back.start()
        for number in range(1, 5):
            head = reader.read(5)
            body = bytearray(reader.read(int.from_bytes(head[3:], "big")))
            body[-1] ^= number == 4
            far.sendall(head + body)
        back.join(120)


def secrets(text: str) -> set[str]:
    """The lines that matter: comments and empty lines left out."""
    return {line for line in text.splitlines() if line and not line.startswith("#")}


def check_stunnel_logs_what_the_client_logs(rig: Rig) -> None:
    """An unmodified stunnel writes the very lines that its client writes, for both versions."""
    log = rig.memory / "keys"
    with rig.stunnel(log) as port:
        seen = {v: secrets(rig.client(port, f"-tls1_{v}")) for v in ("2", "3")}
        wait(lambda: secrets(log.read_text()) >= seen["2"] | seen["3"])  # the last come late
    assert secrets(log.read_text()) == seen["2"] | seen["3"]
    assert {line.split()[0] for line in seen["2"]} == {"CLIENT_RANDOM"}
    assert {line.split()[0] for line in seen["3"]} == LABELS_13
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    log.unlink()


def check_keys_of_a_broken_handshake_are_logged(rig: Rig) -> None:
    """TLS 1.2: a client whose Finished is wrong leaves its keys too, once; of nonsense there are none."""
    log = rig.memory / "keys"
    with rig.stunnel(log) as port, spoiled(port) as through:
        with socket.create_connection(("127.0.0.1", port)) as sock:
            sock.sendall(b"not a ClientHello\r\n")
            with suppress(ConnectionResetError):
                sock.recv(1)
        seen = secrets(rig.client(through, "-tls1_2"))
        wait(lambda: log.read_text() != "")
    assert len(seen) == 1 and log.read_text().splitlines() == [*seen]
    log.unlink()


def check_lines_are_whole_when_many_connect(rig: Rig) -> None:
    """Connections at the same time do not mix their lines, and what was there stays."""
    log = rig.memory / "keys"
    log.touch(0o600)
    log.write_text("# before\n")
    with rig.stunnel(log) as port:
        argv = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-tls1_3"]
        how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        for child in [subprocess.Popen(argv, **how) for _ in range(8)]:
            child.wait(120)
        wait(lambda: log.read_text().count("\n") >= 1 + 8 * len(LABELS_13))  # the last come late
    lines = log.read_text().splitlines()
    assert lines[0] == "# before" and len(lines) == 1 + 8 * len(LABELS_13), len(lines)
    assert all(re.fullmatch(r"[A-Z_0-9]+ [0-9a-f]{64} [0-9a-f]{96}", line) for line in lines[1:])
    log.unlink()


def check_refuses_a_disk(rig: Rig) -> None:
    """A file that is not in memory is refused, and none is left there."""
    assert "not in memory" in rig.refused(rig.disk / "keys")
    assert not (rig.disk / "keys").exists()


def check_refuses_what_others_can_read(rig: Rig) -> None:
    """A file that others can read is refused, and stays empty."""
    log = rig.memory / "open"
    log.touch()
    log.chmod(0o640)
    assert "chmod 600" in rig.refused(log)
    assert log.read_bytes() == b""


def check_refuses_links_and_odd_files(rig: Rig) -> None:
    """Links, a second name, a fifo, a folder and a folder that is not there are refused."""
    target, link, name = rig.memory / "target", rig.memory / "link", rig.memory / "name"
    target.touch(0o600)
    link.symlink_to(target)
    assert "symbolic link" in rig.refused(link)
    name.hardlink_to(target)
    assert "second hard link" in rig.refused(name)
    os.mkfifo(rig.memory / "fifo", 0o600)
    assert "fifo: No such device" in rig.refused(rig.memory / "fifo")
    assert "Is a directory" in rig.refused(rig.memory)
    assert "No such file" in rig.refused(rig.memory / "none" / "keys")
    assert target.read_bytes() == b""


def check_refuses_to_go_without_a_name(rig: Rig) -> None:
    """Preloaded without the variable it says which one is missing."""
    assert "KTLS_KEYLOG: not set" in rig.refused(None)


def check_leaves_other_programs_alone(rig: Rig) -> None:
    """A program without OpenSSL runs as ever, and no file is made."""
    log = rig.memory / "unused"
    done = subprocess.run(["true"], env=rig.env(log), capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"") and not log.exists()
