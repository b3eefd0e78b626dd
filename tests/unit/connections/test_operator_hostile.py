"""status and ls: whatever ethtool, ip, devlink and the kernel's answers hold, no traceback, no escape."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from offload.card import nic_tools
from offload.card.counters import parse
from offload.card.nic import from_text
from offload.card.profile import DIRECTIONS
from offload.connections.look import Inspector
from offload.connections.text import as_text as ls_text
from offload.connections.verbs import as_json as ls_json
from offload.connections.watch import Look, frame
from offload.doctor import vpd
from offload.doctor.examine import Doctor
from offload.doctor.text import as_text as doctor_text
from offload.errors import OffloadError
from offload.host.base import Completed
from offload.switch.status import as_json as status_json
from offload.switch.status import as_text as status_text
from offload.switch.status import gather
from tests.lib.rig.schemas import fits
from tests.unit.connections.test_sockets import diag, document, info, read, ulp
from tests.unit.doctor.fake_doctor import FakeHost, card
from tests.unit.doctor.test_doctor import PROFILES
from tests.unit.doctor.test_doctor_hostile import NASTY, clean

ESCAPE = "\x1b]0;owned\x07\x1b[2J"
ETHTOOL = ("-i", "-S", "-k", "--json")
STATISTICS = "NIC statistics:\n" + "".join(f"     tx_tls_ctx_{n}: {n}\n" for n in range(30_000))


@pytest.fixture(autouse=True)
def profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """The profiles, read once: they are ours, and not what is tried here."""
    monkeypatch.setattr("offload.switch.status.load_all", lambda: PROFILES)


def status_of(host: FakeHost) -> None:
    """Both forms of `status`, or an error for a person."""
    with suppress(OffloadError):
        found = gather(host, ())  # type: ignore[arg-type]
        assert clean(status_text(found)), status_text(found)
        assert status_json(found).isascii() and fits("status", status_json(found))


@pytest.mark.parametrize("option", ETHTOOL)
def test_ethtool_may_say_anything_to_status(option: str) -> None:
    """Any answer of ethtool, of any exit code, gives a status or one sentence."""
    huge = "NIC statistics:\n     tx_tls_ctx: 99999999999999999999999\n     rx_tls_ctx: -4\n a: 1\n a: 2\n"
    for nonsense in (*NASTY, ESCAPE, huge, f"driver: {ESCAPE}\nfirmware-version: \udcff\udc80\n"):
        for rc in (0, 1):
            host = FakeHost()
            host.answers["ethtool", option] = (rc, nonsense, ESCAPE)
            status_of(host)


def test_huge_statistics_are_bounded() -> None:
    """30,000 counters end in a status with a warning that says how many were read."""
    host = FakeHost()
    host.answers["ethtool", "-S"] = (0, STATISTICS, "")
    status_of(host)
    assert "30001 counter lines" in " ".join(gather(host, ()).warnings)  # type: ignore[arg-type]


@pytest.mark.parametrize("dev", ["a\x1b[31m", "eth0\u202e", "a;reboot", "$(id)", "\u200bx", "\udcff\udcfe"])
def test_names_of_interfaces_do_no_harm(dev: str) -> None:
    """An interface may be called anything that the kernel takes: all verbs stay readable."""
    host = FakeHost()
    host.devices = {dev: card("mlx5_core", "0000:04:00.0", "15b3:101d", altnames=[ESCAPE])}
    host.answers["ethtool", "-S"] = (0, "NIC statistics:\n     tx_tls_ctx: 1\n", "")
    status_of(host)
    found = Doctor(host, DIRECTIONS, PROFILES).diagnose([dev])  # type: ignore[arg-type]
    assert clean(doctor_text(found, verbose=True))


def mangled(chance: random.Random, node: Any) -> Any:
    """A document in which some values are of another kind, gone or twice."""
    odd = (None, True, -1, 2**70, 1e300, "", ESCAPE, [], {}, [[]], "\udcff", float("nan"))
    if chance.random() < 0.04:
        return chance.choice(odd)
    if isinstance(node, dict):
        return {key: mangled(chance, value) for key, value in node.items() if chance.random() > 0.01}
    if isinstance(node, list):
        return [mangled(chance, value) for value in node for _ in range(chance.random() < 0.98)]
    return node


@pytest.mark.parametrize("seed", range(60))
def test_ip_may_say_anything(seed: int) -> None:
    """The answers of ip and ethtool may be JSON of any shape."""
    chance, host = random.Random(seed), FakeHost()
    info_ = {"info_kind": "vlan", "info_data": {"id": 5}}
    rows = [
        host._link(2, "eth0"),
        {**host._link(3, "eth0"), "ifname": "v5", "link": "eth0", "linkinfo": info_},
    ]
    host.answers["ip",] = (0, json.dumps(mangled(chance, rows)), "")
    host.answers["ethtool", "--json"] = (
        0,
        json.dumps(mangled(chance, [host.devices["eth0"]["features"]])),
        "",
    )
    status_of(host)
    with suppress(OffloadError):
        found = Doctor(host, DIRECTIONS, PROFILES).diagnose(["eth0"])  # type: ignore[arg-type]
        assert clean(doctor_text(found, verbose=True))


class Answering(FakeHost):
    """A host whose sockets' reader says what a test has prepared."""

    said = b""

    def run(self, argv: Sequence[str], **more: Any) -> Completed:
        """The reader's answer; nsenter leads to the same host."""
        words = list(argv)
        if words[0] == "/usr/bin/python3":
            return Completed(tuple(words), 0, self.said, b"", 0.0)
        return super().run(words[words.index("--") + 1 :] if words[0] == "nsenter" else words, **more)


def listed(said: Mapping[str, Any]) -> None:
    """Every form of `ls`, or an error for a person."""
    host = Answering()
    host.said = json.dumps(said).encode("utf-8", "surrogatepass")
    with suppress(OffloadError):
        found = Inspector(host, profiles=PROFILES).look()  # type: ignore[arg-type]
        for columns in (0, 80):
            assert clean(ls_text(found, columns)), ls_text(found)
        assert clean("\n".join(frame(None, Look(found), 80, 24)))
        assert ls_json(found).isascii() and fits("ls", ls_json(found))


@pytest.mark.parametrize("seed", range(120))
def test_the_reader_may_say_anything(seed: int) -> None:
    """What the sockets' reader says may be of any shape, from a host that nobody trusts."""
    rows = [[*read(diag(more=info() + ulp())), "eth0"], [*read(diag(more=ulp(tx=2))), "eth7"]]
    listed(mangled(random.Random(seed), document("nginx", rows)))


@pytest.mark.parametrize("seed", range(8))
def test_parsers_take_any_bytes(seed: int) -> None:
    """Each parser of text takes 400 answers with bytes changed, cut or repeated, and ends."""
    chance = random.Random(seed)
    texts = (
        "Features for eth0:\nrx-checksumming: on\ntls-hw-tx-offload: off [requested on]\n",
        "NIC statistics:\n     tx_tls_ctx: 5\n     rx0_packets: 9\n     [0]: tx: 3\n",
        '{"info":{"pci/0000:04:00.0":{"driver":"mlx5_core","versions":{"fixed":{"fw.psid":"MT_1"}}}}}',
        "Image type:    FS4\nFW Version:    22.35.1012\nPSID:          MT_0000000359\n",
    )
    for _ in range(400):
        raw = bytearray(chance.choice(texts).encode())
        for _ in range(chance.randrange(1, 8)):
            raw[chance.randrange(len(raw))] = chance.choice((0, 10, 27, 58, 255, chance.randrange(256)))
        text = bytes(raw[: chance.randrange(len(raw) + 1)] * chance.randrange(1, 3)).decode(
            "utf-8", "replace"
        )
        assert all(feature.name.isprintable() for feature in from_text(text).values())
        found, odd = parse(text)
        assert all(clean(line) for line in (*found, *odd)) and all(0 <= n < 2**64 for n in found.values())
        assert isinstance(nic_tools.answer(text), dict)
        assert vpd.part_number(bytes(raw)).isprintable()
