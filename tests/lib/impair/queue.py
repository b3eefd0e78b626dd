"""The queue above a port: what a test puts in its place must not stay, nor the kernel's default after it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from offload.host.base import Side
from offload.host.tools import tool


@contextmanager
def queue_kept(side: Side) -> Iterator[None]:
    """Give a port the root queueing discipline that it has now, when the block is over.

    The kernel's default follows one that is deleted. A lab has another: its CoDel drops nothing for seconds.
    """
    back = _back(side)
    try:
        yield
    finally:
        side.host.run(back, check=False)


def _back(side: Side) -> list[str]:
    """The command that makes it again, from `qdisc KIND HANDLE root refcnt N OPTION...`.

    The kernel's default has the handle 0, and comes by itself.
    """
    shown = tool(side.host, ["tc", "qdisc", "show", "dev", side.dev, "root"]).text
    words = shown.partition("\n")[0].split()
    if len(words) < 3 or words[2] == "0:":
        return ["tc", "qdisc", "del", "dev", side.dev, "root"]
    options = [re.sub(r"^(\d+)p$", r"\1", word) for word in words[words.index("refcnt") + 2 :]]
    return ["tc", "qdisc", "replace", "dev", side.dev, "root", "handle", words[2], words[1], *options]
