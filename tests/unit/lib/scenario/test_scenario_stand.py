"""What the queues above the cards drop: a scenario that fails then says nothing of the card."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from tests.lib.scenario.stand import Stand, dropped


class Host:
    """A host whose tc says this."""

    def __init__(self, *rows: dict[str, Any], rc: int = 0) -> None:
        self.rows, self.rc = list(rows), rc

    def run(self, argv: list[str], *, check: bool = True) -> SimpleNamespace:
        assert argv == ["tc", "-s", "-j", "qdisc", "show", "dev", "p0"] and not check
        return SimpleNamespace(rc=self.rc, text=json.dumps(self.rows) if self.rows else "")


def side(host: Host) -> Any:
    return SimpleNamespace(host=host, dev="p0")


@pytest.mark.parametrize(
    ("host", "count"),
    [
        (Host({"kind": "mq", "drops": 5}, {"kind": "fq_codel", "drops": 2}), 7),
        (Host({"kind": "noqueue"}), 0),
        (Host(), 0),
        (Host({"kind": "mq", "drops": 5}, rc=1), 0),
    ],
)
def test_drops_of_a_port(host: Host, count: int) -> None:
    """All queues of a port count; without tc nobody can tell."""
    assert dropped(side(host)) == count


def test_drops_are_those_since_the_last_question() -> None:
    """Of both ports; a port whose queues are new begins anew."""
    dut, peer = Host({"drops": 3}), Host({"drops": 1})
    rig: Any = SimpleNamespace(bench=SimpleNamespace(dut=side(dut), peer=side(peer)))
    nobody: Any = None
    stand = Stand(rig, nobody, nobody, nobody, ())
    assert (stand.lost_above(), stand.lost_above()) == (4, 0)
    peer.rows = [{"drops": 9}]
    assert stand.lost_above() == 8
    dut.rows = [{"drops": 0}]
    assert stand.lost_above() == 0
    dut.rows = [{"drops": 2}]
    assert stand.lost_above() == 2
