"""Two ports of one host become a bench, and are put back with all they had, whatever ends it.

Real ports of a kernel: a cable of veth, in a network namespace and below a /run of the test's own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from offload.cmd import settles
from tests.lib.rig.ports import SLOW, Machine, cabled_over_a_wire, two_ports, wrapped

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A host with two ports and a cable."""
    with two_ports(tmp_path) as made:
        yield made


def test_there_and_back(machine: Machine) -> None:
    """Init, check and restore work one after the other; afterwards the ports are as before."""
    before = machine.seen()
    done = machine.lab("init", "--one-host", "near0", "far0")
    assert done.returncode == 0 and "far0 is in network namespace ktls-peer now" in done.stdout, done.stderr
    assert "192.0.2.2/24" in machine.sh("ip -n ktls-peer address show dev far0")
    file = machine.folder / "lab.yaml"
    assert 'netns: "ktls-peer"' in file.read_text() and "hostkeys" not in file.read_text()
    file.write_text(file.read_text().replace('"near0"', '"near0"\n        profile: connectx-6-dx'))
    done = machine.lab("check", "lab.yaml", "--device-info")
    assert done.returncode == 0 and '"driver": "veth"' in done.stdout, done.stderr
    done = machine.lab("init", "--one-host", "near0", "far0")
    assert done.returncode == 5 and "near0 and far0 already form a bench" in done.stderr, done.stderr
    assert machine.lab("restore").stdout == "near0, far0: as found\n"
    assert machine.is_as(before) and not machine.noted
    assert "nothing to put back" in machine.lab("restore").stdout
    done = machine.lab("check", "lab.yaml")
    assert done.returncode == 2 and "lab init --one-host" in done.stderr, done.stderr
    done = machine.lab("init", "--one-host", "near0", "far0")
    assert (
        done.returncode == 0 and "lab.yaml already describes these ports; it is unchanged" in done.stdout
    ), done.stderr
    assert machine.lab("restore").returncode == 0 and machine.is_as(before)


def test_files_of_the_namespace(machine: Machine) -> None:
    """Counters that are read of the far end are its own, not the host's."""
    assert machine.lab("init", "--one-host", "near0", "far0").returncode == 0
    script = """
from offload.host.local import LocalHost
far = LocalHost("ktls-peer")
print(far.read("/proc/net/dev").decode())
try:
    far.read("/proc/net/none")
except FileNotFoundError as exc:
    print(exc.filename)
"""
    said = machine.run([sys.executable, "-c", script]).stdout
    assert "far0:" in said and "near0:" not in said and said.endswith("/proc/net/none\n"), said
    assert machine.lab("restore").returncode == 0


def test_features_of_a_killed_run(machine: Machine) -> None:
    """A feature that a run had changed on the far port before it was killed is as before it."""
    assert machine.lab("init", "--one-host", "near0", "far0").returncode == 0
    script = """
from offload.host.base import Side
from offload.host.local import LocalHost
from offload.suite.bench.lab import settings
from offload.suite.bench.lab.model import Target
settings.FEATURES = {"rx": "generic-receive-offload"}  # a switch that a veth has, too
side = Side(LocalHost("ktls-peer"), "far0", "", "")
settings.note(side, Target("peer", None, "ktls-peer"))
was = settings.look(side.host, side.dev).features["generic-receive-offload"].active
side.host.run(["ethtool", "-K", "far0", "gro", "off" if was else "on"])
"""
    was = "ethtool -k far0 | grep generic-receive"
    before = machine.sh(f"ip netns exec ktls-peer {was}")
    assert machine.run([sys.executable, "-c", script]).returncode == 0
    assert machine.sh(f"ip netns exec ktls-peer {was}") != before
    done = machine.lab("restore")
    assert done.returncode == 0 and machine.sh(was) == before, done


def test_ports_that_were_down(machine: Machine) -> None:
    """A port that was down is down again, and has no address of ours."""
    machine.sh("ip link set near0 down; ip link set far0 down; ip address flush dev far0")
    assert machine.lab("init", "--one-host", "near0", "far0").returncode == 0
    assert machine.lab("restore").returncode == 0
    shown = machine.sh("ip -br address show")
    assert not re.search(r"(near0|far0)\S* +UP|192\.0\.2|fd00", shown), shown


def test_four_ports(machine: Machine) -> None:
    """Two more ports of the host are the wire: a connection crosses them, and all come back."""
    ports = cabled_over_a_wire(machine)
    before = machine.seen()
    done = machine.lab("init", "--one-host", *ports)
    assert done.returncode == 0 and "cable: peer0 to peerw" in done.stdout, done.stderr
    assert machine.sh("ip -n ktls-wire -br link show master br0").count("\n") == 2
    script = """
import socket, subprocess, sys
server = socket.create_server(("192.0.2.1", 7002))
words = "import socket; socket.create_connection(('192.0.2.1', 7002)).sendall(b'over the wire')"
subprocess.run(["ip", "netns", "exec", "ktls-peer", sys.executable, "-c", words], check=True)
print(server.accept()[0].recv(100).decode())
"""
    assert machine.run([sys.executable, "-c", script]).stdout == "over the wire\n"
    file = machine.folder / "lab.yaml"
    assert 'OffloadWire: {ports: ["dutw", "peerw"]}' in file.read_text()
    file.write_text(file.read_text().replace('"dut0"', '"dut0"\n        profile: connectx-6-dx'))
    assert machine.lab("check", "lab.yaml", "--device-info").returncode == 0
    assert machine.lab("restore").returncode == 0 and machine.is_as(before) and not machine.noted
    done = machine.lab("init", "--one-host", "dut0", "peer0", "--wire", "peerw", "dutw")
    assert done.returncode == 2 and "lab.yaml already exists and describes another bench" in done.stderr
    done = machine.lab(
        "init", "--one-host", "dut0", "peer0", "--wire", "peerw", "dutw", "--out", "other.yaml"
    )
    assert done.returncode == 7 and "peerw receives no frames from dut0" in done.stderr, done.stderr
    assert machine.is_as(before) and not machine.noted


@pytest.mark.turns("killed at any step")
@pytest.mark.parametrize(("signal", "steps"), [("INT", 8), ("KILL", 16)])
def test_ended_at_any_step(machine: Machine, signal: str, steps: int) -> None:
    """Ctrl-C at any step leaves all as it was, and `lab restore` does after kill -9."""
    ports = ["near0", "far0"] if signal == "INT" else cabled_over_a_wire(machine)
    before, at, ended = machine.seen(), 0, True
    while ended:
        at += 1
        (machine.folder / "lab.yaml").unlink(missing_ok=True)
        env = wrapped(machine, at, signal)
        ended = machine.lab("init", "--one-host", *ports, **env).returncode != 0
        assert ended == (not (machine.folder / "lab.yaml").exists())
        assert not (ended and signal == "INT" and machine.noted), f"at step {at}"
        done = machine.lab("restore")
        assert done.returncode == 0 and machine.is_as(before) and not machine.noted, f"at step {at}: {done}"
    assert at > steps, "the commands that change something are counted wrongly"


@pytest.mark.turns("killed at any step")
def test_put_back_killed_at_any_step(machine: Machine) -> None:
    """A `lab restore` that is killed is taken up by the next."""
    before, at, ended = machine.seen(), 0, True
    while ended:
        at += 1
        (machine.folder / "lab.yaml").unlink(missing_ok=True)
        assert machine.lab("init", "--one-host", "near0", "far0").returncode == 0
        ended = machine.lab("restore", **wrapped(machine, at, "KILL")).returncode != 0
        done = machine.lab("restore")
        assert done.returncode == 0 and machine.is_as(before) and not machine.noted, f"at step {at}: {done}"
    assert at > 8


REFUSED = {
    "same": ("", ("near0", "near0"), 2, "near0 is named twice"),
    "none": ("", ("near0", "far1"), 3, "far1"),
    "loopback": ("", ("near0", "lo"), 5, "lo is not a port of a card: its kind is loopback"),
    "default route": (
        "ip route add default via 10.9.0.2",
        ("near0", "far0"),
        5,
        "far0 is needed to reach this host: the default route uses it",
    ),
    "a bridge's": (
        "ip link add br0 type bridge; ip link set far0 master br0",
        ("near0", "far0"),
        5,
        "far0 belongs to br0",
    ),
    "queueing": (
        "tc qdisc add dev far0 root handle 1: pfifo",
        ("near0", "far0"),
        5,
        "far0 has its own queueing discipline (pfifo)",
    ),
    "neighbor": (
        "ip neigh add 10.9.0.7 lladdr 02:00:00:00:00:07 dev far0 nud permanent",
        ("near0", "far0"),
        5,
        "far0 has 1 permanent neighbors",
    ),
    "odd route": (
        "ip link add other0 type veth peer name other1; ip link set other0 up;"
        " ip address add 10.8.0.1/24 dev other0;"
        " ip route add 10.12.0.0/16 nexthop via 10.9.0.2 dev far0 nexthop via 10.8.0.2 dev other0",
        ("near0", "far0"),
        5,
        "far0 has a multipath route",
    ),
    "addresses": ("ip address add 192.0.2.7/32 dev lo", ("near0", "far0"), 5, "lo has 192.0.2.7"),
    "IPv6": ("sysctl -qw net.ipv6.conf.near0.disable_ipv6=1", ("near0", "far0"), 5, "IPv6 is off on near0"),
    "namespace": (
        "ip netns add ktls-peer",
        ("near0", "far0"),
        5,
        "network namespace ktls-peer already exists",
    ),
    "no cable": (
        "ip link add o0 type veth peer name o1; ip link set o0 up; ip link set o1 up",
        ("o0", "far0"),
        7,
        "far0 receives no frames from o0: they are not cabled to each other",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused(machine: Machine, name: str) -> None:
    """Ports that may not, or cannot, be a bench give one sentence, and nothing is changed."""
    script, ports, code, words = REFUSED[name]
    machine.sh(script or ":")
    before = machine.seen()
    done = machine.lab("init", "--one-host", *ports)
    assert done.returncode == code and words in done.stderr, done
    assert len(done.stderr.splitlines()) <= 2 and "Traceback" not in done.stderr
    assert machine.is_as(before) and not machine.noted and not (machine.folder / "lab.yaml").exists()


def test_without_a_link(machine: Machine) -> None:
    """Ports without a carrier are named, and nothing is changed."""
    machine.sh("ip link add o0 type veth peer name o1; ip link set o0 up")
    before = machine.seen()
    done = machine.lab("init", "--one-host", "near0", "o0")
    assert done.returncode == 7 and "no link on o0" in done.stderr, done
    assert machine.is_as(before) and not machine.noted


def test_the_path_in_use_is_spared(machine: Machine) -> None:
    """The port at which sshd serves the person stays where it is."""
    connection = "203.0.113.5 50000 10.9.0.1 22"
    done = machine.lab("init", "--one-host", "near0", "far0", SSH_CONNECTION=connection)
    assert done.returncode == 5 and "far0 is needed to reach this host: your SSH session" in done.stderr, done
    assert not machine.noted


def test_a_connection_of_the_person(machine: Machine) -> None:
    """A port that carries a TCP connection, as an ssh session is, stays where it is."""
    both = "import socket,sys; at=('10.9.0.1',7001);"
    both += "a=socket.create_server(at); b=socket.create_connection(at);"
    words = [sys.executable, "-c", f"{both} print('ready',flush=True); sys.stdin.read()"]
    spaces = [f"--net=/proc/{machine.pid}/ns/net"]
    with subprocess.Popen(
        ["nsenter", *spaces, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout and child.stdout.readline() == b"ready\n"
        done = machine.lab("init", "--one-host", "near0", "far0")
        assert done.returncode == 5 and "far0 carries a TCP connection, 10.9.0.1:" in done.stderr, done
    assert not machine.noted


def test_a_bench_in_use(machine: Machine) -> None:
    """The far port is not taken from under a program that runs beside it."""
    assert machine.lab("init", "--one-host", "near0", "far0").returncode == 0
    into = ["nsenter", f"--net=/proc/{machine.pid}/ns/net", f"--mount=/proc/{machine.pid}/ns/mnt"]
    with subprocess.Popen([*into, "ip", "netns", "exec", "ktls-peer", "cat"], stdin=subprocess.PIPE) as child:
        assert settles(lambda: bool(machine.sh("ip netns pids ktls-peer").strip()), SLOW)
        done = machine.lab("restore")
        assert done.returncode == 5 and f"the bench is in use: process {child.pid}" in done.stderr, done
    assert machine.noted and machine.lab("restore").returncode == 0


def test_ends_that_are_one(machine: Machine) -> None:
    """Two ports of one namespace are no bench: the kernel delivers past the cards."""
    assert machine.lab("init", "--one-host", "near0", "far0").returncode == 0
    file = machine.folder / "lab.yaml"
    text = file.read_text().replace('"near0"', '"near0"\n        profile: connectx-6-dx')
    assert machine.lab("restore").returncode == 0
    file.write_text(text.replace('netns: "ktls-peer"', "sudo: on"))
    machine.sh("for a in 192.0.2.1/24 fd00:2::1/64; do ip address add $a dev near0 nodad; done")
    machine.sh("for a in 192.0.2.2/24 fd00:2::2/64; do ip address add $a dev far0 nodad; done")
    done = machine.lab("check", "lab.yaml")
    assert done.returncode == 2 and "DUT and peer are in one network namespace" in done.stderr, done
    done = machine.lab("init", "--dut", "here", "--peer", "here", "--out", "other.yaml")
    assert done.returncode == 2 and "DUT and peer are in one network namespace" in done.stderr, done


def test_a_file_that_lacks_something(machine: Machine) -> None:
    """The lab file of a card without a profile is named as the one that init found."""
    assert machine.lab("init", "--one-host", "near0", "far0").returncode == 0
    assert machine.lab("restore").returncode == 0
    done = machine.lab("init", "--one-host", "near0", "far0")
    assert done.returncode == 2 and "OffloadNic: key profile is missing" in done.stderr, done
    assert "init keeps a lab file that is there: complete it, or --out FILE" in done.stderr, done


def test_words_that_do_not_go_together(machine: Machine) -> None:
    """Half of a request, and a file of another bench, are named."""
    done = machine.lab("init", "--dut", "a")
    assert done.returncode == 2 and "lab init needs --dut HOST and --peer HOST" in done.stderr
    done = machine.lab("init", "--dut", "a", "--peer", "b", "--wire", "c", "d")
    assert done.returncode == 2 and "--wire needs --one-host" in done.stderr
    done = machine.lab("init", "--one-host", "near0", "far0", "--dut", "a")
    assert done.returncode == 2 and "--one-host excludes --dut" in done.stderr
    (machine.folder / "lab.yaml").write_text((ROOT / "ci/lab.yaml").read_text())
    done = machine.lab("init", "--one-host", "near0", "far0")
    assert done.returncode == 2 and "lab.yaml already exists and describes another bench" in done.stderr
    (machine.folder / "state").mkdir(mode=0o700, exist_ok=True)
    (machine.folder / "state" / "one-host.json").write_text('{"schema": 1}')
    done = machine.lab("restore")
    assert done.returncode == 2 and "one-host.json: damaged" in done.stderr and "Traceback" not in done.stderr
