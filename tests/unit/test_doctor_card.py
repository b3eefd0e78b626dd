"""doctor: which part, board and firmware a card says it is; no card was asked for these answers."""

from __future__ import annotations

import random

import pytest

from offload.doctor import vpd
from offload.doctor.examine import DIRECTIONS, Doctor
from tests.unit.fake_doctor import FakeHost
from tests.unit.test_doctor import PROFILES, fixed
from tests.unit.test_doctor import vpd as made

# the forms of devlink-info.rst and of mstflint's manual; no card was asked
DEVLINK = """{"info":{"pci/0000:04:00.0":{"versions":{"fixed":{"fw.psid":"MT_0000000359"},
"running":{"fw":"22.35.1012"}}}}}"""
MSTFLINT = (
    "Image type:            FS4\nFW Version:            22.35.1012\nPSID:                  MT_0000000359\n"
)


@pytest.mark.parametrize(
    ("argv", "out", "shown"),
    [
        (("devlink",), DEVLINK, "fw.psid MT_0000000359, fw 22.35.1012"),
        (("mstflint",), MSTFLINT, "FW Version 22.35.1012, PSID MT_0000000359"),
        (
            ("devlink",),
            '{"info": {"pci/0000:04:00.0": {"versions": {"fixed": [], "running": 3}}}}',
            "firmware 22.35",
        ),
        (("mstflint",), "PSID:\n", "firmware 22.35.1012"),
    ],
)
def test_board_and_firmware(argv: tuple[str, ...], out: str, shown: str) -> None:
    """Without a NIC a card that grants nothing is shown with the board that devlink or mstflint names."""
    host = FakeHost()
    fixed()(host)
    host.answers[argv] = (0, out, "")
    assert shown in next(
        f.evidence
        for f in Doctor(host, DIRECTIONS, PROFILES).diagnose(["eth0"]).devices[0].findings
        if f.code == "D208"
    )


def test_part_number() -> None:
    """Without a NIC vital product data gives its part number, and nonsense gives none; it always ends."""
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
    """Without a NIC the part that was made for the tests is read as it was made."""
    assert vpd.part_number(made("MCX623106AC-CDAT")) == "MCX623106AC-CDAT"
