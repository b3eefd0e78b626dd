"""What the tools print of mlx5 cards of several generations. No card was asked: each answer is composed.

The forms are those of the tools' sources: mstflint b9d9e844a14a (flint/subcommands.cpp,
mlxconfig/mlxcfg_ui.cpp, mlxlink/modules/printutil) and iproute2's JSON of
devlink. Versions, PSIDs and the ConnectX-7's description are typed in from published outputs, named beside
them; GUIDs, addresses, settings and the rest are made up.
"""

from __future__ import annotations

import json
from typing import NamedTuple

BUS = "0000:04:00.0"
FLASH = """\
Image type:            FS4
FW Version:            {version}
FW Release Date:       29.3.2021
{named}Product Version:       {version}
Rom Info:              type=UEFI version=14.23.17 cpu=AMD64,AARCH64
                       type=PXE version=3.6.301 cpu=AMD64
Description:           UID                GuidsNumber
Base GUID:             0000000000000000        4
Base MAC:              000000000000            4
Image VSD:             N/A
Device VSD:            N/A
PSID:                  {psid}
Security Attributes:   {security}
"""
CONFIG = """
Device #1:
----------

{board}
Configurations:{space}Next Boot
        MEMIC_BAR_SIZE                              0
        UCTX_EN                                     True(1)
        TLS_OPTIMIZE                                False(0)
        CRYPTO_POLICY                               UNRESTRICTED(1)
*       SRIOV_EN                                    False(0)
 RO     DATA_CRYPTO_ENGINE                          DEVICE_DEFAULT(0)
        LINK_TYPE_P1                                ETH(2)
"""


class Card(NamedTuple):
    """What is said of one: devlink's versions, mstflint's image, mstconfig's board; '' where it is not."""

    kind: str
    running: str
    stored: str
    psid: str
    version: str
    part: str
    description: str
    security: str
    width: int = 20  # of mstconfig's first column: 16 in older ones

    def devlink(self) -> str:
        """`devlink -j dev info`."""
        running, stored = ({"fw.version": v, "fw": v} for v in (self.running, self.stored))
        versions = {"fixed": {"fw.psid": self.psid}, "running": running, "stored": stored}
        return json.dumps({"info": {f"pci/{BUS}": {"driver": "mlx5_core", "versions": versions}}})

    def mstflint(self) -> str:
        """`mstflint query full`."""
        named = f"Part Number:           {self.part}\n" if self.part else ""
        named += f"Description:           {self.description}\n" if self.description else ""
        return FLASH.format(version=self.version, psid=self.psid, named=named, security=self.security)

    def mstconfig(self) -> str:
        """`mstconfig query`."""
        rows = {
            "Device type:": self.kind,
            "Name:": self.part or "N/A",
            "Description:": self.description or "N/A",
        }
        rows["Device:"] = BUS
        board = "".join(f"{name:<{self.width}}{value:<{self.width}}\n" for name, value in rows.items())
        return CONFIG.format(board=board, space=" " * 42)


# devlink: the commit message of lore 20260330194015.53585-3, where the stored version cannot be read;
# image: NVIDIA developer forum 255477, a card of Cisco's, whose query names no part
CX6DX = Card(
    "ConnectX6DX",
    "22.41.0188",
    "255.255.65535",
    "CIS0000000008",
    "22.30.1004",
    "",
    "",
    "secure-fw",
    16,
)
# devlink: the cover letter of lore 20250320085947.103419; image and board: mlxconfig and flint of 28.43.1014,
# as quoted in write-ups of NVIDIA's network operator
CX7 = Card(
    "ConnectX7",
    "28.41.1000",
    "28.43.1014",
    "MT_0000000894",
    "28.43.1014",
    "MCX715105AS-WEAT_Ax",
    "NVIDIA ConnectX-7 HHHL Adapter Card; 400GbE (default mode) / NDR IB; Single-port QSFP112; "
    "Port Split Capable; PCIe 5.0 x16 with x16 PCIe extension option; Crypto Disabled; Secure Boot Enabled",
    "secure-fw",
)
# image: flint of 24.33.1048 in lshca's issue 54; part and description are made up in the form of the others
BF2 = Card(
    "BlueField2",
    "24.33.1048",
    "24.33.1048",
    "MT_0000000723",
    "24.33.1048",
    "MBF2-SAMPLE_Ax",
    "BlueField-2 DPU; 100GbE; Dual-port QSFP56; PCIe 4.0 x16; Crypto Enabled; Secure Boot Enabled",
    "secure-fw",
)
CARDS = {"connectx-6-dx": CX6DX, "connectx-7": CX7, "bluefield-2": BF2}
# Documentation/networking/devlink/mlx5.rst: names of the parameters
PARAMS = {
    "param": {
        f"pci/{BUS}": [
            {
                "name": "flow_steering_mode",
                "type": "driver-specific",
                "values": [{"cmode": "runtime", "value": "smfs"}],
            },
            {"name": "enable_roce", "type": "generic", "values": [{"cmode": "driverinit", "value": True}]},
            {"name": "max_macs", "type": "generic", "values": [{"cmode": "driverinit", "value": 128}]},
        ]
    }
}
LINK = {
    "result": {
        "output": {
            "Operational Info": {
                "State": "Active",
                "Physical state": "ETH_AN_FSM_ENABLE",
                "Speed": "200G",
                "Width": "4x",
                "FEC": "Standard RS-FEC (544,514)",
                "Loopback Mode": "No Loopback",
                "Auto Negotiation": "ON",
            },
            "Supported Info": {"Enabled Link Speed (Ext.)": {"mask": "0x7f2", "values": ["200G", "100G"]}},
            "Troubleshooting Info": {
                "Status Opcode": "0",
                "Group Opcode": "N/A",
                "Recommendation": "No issue was observed",
            },
        }
    },
    "status": {"code": 0, "message": "success"},
}


def answers(card: Card) -> dict[tuple[str, ...], tuple[int, str, str]]:
    """What each tool answers of a card, as a fake host takes it."""
    return {
        ("devlink", "-j", "dev", "info"): (0, card.devlink(), ""),
        ("devlink", "-j", "dev", "param"): (0, json.dumps(PARAMS), ""),
        ("mstflint",): (0, card.mstflint(), ""),
        ("mstconfig",): (0, card.mstconfig(), ""),
        ("mstlink",): (0, json.dumps(LINK), ""),
    }
