"""Cost mode below the real driver: every port is polled, and a boot counts only if the card did the bytes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from offload.errors import RigError
from offload.suite.measure.cost import boot, compared, image, run, silicon
from offload.suite.measure.cost.plan import Plan, Row

RECORD = Path(__file__).parents[4] / "benchmarks/results/cost.md"
PLAN = Plan((Row("hw", "both"), Row("sw", "both")), kind="mlx5")
WHOLE = PLAN.bytes + PLAN.warm


def moved(arm: str) -> boot.Moved:
    tasks = {"dut-send": 4 * PLAN.bytes, "dut-receive": 6 * PLAN.bytes, "napi/cx0-8": 2 * PLAN.bytes}
    return boot.Moved(Row(arm, "both"), PLAN.bytes, {}, 0, 0, tasks)


@pytest.mark.parametrize(
    ("truth", "wrong"),
    [
        ({"tx_tls_bytes": WHOLE, "rx_tls_bytes": WHOLE}, ""),
        ({"tx_tls_bytes": WHOLE, "rx_tls_bytes": WHOLE // 2}, "rx_tls_bytes"),
        ({"tx_tls_bytes": 2 * WHOLE, "rx_tls_bytes": WHOLE}, "tx_tls_bytes"),
        ({}, "tx_tls_bytes"),
    ],
)
def test_a_boot_counts_only_if_the_card_did_the_bytes(truth: dict[str, int], wrong: str) -> None:
    """Less was software's, more was of an arm that was not to be offloaded."""
    rows = [moved("hw"), moved("sw")]
    if not wrong:
        silicon.check(PLAN, rows, truth)
        return
    with pytest.raises(RigError, match=wrong):
        silicon.check(PLAN, rows, truth)


def test_no_row_is_offloaded_and_the_card_did_nothing() -> None:
    """Nothing to do is not an error; something done is."""
    plan = Plan((Row("sw", "both"),), kind="mlx5")
    silicon.check(plan, [moved("sw")], {})
    with pytest.raises(RigError, match="tx_tls_bytes of the card is 9, and 0"):
        silicon.check(plan, [moved("sw")], {"tx_tls_bytes": 9})


def test_sides_are_those_of_the_real_driver() -> None:
    """The driver's poll is the host's; the card is another process and costs the guest nothing."""
    assert run.sides(moved("hw"), "mlx5") == {"sender": 2.0, "receiver": 3.0, "host": 3.0}


def test_the_host_is_told_only_where_it_is_steady() -> None:
    """Polls that find acknowledgments only cost another sum in each boot."""
    one_way = replace(moved("hw"), row=Row("hw", "tx"))
    assert run.sides(one_way, "mlx5") == {"sender": 2.0}


def test_writes_to_the_card_wait(tmp_path: Path) -> None:
    """Each of the four cards answers after its work."""
    cards = [word for word in silicon.devices(tmp_path) if "vfio-user-pci" in word]
    assert len(cards) == 4 and all('"x-no-posted-writes":true' in word for word in cards)


def test_every_port_is_polled_by_the_guests_clock() -> None:
    """No port waits for an interrupt, and the polls of all start at one moment."""
    text = "\n".join(image.steps(PLAN))
    for name, port in (("dut", "cx0"), ("peer", "cx1"), ("wire", "cxw0"), ("wire", "cxw1")):
        folder = f"/sysfs/{name}/class/net/{port}"
        assert f"echo 2147483647 > {folder}/napi_defer_hard_irqs" in text
        assert f"echo 1 > {folder}/threaded" in text
        usecs = 1000 if name == "wire" else PLAN.usecs
        assert text.count(f"--poll {folder}/gro_flush_timeout={usecs}000 ") == 2, "once a run"
    assert "ethtool -C" not in text
    assert "--poll" not in "\n".join(image.steps(Plan(PLAN.rows)))


def test_what_to_compare_with_is_what_was_recorded() -> None:
    """nicsim's figures are those of the record, and a kernel without one gets none."""
    line = next(one for one in RECORD.read_text().splitlines() if one.startswith("| offload saves"))
    found: Any = [tuple(map(int, re.findall(r"\d+", cell))) for cell in line.split("|")[2:5]]
    assert dict(zip(("6.1", "6.12", "7.2"), found, strict=True)) == compared.NICSIM
    assert "39 % of the cores" in compared.compared("6.1")[compared.SAVED]
    assert "nicsim" not in compared.compared("5.0")[compared.SAVED]
