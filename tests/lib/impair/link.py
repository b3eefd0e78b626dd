"""A link that goes down and comes back, with its addresses."""

from __future__ import annotations

import json

from offload.host.base import Side


def bounce(side: Side) -> None:
    """Take the link down and up again; what the kernel forgets meanwhile (IPv6 addresses) is put back."""
    rows = json.loads(side.host.run(["ip", "-j", "-6", "address", "show", "dev", side.dev]).text)
    lost = [a for row in rows for a in row.get("addr_info", []) if a.get("scope") == "global"]
    side.host.run(["ip", "link", "set", side.dev, "down"])
    side.host.run(["ip", "link", "set", side.dev, "up"])
    for address in lost:
        text = f"{address['local']}/{address['prefixlen']}"
        side.host.run(["ip", "address", "replace", text, "dev", side.dev, "nodad"])
