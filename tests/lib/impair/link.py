"""A link that goes down and comes back, with its addresses."""

from __future__ import annotations

import json
from contextlib import ExitStack

from offload.host.base import Side


def bounce(side: Side) -> None:
    """Take the link down and up again; what the kernel forgets meanwhile (IPv6 addresses) is put back."""
    rows = json.loads(side.host.run(["ip", "-j", "-6", "address", "show", "dev", side.dev]).text)
    lost = [a for row in rows for a in row.get("addr_info", []) if a.get("scope") == "global"]
    with ExitStack() as undo:
        for address in reversed(lost):
            text = f"{address['local']}/{address['prefixlen']}"
            undo.callback(side.host.run, ["ip", "address", "replace", text, "dev", side.dev, "nodad"])
        undo.callback(side.host.run, ["ip", "link", "set", side.dev, "up"])
        side.host.run(["ip", "link", "set", side.dev, "down"])
