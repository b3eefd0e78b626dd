"""Each step has a cause, an exit code and an end: connect, listen, handshake, absent kTLS."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rig import Rig, mute, refusing_port


def check_nobody_listens(rig: Rig) -> None:
    """A refused connection is cause connect, exit 5."""
    got = rig.run("connect", "127.0.0.1", refusing_port(), "--no-verify", fake={})
    assert (got.rc, got.json["cause"], got.json["exit"]) == (5, "connect", 5)
    assert "refused" in got.json["message"]


def check_unknown_host(rig: Rig) -> None:
    """A name without an address is cause connect (or time-out where no name server answers), and names it."""
    got = rig.run("connect", "no-such-host.invalid", "1", "--no-verify", "--timeout", "2", fake={})
    assert got.rc in (5, 6) and "no-such-host.invalid" in got.json["message"], got


def check_host_name(rig: Rig) -> None:
    """A host name is resolved."""
    with rig.server() as port:
        got = rig.run("connect", "localhost", port, "--no-verify", fake={})
    assert got.rc == 0 and got.json["peer"].endswith(port), got


def check_mute_server(rig: Rig) -> None:
    """A server that never answers ends in time-out, exit 6, close to --timeout."""
    for limit in (0.3, 6, 60):  # a busy machine may need longer to come as far as the handshake
        with mute() as port:
            began = time.monotonic()
            got = rig.run("connect", "127.0.0.1", port, "--no-verify", "--timeout", f"{limit}", fake={})
            took = time.monotonic() - began
        assert (got.rc, got.json["cause"]) == (6, "timeout") and took >= limit, (got, took)
        if "handshake" in got.json["message"]:
            return
    raise AssertionError(got)


def check_connect_time_out(rig: Rig) -> None:
    """A connect that gets no answer ends too: the queue of this listener is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        port = listener.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]
        for sock in fillers:
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", port))
        got = rig.run("connect", "127.0.0.1", str(port), "--no-verify", "--timeout", "0.3", fake={})
        for sock in fillers:
            sock.close()
    assert (got.rc, got.json["cause"]) == (6, "timeout") and "connect" in got.json["message"]


def check_nobody_comes(rig: Rig) -> None:
    """accept waits --timeout for a client, not for ever."""
    args = ("--cert", rig.file("server"), "--key", rig.file("server-key"), "--timeout", "0.2")
    got = rig.run("accept", "127.0.0.1", "0", *args, fake={})
    assert (got.rc, got.json["cause"]) == (6, "timeout")


def check_port_taken(rig: Rig) -> None:
    """A port that is taken is cause connect, exit 5."""
    with mute() as port:
        args = ("--cert", rig.file("server"), "--key", rig.file("server-key"))
        got = rig.run("accept", "127.0.0.1", port, *args, fake={})
    assert (got.rc, got.json["cause"]) == (5, "connect")


def check_no_tls_module(rig: Rig) -> None:
    """Without the tls module: exit 4, what to do, and no connection is made."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        got = rig.run("connect", "127.0.0.1", port, "--no-verify", fake={"FAKE_KTLS_ABSENT": "1"})
        assert (got.rc, got.json["cause"]) == (4, "ktls") and "modprobe tls" in got.json["message"]
        listener.settimeout(0.1)
        try:
            listener.accept()
        except TimeoutError:
            return
    raise AssertionError("it connected")


def check_this_kernel(rig: Rig) -> None:
    """On the kernel that runs this: exit 4, or real kTLS where the kernel has it."""
    has = "tls" in Path("/proc/sys/net/ipv4/tcp_available_ulp").read_text().split()
    with rig.server() as port:
        got = rig.run("connect", "127.0.0.1", port, "--no-verify")
    assert got.rc == 0 if has else got.rc in (0, 4), got


def check_nobody_looks_inside(rig: Rig) -> None:
    """While it holds keys, its memory belongs to root: who started it cannot attach a debugger or read it."""
    user = {"user": 65534} if os.getuid() == 0 else {}
    rig.folder.chmod(0o711)
    program = copied(rig.program, rig.folder / "helper")
    env = {**rig.env({}), "LD_PRELOAD": copied(rig.fake, rig.folder / "fake.so")}
    with mute_until_asked() as (port, reached):
        argv = [program, "connect", "127.0.0.1", port, "--no-verify", "--timeout", "200"]
        with subprocess.Popen(argv, env=env, stderr=subprocess.DEVNULL, **user) as child:
            reached()
            owner = Path(f"/proc/{child.pid}/mem").stat().st_uid
            child.kill()
    assert owner == 0, owner


def copied(source: str, place: Path) -> str:
    """A file where another user can read it: the checkout may lie in root's home."""
    shutil.copy(source, place)
    place.chmod(0o755)
    return str(place)


@contextmanager
def mute_until_asked() -> Iterator[tuple[str, Callable[[], object]]]:
    """A TCP server that says nothing: its port, and a call that returns when a client has said its hello."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as undo:
        listener.settimeout(120)
        yield str(listener.getsockname()[1]), lambda: undo.enter_context(listener.accept()[0]).recv(1)
