"""A card that sends nothing fails its test in whatever step; where anything else is quiet, the rig broke."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from offload.errors import RigError
from tests.lib.wire import silent
from tests.unit.suite.report.record.test_report_plugin import play, results

pytest_plugins = "pytester"
QDISC = ["bytes", "packets", "drops", "qlen", "backlog"]
BODIES = {
    "setup": "@__import__('pytest').fixture\ndef odd():\n    raise RigError('gave up')\ndef test(odd): pass",
    "call": "def test(): raise RigError('gave up')",
    "teardown": "@__import__('pytest').fixture\ndef odd():\n    yield\n    raise RigError('gave up')\n"
    "def test(odd): pass",
    "after a failure": "@__import__('pytest').fixture\ndef odd():\n    yield\n    raise RigError('gave up')\n"
    "def test(odd): assert 0, 'no byte came'",
}


class Wire:
    """Two ends, and what of their frames comes out of either card."""

    def __init__(
        self, came: tuple[bool, bool], carrier: str = "1", dev: str = "cx0", kind: str = "fq"
    ) -> None:
        self._came, self._carrier, self._dev, self._kind, self._given = (
            came,
            carrier,
            dev,
            kind,
            kind != "none",
        )
        self.sent = [0, 0]
        self.broken = False

    def host(self, number: int) -> SimpleNamespace:
        """An end by its number."""
        return SimpleNamespace(run=lambda argv, **_: self._run(number, argv), read=self._read)

    def _run(self, number: int, argv: list[str]) -> SimpleNamespace:
        if self.broken:
            raise RigError("the agent is gone")
        if argv[0] == "tc":
            drops = self._given * self.sent[0]
            found = [dict.fromkeys(QDISC, 0) | {"kind": self._kind, "packets": 7, "drops": drops}]
            return SimpleNamespace(text=json.dumps(found))
        if argv[0] == "ip":
            return SimpleNamespace(text=f"192.0.2.2 dev {self._dev} src 192.0.2.1 uid 0\n    cache\n")
        self.sent[number] += 5
        return SimpleNamespace(text="")

    def _read(self, path: str) -> bytes:
        if path.endswith("/carrier"):
            return f"{self._carrier}\n".encode()
        end = ("cxw0", "cxw1").index(path.split("/")[4])
        return f"{100 + self._came[end] * self.sent[end]}\n".encode()

    def bench(self) -> Any:
        """As a test has it."""
        ends = [SimpleNamespace(host=self.host(n), dev=f"cx{n}", v4=f"192.0.2.{n + 1}") for n in (0, 1)]
        wire = SimpleNamespace(read=self._read)
        return SimpleNamespace(dut=ends[0], peer=ends[1], wire=wire, wire_ports=("cxw0", "cxw1"))


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing has to arrive here."""
    monkeypatch.setattr(silent, "ARRIVE", 0.0)


def test_a_card_is_silent_if_only_the_peer_is_heard() -> None:
    """The kernel gave frames to its queue, the link is up, and only the peer's came out."""
    why = silent.silent(Wire((False, True)).bench())
    assert why.startswith("the card sends nothing: its link is up, and of 5 frames that the kernel gave it")


@pytest.mark.parametrize(
    "wire",
    [
        Wire((True, True)),
        Wire((False, False)),
        Wire((False, True), carrier="0"),
        Wire((False, True), dev="lo"),
        Wire((False, True), kind="none"),
        Wire((False, True), kind="clsact"),
        Wire((False, True), kind="netem"),
    ],
    ids=["sends", "the wire is dead", "no link", "another route", "a filter", "a rule of tc", "netem"],
)
def test_who_else_may_be_quiet_is_not_the_card(wire: Wire) -> None:
    """What the card sends, or may not have been given, or what nobody on the wire hears, is not its fault."""
    assert not silent.silent(wire.bench())


def test_a_host_that_does_not_answer_is_the_rig() -> None:
    """Nor does a bench without a wire, or whose host is gone, tell of the card."""
    wire = Wire((False, True))
    wire.broken = True
    assert not silent.silent(wire.bench())
    blind = SimpleNamespace(**{**vars(Wire((False, True)).bench()), "wire": None})
    assert not silent.silent(blind)  # type: ignore[arg-type]


@pytest.mark.parametrize("step", BODIES)
def test_its_silence_fails_the_test_in_each_step(pytester: pytest.Pytester, step: str) -> None:
    """A broken step is the card's failure if the card is silent, and else the rig's."""
    for came, outcome in ((False, "fail"), (True, "error")):
        pytester.makeconftest(
            "from tests.lib.rig.rig import UP\nfrom tests.unit.lib.wire.test_silent import Wire\n"
            "from types import SimpleNamespace\n"
            f"def pytest_configure(config):\n"
            f"    config.stash[UP] = SimpleNamespace(bench=Wire(({came}, True)).bench())\n"
        )
        body = "from offload.errors import RigError\n" + BODIES[step]
        _, events = play(pytester, body, "-p", "tests.lib.wire.silent")
        [(word, reason)] = results(events)
        assert word == outcome and ("gave up" in reason or step == "after a failure"), reason
        assert ("sends nothing" in reason) == (not came and step != "after a failure"), reason
