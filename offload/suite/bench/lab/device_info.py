"""What is the card, as netdev CI records it? As `devlink dev info` prints it, or the same shape from
ethtool."""

from __future__ import annotations

import json
from typing import Any

from offload.card.nic import look
from offload.host.base import Host


def device_info(host: Host, dev: str) -> dict[str, Any]:
    """`device-info.json`: driver, serial_number and versions (fixed, running, stored).

    netdev CI's hardware worker keeps the object below info.pci/ADDRESS (contest/hw/hw_worker.py of NIPA).
    """
    nic = look(host, dev)
    if nic.bus:
        done = host.run(["devlink", "-j", "dev", "info", f"pci/{nic.bus}"], check=False)
        try:
            found = json.loads(done.text)["info"][f"pci/{nic.bus}"]
            if done.rc == 0 and isinstance(found, dict):
                return found
        except (ValueError, KeyError, TypeError):
            pass
    versions = {"fw": nic.firmware} if nic.firmware else {}
    return {"driver": nic.driver, "versions": {"running": {**versions, "driver": nic.version}}}
