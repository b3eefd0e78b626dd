"""Which connections a scenario has, which of them trouble is for, and whose failure a failure is."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from offload.card.profile import find
from tests.lib.life.life import End, Pair
from tests.lib.scenario import run as running
from tests.lib.scenario.connections import Burst, Line, tracks
from tests.lib.scenario.space import cell_of, load
from tests.lib.scenario.verdict.invariants import NotTaken, taken_over

SPACE = load(find("connectx-6-dx"))


def line(port: int, *, old: bool = False) -> Line:
    """A connection with this port of the DUT's."""
    end = End(None, 0)  # type: ignore[arg-type]
    return Line(Pair(end, end, port), tracks("secret", port, CELL, 0), CELL, old=old)


CELL = cell_of("1.2-aes-gcm-128", "tx")


def connected(monkeypatch: pytest.MonkeyPatch, words: str) -> tuple[list[Line], list[dict[str, Any]]]:
    """The connections of a scenario on a lab that has two old ones, and what was asked of `opened`."""
    asked: list[dict[str, Any]] = []

    def opened(life: object, count: int, cell: object, **more: Any) -> list[Line]:
        asked.append({"count": count, **more})
        return [line(1000 + n) for n in range(count)]

    old = [line(port, old=True) for port in (7, 8)]
    for one in old:
        one.tracks["tx"].bursts = [Burst("of the scenario before", (100, 200))]
    for name, thing in (("opened", opened), ("obeyed", lambda _: None), ("by_call", lambda *_: None)):
        monkeypatch.setattr(running, name, thing)
    monkeypatch.setattr(running, "sent", lambda lines: [one.port * 1000 for one in lines])
    monkeypatch.setattr(running.setting, "sockets", lambda *_: [])
    stand: Any = SimpleNamespace(aged=lambda _: list(old), life=None)
    return running.connected(stand, SPACE.parse(words)), asked


@pytest.mark.parametrize("fails", [False, True])
def test_old_connections_are_ready_before_a_scenario_and_noted_after_it(
    fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after one that fails: what it spent serves no other."""
    done: list[str] = []
    stand: Any = SimpleNamespace(ready=lambda _: done.append("ready"), done=lambda _: done.append("done"))

    def made(*_: object) -> str:
        done.append("made")
        assert not fails, "different"
        return "made"

    monkeypatch.setattr(running, "_made", made)
    with pytest.raises(AssertionError, match="different") if fails else nullcontext():
        running.run(stand, SPACE.parse("seed=7,age=old"))
    assert done == ["ready", "made", "done"]


@pytest.mark.parametrize(("ip", "options"), [("v6-extension", 1), ("v6", 0), ("v4-options", 0)])
def test_the_listener_has_what_its_connections_inherit(
    ip: str, options: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The DUT gets extension headers only so."""
    _, (asked,) = connected(monkeypatch, f"seed=7,ip={ip}")
    assert len(asked["options"]) == options


@pytest.mark.parametrize(("count", "new"), [(1, 0), (2, 0), (9, 7), (260, 258)])
def test_old_connections_come_first_and_new_ones_join_them(
    count: int, new: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as are there; they begin the scenario's records, and nobody new has their ports."""
    lines, asked = connected(monkeypatch, f"seed=7,age=old,connections={count}")
    assert [one.old for one in lines] == [True] * (count - new) + [False] * new
    assert [one.before for one in lines if one.old] == [7000, 8000][: count - new]
    assert all(one.tracks["tx"].number == 2 and not one.tracks["tx"].bursts for one in lines if one.old)
    assert [one["count"] for one in asked] == [new] * bool(new)
    assert all(one["apart"] == {7, 8} for one in asked)


def test_a_scenario_of_new_connections_has_no_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their records begin so that the third one carries its number over."""
    lines, (asked,) = connected(monkeypatch, "seed=7,connections=9,number=2^16")
    assert not any(one.old for one in lines) and len(lines) == 9
    assert asked["number"] == (1 << 16) - 2 and asked["apart"] == set()


def test_trouble_is_for_a_connection_of_the_age_that_is_meant() -> None:
    """An old one if the scenario is about old ones, with whatever new ones beside them; each has its turn."""
    lines = [line(7, old=True), line(8, old=True), *(line(1000 + n) for n in range(7))]
    picked = {running.victim(SPACE.parse(f"seed={n},age=old,connections=9"), lines).port for n in range(40)}
    assert picked == {7, 8}
    picked = {running.victim(SPACE.parse(f"seed={n},connections=9"), lines[2:]).port for n in range(40)}
    assert picked == set(range(1000, 1007))


def stand(mtu: int = 0, lost: int = 0) -> Any:
    """A lab whose kernel has learned this path MTU, and whose queues dropped so many packets."""
    said = f"192.0.2.2 dev p0 \n cache {f'expires 500sec mtu {mtu}' if mtu else ''}"
    host = SimpleNamespace(run=lambda *_, **__: SimpleNamespace(text=said))
    bench = SimpleNamespace(dut=SimpleNamespace(host=host), peer=SimpleNamespace(v4="192.0.2.2"))
    return SimpleNamespace(rig=SimpleNamespace(bench=bench), lost_above=lambda: lost)


def test_a_learned_path_mtu_excuses_connections_that_the_card_did_not_get_and_nothing_else() -> None:
    """Without one, or for any other failure, the card is to blame."""
    with pytest.raises(NotTaken) as untaken:
        taken_over({"TlsTxDevice": 21, "TlsTxSw": 12}, 33, ("tx",))  # type: ignore[arg-type]
    assert "33 were opened, tx counts {'Device': 21, 'Sw': 12}" in str(untaken.value)
    assert "path MTU of 1500 bytes" in running.rigs(stand(mtu=1500), untaken.value)
    assert running.rigs(stand(), untaken.value) == ""
    assert running.rigs(stand(mtu=1500), AssertionError("plaintext on the wire")) == ""
    assert "dropped 3 packets" in running.rigs(stand(lost=3), AssertionError("different"))


def test_contexts_are_never_excused() -> None:
    """A card that leaks contexts does so with any path MTU."""
    moved: Any = {"TlsTxDevice": 2, "tx_tls_ctx": 3}
    with pytest.raises(AssertionError, match="2 connections took 3 contexts") as leak:
        taken_over(moved, 2, ("tx",))
    assert not isinstance(leak.value, NotTaken)
