"""The examples of connect.md work as they stand: only addresses and folders are others."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from offload.cmd import wait_until
from tests.daemons.connect_peer import PAYLOAD, Server, exchanged, needs_stunnel, serving

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/use/connect.md").read_text()
HANDOFF = ROOT / "build/ktls-handoff"
C_PROGRAM = """
#define _GNU_SOURCE
#include "ktls-connect.h"
int main(void)
{
%s
	fputs(answer.line, stdout);
	return fd < 0 || write(fd, "", 1) != 1;
}
"""
PYTHON_REST = """
import json
got.sock.sendall(b"x")
assert got.sock.recv(1) == b"x"
got.sock.close()
print(json.dumps(got.line))
raise SystemExit(got.process.wait() if got.process else 0)
"""
pytestmark = [needs_stunnel, pytest.mark.skipif(not HANDOFF.exists(), reason="ktls-handoff is not built")]


def block(begin: str) -> str:
    """The example that begins so, without its indent."""
    found = next(part for part in re.findall(r"(?:^    .*\n)+", TEXT, re.M) if part[4:].startswith(begin))
    return "".join(line[4:] + "\n" for line in found.splitlines())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The other end."""
    with serving(tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.fixture
def here(server: Server, tmp_path: Path) -> Path:
    """A folder with the page's policy, as migration.conf, and a CA."""
    policy = block("sslVersion").replace("/etc/pki/hosts.pem", str(server.ca))
    assert f"CAfile = {server.ca}" in re.sub(" +", " ", policy)
    (tmp_path / "migration.conf").write_text(policy)
    shutil.copy(server.ca, tmp_path / "ca.pem")
    return tmp_path


def placed(text: str, server: Server, folder: Path) -> str:
    """An example, with addresses and folders of this test."""
    text = text.replace("192.0.2.2", "127.0.0.1").replace("8443", str(server.port))
    return text.replace('"migration.conf"', f'"{folder}/migration.conf"').replace("/run/", f"{folder}/")


def lines(server: Server, folder: Path) -> list[list[str]]:
    """The commands of the page, as words."""
    text = placed(block("ktls-offload connect"), server, folder)
    words = [shlex.split(line, comments=True) for line in text.splitlines()]
    return [[sys.executable, "-m", "offload", *line[1:]] for line in words if line[0] == "ktls-offload"]


@contextmanager
def resident(argv: list[str], folder: Path) -> Iterator[None]:
    """The page's resident, until the block ends."""
    path = argv[argv.index("--serve") + 1]
    with subprocess.Popen(argv, cwd=folder) as child:
        try:
            listens = f" 00010000 0005 01 \\d+ {path}\n"
            wait_until(lambda: re.search(listens, Path("/proc/net/unix").read_text()), 60, "the resident")
            yield
        finally:
            child.terminate()
        assert child.wait(120) == 0


def as_promised(warned: str) -> bool:
    """Say whether the resident had nothing against the caller's policy: at most this kernel has no TLS."""
    if not warned:
        return True
    return warned.count("no kTLS") == 1 and "modprobe tls" in warned and "another policy" not in warned


def test_commands_of_the_page(here: Path, server: Server) -> None:
    """Each command of the page ends with 0, and a socket that it gives carries a stream."""
    commands = lines(server, here)
    assert len(commands) == 5
    serves = next(argv for argv in commands if "--serve" in argv)
    with resident(serves, here), socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(here / "vm7.sock"))
        listener.listen()
        for argv in commands:
            if argv is not serves:
                taken = run(argv, here, listener)
                assert taken is None or exchanged(taken) == PAYLOAD, argv


def run(argv: list[str], folder: Path, listener: socket.socket) -> socket.socket | None:
    """One command; the socket that it hands over, if it is for somebody."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        if "--fd" in argv:
            argv[argv.index("--fd") + 1] = str(theirs.fileno())
        how = {"cwd": folder, "pass_fds": [theirs.fileno()], "capture_output": True, "text": True}
        done = subprocess.run(argv, timeout=300, **how)  # type: ignore[call-overload]
        assert done.returncode == 0 and as_promised(done.stderr), done
        if "--to" in argv:
            ours = listener.accept()[0]
        elif "--fd" not in argv:
            assert done.stdout.startswith(
                f"127.0.0.1 port {argv[5]}: TLS 1.2, ECDHE-RSA-AES256-GCM-SHA384"
            ), done
            return None
        with ours:
            fds = socket.recv_fds(ours, 8192, 4)[1]
    return socket.socket(fileno=fds[0])


def test_python_of_the_page(here: Path, server: Server) -> None:
    """The Python example gets the socket of the page's resident, or stunnel's, and says why."""
    text = placed(block("from offload.connect.client"), server, here) + PYTHON_REST
    with resident(next(argv for argv in lines(server, here) if "--serve" in argv), here):
        how = {"cwd": ROOT, "capture_output": True, "text": True, "timeout": 300}
        done = subprocess.run([sys.executable, "-c", text], **how)  # type: ignore[call-overload]
    assert done.returncode == 0 and json.loads(done.stdout)["ok"] and as_promised(done.stderr), done


@pytest.mark.skipif(not shutil.which("cc"), reason="a C compiler wanted")
def test_c_of_the_page(here: Path, server: Server) -> None:
    """The C example is compiled without a warning, and does what the Python one does."""
    (here / "example.c").write_text(C_PROGRAM % placed(block("struct ktls_target"), server, here))
    strict = ["cc", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/native/ktls-handoff", "-o", here / "example"]
    subprocess.run([*strict, here / "example.c"], check=True)
    with resident(next(argv for argv in lines(server, here) if "--serve" in argv), here):
        done = subprocess.run([here / "example"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and json.loads(done.stdout)["ok"] and as_promised(done.stderr), done
