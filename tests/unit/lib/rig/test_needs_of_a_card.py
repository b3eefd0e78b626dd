"""Is a test skipped whose proof only nicsim can give, on a lab with another card?"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from offload.suite.bench.vm import cards
from offload.suite.bench.vm.own_driver import OWN
from tests.lib.rig import needs


def rig(shows: str, kind: str = "nicsim", **more: str) -> Any:
    """A lab of a kind whose DUT has this path, and no other."""
    host = SimpleNamespace(run=lambda argv, check: SimpleNamespace(rc=int(argv[-1] != shows)))
    bench = SimpleNamespace(dut=SimpleNamespace(host=host), rig=more)
    return SimpleNamespace(bench=bench, probed={}, lab=SimpleNamespace(kind=kind))


@pytest.mark.parametrize("in_vm", [True, False])
def test_what_only_nicsim_has_is_asked_of_nicsim_only(in_vm: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cost mode boots nicsim or cx6sim: another card gets no figure. Hosts measure time."""
    monkeypatch.setattr(needs, "in_lab", lambda bench: in_vm)
    nicsim, other = rig("/sys/kernel/debug/nicsim"), rig("/sys/bus/pci")
    wanted = ["nicsim", "cost-mode"]
    assert needs.unmet(nicsim, wanted) == []
    said = needs.unmet(other, wanted)
    assert said[0] == "only nicsim can be given ESP crypto for a test" and len(said) == 1 + in_vm


@pytest.mark.parametrize(("driver", "skipped"), [("mlx5_core of Debian's", 0), (f"{OWN}: a.ko", 1)])
def test_cost_mode_has_the_driver_of_debian(
    driver: str, skipped: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below a driver of your own, a figure of Debian's would say something else."""
    monkeypatch.setattr(needs, "in_lab", lambda bench: True)
    real = rig("/sys/bus/pci", cards.KIND, **{"driver under test": driver})
    assert len(needs.unmet(real, ["cost-mode"])) == skipped


def test_each_figure_of_cost_mode_asks_for_it() -> None:
    """A test that boots cost mode in a lab says so in its needs."""
    folder = Path(__file__).parents[3] / "hw"
    texts = {path.name: path.read_text() for path in sorted(folder.rglob("test_*.py"))}
    asking = {name: text.count("part(counted(rig)") for name, text in texts.items() if "counted(rig)" in text}
    assert len(asking) == 3 and asking == {name: texts[name].count('"cost-mode"') for name in asking}
