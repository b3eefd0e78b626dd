"""The resident: requests and answers, who may ask, hostile clients, peers that stall; one line for each."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rig import Answer, Rig, listening, mute, peer, receive

from offload.connect.policy import Policy  # rig.py makes it known


@dataclass
class Resident:
    """A running one: where it listens, and what it has said on standard error."""

    path: Path
    child: subprocess.Popen
    log: Path
    args: tuple[str, ...]

    def dial(self) -> socket.socket:
        """A connection to it."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.settimeout(120)
        sock.connect(str(self.path))
        return sock

    def digest(self) -> str:
        """That of its policy, as the files are now."""
        option, value = self.args[:2]
        given = {{"--policy": "file", "--ca": "ca", "--pin": "pin"}[option]: value}
        return Policy(**given).digest()

    def ask(self, *words: str) -> Answer:
        """One request, by the same policy, and its answer."""
        digest = [] if "--digest" in words else ["--digest", self.digest()]
        with self.dial() as sock:
            sock.send("".join(f"{word}\n" for word in (*words, *digest)).encode())
            line, given = receive(sock)
        return Answer(0, json.loads(line) if line else {}, given, [])

    def lines(self, number: int) -> list[str]:
        """What it said, in whole lines, when there are so many (or after two minutes)."""
        end = time.monotonic() + 120
        while (text := self.log.read_text()).count("\n") < number and time.monotonic() < end:
            time.sleep(0.02)
        return text[: text.rfind("\n") + 1].splitlines()

    def files(self, before: int = 0) -> int:
        """How many descriptors it has; `before`: when it has so many again (or after two minutes)."""
        folder, end = f"/proc/{self.child.pid}/fd", time.monotonic() + 120
        while (found := entries(folder)) != before and before and time.monotonic() < end:
            time.sleep(0.02)
        return found


def entries(folder: str) -> int:
    """How many entries a folder has."""
    return len(list(Path(folder).iterdir()))


@contextmanager
def resident(rig: Rig, *args: str, fake: dict[str, str] | None = None) -> Iterator[Resident]:
    """A resident by the fake kernel; it ends with 0 and removes its socket, or the check fails."""
    path, log = rig.folder / "resident", rig.folder / "resident.log"
    args = args or ("--ca", rig.file("ca"))
    argv = [rig.program, "serve", str(path), *args]
    with log.open("w") as err, subprocess.Popen(argv, env=rig.env(fake or {}), stderr=err) as child:
        found = Resident(path, child, log, args)
        try:
            for _ in range(6000):
                if listening(path) or child.poll() is not None:
                    break
                time.sleep(0.01)
            yield found
        finally:
            child.send_signal(signal.SIGTERM)
            rc = child.wait(120)
    assert rc == 0 and not path.exists(), (rc, log.read_text())


def check_resident_hands_over(rig: Rig) -> None:
    """A request gets the line of connect and a connected socket; nothing of it stays behind."""
    with rig.server() as port, resident(rig) as home:
        assert stat.S_IMODE(home.path.stat().st_mode) == 0o600
        before = home.files()
        for name in ((), ("--name", "server.test"), ("--sni", ""), ("--timeout", "50")):
            got = home.ask("connect", "127.0.0.1", port, *name)
            assert got.json.get("ok") and got.json["via"] == "ktls" and got.sock, got
            assert got.sock.getpeername()[1] == int(port)
            got.sock.close()
        assert home.files(before) == before and home.lines(0) == []


def check_resident_says_why(rig: Rig) -> None:
    """Whatever goes wrong with a connection is told to the client, and to nobody else."""
    with rig.server() as port, resident(rig) as home, mute() as silent:
        wrong = home.ask("connect", "127.0.0.1", port, "--name", "other.test")
        assert (wrong.json["cause"], wrong.sock) == ("verify", None), wrong
        late = home.ask("connect", "127.0.0.1", silent, "--timeout", "0.2")
        assert late.json["cause"] == "timeout" and silent in late.json["message"], late
        assert home.lines(0) == []
    for fake, cause in (({"FAKE_KTLS_ABSENT": "1"}, "ktls"), ({"FAKE_KTLS_CIPHER": "54"}, "ktls")):
        with rig.server() as port, resident(rig, fake=fake) as home:
            got = home.ask("connect", "127.0.0.1", port)
            assert (got.json["ok"], got.json["cause"], got.sock) == (False, cause, None), got


def check_resident_of_a_policy(rig: Rig) -> None:
    """A policy counts for the resident: its curve and cipher are offered, its pin is the trust."""
    policy = rig.folder / "policy.conf"
    text = f"CAfile = {rig.file('server')}\nverifyPeer = yes\ncurves = P-384\nTIMEOUTconnect = 60\n"
    policy.write_text(text)
    with resident(rig, "--policy", str(policy)) as home:
        with rig.server("-groups", "P-384") as port:
            assert home.ask("connect", "127.0.0.1", port).json["ok"]
        with rig.server("-groups", "P-256") as port:
            assert home.ask("connect", "127.0.0.1", port).json["cause"] == "handshake"
        with rig.server(cert="expired") as port:
            assert home.ask("connect", "127.0.0.1", port).json["cause"] == "verify"


def check_policy_is_refused_by_line(rig: Rig) -> None:
    """A key that we do not know, a section, no way to verify: exit 1, with file and line."""
    policy = rig.folder / "bad.conf"
    wrong = {
        "verify = 2\n": ":1: unknown key",
        "\n[migration]\n": ":2: KEY = VALUE",
        "CAfile = /x\n": "neither verifyChain nor verifyPeer is set",
        "CAfile = /x\nverifyChain = yes\nverifyPeer = yes\n": "only one of",
        "verifyChain = yes\n": "verification needs CAfile",
        "sslVersion = SSLv3\n": "TLSv1.2 or TLSv1.3",
        "verifyChain = no\ncurves = X26519\n": "does not support all of them",
        "verifyChain = yes\ncheckIP = ::1\ncheckHost = a\n": ":3: more than one name",
        "verifyChain = yes\nCAfile = /nowhere\n": "No such file",
        "verifyPeer = yes\nCAfile = /nowhere\n": "No such file",
    }
    for text, message in wrong.items():
        policy.write_text(text)
        got = rig.run("connect", "127.0.0.1", "1", "--policy", str(policy), fake={})
        assert got.rc == 1 and message in got.json["message"] and len(got.errors) == 1, (text, got)
    policy.write_text("verifyChain = no\n")
    got = rig.run("connect", "127.0.0.1", "1", "--policy", str(policy), "--tls", "1.3", fake={})
    assert got.rc == 1 and "omit the options for them" in got.json["message"], got


def _send(sock: socket.socket, data: bytes, fds: tuple[int, ...] = ()) -> None:
    socket.send_fds(sock, [data], list(fds))


def check_hostile_clients(rig: Rig) -> None:
    """Bad requests, descriptors, a huge message, silence, leaving: one line each, and the next is served."""
    good = b"connect\n127.0.0.1\n1\n"
    bad = [b"\0", b"connect\n", b"x" * 1025, b"y" * 100_000, good[:-1], b"connect\nh\n1\n--ca\n/etc/passwd\n"]
    bad += [b"connect\n" + b"-\n" * 40, bytes(range(256)), b"\xff\xfe\n", b"connect\n127.0.0.1\n1\n--fd\n5\n"]
    with resident(rig, "--ca", rig.file("ca"), "--timeout", "60") as home, Path(os.devnull).open() as null:
        before = home.files()
        for data in bad:
            with home.dial() as sock:
                _send(sock, data)
                line, given = receive(sock)
                assert json.loads(line)["cause"] == "usage" and given is None, (data[:20], line)
        for number in (1, 2, 253):
            with home.dial() as sock:
                _send(sock, good, (null.fileno(),) * number)
                assert "descriptors" in receive(sock)[0]
        home.dial().close()
        said = home.lines(len(bad) + 4)
        assert len(said) == len(bad) + 4, said
        assert all(re.match(rf"ktls-handoff: client pid \d+ user {os.getuid()}: ", line) for line in said), (
            said
        )
        assert home.files(before) == before
        with rig.server() as port:
            assert home.ask("connect", "127.0.0.1", port).json["ok"]


def check_silent_client(rig: Rig) -> None:
    """Who connects and asks nothing is hung up on after --timeout, which is one line."""
    with resident(rig, "--ca", rig.file("ca"), "--timeout", "1") as home:
        began = time.monotonic()
        with home.dial() as sock:
            assert receive(sock) == ("", None) and time.monotonic() - began >= 0.9
        assert len(home.lines(1)) == 1


def check_who_says_too_much_is_answered(rig: Rig) -> None:
    """A second message, unread when the connection ends, does not cost the answer to the first."""
    with resident(rig) as home, Path(os.devnull).open() as null:
        before = home.files()
        for more in (b"", b"more\n", b"x" * 5000):
            home.child.send_signal(signal.SIGSTOP)  # both are there before it looks
            with home.dial() as sock:
                _send(sock, b"connect\n")
                _send(sock, more, (null.fileno(),))
                home.child.send_signal(signal.SIGCONT)
                assert len(home.lines(1)) > 0 and home.files(before) == before
                assert json.loads(receive(sock)[0])["cause"] == "usage"


# who is refused may be told before he has asked
ASKS = """
import contextlib, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
with contextlib.suppress(BrokenPipeError):
    s.send(f'connect\\n127.0.0.1\\n1\\n--digest\\n{sys.argv[2]}\\n'.encode())
print(s.recv(8192).decode())
"""


def asked_by_nobody(home: Resident) -> subprocess.CompletedProcess:
    """Ask as user nobody, with a Python that he can start."""
    argv = ["/usr/bin/python3", "-c", ASKS, str(home.path), home.digest()]
    return subprocess.run(argv, user=65534, capture_output=True, text=True, timeout=120)


def check_who_may_ask(rig: Rig) -> None:
    """Another user is told that he is not allowed to ask, even if the mode lets him in; --user lets him."""
    if os.getuid():
        return
    rig.folder.chmod(0o711)
    for args, message in (
        ((), "user 65534 is not allowed to ask"),
        (("--user", "65534"), "Connection refused"),
    ):
        with resident(rig, "--ca", rig.file("ca"), *args) as home:
            done = asked_by_nobody(home)
            if args:
                assert message in done.stdout, done
            else:
                assert "PermissionError" in done.stderr, done
            home.path.chmod(0o666)
            done = asked_by_nobody(home)
            assert message in done.stdout, done
            assert len(home.lines(0 if args else 1)) == (0 if args else 1)


def relayed(home: Resident, rig: Rig, after: int, limit: float) -> tuple[Answer, int, float]:
    """Ask for a peer that passes on so many bytes of a server's answer, then stalls until we are answered.

    The answer, how many bytes were passed on, and seconds.
    """
    passed, over = [], threading.Event()

    def talk(conn: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", int(port))) as far:
            threading.Thread(target=pump, args=(conn, far), daemon=True).start()
            left = after
            with suppress(OSError):
                while left > 0 and not over.is_set():
                    if select.select([far], [], [], 0.02)[0]:
                        data = far.recv(left)
                        conn.sendall(data)
                        left -= len(data)
            passed.append(after - left)
            over.wait(120)

    with rig.server() as port, peer(talk) as stalled:
        began = time.monotonic()
        try:
            got = home.ask("connect", "127.0.0.1", stalled, "--timeout", f"{limit}")
        finally:
            over.set()
        took = time.monotonic() - began
        if got.sock:
            got.sock.close()
    return got, passed[0], took


def pump(a: socket.socket, b: socket.socket) -> None:
    """Pass on until one of them ends."""
    try:
        while data := a.recv(65536):
            b.sendall(data)
    except OSError:
        return


def check_peers_that_stall(rig: Rig) -> None:
    """A peer that stalls in any state of the handshake costs --timeout, and nothing stays behind."""
    with resident(rig) as home:
        before = home.files()
        whole, total, _ = relayed(home, rig, 1 << 20, 60)
        assert whole.json["ok"] and total > 1000, (whole, total)
        # silent; in a record's head; after ServerHello; in the Certificate; in ServerKeyExchange; in Finished
        for after in (0, 3, 90, 500, total - 300, total - 20, total - 1):
            for limit in (0.3, 1.5, 6, 40):  # a busy machine comes so far only with more time
                got, passed, took = relayed(home, rig, after, limit)
                assert limit <= took, took
                if passed == after:
                    break
            message = got.json.get("cause"), f"not finished within {limit} s" in got.json.get("message", "")
            assert message == ("timeout", True) and passed == after, (after, passed, got)
        assert home.files(before) == before and home.lines(0) == []


# records that OpenSSL skips in any number, or that it has its own limit for
FLOODS = {
    "HelloRequest": bytes.fromhex("160303000400000000"),
    "warning": bytes.fromhex("1503030002015a"),
    "empty": bytes.fromhex("1603030000"),
    "part of a message": bytes.fromhex("1603030001") + b"\x02",
}


def check_peers_that_never_stop(rig: Rig) -> None:
    """A peer that sends without end costs --timeout too, and no more memory than any other."""
    with resident(rig) as home:
        before = home.files()
        for name, record in FLOODS.items():

            def talk(conn: socket.socket, data: bytes = record * 5000) -> None:
                with suppress(OSError):
                    while True:
                        conn.sendall(data)

            with peer(talk) as port:
                began = time.monotonic()
                got = home.ask("connect", "127.0.0.1", port, "--timeout", "0.3")
                took = time.monotonic() - began
            assert got.json["cause"] in ("timeout", "handshake"), (name, got, took)
            if name == "HelloRequest":
                assert got.json["cause"] == "timeout" and took >= 0.3, (got, took)
        assert home.files(before) == before and home.lines(0) == []


def check_many_at_once(rig: Rig) -> None:
    """More clients than places: the others wait, and all are served, by no more threads than places."""
    with resident(rig, "--ca", rig.file("ca"), "--clients", "4") as home, rig.server() as port:
        got: list[dict] = []

        def ask() -> None:
            answer = home.ask("connect", "127.0.0.1", port)
            got.append(answer.json)
            if answer.sock:
                answer.sock.close()

        threads = [threading.Thread(target=ask) for _ in range(24)]
        for thread in threads:
            thread.start()
        most = _most_threads(home, threads)
        assert len(got) == 24 and all(one.get("ok") for one in got), got
        assert most <= 6, most


def _most_threads(home: Resident, threads: list[threading.Thread]) -> int:
    """The most threads that a resident had while these of ours were alive."""
    most = 0
    while any(thread.is_alive() for thread in threads):
        most = max(most, entries(f"/proc/{home.child.pid}/task"))
        time.sleep(0.005)
    return most


def check_places_are_taken(rig: Rig) -> None:
    """Stalled clients take every place; who waited is served after them, by no more threads."""
    with resident(rig, "--ca", rig.file("ca"), "--clients", "4", "--timeout", "60") as home:
        got: list[Answer] = []
        folder, end = f"/proc/{home.child.pid}/task", time.monotonic() + 50
        with mute() as silent:
            words = ("connect", "127.0.0.1", silent)
            threads = [threading.Thread(target=lambda: got.append(home.ask(*words))) for _ in range(6)]
            for thread in threads:
                thread.start()
            while entries(folder) < 5 and time.monotonic() < end:  # four, and who gives the places
                time.sleep(0.01)
            time.sleep(0.2)
            assert entries(folder) == 5 and not got, got
        most = _most_threads(home, threads)  # the peer is gone: each of the four is told, then the other two
        assert most <= 6 and [one.json.get("ok") for one in got] == [False] * 6, (most, got)


def check_client_that_left(rig: Rig) -> None:
    """A client that is gone when the answer is ready: one line, and the connection is closed."""
    with rig.server() as port, resident(rig) as home:
        before = home.files()
        with home.dial() as sock:
            sock.send(f"connect\n127.0.0.1\n{port}\n--digest\n{home.digest()}\n".encode())
        assert len(home.lines(1)) <= 1 and home.files(before) == before
