"""The versions of everything that a result on real hosts depends on."""

from __future__ import annotations

import re

from offload.card.nic import look
from offload.card.nic_tools import ask
from offload.host.base import Host
from offload.suite.bench.lab.device_info import device_info

TOOLS = {
    "openssl": (["openssl", "version"], r"OpenSSL (\S+)"),
    "stunnel": (["stunnel4", "-version"], r"stunnel (\S+)"),
    "ethtool": (["ethtool", "--version"], r"version (\S+)"),
    "iproute2": (["ip", "-V"], r"iproute2-(\S+?),?\s"),
}


def _tool(host: Host, name: str) -> str:
    argv, pattern = TOOLS[name]
    done = host.run(argv, check=False)
    match = re.search(pattern, (done.stdout + done.stderr).decode("utf-8", "replace"))
    return match[1] if match else "none"


def versions(dut: Host, peer: Host, dev: str) -> dict[str, str]:
    """Names and versions, the DUT's; the peer's kernel, OpenSSL and stunnel, too."""
    nic = look(dut, dev)
    found = {
        "kernel": dut.run(["uname", "-r"]).text.strip(),
        "kernel-package": dut.run(["uname", "-v"]).text.strip(),
        "driver": f"{nic.driver} {nic.version}".strip(),
        "firmware": nic.firmware or "unknown",
        "pci": f"{nic.bus} {nic.pci}".strip() or "none",
    }
    found["serial"] = str(device_info(dut, dev).get("serial_number") or "not known")
    found |= {name: _tool(dut, name) for name in TOOLS}
    found |= {f"card, by {answer.tool}": str(answer) for answer in ask(dut, nic)}
    found["peer-kernel"] = peer.run(["uname", "-r"]).text.strip()
    return found | {f"peer-{name}": _tool(peer, name) for name in ("openssl", "stunnel")}
