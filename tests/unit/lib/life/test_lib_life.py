"""A host's program is waited for there, not asked again and again; contexts are those of the card."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from offload.card.counters import Snapshot
from offload.card.profile import DIRECTIONS, find
from offload.errors import RigError
from offload.host.base import Host, Side
from tests.lib.flow.stand_ins import StandIns
from tests.lib.life.life import Life, ManyConnections, held

READY = b'[{"ready": 7}]\n'


class Reported:
    """A program's outputs as a host tells of them, one at a look; after the last it has ended."""

    def __init__(self, *outs: bytes) -> None:
        self.name, self.pid, self._outs, self._at, self.asked = "dut", 7, outs, -1, list[str]()

    def start(self, argv: object) -> Reported:
        """It is its own process."""
        return self

    def stdin(self, data: bytes, *, eof: bool = False) -> None:
        """Told something."""
        self.asked.append("stdin")

    def news(self, patience: float) -> tuple[bytes, bytes]:
        """The next output."""
        self.asked.append("news")
        self._at = min(self._at + 1, len(self._outs) - 1)
        return b"".join(self._outs[: self._at + 1]), b""

    def running(self) -> bool:
        """Until the last look."""
        self.asked.append("running")
        return self._at < len(self._outs) - 1

    def output(self) -> tuple[bytes, bytes]:
        """All that it said."""
        self.asked.append("output")
        return b"".join(self._outs), b"Traceback"


def connections(*outs: bytes) -> tuple[ManyConnections, Reported]:
    """The runner's end of a program that says this."""
    reported = Reported(READY, *outs)
    return ManyConnections(Side(cast(Host, reported), "", "", ""), "many_connections.py"), reported


def test_a_look_waits_on_the_host() -> None:
    """One request waits for an answer, and none is made for one that is there."""
    made, reported = connections(b'[{"a": 1}]\n[{"b":', b" 2}]\n", b"")
    reported.asked.clear()
    first, second = made.begin("one"), made.begin("two")
    assert made.answer(second) == {"b": 2} and made.answer(first) == {"a": 1}
    assert reported.asked == ["stdin", "stdin", "news", "running", "news"]


def test_last_words_count() -> None:
    """A program that answers and ends has answered; one that only ends is a broken rig."""
    made, reported = connections(b'[{"a": 1}]\n')
    assert made.answer(made.begin("one")) == {"a": 1}
    with pytest.raises(RigError, match="many_connections.py on dut died:\nTraceback"):
        made.answer(made.begin("two"))


def test_what_is_not_awaited_is_looked_up_at_once() -> None:
    """Whether an answer has come is said without waiting for it."""
    made, reported = connections(b'[{"a": 1}]\n')
    asked: Any = reported.asked
    asked.clear()
    assert made.answered(1) and not made.answered(2) and asked == ["news", "news"]


@pytest.mark.parametrize(
    ("card", "words"),
    [
        ("connectx-6-dx", {"tx_tls_ctx - tx_tls_del", "rx_tls_ctx - rx_tls_del"}),
        ("agilio-nfp", set()),
        ("chelsio-t6", set()),
    ],
)
def test_contexts_are_the_cards_where_it_counts_them(card: str, words: set[str]) -> None:
    """A card that counts no contexts has none of its own: old ones that it gave back, the kernel counts."""
    host = cast(Host, SimpleNamespace(read=lambda path: b"1500\n"))
    tls = {f"Tls{what}{direction}Device": 2 for what in ("", "Curr") for direction in ("Tx", "Rx")}
    profile = find(card)
    own = {
        name: 2
        for direction in DIRECTIONS
        for name, _ in profile.counters.of(direction).names
        if "_tls_" in name
    }
    seen = StandIns(profile).add(host, Snapshot("nicsim0", 0.0, tls, own))
    rig: Any = SimpleNamespace(counters=lambda: seen, profile=profile)
    found = held(rig)
    assert set(found) == words | {"TlsCurrTxDevice", "TlsCurrRxDevice"}, found
    assert {found[name] for name in words} <= {0}, "taken and given back are equal"


def test_the_options_of_a_listener_go_to_the_peer() -> None:
    """They are the listener's, which is there before the first connection."""
    asked: list[tuple[str, dict[str, Any]]] = []

    class Program:
        def call(self, do: str, **ask: Any) -> dict[str, Any]:
            asked.append((do, ask))
            return {"port": 9, "from": 0, "ports": [5]}

    life: Any = SimpleNamespace(near=Program(), far=Program())
    (pair,) = Life.plain(life, host="192.0.2.2", options=[(41, 59, "00")])
    assert asked[0] == ("listen", {"host": "192.0.2.2", "options": [(41, 59, "00")]}) and pair.port == 5
