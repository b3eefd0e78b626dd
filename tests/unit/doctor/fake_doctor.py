"""A host made of recorded answers: what its commands print and its files hold; nothing of this machine."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

from offload.host.base import Completed, Process

DEBIAN = "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-11-16)"
# linux-config-6.1, amd64, none flavour, as far as it matters
DEBIAN_CONFIG = (
    "CONFIG_TLS=m\nCONFIG_TLS_DEVICE=y\nCONFIG_MLX5_CORE=m\nCONFIG_MLX5_CORE_EN=y\nCONFIG_CHELSIO_T4=m\n"
    "# CONFIG_MLX5_EN_TLS is not set\n"
)
FULL_CONFIG = DEBIAN_CONFIG + "CONFIG_MLX5_EN_TLS=y\nCONFIG_CHELSIO_TLS_DEVICE=m\n"
CELLS = [f"{v} {c}" for v in ("1.2", "1.3") for c in ("aes-gcm-128", "aes-gcm-256", "chacha20-poly1305")]
# what loopback.py printed on Debian 12, kernel 6.1
TRIAL: dict[str, Any] = {
    "bits": 64,
    "library": "OpenSSL 3.0.19 27 Jan 2026",
    "cells": {cell: {"ulp": 0, "tx": 0, "rx": 0} for cell in CELLS},
    "openssl": {"plain": {"tx": False, "rx": False}, "asked": {"tx": True, "rx": True}},
}
STAT = "TlsCurrTxSw                     \t0\nTlsCurrRxSw                     \t0\nTlsCurrTxDevice  \t0\n"


def feature(active: bool, fixed: bool = False, requested: bool | None = None) -> dict[str, bool]:
    """One feature as `ethtool --json -k` has it."""
    return {"active": active, "fixed": fixed, "requested": active if requested is None else requested}


FIXED = feature(False, True)
FEATURES = {
    "rx-checksumming": feature(True),
    "tx-checksum-ip-generic": feature(True),
    "tx-tcp-segmentation": feature(True),
    "large-receive-offload": feature(False),
    "tls-hw-tx-offload": feature(True),
    "tls-hw-rx-offload": feature(True),
}


def card(driver: str, bus: str, pci: str, **link: Any) -> dict[str, Any]:
    """One interface; `pci` is vvvv:dddd."""
    return {"driver": driver, "bus": bus, "pci": pci, "features": copy.deepcopy(FEATURES), "link": link}


class FakeHost:
    """Answers by the first words of a command; what is not recorded is not installed (127)."""

    name = "recorded"

    def __init__(self) -> None:
        self.release, self.version = "6.1.0-56-amd64", DEBIAN
        self.devices = {"eth0": card("mlx5_core", "0000:04:00.0", "15b3:101d")}
        self.files: dict[str, bytes] = {f"/boot/config-{self.release}": FULL_CONFIG.encode()}
        self.answers: dict[tuple[str, ...], tuple[int, str, str]] = {
            ("cat", "/proc/net/tls_stat"): (0, STAT, ""),
            ("modprobe", "--show-depends", "tls"): (
                0,
                "insmod /lib/modules/6.1/kernel/net/tls/tls.ko \n",
                "",
            ),
            ("unshare", "--net"): (0, json.dumps(TRIAL) + "\n", ""),
            ("tc", "-j", "qdisc"): (0, '[{"kind":"mq","handle":"0:","root":true,"options":{}}]', ""),
            ("grep", "-RsiIHnE"): (1, "", ""),
            ("grep", "-m1"): (1, "0\n", ""),
            ("readlink",): (1, "", ""),
            ("test", "-d"): (0, "", ""),
        }
        self.asked: list[tuple[str, ...]] = []

    def change(self, name: str, row: dict[str, bool], dev: str = "eth0") -> None:
        """Replace one feature."""
        self.devices[dev]["features"][name] = dict(row)

    def fix(self, dev: str = "eth0") -> None:
        """Make both TLS features `off [fixed]`."""
        for name in ("tls-hw-tx-offload", "tls-hw-rx-offload"):
            self.change(name, FIXED, dev)

    def config(self, text: str) -> None:
        """What /boot/config-RELEASE says."""
        self.files[f"/boot/config-{self.release}"] = text.encode()

    def unload(self) -> None:
        """No module tls."""
        self.answers["cat", "/proc/net/tls_stat"] = (
            1,
            "",
            "cat: /proc/net/tls_stat: No such file or directory",
        )

    def trial(self, **keys: Any) -> None:
        """What loopback.py prints."""
        self.answers["unshare", "--net"] = (0, json.dumps({**TRIAL, **keys}), "")

    def configured(self, program: str, *lines: str) -> None:
        """A server that is installed, and lines that grep finds in its files."""
        self.answers["grep", "-RsiIHnE"] = (0, "\n".join(lines) + "\n", "")
        self.answers["sh", "-c"] = (0, f"/usr/sbin/{program}\n", "")

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes = b"",
        timeout: float = 60.0,
        check: bool = True,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """The recorded answer."""
        words = tuple(argv)
        self.asked.append(words)
        rc, out, err = self._answer(words)
        done = Completed(words, rc, out.encode("utf-8", "surrogateescape"), err.encode(), 0.0, self.name)
        return done.checked() if check else done

    def _answer(self, words: tuple[str, ...]) -> tuple[int, str, str]:
        for length in range(len(words), 0, -1):
            if words[:length] in self.answers:
                return self.answers[words[:length]]
        if words[0] == "uname":
            return (
                0,
                (self.release if words[1:] == ("-r",) else f"{self.release} {self.version} x86_64") + "\n",
                "",
            )
        if words[0] == "ip":
            return 0, json.dumps([self._link(n, d) for n, d in enumerate(self.devices, 2)]), ""
        if words[0] == "ethtool" and words[-1] in self.devices:
            return 0, self._ethtool(words), ""
        return 127, "", f"{words[0]}: not found"

    def _link(self, number: int, dev: str) -> dict[str, Any]:
        row = {"ifindex": number, "ifname": dev, "flags": ["UP"], "operstate": "UP", "link_type": "ether"}
        return {**row, **self.devices[dev]["link"]}

    def _ethtool(self, words: tuple[str, ...]) -> str:
        nic = self.devices[words[-1]]
        if "-i" in words:
            return f"driver: {nic['driver']}\nfirmware-version: 22.35.1012\nbus-info: {nic['bus']}\n"
        return json.dumps([{"ifname": words[-1], **nic["features"]}])

    def start(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> Process:
        """A doctor starts nothing."""
        raise AssertionError(f"started {argv}")

    def read(self, path: str) -> bytes:
        """A recorded file; vendor and device of the cards."""
        for nic in self.devices.values():
            for at, name in enumerate(("vendor", "device")):
                if nic["bus"] and path == f"/sys/bus/pci/devices/{nic['bus']}/{name}":
                    return f"0x{nic['pci'].split(':')[at]}\n".encode()
        if path in self.files:
            return self.files[path]
        raise FileNotFoundError(path)

    def write(self, path: str, data: bytes, mode: int = 0o600) -> None:
        """A doctor writes nothing."""
        raise AssertionError(f"wrote {path}")


STAT_HW = STAT.replace("TlsCurrTxDevice  \t0", "TlsCurrTxDevice  \t3")
READER = ("/usr/bin/python3", "-I", "-S", "-")


def connected(host: FakeHost, given: int, seen: int = 3) -> None:
    """Three connections that the kernel calls the card's, of which it has given so many back."""
    kind = (0, 0, 0, 1, 0, 77, 5, 0x0303, 51, 3, 2, 0, 5000, 0, 700)
    rows = [("192.0.2.1", 443, "192.0.2.2", 50000 + n, *kind, "eth0") for n in range(seen)]
    space = {"inode": 1, "names": [], "path": "/proc/1/ns/net", "here": True, "error": "", "notes": []}
    stat = {"TlsCurrTxDevice": 3, "TlsCurrRxSw": 3}
    reported = {"at": 1.0, "owners": {}, "notes": [], "root": True, "spaces": [space | {"sockets": rows}]}
    reported["spaces"][0]["tls_stat"] = stat  # type: ignore[index]
    host.answers["cat", "/proc/net/tls_stat"] = (0, STAT_HW, "")
    host.answers[READER] = (0, json.dumps(reported), "")
    counted = f"NIC statistics:\n     tx_tls_ctx: 3\n     tx_tls_del: {given}\n"
    host.answers["ethtool", "-S", "eth0"] = (0, counted, "")
