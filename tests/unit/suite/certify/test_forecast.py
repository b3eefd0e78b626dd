"""What a bench can prove is told before a run: which promises, what is lacking, that the suite is asked."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from offload.card.profile import find
from offload.errors import CommandFailed, RigError
from offload.suite.bench.lab import bench, verbs
from offload.suite.bench.lab.file import load as load_lab
from offload.suite.certify import forecast
from offload.suite.report import criteria, facts
from offload.suite.report.forecast import foresee

ROOT = Path(__file__).parents[4]
BAR, CARD = criteria.load(), facts.of(find("connectx-6-dx"))
WIRE, PEER = "there is no wire box", "the peer's card does not offer it"
TESTS = [
    {"promise": "payload.tx", "needs": ["tls"]},
    {"promise": "wire.records", "needs": ["wire"]},
    {"promise": "wire.records", "needs": ["tls", "wire"]},
    {"promise": "wire.stream", "needs": ["wire", "tls"]},
    {"promise": "interop.card", "needs": ["peer"]},
    {"promise": "", "needs": ["peer"]},
]


def reported(**lacks: str) -> list[str]:
    """What is said of a bench that lacks these needs."""
    return foresee({"tests": TESTS, "lacks": lacks}, BAR, CARD).lines()


def test_a_bench_that_has_all() -> None:
    """A bench that can prove everything says so, in two lines."""
    required = sum(one.required for one in BAR.promises.values())
    optional = len(BAR.promises) - required
    assert reported() == [
        f"this bench can prove all {required} required promises",
        f"this bench can prove all {optional} optional promises",
    ]


def test_what_will_stay_unproved_is_named_by_its_reason() -> None:
    """Each promise that cannot be proved is named once, beside what the bench lacks for it."""
    said = reported(wire=WIRE, peer=PEER)
    assert said[0].startswith(
        "this bench cannot prove 2 of 35 required promises, so the run will be incomplete"
    )
    assert said[1] == f"  {WIRE}: wire.records, wire.stream"
    assert said[2].startswith("this bench cannot prove 1 of ") and said[3] == f"  {PEER}: interop.card"


def test_only_what_is_asked_of_the_card() -> None:
    """A promise that a card does not make is no gap of its bench."""
    tests = [{"promise": "payload.rx", "needs": ["wire"]}]
    found = foresee({"tests": tests, "lacks": {"wire": WIRE}}, BAR, facts.of(find("chelsio-t6")))
    assert "payload.rx" not in found.required and all("can prove all" in line for line in found.lines())


def played(tmp_path: Path, document: object) -> Path:
    """A checkout whose suite answers with this document, or with nothing."""
    (tmp_path / "tests/hw").mkdir(parents=True)
    text = "" if document is None else f"open(sys.argv[1], 'w').write({json.dumps(document)!r})"
    (tmp_path / "pytest.py").write_text(
        f"import sys\nsys.argv[1:] = [sys.argv[sys.argv.index('--forecast') + 1]]\n{text}"
    )
    return tmp_path


def test_the_suite_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite's own answer is told; one that it could not give, or did not, is an error."""
    card = find("connectx-6-dx")
    good = played(tmp_path / "a", {"tests": TESTS, "lacks": {"wire": WIRE}, "error": ""})
    assert f"  {WIRE}: wire.records, wire.stream" in forecast.lines(["--lab", "x"], card, root=good)
    lost = played(tmp_path / "b", {"tests": TESTS, "lacks": {}, "error": "cannot reach dut\nhint"})
    with pytest.raises(RigError, match="^cannot reach dut$"):
        forecast.lines([], card, root=lost)
    with pytest.raises(CommandFailed):
        forecast.lines([], card, root=played(tmp_path / "c", None))


class Opened:
    rig = {"kernel": "6.1"}
    bench = SimpleNamespace(dut=None)

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


def test_lab_check_says_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`lab check FILE` ends with what this bench can prove, asked with the card of its file."""
    asked: list[Any] = []

    def lines(options: Sequence[str], profile: Any, given: str) -> list[str]:
        asked.append((list(options), profile.id, given))
        return ["this bench cannot prove 9 of 35 required promises"]

    file = ROOT / "ci/lab.yaml"
    monkeypatch.setattr(bench.RealLab, "open", lambda path, say: Opened())
    monkeypatch.setattr(forecast, "lines", lines)
    assert verbs.check(argparse.Namespace(file=str(file), device_info=False)) == 0
    assert asked == [(["--lab", str(file)], "connectx-6-dx", "")]
    assert capsys.readouterr().out.endswith("this bench cannot prove 9 of 35 required promises\n")
    monkeypatch.setattr(forecast, "suite", lambda: False)
    assert verbs.provable(load_lab(file), str(file)) == [
        "unknown which promises this bench can prove: the tests are not installed; use a checkout"
    ]
