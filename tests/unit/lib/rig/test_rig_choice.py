"""Which rig a test gets: software's tests are refused a bench whose card offloads."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from offload.errors import RigError
from offload.host.base import Side
from tests.lib.rig.rig import Labs
from tests.unit.doctor.fake_doctor import FIXED, FakeHost, feature

TX, RX = "tls-hw-tx-offload", "tls-hw-rx-offload"


def labs(monkeypatch: pytest.MonkeyPatch, **shown: dict[str, bool]) -> Labs:
    """The labs of a run that is attached to one whose card shows these features."""
    host = FakeHost()
    host.fix()
    for name, row in shown.items():
        host.change({"tx": TX, "rx": RX}[name], row)
    bench = SimpleNamespace(dut=Side(host, "eth0", "192.0.2.1", "2001:db8::1"), simulated=True)
    lab: Any = SimpleNamespace(bench=bench, rig={}, root=host)
    monkeypatch.setattr(Labs, "_open", lambda self, kind: nullcontext(lab))
    monkeypatch.setattr(Labs, "_tell", lambda self: None)
    options = SimpleNamespace(getoption=lambda name, *_: "nicsim")
    return Labs(options, lambda line: None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "shown", [{"tx": feature(True)}, {"rx": feature(True, fixed=True)}, {"rx": feature(False)}]
)
def test_software_is_not_proved_next_to_a_card(
    monkeypatch: pytest.MonkeyPatch, shown: dict[str, Any]
) -> None:
    """tests/sw-fallback on a lab whose card offloads, or could, is an error and no pass."""
    with pytest.raises(
        RigError, match="needs a bench without a NIC that offloads: eth0: tls-hw-.x-offload is"
    ):
        labs(monkeypatch, **shown).get("veth")


def test_software_is_proved_where_no_card_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """A card whose features are off and fixed is one that software stands in for."""
    assert labs(monkeypatch, tx=FIXED).get("veth").kind == "veth"
    assert labs(monkeypatch, tx=feature(True)).get("nicsim").kind == "nicsim"
