"""In odd surroundings (no descriptors left, nobody reads), the stream still arrives."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from offload.connect.client import Policy, connect
from offload.errors import RigError
from tests.daemons.connect_peer import PAYLOAD, Server, exchanged, needs_stunnel, serving

ROOT = Path(__file__).parents[2]
pytestmark = needs_stunnel
CLOSED = "exec {python} -m offload connect {words} {how}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all."""
    with serving(tmp_path_factory.mktemp("server")) as found:
        yield found


def started(server: Server, how: str, *more: str, path: Path) -> tuple[bytes, int]:
    """The command with its standard descriptors as `how` says; what came back by the stream; exit code."""
    words = ["127.0.0.1", str(server.port), "--ca", str(server.ca), "--to", str(path), *more]
    shell = CLOSED.format(python=sys.executable, words=" ".join(words), how=how)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen()
        with subprocess.Popen(["sh", "-c", shell], cwd=ROOT) as child, listener.accept()[0] as conn:
            conn.settimeout(120)
            _, fds, _, _ = socket.recv_fds(conn, 8192, 4)
            back = exchanged(socket.socket(fileno=fds[0])) if fds else b""
            return back, child.wait(120)


@pytest.mark.parametrize("via", [(), ("--via", "/nowhere")])
@pytest.mark.parametrize("how", ["2>&-", "2>/dev/full", "<&- >&- 2>&-"])
def test_nobody_reads_the_warning(how: str, via: tuple[str, ...], server: Server, tmp_path: Path) -> None:
    """A warning that nobody can read (a daemon's, perhaps) does not cost the stream."""
    assert started(server, how, *via, path=tmp_path / "to") == (PAYLOAD, 0)


def test_no_descriptors_left(server: Server) -> None:
    """Too few descriptors are one warning, or an error with both reasons: never a traceback."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    said: set[str] = set()
    with socket.socket() as highest:
        here = highest.fileno()
    try:
        for spare in range(1, 12):
            resource.setrlimit(resource.RLIMIT_NOFILE, (here + spare, hard))
            for via in ("", "/nowhere"):
                said.add(_tried(server, via))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert {"stunnel", "Too many open files"} <= said, said


def _tried(server: Server, via: str) -> str:
    """How it ended: `stunnel`, or why not."""
    try:
        got = connect(server.target, Policy(ca=str(server.ca)), via=via, warn=lambda line: None)
    except RigError as exc:
        assert "the fallback failed too: " in str(exc), exc
        return "Too many open files" if "Too many open files" in str(exc) else str(exc)
    got.close()
    return str(got.line["via"])


def test_path_that_is_too_long(server: Server, tmp_path: Path) -> None:
    """The path of a socket that is too long is told as such, and no time-out."""
    lines: list[str] = []
    path = str(tmp_path / ("x" * 120))
    got = connect(server.target, Policy(ca=str(server.ca)), via=path, warn=lines.append)
    got.close()
    assert len(lines) == 1 and "too long" in lines[0] and "in time" not in lines[0], lines


def test_stunnel_that_refuses_the_policy(server: Server, tmp_path: Path) -> None:
    """What stunnel says of its configuration, before its log begins, is the reason."""
    policy = tmp_path / "p.conf"
    policy.write_text(f"CAfile = {server.ca}\nverifyChain = yes\ncurves = NOSUCH\n")
    with pytest.raises(RigError, match="no program /nowhere.*Invalid groups list"):
        connect(server.target, Policy(str(policy)), program="/nowhere")
