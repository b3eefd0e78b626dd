"""A host behind a real sshd does what any host does, and says in a sentence why it cannot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from offload.cmd import settles, wait_until
from offload.errors import CommandFailed, ConfigError, NoPermission, OffloadError, Refused, RigError
from offload.host.base import Host
from offload.host.local import LocalHost
from offload.host.ssh import Login, Master
from offload.suite.bench.lab.reach import Machine
from tests.lib.rig.sshd import Server, keys, missing, serving

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An sshd on the loopback."""
    with serving(tmp_path_factory.mktemp("sshd"), "dut", "127.0.0.11") as made:
        yield made


@pytest.fixture(scope="module")
def machine(server: Server) -> Iterator[Machine]:
    """A connection to it."""
    made = Machine(server.login)
    yield made
    made.close()


@pytest.fixture(params=["local", "ssh"])
def host(request: pytest.FixtureRequest, machine: Machine) -> Host:
    """Both kinds: what holds for one holds for the other."""
    return LocalHost() if request.param == "local" else machine.host()


def children(word: str) -> list[int]:
    """Processes of this machine with a word in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return sorted(found)


def test_runs_to_the_end(host: Host) -> None:
    """Input, both outputs, exit code and environment arrive as they were given."""
    done = host.run(
        ["sh", "-c", 'cat; echo "$WORD" >&2; exit 3'], input=b"\0\xff\n", check=False, env={"WORD": "a b'c"}
    )
    assert (done.rc, done.stdout, done.stderr) == (3, b"\0\xff\n", b"a b'c\n")
    with pytest.raises(CommandFailed, match="exit 3"):
        host.run(["sh", "-c", "exit 3"])
    assert host.run(["no-such-program"], check=False).rc == 127
    assert host.run(["sh", "-c", "kill -9 $$"], check=False).rc == -9


def test_ends_what_takes_too_long(host: Host) -> None:
    """A time-out ends the command and everything that it started."""
    with pytest.raises(RigError, match="timed out after 0.5 s"):
        host.run(["sh", "-c", "sleep 54321 & sleep 54321"], timeout=0.5)
    wait_until(lambda: not children("54321"), 60, "the sleepers to end")


def test_starts_in_the_background(host: Host) -> None:
    """A background command takes input, shows its output so far, and obeys signals."""
    process = host.start(
        ["sh", "-c", "trap 'echo bye; exit 7' TERM; read a; echo $a; while :; do sleep 0.1; done"]
    )
    process.stdin(b"hello\n")
    wait_until(lambda: process.output()[0] == b"hello\n", 60, "the answer")
    assert process.running() and process.pid in children("trap")
    process.kill(signal.SIGTERM)
    wait_until(lambda: not process.running(), 60, "the end")
    assert process.output()[0] == b"hello\nbye\n"
    began = time.monotonic()
    late = host.start(["sh", "-c", "sleep 0.3; echo late; read a"])
    assert late.news(600)[0] == b"late\n" and late.news(0.05)[0] == b"late\n" and late.running()
    assert late.news(0)[0] == b"late\n" and time.monotonic() - began < 300
    late.kill()
    assert late.news(60)[0] == b"late\n" and not late.running()
    copy = host.start(["cat"])
    copy.stdin(b"x" * 300_000, eof=True)
    assert copy.wait(120).stdout == b"x" * 300_000


def test_keeps_files(host: Host, tmp_path: Path) -> None:
    """A file arrives with its bytes and exactly its mode, also through a umask."""
    path = str(tmp_path / "made" / "file")
    host.write(path, bytes(range(256)) * 5000, 0o640)
    assert host.read(path) == bytes(range(256)) * 5000
    assert Path(path).stat().st_mode & 0o7777 == 0o640
    with pytest.raises(FileNotFoundError):
        host.read(str(tmp_path / "none"))


def test_fast_ciphers_first(machine: Machine) -> None:
    """A host is offered AES in hardware before all else, and not nothing else."""
    rows = LocalHost().run(machine._master._argv("-G")).text.splitlines()
    ciphers = next(row for row in rows if row.startswith("ciphers ")).split()[1].split(",")
    assert ciphers[0] == "aes128-gcm@openssh.com" and {"aes256-ctr"} < set(ciphers), ciphers


def devices() -> list[str]:
    """The interfaces that this machine's /sys shows."""
    return sorted(path.name for path in Path("/sys/class/net").iterdir())


def test_enters_a_namespace(machine: Machine) -> None:
    """A network namespace shows its own devices in /sys, and the machine keeps its own."""
    name = f"kt-ssh{uuid.uuid4().hex[:6]}"
    LocalHost().run(["ip", "netns", "add", name])
    try:
        inside = machine.host(name)
        assert inside.run(["ls", "/sys/class/net"]).text.split() == ["lo"]
        inside.run(["ip", "link", "set", "lo", "up"])
        # other programs of this machine may add an interface at any time
        assert settles(lambda: machine.host().run(["ls", "/sys/class/net"]).text.split() == devices(), 60)
    finally:
        LocalHost().run(["ip", "netns", "del", name])
    with pytest.raises(ConfigError, match="no network namespace 'kt-none' on dut"):
        machine.host("kt-none")


def test_closes_without_a_trace(server: Server) -> None:
    """The folder is ours alone, no argv holds a secret, and the end removes everything."""
    machine = Machine(server.login)
    folder = machine._master._folder
    sleeper = machine.host().start(["sleep", "65432"])
    secret = (Path(server.login.keyfile)).read_text().splitlines()[2]
    argvs = b"\n".join(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children(str(folder)))
    assert folder.stat().st_mode & 0o777 == 0o700 and argvs and secret.encode() not in argvs
    assert sleeper.running()
    machine.close()
    wait_until(lambda: not children("65432") and not children(str(folder)), 60, "everything to end")
    assert not folder.exists()


def another_key(server: Server, tmp_path: Path) -> Login:
    """The login with a host key that is not the server's."""
    return replace(server.login, hostkeys=(keys(tmp_path, "other"),))


def test_refuses_a_changed_host_key(server: Server, tmp_path: Path) -> None:
    """Another host key than the lab file's ends it before we log in."""
    with pytest.raises(
        Refused, match=r"the host key of dut \(root@127.0.0.11:\d+\) is not the one"
    ) as caught:
        Master(another_key(server, tmp_path))
    assert "SHA256:" in str(caught.value) and "compare the fingerprint" in str(caught.value)
    with pytest.raises(Refused):
        Master(replace(server.login, hostkeys=()))


@pytest.mark.parametrize(
    "change, error, words",
    [
        (lambda login, at: replace(login, port=1), RigError, "cannot reach dut"),
        (lambda login, at: replace(login, address="none.invalid"), RigError, "cannot reach dut"),
        (lambda login, at: replace(login, keyfile=str(at / "other")), NoPermission, "refuses the login"),
        (lambda login, at: replace(login, user="nobody"), NoPermission, "refuses the login"),
        (lambda login, at: replace(login, sudo=True), OffloadError, "dut"),
    ],
    ids=["refused", "unknown", "wrong key", "wrong user", "no sudo"],
)
def test_says_why_it_cannot(
    server: Server,
    tmp_path: Path,
    change: Callable[[Login, Path], Login],
    error: type[OffloadError],
    words: str,
) -> None:
    """A host that cannot be used is one sentence of the right kind, and leaves nothing."""
    keys(tmp_path, "other")
    login, before = change(server.login, tmp_path), children(server.login.alias)
    if login.sudo and LocalHost().run(["sudo", "-n", "true"], check=False).rc == 0:
        pytest.skip("sudo works here")
    with pytest.raises(error, match=words) as caught:
        Machine(login)
    assert "\n" not in str(caught.value.args[0])
    wait_until(lambda: children(login.alias) == before, 60, "every ssh of ours to end")


def test_a_lost_connection_is_one_sentence(tmp_path: Path) -> None:
    """A connection lost in the middle of a command ends that there, and says so here."""
    with serving(tmp_path, "peer", "127.0.0.12") as server:
        machine = Machine(server.login)
        host = machine.host()
        background = host.start(["sleep", "76543"])
        doomed = [
            pid for pid in children("ssh") if b"sshd: root" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
        killer = subprocess.Popen(
            ["sh", "-c", f"sleep 1; kill -9 {' '.join(map(str, mine(server, doomed)))}"]
        )
        with pytest.raises(RigError, match=r"the connection to peer \(root@127.0.0.12:\d+\) is gone"):
            host.run(["sleep", "76543"], timeout=600)
        wait_until(lambda: not children("76543"), 60, "what was started there to end")
        with pytest.raises(RigError, match="is gone"):
            background.running()
        assert not machine.alive()
        killer.wait()
        machine.close()


def mine(server: Server, pids: list[int]) -> list[int]:
    """Those of the processes that belong to this server."""

    def parent(pid: int) -> int:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

    return [pid for pid in pids if parent(pid) == server.process.pid]


def test_ends_with_its_runner(server: Server) -> None:
    """A runner that is killed leaves no connection and nothing that runs on the host."""
    code = (
        "import sys; from offload.host.ssh import Login; from offload.suite.bench.lab.reach import Machine\n"
        f"m = Machine({server.login!r}); m.host().start(['sleep', '87654']); print('up', flush=True); "
        "sys.stdin.read()"
    )
    root = Path(__file__).parents[2]
    runner = subprocess.Popen(
        [sys.executable, "-c", code], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert runner.stdout is not None and runner.stdin is not None
    assert runner.stdout.readline() == b"up\n" and children("87654")
    runner.kill()
    runner.wait()
    runner.stdin.close()
    runner.stdout.close()
    wait_until(lambda: not children("87654"), 60, "the sleeper to end")
