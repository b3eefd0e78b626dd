"""What scenarios find on a lab: old connections of each kind, and what the queues above the cards drop."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from offload.card.profile import find
from tests.lib.scenario import stand as stands
from tests.lib.scenario.space import load
from tests.lib.scenario.stand import OLD, Stand, dropped


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


def test_old_connections_are_of_each_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cell, version of IP and TCP's options are for life: a scenario finds those that it names."""
    asked: list[tuple[Any, ...]] = []
    closed: list[Any] = []
    bare: list[bool] = [False]

    @contextmanager
    def settings(bench: Any, **wanted: int) -> Iterator[None]:
        assert wanted == {"sack": 0, "timestamps": 0}
        bare[0] = True
        yield
        bare[0] = False

    def opened(life: Any, count: int, cell: Any, *, family: int) -> list[Any]:
        asked.append((str(cell.cipher), family, bare[0]))
        return [SimpleNamespace(pair=(*asked[-1], n), old=False) for n in range(count)]

    for name, thing in (("opened", opened), ("obeyed", lambda _: None), ("buffers", lambda _: [])):
        monkeypatch.setattr(stands, name, thing)
    monkeypatch.setattr(stands.path, "tcp_settings", settings)
    nobody: Any = None
    life: Any = SimpleNamespace(close=lambda pairs, reset: closed.extend(pairs))
    profile = find("connectx-6-dx")
    stand = Stand(cast(Any, SimpleNamespace(profile=profile, bench=None)), life, nobody, nobody, ())
    stand.software = {"tx"}
    stand.renew()
    assert not stand.software and not closed and len(set(asked)) == len(asked) == 8
    space = load(profile)
    for line, kind in (
        ("age=old", ("aes-gcm-128", 4, False)),
        ("age=old,tcp=bare,ip=v4-tos", ("aes-gcm-128", 4, True)),
        ("age=old,cell=1.2-aes-gcm-256,ip=v6-flow-label", ("aes-gcm-256", 6, False)),
    ):
        assert [one.pair for one in stand.aged(space.parse(line))] == [(*kind, 0), (*kind, 1)]
        assert all(one.old for one in stand.aged(space.parse(line)))
    stand.renew()
    assert len(closed) == 16 == len(asked) * OLD // 2
