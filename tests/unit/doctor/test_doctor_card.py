"""doctor: which part, board and firmware a card says it is; no card was asked for these answers."""

from __future__ import annotations

import random

import pytest

from offload.doctor import firmware, vpd
from offload.doctor.examine import DIRECTIONS, Doctor
from tests.unit.doctor.fake_doctor import FakeHost
from tests.unit.doctor.test_doctor import PROFILES, fixed
from tests.unit.doctor.test_doctor import vpd as made

# the forms of devlink-info.rst and of mstflint's manual; no card was asked
DEVLINK = """{"info":{"pci/0000:04:00.0":{"versions":{"fixed":{"fw.psid":"MT_0000000359"},
"running":{"fw":"22.35.1012"}}}}}"""
# `query full`; what follows PCIe in the description is the maker's word about crypto in its order tables
MSTFLINT = """Image type:            FS4
FW Version:            22.35.1012
Part Number:           {part}
Description:           ConnectX-6 Dx EN adapter card; 100GbE; Dual-port QSFP56; PCIe 4.0 x16; {crypto}
PSID:                  MT_0000000359
Security Attributes:   N/A
"""
SAID = "FW Version 22.35.1012, PSID MT_0000000359, Description ConnectX-6 Dx EN adapter card"


@pytest.mark.parametrize(
    ("argv", "out", "shown"),
    [
        (("devlink",), DEVLINK, "fw.psid MT_0000000359, fw 22.35.1012"),
        (("mstflint",), MSTFLINT.format(part="A-B", crypto="Crypto and Secure Boot"), SAID),
        (("mstflint",), MSTFLINT.format(part="A-B", crypto="Crypto"), "part A-B"),
        (
            ("devlink",),
            '{"info": {"pci/0000:04:00.0": {"versions": {"fixed": [], "running": 3}}}}',
            "firmware 22.35",
        ),
        (("mstflint",), "PSID:\n", "firmware 22.35.1012"),
    ],
)
def test_board_and_firmware(argv: tuple[str, ...], out: str, shown: str) -> None:
    """A card that grants nothing is shown with the board that devlink or mstflint names."""
    host = FakeHost()
    fixed()(host)
    host.answers[argv] = (0, out, "")
    assert shown in next(
        f.evidence
        for f in Doctor(host, DIRECTIONS, PROFILES).diagnose(["eth0"]).devices[0].findings
        if f.code == "D208"
    )


@pytest.mark.parametrize(
    ("crypto", "code"),
    [("No Crypto", "D207"), ("Crypto Disabled", "D207"), ("Crypto and Secure Boot", "D208"), ("", "D208")],
)
def test_crypto_by_description(crypto: str, code: str) -> None:
    """A card that its maker describes as one without crypto is the reason, without a list."""
    host = FakeHost()
    fixed()(host)
    host.answers["mstflint",] = (0, MSTFLINT.format(part="MCX6-NEW", crypto=crypto), "")
    device = Doctor(host, DIRECTIONS, PROFILES).diagnose(["eth0"]).devices[0]
    found = {f.code: f for f in device.findings}
    assert code in found and not {"D207", "D208"} - {code} & set(found)
    assert device.state() == "never" and "MCX6-NEW" in found[code].evidence


def test_a_part_that_is_known_is_believed_first() -> None:
    """A part that the profile lists with crypto is not blamed for its description."""
    host = FakeHost()
    fixed(vpd=made("MCX623106AC-CDAT"))(host)
    host.answers["mstflint",] = (0, MSTFLINT.format(part="x", crypto="No Crypto"), "")
    device = Doctor(host, DIRECTIONS, PROFILES).diagnose(["eth0"]).devices[0]
    assert "D207" not in {f.code for f in device.findings}


@pytest.mark.parametrize(
    ("have", "minimum", "answer"),
    [
        ("22.33.0783 (MT_0000000359)", "22.33.0783", False),
        ("22.33.0782", "22.33.0783", True),
        ("22.35.1012", "22.33.0783", False),
        ("20.99.9999", "22.33.0783", None),
        ("", "22.33.0783", None),
        ("1.27.5.0, TP 0.1.4.9", "1.25.0.0", False),
        ("1.24.3.0, TP 0.1.4.9", "1.25.0.0", True),
        ("22.33", "22.33.0783", None),
        ("22.33.0783.4", "22.33.0783", None),
        ("22.33.x", "22.33.0783", None),
        ("a build of my own", "1.2", None),
        ("9" * 40 + ".1.1", "9.1.1", None),
    ],
)
def test_firmware_is_compared_by_number(have: str, minimum: str, answer: bool | None) -> None:
    """Versions of one form are compared, and others are not guessed at."""
    assert firmware.older(have, minimum) is answer


def test_part_number() -> None:
    """Vital product data gives its part number, and nonsense gives none; it always ends."""
    area = b"PN\x10MCX623106AC-CDAT" + b"SN\x03abc"
    good = b"\x82\x03\x00abc\x90" + len(area).to_bytes(2, "little") + area + b"\x78"
    assert vpd.part_number(good) == "MCX623106AC-CDAT"
    chance = random.Random(1)
    for _ in range(3000):
        bad = bytearray(good)
        for _ in range(chance.randrange(1, 6)):
            bad[chance.randrange(len(bad))] = chance.randrange(256)
        assert vpd.part_number(bytes(bad[: chance.randrange(len(bad) + 1)])).isprintable()
    assert vpd.part_number(b"\x82\x00\x00" * 20_000) == "" == vpd.part_number(b"\x00" * 100_000)


def test_part_number_of_a_whole_host() -> None:
    """The part that was made for the tests is read as it was made."""
    assert vpd.part_number(made("MCX623106AC-CDAT")) == "MCX623106AC-CDAT"
