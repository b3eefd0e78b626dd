"""The bad cards below the real driver: what their file must look like, and what stands in the docs."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from offload.errors import ConfigError
from offload.suite.report import criteria
from tests.lib.catalogue import page, silicon
from tests.lib.catalogue.rows import short
from tests.unit.hw_tests import Tests

ROOT = Path(__file__).parents[4]
ROWS = silicon.load()


def faults() -> set[str]:
    """Every knob of cx6sim, as its source names it."""
    text = (ROOT / "native/cx6sim/state/faults.c").read_text()
    return set(re.findall(r'\[FAULT_\w+\] = "([a-z-]+)"', text))


def test_every_knob_of_the_model_makes_a_card() -> None:
    """Each fault has a row, and no row turns one that the model does not have."""
    turned = {fault for row in ROWS for _, fault, _ in silicon.knobs(row.knobs)}
    assert turned == faults()


def test_the_model_tells_of_each_knob() -> None:
    """The table in the model's README has every knob, and the page for driver authors counts them."""
    told = (ROOT / "native/cx6sim/README.md").read_text().partition("| fault | ")[2].partition("\n\n")[0]
    assert set(re.findall(r"`([a-z-]+)`", told)) == faults()
    assert f"turns {len(faults())}\n  knobs" in (ROOT / "docs/certify/change-mlx5e.md").read_text()


def test_each_row_names_tests_that_there_are(hw_tests: Tests) -> None:
    """A row's tests are tests of a ConnectX-6 Dx, and one of them is of the promise that it breaks."""
    there = {short(name): promise for name, (promise, _) in hw_tests["connectx-6-dx"].items()}
    for row in ROWS:
        assert row.card == "connectx-6-dx" and set(row.tests) <= set(there), row.id
        everywhere = bool(row.breaks) and criteria.load().promises[row.breaks].frames is not None
        assert not row.breaks or everywhere or row.breaks in {there[test] for test in row.tests}, row.id


def test_knobs_name_card_fault_and_number() -> None:
    """What is none of cx6sim's knobs is refused, with one that would be right."""
    assert silicon.knobs("0/tx-leak=1 1/rx-drop=20") == [(0, "tx-leak", 1), (1, "rx-drop", 20)]
    for wrong in ("", "0/tx_leak=1", "2/tx-leak=1", "tx-leak=1", "0/tx-leak"):
        with pytest.raises(ConfigError, match="no knobs|not knobs of cx6sim"):
            silicon.knobs(wrong)


def test_the_page_has_the_table_of_the_rows() -> None:
    """docs/certify/bad-nics.md shows every row as the file has it."""
    rows, shown = silicon.shown(), page.rows_of(page.PAGE.read_text(), silicon.MARK)
    assert len(shown) == len(rows), "make certify-the-certifier CARD=mlx5 WRITE=1"
    for row, cells in zip(rows, shown, strict=True):
        was = {row.id: {"line": cells[4], "seconds": 0.0}}
        text = f"{page.BEGIN}\n{page.table([row], was)}"
        want = page.rows_of(text)[0]
        assert list(cells[:4]) == list(want[:4]), f"{row.id}: make certify-the-certifier CARD=mlx5 WRITE=1"


class Said:
    """A host that answers the same to each command."""

    def __init__(self, text: str) -> None:
        self._text = text

    def run(self, *_: object, **__: object) -> SimpleNamespace:
        """Answer."""
        return SimpleNamespace(text=self._text, rc=0)


def test_contexts_are_those_that_the_kernel_holds(tmp_path: Path) -> None:
    """Connections in hardware at each end, both ways; what the driver keeps for later does not count."""
    stat = "TlsCurrTxSw {}\nTlsCurrTxDevice {}\nTlsCurrRxDevice {}\nTlsTxDevice 900\n"
    lab: Any = SimpleNamespace(dut=Said(stat.format(7, 2, 1)), peer=Said(stat.format(1, 0, 0)))
    assert silicon.SiliconStand("6.1", tmp_path, print)._contexts(lab) == [3, 0]
