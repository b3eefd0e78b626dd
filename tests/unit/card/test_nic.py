"""One interface as the kernel shows it: features, matching, kinds; on fakes and on this kernel."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from offload.card.counters import snapshot
from offload.card.nic import Feature, Nic, features, from_text, look, match, names
from offload.card.nic_why import kernel_config, why_fixed
from offload.card.profile import load_all
from offload.errors import CommandFailed, NoDevice, NoPermission, RigError
from offload.host.base import Completed
from offload.host.local import LocalHost
from offload.host.tools import tool
from tests.unit.switch.fake_bench import FakeMachine, card, feature

ROOT = Path(__file__).parents[3]
PLAIN = Nic("x0", 5, True, "up", "", (), "mlx5_core", "6.1", "22.35", "0000:04:00.0", "15b3:101d", "", {})


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    return FakeMachine(tmp_path, monkeypatch)


def test_the_text_form_says_the_same_as_json(machine: FakeMachine) -> None:
    """An old ethtool gives the same features as a new one."""
    machine.change("eth0", "tls-hw-rx-offload", active=False, requested=True)
    new = look(LocalHost(), "eth0")
    machine.set(no_json=True)
    assert look(LocalHost(), "eth0") == new
    assert str(new.feature("rx")) == "off [requested on]"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tls-hw-tx-offload: off [fixed]", Feature("tls-hw-tx-offload", False, True, False)),
        ("tls-hw-tx-offload: on", Feature("tls-hw-tx-offload", True, False, True)),
        ("\ttls-hw-tx-offload: off [requested on]", Feature("tls-hw-tx-offload", False, False, True)),
        ("tls-hw-tx-offload: on [requested off]", Feature("tls-hw-tx-offload", True, False, False)),
    ],
)
def test_feature_lines(line: str, expected: Feature) -> None:
    """Active, fixed and requested are told apart, and print as ethtool prints them."""
    assert from_text(line) == {"tls-hw-tx-offload": expected}
    assert str(expected) == line.partition(": ")[2]


def test_an_answer_nested_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists within lists are no list of interfaces, and no traceback."""
    deep = Completed(("ip",), 0, b"[" * 100_000, b"", 0.0)
    monkeypatch.setattr("offload.card.nic.tool", lambda host, argv: deep)
    with pytest.raises(CommandFailed, match="not a list of interfaces"):
        names(LocalHost())
    assert features(LocalHost(), "eth0") == {}


def test_lines_of_another_form_are_skipped() -> None:
    """What is no feature line gives no feature."""
    assert from_text("Features for eth0:\nfoo: maybe\nbar: on [strange]\n: on\n") == {}


@pytest.mark.parametrize(
    ("driver", "firmware", "pci", "expected"),
    [
        ("mlx5_core", "22.35", "15b3:101d", ("connectx-6-dx", False)),
        ("mlx5_core", "16.35", "15b3:1017", (None, False)),
        ("cxgb4", "1.27", "1425:6411", ("chelsio-t6", False)),
        ("cxgb4", "1.27", "1425:5411", (None, False)),
        ("nicsim", "sim/connectx-6-dx", "", ("connectx-6-dx", True)),
        ("nicsim", "sim/nicsim", "", ("nicsim", True)),
        ("nicsim", "sim/plain", "", (None, True)),
        ("nicsim", "sim/chelsio-t6\ufffd\ufffdx", "", ("chelsio-t6", True)),
        ("nicsim", "0.9", "", ("nicsim", True)),
        ("veth", "", "", (None, False)),
    ],
)
def test_matching(driver: str, firmware: str, pci: str, expected: tuple[str | None, bool]) -> None:
    """Driver and PCI id find the profile; the simulated card is what it plays."""
    found = match(replace(PLAIN, driver=driver, firmware=firmware, pci=pci), load_all())
    assert (found.profile.id if found.profile else None, found.simulated) == expected


def test_pci_id_comes_from_sysfs(machine: FakeMachine) -> None:
    """Vendor and device are read at the bus address that the driver names."""
    assert look(LocalHost(), "eth0").pci == "15b3:101d"
    assert look(LocalHost(), "sim0").pci == ""


@pytest.mark.parametrize("dev", ["-K", "a b", "x" * 16, "../eth0", "", "eth:0"])
def test_what_is_no_name_never_reaches_a_program(machine: FakeMachine, dev: str) -> None:
    """An odd name is refused; it could be an option to a program that runs as root."""
    with pytest.raises(NoDevice, match="is not the name of an interface"):
        look(LocalHost(), dev)
    assert not [c for c in machine.state()["log"] if c.startswith("ethtool")]


def test_another_name_of_an_interface_is_taken(machine: FakeMachine) -> None:
    machine.set(
        devices={"eth0": card("mlx5_core", "22", "", feature(), feature(), link={"altnames": ["enp4s0"]})}
    )
    assert look(LocalHost(), "enp4s0").dev == "eth0"


def test_a_driver_cannot_write_to_the_terminal(machine: FakeMachine) -> None:
    """Escapes in a driver's answer are dropped and its length is bounded."""
    machine.set(devices={"eth0": card("mlx5_core", "\x1b[2J" + "9" * 500, "", feature(), feature())})
    firmware = look(LocalHost(), "eth0").firmware
    assert "\x1b" not in firmware and len(firmware) <= 80


@pytest.mark.parametrize(
    ("on", "tx", "rx"),
    [
        (("tx-checksum-ip-generic", "rx-checksumming"), "", ""),
        (("tx-checksum-ipv4", "tx-checksum-ipv6"), "", "rx"),
        (("tx-checksum-ipv4",), "tx", "rx"),
        ((), "tx", "rx"),
    ],
)
def test_the_checksum_that_tls_needs(on: tuple[str, ...], tx: str, rx: str) -> None:
    """The rule is netdev_fix_features': both IP checksums or the generic one."""
    nic = replace(PLAIN, features={name: Feature(name, True, False, True) for name in on})
    assert (nic.checksum_missing("tx"), nic.checksum_missing("rx")) == (tx, rx)


def test_an_unreadable_configuration_lists_what_to_look_for(machine: FakeMachine) -> None:
    """Without a kernel configuration, the wanted symbols and the card are both named."""
    assert kernel_config(LocalHost()) == ("", {})
    reasons = why_fixed(LocalHost(), PLAIN, match(PLAIN, load_all()), "tx")
    assert "CONFIG_MLX5_EN_TLS=y" in reasons[0] and "crypto-enabled part" in reasons[1]


def test_a_compressed_configuration_is_read(machine: FakeMachine) -> None:
    """/proc/config.gz will do."""
    import gzip

    machine.files["/proc/config.gz"] = gzip.compress(b"# CONFIG_A is not set\nCONFIG_TLS=m\n")
    assert kernel_config(LocalHost()) == ("/proc/config.gz", {"CONFIG_TLS": "m"})


def answers(rc: int, err: bytes) -> SimpleNamespace:
    """A host whose every command ends like this."""
    return SimpleNamespace(name="h", run=lambda argv, **_: Completed(tuple(argv), rc, b"", err, 0.0, "h"))


@pytest.mark.parametrize("end", [(127, b""), (255, b'exec of "ethtool" failed: No such file')])
def test_a_missing_program_names_its_package(end: tuple[int, bytes]) -> None:
    """A host without ethtool is told which package to install, also inside a namespace."""
    with pytest.raises(RigError, match="ethtool is not installed") as caught:
        tool(answers(*end), ["ethtool", "-i", "x"])
    assert caught.value.hint == "apt install ethtool"


def test_permission_is_reported() -> None:
    """What the kernel forbids is exit 4."""
    with pytest.raises(NoPermission):
        tool(answers(92, b"netlink error: Operation not permitted"), ["ethtool", "-K", "x", "tx", "on"])


@pytest.fixture
def netns() -> Iterator[str]:
    """A namespace of this machine's kernel with veth0, veth1, and br0 above veth1."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make a network namespace")
    name = f"ktlsop{uuid.uuid4().hex[:8]}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"no network namespace here: {made.stderr.strip()}")
    try:
        for line in ("veth0 type veth peer name veth1", "br0 type bridge"):
            subprocess.run(["ip", "-n", name, "link", "add", *line.split()], check=True)
        subprocess.run(["ip", "-n", name, "link", "set", "veth1", "master", "br0"], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def test_a_real_veth_of_this_kernel(netns: str) -> None:
    """A veth is shown as it is: its kind, its driver, TLS features off and fixed."""
    host = LocalHost(netns)
    assert names(host) == ("lo", "veth1", "veth0", "br0") or {*names(host)} == {"lo", "veth0", "veth1", "br0"}
    nic = look(host, "veth0")
    assert (nic.driver, nic.kind, nic.up, nic.pci) == ("veth", "veth", False, "")
    assert nic.version and nic.ifindex == snapshot(host, "veth1").driver["peer_ifindex"]
    assert nic.feature("tx") == Feature("tls-hw-tx-offload", False, True, False)
    assert "peer_ifindex" in snapshot(host, "veth0").driver
    bridge = look(host, "br0")
    assert (bridge.kind, bridge.lower) == ("bridge", ("veth1",))


@pytest.mark.parametrize(
    ("argv", "code", "text"),
    [
        (["enable", "veth0"], 5, "tls-hw-tx-offload is off [fixed]: driver veth has no transmit TLS offload"),
        (
            ["enable", "br0"],
            5,
            "br0 is a bridge; the kernel never offloads connections that are routed through it",
        ),
        (["disable", "veth0"], 0, "off [fixed]"),
        (["enable", "veth9"], 3, "did you mean veth"),
        (["status", "veth0"], 0, "link down (administratively)"),
        (["restore", "veth0"], 0, "nothing to put back"),
    ],
)
def test_the_command_on_a_real_kernel(
    netns: str, tmp_path: Path, argv: list[str], code: int, text: str
) -> None:
    """The command says the right thing of real kernel objects."""
    command = ["ip", "netns", "exec", netns, sys.executable, "-m", "offload", *argv]
    env = {**os.environ, "KTLS_OFFLOAD_STATE": str(tmp_path / "state")}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env, timeout=60)
    assert done.returncode == code, done.stderr
    assert text in done.stdout + done.stderr and "Traceback" not in done.stderr
