"""status: one plain sentence per direction, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from offload.card.nic import look, match
from offload.card.profile import load_all
from offload.host.local import LocalHost
from offload.switch.status import as_json, as_text, gather
from tests.unit.switch.fake_bench import T6, FakeMachine, card, feature

TX, RX = "tls-hw-tx-offload", "tls-hw-rx-offload"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    return FakeMachine(tmp_path, monkeypatch)


def text(*devs: str) -> str:
    """What a person sees, with runs of blanks made one."""
    return "\n".join(" ".join(line.split()) for line in as_text(gather(LocalHost(), devs)).splitlines())


def why(machine: FakeMachine, dev: str, direction: str) -> str:
    found = json.loads(as_json(gather(LocalHost(), [dev])))
    sentence: str = found["devices"][0]["directions"][direction]["why"]
    return sentence


def test_on_says_what_is_offloaded(machine: FakeMachine) -> None:
    """A direction that is on names version and ciphers."""
    assert why(machine, "eth0", "tx") == "new connections: TLS 1.2 with aes-gcm-128, aes-gcm-256"


def test_off_by_default_gives_the_command(machine: FakeMachine) -> None:
    """Receive of a ConnectX-6 Dx is off as the driver starts, and the command is given."""
    assert "driver default" in why(machine, "eth0", "rx")
    assert why(machine, "eth0", "rx").endswith("ktls-offload enable eth0 --rx")


def test_off_against_the_default_says_so(machine: FakeMachine) -> None:
    """A direction that the driver starts with was someone switched it off."""
    machine.change("eth0", TX, active=False, requested=False)
    assert why(machine, "eth0", "tx").startswith("someone switched it off")


def test_checksum_is_the_reason(machine: FakeMachine) -> None:
    """A feature that waits for its checksum says what brings it back."""
    machine.change("eth0", "tx-checksum-ip-generic", active=False, requested=False)
    machine.change("eth0", TX, active=False, requested=True)
    assert "comes back with transmit checksum offload" in why(machine, "eth0", "tx")
    assert "transmit off [requested on] - comes back" in text("eth0")


def test_t6_receive_has_the_profiles_reason(machine: FakeMachine) -> None:
    """What the card never does is told in the profile's words."""
    assert why(machine, "cx0", "rx").startswith("ch_ktls is transmit only")


def test_fixed_names_the_kernel_option(machine: FakeMachine) -> None:
    """A kernel built without the driver's TLS is named."""
    machine.change("eth0", TX, active=False, requested=False, fixed=True)
    machine.kernel_config("CONFIG_TLS=m\nCONFIG_TLS_DEVICE=y\nCONFIG_MLX5_CORE=m\nCONFIG_MLX5_CORE_EN=y\n")
    assert "CONFIG_MLX5_EN_TLS is not y" in why(machine, "eth0", "tx")


def test_link_down_is_reported(machine: FakeMachine) -> None:
    """An interface that is down offloads nothing, and that is said."""
    devices = machine.state()["devices"]
    devices["eth0"]["up"] = False
    machine.set(devices=devices)
    assert "the interface is down" in why(machine, "eth0", "tx")


def test_simulated_is_said_plainly(machine: FakeMachine) -> None:
    """The simulated card is called SIMULATED in text and true in JSON."""
    assert "sim0: NVIDIA ConnectX-6 Dx, SIMULATED by nicsim (profile connectx-6-dx)" in text("sim0")
    assert json.loads(as_json(gather(LocalHost(), ["sim0"])))["devices"][0]["simulated"] is True


def test_a_simulated_card_without_tls_says_what_it_plays(machine: FakeMachine) -> None:
    """The plain personality is the reason for a fixed feature."""
    plain = card("nicsim", "sim/plain", "sim:0", feature(False, True), feature(False, True))
    machine.set(devices={"sim0": plain})
    assert why(machine, "sim0", "tx") == "the simulated card plays plain, which has no transmit offload"


def test_counters_leave_out_the_dead(machine: FakeMachine) -> None:
    """TLS counters that move are shown, dead ones and others are not."""
    stats = {"tx_tls_ctx": 2, "tx_tls_drop_bypass_req": 7, "rx_packets": 9, "tx_tls_ooo": 0}
    machine.set(devices={"eth0": {**machine.state()["devices"]["eth0"], "stats": stats}})
    assert "counters tx_tls_ctx 2" in text("eth0")
    found = json.loads(as_json(gather(LocalHost(), ["eth0"])))["devices"][0]
    assert found["counters"] == {"tx_tls_ctx": 2, "tx_tls_ooo": 0}


def test_all_devices_at_once(machine: FakeMachine) -> None:
    """Devices without TLS offload take one line together."""
    fixed = card("e1000e", "1", "", feature(False, True), feature(False, True), ifindex=40)
    machine.set(devices={"cx0": T6, "en1": fixed, "en2": {**fixed, "ifindex": 41}})
    shown = text()
    assert "cx0: Chelsio T6" in shown and "without TLS offload: en1 (e1000e), en2 (e1000e)" in shown


def test_json_has_its_schema_and_the_three_states(machine: FakeMachine) -> None:
    """The document for programs has schema 1 and tells active, requested and fixed apart."""
    found = json.loads(as_json(gather(LocalHost(), [])))
    assert found["schema"] == 1 and [d["dev"] for d in found["devices"]] == ["eth0", "cx0", "sim0"]
    assert found["devices"][1]["directions"]["rx"] == {
        "feature": RX,
        "active": False,
        "requested": False,
        "fixed": True,
        "promised": False,
        "why": "ch_ktls is transmit only: it refuses every receive request (chcr_ktls.c:434)",
    }


def test_what_was_changed_is_shown(machine: FakeMachine) -> None:
    """Status says what restore would put back."""
    machine.call("enable", "eth0")
    assert machine.call("status", "eth0") == 0
    assert f"{RX} was off before: ktls-offload restore eth0" in machine.said


def test_kernel_tls_in_two_lines(machine: FakeMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections on a card and in software are told apart, now and since boot."""
    stat = {"TlsCurrTxDevice": 2, "TlsCurrTxSw": 1, "TlsTxDevice": 9, "TlsTxSw": 4, "TlsDecryptError": 3}
    monkeypatch.setattr("offload.switch.status.tls_stat", lambda host: (stat, []))
    shown = text("eth0")
    assert "transmit now 2 installed on a card, 1 in software; since boot 9 and 4" in shown
    assert "also TlsDecryptError 3" in shown


def test_broken_profiles_do_not_stop_it(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With a wrong profile file, status still works and warns."""
    (tmp_path / "bad.yaml").write_text("id: 1\n")
    monkeypatch.setattr("offload.card.profile.folder", lambda: tmp_path)
    assert "warning: profiles not read" in text("eth0") and "eth0: unknown card" in text("eth0")


def test_matching_is_what_enable_uses(machine: FakeMachine) -> None:
    """Status and enable agree on the profile."""
    assert match(look(LocalHost(), "cx0"), load_all()).profile == next(
        p for p in load_all() if p.id == "chelsio-t6"
    )


@pytest.mark.parametrize(
    ("config", "says"),
    [("CONFIG_NET=y\n", "CONFIG_TLS is not set"), ("CONFIG_TLS=m\n", "modprobe tls loads it")],
)
def test_module_is_not_advised_where_there_is_none(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, config: str, says: str
) -> None:
    """`modprobe tls` is advised only on a kernel that may have the module."""
    monkeypatch.setattr("offload.switch.status.tls_stat", lambda host: (None, []))
    machine.kernel_config(config)
    shown = text("eth0")
    assert says in shown and ("modprobe tls" in shown) == ("CONFIG_TLS=m" in config)
