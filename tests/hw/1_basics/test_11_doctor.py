"""This NIC's state is told by `doctor` as traffic then shows it, and each remedy is one."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from offload.card.nic import look
from offload.card.profile import DIRECTIONS, Cell, Profile, load_all
from offload.cmd import settles
from offload.doctor import esp
from offload.doctor.document import as_json
from offload.doctor.examine import Device, Diagnosis, Doctor
from offload.doctor.library import Trial
from offload.doctor.reasons import Notes
from offload.errata.match import AFFECTED, kernel, load, standing
from offload.host.base import Bench, Completed, Host, Side
from offload.suite.traffic import ipsec
from offload.suite.traffic.drive import sending
from tests.lib.flow import proof
from tests.lib.flow.flow import Traffic
from tests.lib.impair import paths
from tests.lib.impair.queue import queue_kept
from tests.lib.life.life import Life
from tests.lib.rig.absent import taken_away
from tests.lib.rig.switch import Switch

STATE = "/run/ktls-offload-test-doctor"
KIB = 1 << 10
NOT_TRIED = Trial(why="tried by the test before")  # a trial takes a second; one per test file is enough
# A connection of kernel TLS in software, on loopback, until its standard input ends.
HOLD = """
import socket, struct, sys
listener = socket.create_server(("127.0.0.1", 0))
ends = socket.create_connection(listener.getsockname()), listener.accept()[0]
ends[0].setsockopt(6, 31, b"tls")
ends[0].setsockopt(282, 1, struct.pack("=HH", 0x0303, 51) + bytes(36))
print("held", flush=True)
sys.stdin.read()
"""

# An XDP program that passes every packet on, attached by generic XDP; no file is left.
XDP = """
import ctypes, os, struct, subprocess, sys, tempfile
libc, at = ctypes.CDLL(None, use_errno=True), ctypes.addressof
def bpf(command, words):
    got = libc.syscall(321, command, ctypes.create_string_buffer(words.ljust(128, b"\\0")), 128)
    return got if got >= 0 else sys.exit(f"bpf({command}): {os.strerror(ctypes.get_errno())}")
code = ctypes.create_string_buffer(struct.pack("=BBhiBBhi", 0xB7, 0, 0, 2, 0x95, 0, 0, 0))  # XDP_PASS
license = ctypes.create_string_buffer(b"GPL")
program = bpf(5, struct.pack("=IIQQIIQII", 6, 2, at(code), at(license), 0, 0, 0, 0, 0))  # BPF_PROG_LOAD, XDP
with tempfile.TemporaryDirectory() as folder:
    subprocess.run(["mount", "-t", "bpf", "bpf", folder], check=True)
    try:
        pinned = f"{folder}/pass"
        place = ctypes.create_string_buffer(pinned.encode())
        bpf(6, struct.pack("=QI", at(place), program))  # BPF_OBJ_PIN
        subprocess.run(["ip", "link", "set", sys.argv[1], "xdpgeneric", "pinned", pinned], check=True)
    finally:
        subprocess.run(["umount", folder])
"""


class Nobody:
    """A host whose programs are run without any right."""

    def __init__(self, host: Host) -> None:
        self.name, self.read, self.write, self.start = host.name, host.read, host.write, host.start
        self._host = host

    def run(self, argv: Sequence[str], **more: Any) -> Completed:
        """Run to the end; see Host.run."""
        return self._host.run(["setpriv", "--reuid=65534", "--clear-groups", *argv], **more)


def command(side: Side, *words: str) -> Completed:
    """Run `ktls-offload` on the DUT, with a journal of its own."""
    argv = [sys.executable, "-m", "offload", *words]
    return side.host.run(argv, check=False, timeout=900, env={"KTLS_OFFLOAD_STATE": STATE})


def ask(side: Side, dev: str = "", directions: Sequence[str] = DIRECTIONS) -> Diagnosis:
    """The doctor's answer about a device of the DUT, asked from here."""
    return Doctor(side.host, directions, trial=NOT_TRIED).diagnose([dev or side.dev])


def codes(device: Device) -> set[str]:
    """The codes found of a device."""
    return {finding.code for finding in device.findings}


def follow(side: Side, device: Device, code: str) -> None:
    """Do what the remedy of a code says, as it stands there."""
    remedy = next(f.remedy for f in device.findings if f.code == code)
    words = shlex.split(remedy, comments=True)
    done = command(side, *words[1:]) if words[0] == "ktls-offload" else side.host.run(words, check=False)
    assert done.rc == 0, f"{remedy}: exit {done.rc}: {done.stderr.decode()}"


@pytest.mark.once
@pytest.mark.promise("tools.honest")
@pytest.mark.requires("tls", "ktls-handoff", "stunnel", "openssl")
def test_doctor_verdict_is_what_traffic_shows(
    dut: Side, profile: Profile, offload: Switch, traffic: Traffic, evidence: dict[str, Any]
) -> None:
    """This NIC is called ready, and each kind of connection is where the truth table puts it."""
    offload.on()
    reported = json.loads(as_json(Doctor(dut.host).diagnose([dut.dev])))
    assert (reported["exit"], reported["state"]) == (0, "ready"), reported
    device = reported["devices"][0]
    wanted = {d: "ready" if d in profile.directions() else "not promised" for d in DIRECTIONS}
    assert {d: row["state"] for d, row in device["directions"].items()} == wanted
    who = {(row["direction"], row["version"], row["cipher"]): row["who"] for row in device["table"]}
    assert {cell for cell, word in who.items() if word == "hw"} == {tuple(c) for c in profile.promises}
    found = {f["code"]: f for f in (*device["findings"], *reported["findings"])}
    assert reported["openssl"]["asked"] == ["rx", "tx"], (
        "this OpenSSL made the connections of every other test"
    )
    assert ("D502" in found) == (not reported["openssl"]["unasked"])
    assert "D504" in found or not reported["openssl"]["library"].startswith("OpenSSL 3.0."), (
        "no 3.0 has the fix"
    )
    assert ("D211" in found) == (len(profile.directions()) < 2)
    at = kernel(reported["kernel"]["release"], reported["kernel"]["package"])
    bugs = {e.id for e in load() if standing(e, at).word == AFFECTED}
    named = {line.partition(":")[0] for line in found.get("D109", {}).get("detail", [])}
    assert named <= bugs and ("stacked-device-encrypts-twice" in named) == (
        "stacked-device-encrypts-twice" in bugs
    )
    for version in ("1.2", "1.3"):
        cell, plan = Cell("tx", version, "aes-gcm-128"), sending(f"doctor {version}", 64 * KIB)
        flow = traffic.sent(cell, plan)
        evidence[version] = flow.tls()
        proof.handed_over(flow, cell)
        proof.intact(flow.far, plan)
        proof.sent_by_card(flow, plan) if who[tuple(cell)] == "hw" else proof.done_by_software(flow, "tx")


@pytest.mark.once
@pytest.mark.promise("tools.honest")
def test_doctor_names_each_switch_and_its_remedy(dut: Side, profile: Profile, offload: Switch) -> None:
    """This NIC is called off for the switch that is off, and is ready after the remedy."""
    offload.on()
    for direction in profile.directions():
        offload.set(**{direction: False})  # what the remedy journals is put back by this fixture
        device = ask(dut, directions=(direction,)).devices[0]
        assert device.states == {direction: ("off", "D301")}, device.findings
        if direction != profile.directions()[0]:
            continue  # both directions go the same way
        follow(dut, device, "D301")
        offload.set(**{direction: True})
        with undone(dut, ["ethtool", "-K", dut.dev, direction, "on"]):
            dut.host.run(["ethtool", "-K", dut.dev, direction, "off"])
            device = ask(dut, directions=(direction,)).devices[0]
            assert device.states == {direction: ("off", "D302")}, device.findings
            follow(dut, device, "D302")
        assert ask(dut, directions=(direction,)).state() == "ready"
    dut.host.run(["rm", "-rf", STATE])


@contextmanager
def undone(side: Side, argv: Sequence[str]) -> Iterator[None]:
    """Run a command when the block is over, whatever it did."""
    with ExitStack() as undo:
        undo.callback(side.host.run, argv, check=False)
        yield


@pytest.mark.once
@pytest.mark.promise("tools.honest")
@pytest.mark.requires("tls", "lab")
def test_doctor_names_stacked_devices(dut: Side, bench: Bench, profile: Profile, offload: Switch) -> None:
    """This NIC is offloaded, and doctor says that a VLAN, a bridge and a bond on top of it are not."""
    offload.on()
    with paths.vlan(bench):
        above, below = (ask(dut, dev).devices[0] for dev in ("kvlan", dut.dev))
        assert above.state() == "never" and codes(above) == {"D202"}
        assert below.state() == "ready" and "D402" in codes(below)
    with paths.bridged(bench):
        assert {"D404"} <= codes(ask(dut).devices[0])
    with paths.bonded(bench, "balance-xor"):
        bond = ask(dut, "kbond").devices[0]
        assert bond.states["tx"] == ("ready", "") and {"D204", "D217", "D205"} <= codes(bond)
    with paths.bonded(bench, "active-backup"):
        bond = ask(dut, "kbond").devices[0]
        assert bond.state() == "off" and codes(bond) == {"D203"}
    assert ask(dut).state() == "ready"


@pytest.mark.once
@pytest.mark.promise("tools.honest")
@pytest.mark.requires("tls", "lab")
def test_doctor_names_bond_profile_tc_and_xdp(dut: Side, profile: Profile, offload: Switch) -> None:
    """This NIC is not taken for a bond without ports; doctor notes a missing profile, missing tc, and XDP."""
    offload.on()
    with undone(dut, ["ip", "link", "del", "kempty"]):
        kind = ("bond", "mode", "balance-xor", "xmit_hash_policy", "layer3+4")
        dut.host.run(["ip", "link", "add", "kempty", "type", *kind])
        bond = ask(dut, "kempty").devices[0]
        assert bond.state() == "off" and codes(bond) == {"D216"}
    others = tuple(p for p in load_all() if not p.plays and p.id != profile.id)
    unknown = Doctor(dut.host, profiles=others, trial=NOT_TRIED).diagnose([dut.dev]).devices[0]
    assert "D206" in codes(unknown) and unknown.states[profile.directions()[0]][0] == "ready"
    with taken_away(dut.host, "tc"):
        assert "D405" in codes(ask(dut).devices[0])
    with undone(dut, ["ip", "link", "set", dut.dev, "xdpgeneric", "off"]):
        dut.host.run([sys.executable, "-I", "-S", "-c", XDP, dut.dev], timeout=120)
        device = ask(dut).devices[0]
        assert "D403" in codes(device) and device.state() == "ready"
    assert not codes(ask(dut).devices[0]) & {"D206", "D403", "D405"}


@pytest.mark.once
@pytest.mark.promise("tools.honest")
@pytest.mark.requires("tls", "lab")
def test_doctor_names_link_queue_and_use(dut: Side, offload: Switch) -> None:
    """This NIC is called off while it is down or behind netem delay, and in use by nobody when so."""
    offload.on()
    with paths.put_back(dut):
        dut.host.run(["ip", "link", "set", dut.dev, "down"])
        device = ask(dut).devices[0]
        assert device.states["tx"] == ("off", "D303")
        follow(dut, device, "D303")
    with queue_kept(dut):
        dut.host.run(["tc", "qdisc", "add", "dev", dut.dev, "root", "netem", "loss", "1%"])
        assert ask(dut).state() == "ready", "loss alone does no harm"
        dut.host.run(["tc", "qdisc", "change", "dev", dut.dev, "root", "netem", "delay", "10ms"])
        dut.host.run(["ethtool", "-K", dut.dev, "tso", "off"])
        device = ask(dut).devices[0]
        assert device.states["tx"] == ("off", "D401") and "D304" in codes(device)
        follow(dut, device, "D304")
        follow(dut, device, "D401")
    held = dut.host.start([sys.executable, "-I", "-S", "-c", HOLD])
    assert settles(lambda: b"held" in held.output()[0], 60), held.output()[1].decode()
    in_use = codes(ask(dut).devices[0])
    held.stdin(b"", eof=True)
    assert held.wait(180).rc == 0 and "D701" in in_use
    after = ask(dut).devices[0]
    assert after.state() == "ready" and not codes(after) & {"D701", "D304"}


@pytest.mark.once
@pytest.mark.promise("tools.honest")
@pytest.mark.requires("tls", "lab", "ipsec")
def test_doctor_names_ipsec(dut: Side, peer: Side, life: Life, offload: Switch, peer_offload: Switch) -> None:
    """This NIC is not taken for one whose traffic is in ESP; after doctor's remedy TLS in ESP is intact."""
    offload.on()
    peer_offload.set(tx=False)  # its card would stand behind ESP as well
    with ipsec.protected(dut, peer, "gcm-128"), undone(dut, ["rm", "-rf", STATE]):
        device = ask(dut).devices[0]
        found = next(f for f in device.findings if f.code == "D406")
        assert f"src {dut.v4}/32 dst {peer.v4}/32 proto tcp" in found.what, found
        assert of_ipsec(Nobody(dut.host), dut.dev) == {"D407"}, "nobody may list policies"
        follow(dut, device, "D406")
        assert of_ipsec(dut.host, dut.dev) == set(), "the switch is off"
        pairs = life.open()
        pairs[0].moves("after the remedy", 32 * KIB)
        life.close(pairs)
        for on in (False, True):  # the remedy went past this fixture
            offload.set(tx=on)
        assert of_ipsec(dut.host, dut.dev) == {"D406"}
    assert of_ipsec(dut.host, dut.dev) == set(), "the policy is gone"


def of_ipsec(host: Host, dev: str) -> set[str]:
    """Return what is found of IPsec alone."""
    notes = Notes(dev)
    esp.examine(host, look(host, dev), notes)
    return {finding.code for finding in notes.findings}
