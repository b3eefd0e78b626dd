"""A port has the queue that it had, after a test that put another one there."""

from __future__ import annotations

from typing import cast

import pytest

from offload.host.base import Completed, Host, Side
from tests.lib.impair.queue import queue_kept

OPTIONS = "flows 1024 target 10s memory_limit 32Mb ecn drop_batch 64"
FOUND = f"qdisc fq_codel 8001: root refcnt 2 limit 10240p {OPTIONS} \n"
MADE = f"handle 8001: fq_codel limit 10240 {OPTIONS}"


class Port:
    """A host whose tc shows this, and that notes what is changed."""

    def __init__(self, shown: str) -> None:
        """With this root."""
        self.shown, self.ran = shown, [""]

    def run(self, argv: list[str], **_: object) -> Completed:
        """Show it, or note a change."""
        if "show" not in argv:
            self.ran.append(" ".join(argv))
        return Completed(tuple(argv), 0, self.shown.encode(), b"", 0.0)


@pytest.mark.parametrize(
    ("shown", "back"),
    [
        (FOUND, f"tc qdisc replace dev p0 root {MADE}"),
        ("qdisc fq_codel 0: root refcnt 2 limit 10240p\n", "tc qdisc del dev p0 root"),
        ("qdisc mq 0: root \nqdisc fq 0: parent :1\n", "tc qdisc del dev p0 root"),
        ("", "tc qdisc del dev p0 root"),
    ],
)
def test_what_was_found_comes_back(shown: str, back: str) -> None:
    """The lab's own is made again; the kernel's default comes once nothing else is there."""
    port = Port(shown)
    with pytest.raises(KeyError), queue_kept(Side(cast(Host, port), "p0", "", "")):
        raise KeyError
    assert port.ran[1:] == [back]
