"""probe: a draft that the profile schema takes, in which everything says whether it was seen or guessed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from offload.card.profile import Profile, folder, load
from offload.host.local import LocalHost
from offload.probe.draft import draft, ident
from offload.probe.look import see
from tests.unit.switch.fake_bench import FakeMachine, card, feature

TX = ("tx_tls_encrypted_packets", "tx_tls_encrypted_bytes", "tx_tls_ctx", "tx_tls_ooo")
STATS = {
    **dict.fromkeys(TX, 0),
    "acme_tx_tls_del": 0,
    "tx_tls_drop_bypass_req": 0,
    "tx_tls_acme": 1,
    "rx_ok": 9,
}
ACME = card("acme_nic", "7.1", "0000:06:00.0", feature(True), feature(False, True), ifindex=11, stats=STATS)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    """The fake machine with a card that no profile knows: transmit on, receive fixed, an odd counter."""
    found = FakeMachine(tmp_path, monkeypatch)
    found.set(devices={**found.state()["devices"], "ac0": ACME})
    for name, value in {"vendor": b"0xac3e\n", "device": b"0x0042\n"}.items():
        found.files[f"/sys/bus/pci/devices/0000:06:00.0/{name}"] = value
    monkeypatch.chdir(tmp_path)
    return found


def made(machine: FakeMachine, dev: str = "ac0") -> Profile:
    """The draft of a device, written and loaded as a person would."""
    assert machine.call("probe", dev, "--out", "new-card.yaml") == 0, machine.said
    return load("new-card.yaml")


def test_the_draft_says_what_was_seen(machine: FakeMachine) -> None:
    """Driver, PCI id, counters and what can be switched come from the card itself."""
    found = made(machine)
    assert (found.id, found.driver) == ("new-card", "acme_nic") and found.pci[0].covers("ac3e:0042")
    assert found.directions() == ("tx",) and found.default("tx")
    assert found.why_no_direction("rx") == "tls-hw-rx-offload is off [fixed] on this card, driver and kernel"
    assert found.counters.required("tx") == (*TX[:3], "tx_tls_del", "tx_tls_ooo")
    assert found.counters.name("tx_tls_del") == "acme_tx_tls_del"
    assert found.counters.dead("tx") == ("tx_tls_drop_bypass_req",) and found.counters.tx.own == (
        "tx_tls_acme",
    )
    assert [(s.kind, s.what) for s in found.steps] == [("feature", "tls-hw-tx-offload")]


def test_every_guess_is_marked(machine: FakeMachine) -> None:
    """What nobody has seen is a GUESS with its source: the cipher above all."""
    made(machine)
    lines = Path("new-card.yaml").read_text().splitlines()
    for start in ("id:", "name:", "  tx: {", "defaults:", "kconfig:", "counters:", "  need:", "limitations:"):
        assert [x for x in lines if x.startswith(start)], start
        assert all(re.search(r"# .*GUESS: \S", x) for x in lines if x.startswith(start)), start
    assert "GUESS" not in next(x for x in lines if x.startswith("driver:"))
    assert f"{sum('GUESS' in x for x in lines)} lines marked GUESS" in machine.said


def test_each_cell_is_promised_or_has_a_reason(machine: FakeMachine) -> None:
    """A draft promises the one cipher that every driver takes, and explains the rest."""
    found = made(machine)
    assert [tuple(c) for c in found.promises] == [("tx", "1.2", "aes-gcm-128")]
    assert found.reason("tx", "1.2", "aes-gcm-256") == "not yet tested whether the card accepts it"
    assert "TLS 1.2 only" in found.reason("tx", "1.3", "aes-gcm-128")


@pytest.mark.parametrize("dev", ["eth0", "cx0", "sim0", "ac0"])
def test_every_draft_is_valid_and_switches(machine: FakeMachine, dev: str) -> None:
    """`enable --profile` takes the draft of any card that can be switched."""
    stats = {"tx_tls_encrypted_packets": 1, "rx_tls_decrypted_packets": 2}
    devices = machine.state()["devices"]
    devices[dev]["stats"] = stats
    machine.set(devices=devices)
    assert made(machine, dev).directions()
    assert machine.call("enable", dev, "--profile", "new-card.yaml", "--dry-run") == 0, machine.said


def test_a_known_card_and_a_simulated_one_are_called_so(machine: FakeMachine) -> None:
    """A card that has a profile, and one that is played, are named beside the draft."""
    assert machine.call("probe", "sim0") == 0
    assert "# SIMULATED: the card is nicsim, firmware sim/connectx-6-dx" in machine.said
    assert "note: sim0 already has a profile: connectx-6-dx" in machine.said


def test_no_tls_promises_nothing(machine: FakeMachine) -> None:
    """A card without TLS offload gets a valid draft that promises nothing, and a way on."""
    machine.change("ac0", "tls-hw-tx-offload", active=False, requested=False, fixed=True)
    assert made(machine).promises == frozenset()
    assert "so the draft promises nothing; why: ktls-offload doctor ac0" in machine.said


def test_no_counter_no_promise(machine: FakeMachine) -> None:
    """A direction that no counter could prove is not promised, with that as its reason."""
    devices = machine.state()["devices"]
    devices["ac0"]["stats"] = {"rx_ok": 1}
    machine.set(devices=devices)
    assert "has no transmit counter with a name" in made(machine).why_no_direction("tx")


def test_nothing_is_written_over(machine: FakeMachine) -> None:
    """A file that is there stays as it is, also if it is a dangling link."""
    Path("there.yaml").write_text("mine")
    Path("link.yaml").symlink_to("nowhere.yaml")
    for name in ("there.yaml", "link.yaml"):
        assert machine.call("probe", "ac0", "--out", name) == 2
        assert f"{name} already exists" in machine.said
    assert Path("there.yaml").read_text() == "mine" and not Path("nowhere.yaml").exists()


@pytest.mark.parametrize(
    ("argv", "code", "text"),
    [
        (["ac0", "--out", "Card.yml"], 2, "wanted ID.yaml"),
        (["ac0", "--out", "none/card.yaml"], 2, "no folder none"),
        (["ac1"], 3, "no interface 'ac1' (did you mean ac0?)"),
        (["lo0"], 5, "a profile describes a card, and lo0 is"),
        (["bond0"], 5, "bond0 is a bond"),
    ],
)
def test_wrong_questions(machine: FakeMachine, argv: list[str], code: int, text: str) -> None:
    """A bad file name, a missing device and what is no card are told in one line."""
    bare: dict[str, Any] = card("", "", "", feature(False, True), feature(False, True))
    bond = {**bare, "driver": "bonding", "link": {"linkinfo": {"info_kind": "bond"}}}
    machine.set(devices={**machine.state()["devices"], "lo0": bare, "bond0": bond})
    assert machine.call("probe", *argv) == code and text in machine.said, machine.said


def test_hostile_answers_stay_data(machine: FakeMachine) -> None:
    """What a card says of itself can neither break the file nor steer a terminal."""
    devices = machine.state()["devices"]
    stats = {**STATS, **{f"tx_tls_{n:04}": n for n in range(3000)}, "tx_tls_]#: x": 1, "TX_TLS_ctx": 2}
    devices["ac0"] |= {"firmware": 'x"\x1b[31m\n- {a: b} # é\u202e', "stats": stats}
    machine.set(devices=devices)
    text = draft(see(LocalHost(), "ac0"), "new-card")
    assert text.isascii() and text.replace("\n", "").isprintable()
    assert set(yaml.safe_load(text)) == set(yaml.safe_load((folder() / "nicsim.yaml").read_text())) - {
        "plays",
        "later",
    }
    assert len(made(machine).counters.tx.own) == 64


def test_a_module_between_driver_and_tls_becomes_a_step(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loaded module that uses both kernel TLS and the driver is a step, as a guess."""
    real = LocalHost.run

    def run(host: LocalHost, argv: Any, **how: Any) -> Any:
        holders = {"tls": "acme_tls other", "acme_nic": "acme_tls acme_rdma"}
        name = str(argv[-1]).split("/")[3] if str(argv[-1]).endswith("/holders") else ""
        return real(host, ["echo", holders[name]] if name in holders else argv, **how)

    monkeypatch.setattr(LocalHost, "run", run)
    text = draft(see(LocalHost(), "ac0"), "new-card")
    assert "- {modprobe: acme_tls, direction: tx, why: " in text and "acme_rdma" not in text


def test_names_come_from_the_pci_list(machine: FakeMachine) -> None:
    """Vendor and card are called as the PCI list has them, and the id is made of that."""
    machine.files["/usr/share/misc/pci.ids"] = (
        b"# list\nac3d  Other\n\t0042  Wrong\nac3e  Acme Networks\n\t0041  Old\n"
        b"\t0042  AN42 [Quick TLS 100]\n\t\t0000 0001  Sub\nac3f  Next\n\t0042  Wrong\n"
    )
    seen = see(LocalHost(), "ac0")
    assert seen.names == ("Acme Networks", "AN42 [Quick TLS 100]") and ident(seen) == "quick-tls-100"
