"""enable, disable, restore against a machine of fake programs that behave as the real ones do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from offload.switch.journal import Journal
from tests.unit.switch.fake_bench import T6, FakeMachine, card, feature

TX, RX = "tls-hw-tx-offload", "tls-hw-rx-offload"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    """Three cards: a ConnectX-6 Dx (eth0), a T6 (cx0) and a simulated ConnectX-6 Dx (sim0)."""
    return FakeMachine(tmp_path, monkeypatch)


def active(machine: FakeMachine, dev: str) -> tuple[bool, bool]:
    """Whether transmit and receive are on."""
    features = machine.state()["devices"][dev]["features"]
    return features[TX]["active"], features[RX]["active"]


def entries(machine: FakeMachine) -> list[str]:
    """What the journal holds."""
    return [e["what"] for e in json.loads((machine.journal / "journal.json").read_text())["entries"]]


def switched(machine: FakeMachine) -> list[str]:
    """The commands that changed something."""
    return [
        c
        for c in machine.state().get("log", [])
        if " -K " in c or c.startswith(("modprobe ch", "modprobe tls", "rmmod"))
    ]


def test_enable_switches_all_that_the_profile_promises(machine: FakeMachine) -> None:
    """A ConnectX-6 Dx ends with both directions on and only receive was touched."""
    assert machine.call("enable", "eth0") == 0
    assert active(machine, "eth0") == (True, True)
    assert switched(machine) == [f"ethtool -K eth0 {RX} on"]
    assert entries(machine) == [RX]
    assert "NVIDIA ConnectX-6 Dx (profile connectx-6-dx)" in machine.said
    assert "was so already" in machine.said and "ktls-offload restore eth0" in machine.said


def test_says_what_a_step_costs(machine: FakeMachine) -> None:
    """The reason of each of the profile's steps is said, and what it costs."""
    assert machine.call("enable", "eth0") == 0
    assert "(was off: off by default; the first time, all channels re-open: a short pause" in machine.said
    assert machine.call("enable", "cx0") == 0
    assert "module    ch_ktls loaded: nothing loads it by itself" in machine.said


def log(machine: FakeMachine, *argv: str) -> list[str]:
    """The programs that an enable calls."""
    machine.set(log=[])
    assert machine.call(*argv) == 0, machine.said
    found: list[str] = machine.state()["log"]
    return found


def test_it_looks_once(machine: FakeMachine) -> None:
    """One list of interfaces, one look at each card before its switch, one after it, and nothing else."""
    assert log(machine, "enable", "sim0") == [
        "ip -j -d link show",
        "ethtool -i sim0",
        "ethtool --json -k sim0",
        f"ethtool -K sim0 {RX} on",
        "ethtool --json -k sim0",
    ]
    assert len(log(machine, "enable", "eth0", "cx0")) <= 16
    assert len(log(machine, "enable", "eth0", "cx0")) <= 8, "all is on: it looks, and that is all"
    assert len(log(machine, "disable", "eth0", "sim0")) <= 13


def test_a_call_that_comes_between_is_seen(machine: FakeMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever made the lock between our look and ours may have switched: it is looked at once more."""
    taken = Journal.locked

    def locked(journal: Journal) -> Any:
        if not (machine.journal / "lock").exists():
            with taken(Journal()):
                machine.change("sim0", RX, active=True, requested=True)
        return taken(journal)

    monkeypatch.setattr(Journal, "locked", locked)
    assert machine.call("enable", "sim0") == 0
    assert "was so already" in machine.said and switched(machine) == []


def test_modules_of_one_card_serve_the_next(machine: FakeMachine) -> None:
    """Two T6 need the modules once; if the second fails, those that the first uses stay."""
    machine.set(devices={"cx0": T6, "cx1": {**T6, "ifindex": 10}})
    assert log(machine, "enable", "cx0", "cx1").count("modprobe ch_ktls") == 1
    assert machine.call("restore", "cx0") == 0
    assert "module ch_ktls stays: another device of the journal uses it" in machine.said
    assert "ch_ktls" in machine.state()["modules"] and active(machine, "cx1")[0]
    assert machine.call("restore") == 0
    second = [i for i, c in enumerate(log(machine, "enable", "cx0", "cx1"), 1) if "-K cx1" in c][0]
    assert machine.call("restore") == 0
    machine.set(calls=0, log=[], fault={"at": second, "kind": "fail"})
    assert machine.call("enable", "cx0", "cx1") == 6
    assert active(machine, "cx0")[0] and not active(machine, "cx1")[0]
    assert entries(machine) == ["tls", "ch_ktls", TX] and "ch_ktls" in machine.state()["modules"]


@pytest.mark.parametrize("dev", ["eth0", "cx0", "sim0"])
def test_nothing_but_the_steps_is_applied(machine: FakeMachine, dev: str) -> None:
    """Rings, coalescing and whatever else may be advised of a card are left as they are."""
    assert machine.call("enable", dev) == 0
    called = [c.removeprefix("ethtool ") for c in machine.state()["log"] if c.startswith("ethtool ")]
    assert {c.split(" -")[0].split()[0] for c in called} <= {"-i", "-k", "-K", "--json"}
    assert all(c.split()[2] in (TX, RX) and len(c.split()) == 4 for c in called if c.startswith("-K"))


def test_restore_puts_back_what_was_there_before_the_first_change(machine: FakeMachine) -> None:
    """Enable, disable, enable, restore ends where it began, and again does nothing."""
    before = machine.machine()
    for verb in ("enable", "disable", "enable"):
        assert machine.call(verb, "eth0") == 0
    assert machine.machine() != before
    assert machine.call("restore", "eth0") == 0
    assert machine.machine() == before
    assert entries(machine) == []
    assert machine.call("restore") == 0
    assert machine.said == "nothing to put back\n"


def test_disable_switches_off_and_says_so(machine: FakeMachine) -> None:
    """Disable turns off what was on, needs no profile, and can be undone."""
    assert machine.call("disable", "eth0") == 0
    assert active(machine, "eth0") == (False, False)
    assert switched(machine) == [f"ethtool -K eth0 {TX} off"]
    assert machine.call("restore", "--all") == 0
    assert active(machine, "eth0") == (True, False)


def test_one_direction_leaves_the_other_alone(machine: FakeMachine) -> None:
    """--tx on disable does not touch receive."""
    machine.change("eth0", RX, active=True, requested=True)
    assert machine.call("disable", "eth0", "--tx") == 0
    assert active(machine, "eth0") == (False, True)


def test_on_already_changes_and_journals_nothing(machine: FakeMachine) -> None:
    """Enabling what is on is no change: no journal, exit 0."""
    assert machine.call("enable", "eth0", "--tx") == 0
    assert switched(machine) == [] and not machine.journal.exists()


def test_t6_refuses_receive_with_the_reason(machine: FakeMachine) -> None:
    """A T6 asked for receive is refused with the profile's words, and nothing is changed."""
    before = machine.machine()
    assert machine.call("enable", "cx0", "--tx", "--rx") == 5
    assert "Chelsio T6 has no receive offload: ch_ktls is transmit only" in machine.said
    assert machine.machine() == before and not machine.journal.exists()


def test_t6_loads_its_modules_and_restore_takes_out_only_those(machine: FakeMachine) -> None:
    """A T6 gets tls and ch_ktls loaded one by one, then the feature; all of it is undone."""
    before = machine.machine()
    assert machine.call("enable", "cx0") == 0
    assert switched(machine) == ["modprobe tls", "modprobe ch_ktls", f"ethtool -K cx0 {TX} on"]
    assert entries(machine) == ["tls", "ch_ktls", TX]
    assert machine.call("restore", "cx0") == 0
    assert machine.machine() == before
    assert switched(machine)[-2:] == ["rmmod ch_ktls", "rmmod tls"]


def test_a_module_that_was_there_stays(machine: FakeMachine) -> None:
    """Restore does not unload what enable did not load."""
    machine.set(modules=["cxgb4", "tls"])
    assert machine.call("enable", "cx0") == 0
    assert machine.call("restore") == 0
    assert machine.state()["modules"] == ["cxgb4", "tls"]


def test_a_module_in_use_is_reported_and_kept_in_the_journal(machine: FakeMachine) -> None:
    """Restore exits 6 on a module in use, keeps its entry, and succeeds later."""
    before = machine.machine()
    machine.call("enable", "cx0")
    machine.set(in_use=["ch_ktls"])
    assert machine.call("restore", "cx0") == 6
    assert "in use" in machine.said and "ch_ktls" in entries(machine)
    machine.set(in_use=[])
    assert machine.call("restore", "cx0") == 0
    assert machine.machine() == before


def test_a_missing_module_is_refused(machine: FakeMachine) -> None:
    """A kernel without ch_ktls refuses the T6 before anything is changed."""
    machine.set(depends={})
    assert machine.call("enable", "cx0") == 5
    assert "module ch_ktls is missing for this kernel" in machine.said and switched(machine) == []


def test_fixed_names_the_missing_kernel_option(machine: FakeMachine) -> None:
    """A kernel without CONFIG_MLX5_EN_TLS is named as the reason."""
    machine.change("eth0", TX, active=False, requested=False, fixed=True)
    machine.kernel_config("CONFIG_TLS=m\nCONFIG_TLS_DEVICE=y\nCONFIG_MLX5_CORE=m\nCONFIG_MLX5_CORE_EN=y\n")
    assert machine.call("enable", "eth0") == 5
    assert "CONFIG_MLX5_EN_TLS is not y" in machine.said and "CONFIG_TLS_DEVICE" not in machine.said


def test_fixed_on_a_good_kernel_names_the_card(machine: FakeMachine) -> None:
    """The SKU is the likely reason if the kernel has every option."""
    machine.change("eth0", TX, active=False, requested=False, fixed=True)
    options = ("TLS", "TLS_DEVICE", "MLX5_CORE", "MLX5_CORE_EN", "MLX5_EN_TLS")
    machine.kernel_config("".join(f"CONFIG_{o}=y\n" for o in options))
    assert machine.call("enable", "eth0", "--tx") == 5
    assert "the kernel has all that it needs" in machine.said and "crypto-enabled part" in machine.said


@pytest.mark.parametrize(
    ("group", "remedy", "asked"),
    [
        ("tx-checksum-ip-generic", "ethtool -K eth0 tx on", "--tx"),
        ("rx-checksumming", "ethtool -K eth0 rx on", "--rx"),
    ],
)
def test_checksum_off_is_refused_with_the_remedy(
    machine: FakeMachine, group: str, remedy: str, asked: str
) -> None:
    """A direction whose checksum offload is off is refused, naming the command that helps."""
    machine.change("eth0", group, active=False, requested=False)
    machine.change("eth0", TX, active=False, requested=True)
    assert machine.call("enable", "eth0", asked) == 5
    assert remedy in machine.said and switched(machine) == []
    assert ("off [requested on]" in machine.said) == (asked == "--tx")


@pytest.mark.parametrize("kind", ["ignore", "fail"])
def test_a_card_that_does_not_switch_is_noticed_and_put_back(machine: FakeMachine, kind: str) -> None:
    """A driver that fails, or says yes and does nothing, ends in exit 6 with all undone."""
    machine.change("sim0", TX, active=False, requested=False)
    before = machine.machine()
    machine.call("enable", "sim0")
    second = [i for i, c in enumerate(machine.state()["log"], 1) if " -K " in c][1]
    machine.call("restore")
    machine.set(calls=0, log=[], fault={"at": second, "kind": kind})
    assert machine.call("enable", "sim0") == 6
    assert "everything was put back" in machine.said and f"{RX} on" in machine.said
    assert machine.machine() == before and entries(machine) == []


def test_a_roll_back_that_fails_says_so_and_keeps_the_journal(machine: FakeMachine) -> None:
    """A module stuck in the roll-back is named, kept in the journal, and restore ends it."""
    before = machine.machine()
    machine.set(in_use=["ch_ktls"])
    machine.change("cx0", "tx-checksum-ip-generic", fixed=False)
    machine.set(fault={"at": _call_number(machine, "cx0", " -K "), "kind": "fail"}, calls=0)
    assert machine.call("enable", "cx0") == 6
    assert "could NOT put back: module ch_ktls stays" in machine.said and entries(machine) == ["ch_ktls"]
    machine.set(in_use=[], fault={})
    assert machine.call("restore") == 0
    assert machine.machine() == before


def _call_number(machine: FakeMachine, dev: str, part: str) -> int:
    """The number of the first call that holds `part` in an undisturbed enable; the machine is put back."""
    keep = machine.state()
    machine.set(in_use=[])
    machine.call("enable", dev)
    number = next(i for i, c in enumerate(machine.state()["log"], 1) if part in c)
    machine.state_file.write_text(json.dumps(keep))
    (machine.journal / "journal.json").unlink()
    return number


def test_no_permission_is_exit_4(machine: FakeMachine) -> None:
    """A kernel that says no gives exit 4 and leaves no entry behind."""
    machine.set(eperm=True)
    assert machine.call("enable", "eth0") == 4
    assert "run it as root" in machine.said and entries(machine) == []


@pytest.mark.parametrize("kind", ["int-after", "term-after"])
def test_interrupted_after_a_switch_everything_is_put_back(machine: FakeMachine, kind: str) -> None:
    """Ctrl-C or SIGTERM in the middle ends with exit 130 and the state found."""
    before = machine.machine()
    machine.set(fault={"at": _call_number(machine, "cx0", " -K "), "kind": kind}, calls=0)
    assert machine.call("enable", "cx0") == 130
    assert machine.machine() == before and entries(machine) == []
    assert "interrupted" in machine.said


def test_dry_run_lists_every_action_and_does_none(machine: FakeMachine) -> None:
    """--dry-run prints modules, features and journal, and changes nothing."""
    before = machine.machine()
    assert machine.call("enable", "cx0", "--dry-run") == 0
    for line in (
        "modprobe tls",
        "modprobe ch_ktls",
        f"ethtool -K cx0 {TX} on",
        "journal.json",
        "nothing was done",
    ):
        assert line in machine.said
    assert machine.machine() == before and not machine.journal.exists()


def test_restore_dry_run_changes_nothing(machine: FakeMachine) -> None:
    machine.call("enable", "eth0")
    assert machine.call("restore", "--dry-run") == 0
    assert f"eth0: {RX}: would put back: off" in machine.said
    assert active(machine, "eth0") == (True, True) and entries(machine) == [RX]


def test_a_simulated_card_is_called_simulated(machine: FakeMachine) -> None:
    """The card that nicsim plays is named with SIMULATED, and needs no module."""
    assert machine.call("enable", "sim0") == 0
    assert "NVIDIA ConnectX-6 Dx, SIMULATED by nicsim" in machine.said


def test_a_simulated_t6_loads_nothing(machine: FakeMachine) -> None:
    """The played T6 is one module: ch_ktls is not asked for."""
    machine.set(devices={"sim0": card("nicsim", "sim/chelsio-t6", "sim:0", feature(), feature(False, True))})
    assert machine.call("enable", "sim0") == 0
    assert switched(machine) == [f"ethtool -K sim0 {TX} on"]
    assert machine.call("enable", "sim0", "--rx") == 5


def test_the_wrong_profile_is_refused(machine: FakeMachine) -> None:
    """A profile for another driver is refused with both names."""
    assert machine.call("enable", "eth0", "--profile", "chelsio-t6") == 5
    assert "chelsio-t6 is for driver cxgb4; eth0 has mlx5_core" in machine.said


def test_no_profile_says_how_to_go_on(machine: FakeMachine) -> None:
    """A card that could but that nobody described is exit 2, with the way out."""
    machine.set(devices={"nfp0": card("nfp", "2.1", "", feature(), feature())})
    assert machine.call("enable", "nfp0") == 2
    assert (
        "no profile in nic-profiles fits (driver nfp)" in machine.said
        and "docs/contribute/add-a-nic.md" in machine.said
    )


def test_an_unknown_device_names_the_nearest(machine: FakeMachine) -> None:
    """A mistyped name is exit 3 with a suggestion, on every verb."""
    for verb in ("enable", "disable", "restore", "status"):
        assert machine.call(verb, "eht0") == 3
        assert "did you mean eth0?" in machine.said


def test_an_old_ethtool_without_json_will_do(machine: FakeMachine) -> None:
    """The text form gives the same result."""
    machine.set(no_json=True)
    assert machine.call("enable", "eth0") == 0
    assert active(machine, "eth0") == (True, True)
