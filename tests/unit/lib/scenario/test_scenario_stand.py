"""What scenarios find on a lab: old connections of each kind, and what the queues above the cards drop."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from offload.card.profile import find
from tests.lib.scenario import old
from tests.lib.scenario import stand as stands
from tests.lib.scenario.old import OLD
from tests.lib.scenario.space import load
from tests.lib.scenario.stand import Stand, dropped, stand_of, standing


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


class Ends:
    """A lab on which connections are opened and closed: each is what it was opened as, and its number."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
        self.opened, self.closed = list[Any](), list[Any]()
        self.now: dict[str, int] = {}
        for name, thing in (("opened", self.open), ("obeyed", lambda _: None), ("buffers", lambda _: [])):
            monkeypatch.setattr(old, name, thing)
        monkeypatch.setattr(old.path, "tcp_settings", self.settings)
        monkeypatch.setattr(stands, "Switch", lambda *_: None)
        monkeypatch.setattr(stands, "life_of", lambda _: SimpleNamespace(close=self.close, rig=rig))
        side_ = side(Host())
        rig: Any = SimpleNamespace(kind="veth", bench=SimpleNamespace(dut=side_, peer=side_))
        self.stand, _ = stand_of(rig, [SPACE.parse(line) for line in lines])

    @contextmanager
    def settings(self, bench: Any, **wanted: int) -> Iterator[None]:
        self.now = wanted
        yield
        self.now = {}

    def open(self, life: Any, count: int, cell: Any, *, family: int, number: int, options: Any) -> list[Any]:
        what = (cell.cipher, family, number, len(options), tuple(sorted(self.now.items())))
        self.opened += [what] * count
        return [SimpleNamespace(pair=(what, n), old=False, software=frozenset()) for n in range(count)]

    def close(self, pairs: Any, *, reset: bool) -> None:
        self.closed += pairs


SPACE = load(find("connectx-6-dx"))
KINDS = {
    "age=old": ("aes-gcm-128", 4, 0, 0, ()),
    "age=old,tcp=sack-live,ip=v4-options,trouble=lost-tag": ("aes-gcm-128", 4, 0, 0, ()),
    "age=old,tcp=bare,ip=v4-tos": ("aes-gcm-128", 4, 0, 0, (("sack", 0), ("timestamps", 0))),
    "age=old,cell=1.2-aes-gcm-256,ip=v6-flow-label": ("aes-gcm-256", 6, 0, 0, ()),
    "age=old,trouble=ce-mark": ("aes-gcm-128", 4, 0, 0, (("ecn", 1),)),
    "age=old,ip=v6-extension": ("aes-gcm-128", 6, 0, 1, ()),
    "age=old,number=2^16": ("aes-gcm-128", 4, (1 << 16) - 2, 0, ()),
}


def test_old_connections_are_of_each_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is for life is as the scenario wants it; no kind is opened that no scenario of the run wants."""
    lab = Ends(monkeypatch, *KINDS, "connections=9", "tcp=bare,trouble=ce-mark")
    assert len(lab.opened) == OLD * len(set(KINDS.values())) and set(lab.opened) == set(KINDS.values())
    for line, what in KINDS.items():
        found = lab.stand.aged(SPACE.parse(line))
        assert [one.pair for one in found] == [(what, 0), (what, 1)] and all(one.old for one in found)
    lab.stand.renew()
    assert len(lab.closed) == len(lab.opened) / 2


@pytest.mark.parametrize(
    ("line", "again"),
    [
        ("age=old", False),
        ("age=old,trouble=lost-tag,event=link-down", False),
        ("age=old,number=2^8", True),
        ("age=old,direction=rx,trouble=forged-tag", True),
        ("age=old,direction=rx,trouble=forged-version,tcp=bare", True),
        ("direction=rx,trouble=forged-tag", False),
        ("number=2^8", False),
    ],
)
def test_what_serves_no_other_scenario_is_opened_anew(
    line: str, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that is dead, or has carried its number over, and none besides it."""
    lab, scenario = Ends(monkeypatch, "age=old", line, line), SPACE.parse(line)
    before = len(lab.opened)
    assert not lab.stand.refill(scenario)
    lab.stand.ready(scenario)
    assert len(lab.opened) == before and not lab.closed
    lab.stand.done(scenario)
    assert len(lab.closed) == OLD * again
    assert lab.stand.refill() is again and len(lab.opened) == before + OLD * again
    assert not lab.stand.refill()


def test_a_kind_that_nobody_expected_is_opened_when_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hunt draws what it wants; what was drawn once stays, and grows old."""
    lab, scenario = Ends(monkeypatch), SPACE.parse("age=old,number=2^8")
    assert not lab.opened
    for times in (1, 2):
        lab.stand.ready(scenario)
        assert len(lab.stand.aged(scenario)) == OLD and len(lab.opened) == OLD * times
        lab.stand.done(scenario)


@pytest.mark.parametrize(
    ("event", "software"), [("link-down", {"tx", "rx"}), ("toggle", {"rx"}), ("mtu", set[str]())]
)
def test_an_event_makes_what_is_open_software_s(
    event: str, software: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And so it stays, whatever comes later; but not what is opened after it in its place."""
    spent = SPACE.parse("age=old,number=2^8")
    lab = Ends(monkeypatch, "age=old", spent.line())
    lab.stand.done(SPACE.parse(f"event={event}"))
    lab.stand.done(SPACE.parse("event=carrier"))
    assert all(one.software == software for line in ("age=old", spent.line()) for one in aged(lab, line))
    lab.stand.done(spent)
    lab.stand.refill()
    assert [one.software for one in aged(lab, spent.line())] == [frozenset()] * OLD
    assert [one.software for one in aged(lab, "age=old")] == [software] * OLD


def aged(lab: Ends, line: str) -> list[Any]:
    """The old connections of a scenario."""
    found: list[Any] = lab.stand.aged(SPACE.parse(line))
    return found


def test_what_a_test_opens_again_is_no_leak_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one before it closed a pair; contexts are compared from here on."""
    lab, done = Ends(monkeypatch, "age=old,number=2^8"), list[str]()
    contexts: Any = SimpleNamespace(forget=lambda: done.append("forget"), begin=lambda: done.append("begin"))
    used = stands.Used((), [])
    assert standing(lab.stand.rig, used, contexts) is lab.stand and not done
    lab.stand.done(SPACE.parse("age=old,number=2^8"))
    standing(lab.stand.rig, used, contexts)
    assert done == ["forget", "begin"]


def test_what_a_scenario_needs_is_opened_before_its_test_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while the path has another MTU, which leaves everything else closed."""
    scenario = SPACE.parse("mtu=600,age=old,number=2^8")
    lab, done = Ends(monkeypatch, scenario.line()), list[str]()
    contexts: Any = SimpleNamespace(forget=lambda: done.append("forget"), begin=lambda: done.append("begin"))
    lab.stand.done(scenario)
    lab.stand.mtu = SimpleNamespace(found=False, as_found=lambda: done.append("as found"))  # type: ignore[assignment]
    standing(lab.stand.rig, stands.Used((), []), contexts, SPACE.parse("mtu=600"))
    assert not done
    standing(lab.stand.rig, stands.Used((), []), contexts, scenario)
    assert done == ["as found", "forget", "begin"]
