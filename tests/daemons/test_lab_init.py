"""`lab init` finds the one cable between two hosts, and its file opens the bench."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from offload.host.local import LocalHost
from offload.suite.bench.lab.file import load
from tests.lib.rig.rack import Rack, rack
from tests.lib.rig.sshd import missing
from tests.unit.suite.bench.lab.test_lab_file import KEY

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    """Two hosts; beside the cable each has a port that leads nowhere, and one that is down."""
    with rack(tmp_path_factory.mktemp("rack")) as made:
        for space in made.spaces:
            ip = ["ip", "-n", space, "link"]
            LocalHost().run([*ip, "add", "stray0", "type", "veth", "peer", "name", "stray1"])
            LocalHost().run([*ip, "set", "stray0", "up"])
            LocalHost().run([*ip, "set", "stray1", "up"])
            LocalHost().run([*ip, "add", "down0", "type", "veth", "peer", "name", "down1"])
        yield made


def lab(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """`ktls-offload lab ARGV` in a folder."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "KTLS_OFFLOAD_STATE": str(folder / "state")}
    words = [sys.executable, "-m", "offload", "lab", *argv]
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=300)


def places(hosts: Rack) -> list[str]:
    """What a person types for the two."""
    both = zip((hosts.dut, hosts.peer), hosts.spaces, strict=True)
    return [f"{s.login.user}@{s.login.address}:{s.login.port}/{space}" for s, space in both]


def test_finds_the_cable(hosts: Rack, tmp_path: Path) -> None:
    """Init, check and export work one after the other with nothing but the hosts' names."""
    dut, peer = places(hosts)
    # one key for both: init takes one
    key = hosts.file.parent / "dut" / "user"
    other = hosts.file.parent / "peer" / "user.pub"
    other.write_text((hosts.file.parent / "dut" / "user.pub").read_text() + other.read_text())
    done = lab(tmp_path, "init", "--dut", dut, "--peer", peer, "-i", str(key))
    assert done.returncode == 0, done.stderr
    assert "cable: cable0 of the DUT to cable1 of the peer" in done.stdout
    assert "dut: SHA256:" in done.stdout and "dut: down0 is skipped: it is down" in done.stdout
    assert "no profile fits cable0 (driver veth)" in done.stdout
    file = tmp_path / "lab.yaml"
    file.write_text(
        file.read_text().replace('ifname: "cable0"', 'ifname: "cable0"\n        profile: connectx-6-dx')
    )
    found = load(file)
    assert found.dut.login and found.dut.login.hostkeys == hosts.dut.login.hostkeys
    assert found.dut.port and (found.dut.port.v4, found.dut.port.v6) == ("192.0.2.1", "fd00:2::1")
    done = lab(tmp_path, "check", "lab.yaml")
    assert done.returncode == 0 and "driver: veth" in done.stdout, done.stderr
    done = lab(tmp_path, "check", "lab.yaml", "--device-info")
    assert done.returncode == 0 and '"driver": "veth"' in done.stdout, done.stderr
    done = lab(tmp_path, "export", "lab.yaml", "--as", "net.config")
    assert (
        done.returncode == 2 and "the DUT cannot reach" in done.stderr
    )  # peer in a namespace of another machine


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (("init", "--dut", "root@127.0.0.1:1", "--peer", "here"), 7, "cannot reach dut (root@127.0.0.1:1)"),
        (("init", "--dut", "-x", "--peer", "here"), 2, ""),
        (("init", "--dut", "here/kt-none", "--peer", "here"), 2, "no network namespace 'kt-none' here"),
        (("init", "--dut", "a", "--peer", "here", "-i", "none"), 2, "none: no such key file"),
        (("check", "none.yaml"), 2, "none.yaml: cannot read"),
        (("import", "none"), 2, "none: cannot read"),
        (("export", "env"), 2, "environment: NETIF, LOCAL_V4"),
    ],
)
def test_says_what_is_wrong(tmp_path: Path, argv: tuple[str, ...], code: int, words: str) -> None:
    """Wrong words and hosts give one sentence, the right exit code, and no file."""
    done = lab(tmp_path, *argv)
    assert done.returncode == code and words in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "lab.yaml").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ":1: NETIF: no interface 'kt-none' on here"),
        ({"NETIF": "lo"}, ":2: LOCAL_V4: 192.0.2.1 is not on lo of here"),
        ({"REMOTE_ARGS": "kt-none"}, "no network namespace 'kt-none' here"),
        ({"REMOTE_TYPE": "ssh", "REMOTE_ARGS": "h", "REMOTE_KEYFILE": "none"}, ":9: REMOTE_KEYFILE: no file"),
    ],
)
def test_a_bench_that_is_not_so(tmp_path: Path, change: dict[str, str], words: str) -> None:
    """What a net.config says of hosts and is not so is named in its own words."""
    lines = {"NETIF": "kt-none", "LOCAL_V4": "192.0.2.1", "LOCAL_V6": "fd00::1", "REMOTE_V4": "192.0.2.2"}
    lines |= {"REMOTE_V6": "fd00::2", "REMOTE_TYPE": "netns", "REMOTE_ARGS": "kt-space"}
    lines |= {"REMOTE_HOSTKEY": KEY} | change
    (tmp_path / "net.config").write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    LocalHost().run(["ip", "netns", "add", "kt-space"])
    try:
        done = lab(tmp_path, "check", "net.config")
    finally:
        LocalHost().run(["ip", "netns", "del", "kt-space"])
    assert done.returncode == 2 and words in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_imports_net_config_and_keeps_what_is_there(tmp_path: Path) -> None:
    """A net.config becomes a lab file with the gaps named, and no file is ever replaced."""
    lines = ["NETIF=eth9", "LOCAL_V4=192.0.2.1", "LOCAL_V6=fd00:2::1", "REMOTE_V4=192.0.2.2"]
    lines += ["REMOTE_V6=fd00:2::2", "REMOTE_TYPE=netns", "REMOTE_ARGS=peer"]
    (tmp_path / "net.config").write_text("\n".join(lines) + "\n")
    done = lab(tmp_path, "import", "net.config")
    assert done.returncode == 0, done.stderr
    assert (
        "to do: OffloadNic.profile of the dut" in done.stdout
        and "netns: " in (tmp_path / "lab.yaml").read_text()
    )
    again = lab(tmp_path, "import", "net.config")
    assert again.returncode == 2 and "lab.yaml already exists" in again.stderr
    assert lab(tmp_path, "export", "net.config", "--as", "net.config").stdout.splitlines() == lines
