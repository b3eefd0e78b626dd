"""kill -9 at every step, renamed or replaced devices, a reboot: restore gives what was there or says why."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.unit.switch.fake_bench import T6, FakeMachine, card, feature

STEPS = 30  # more than an enable of a T6 has; the last ones are not reached, and the test says how many were


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    """A T6, which takes the most steps: two modules and a feature."""
    machine = FakeMachine(tmp_path, monkeypatch)
    machine.set(devices={"cx0": T6})
    return machine


def calls(machine: FakeMachine) -> int:
    """How many programs an undisturbed enable calls; the machine is put back."""
    assert machine.call("enable", "cx0") == 0
    number: int = machine.state()["calls"]
    assert machine.call("restore") == 0
    return number


def again(machine: FakeMachine, **keys: Any) -> None:
    """Count calls from here on."""
    machine.set(calls=0, log=[], **keys)


@pytest.mark.parametrize("kind", ["kill-before", "kill-after", "kill-then-act"])
def test_killed_at_every_step_restore_gives_what_was_found(machine: FakeMachine, kind: str) -> None:
    """No moment of a kill -9 loses the state found; a program outliving it is awaited."""
    before, steps, changed = machine.machine(), calls(machine), 0
    for step in range(1, steps + 1):
        again(machine, fault={"at": step, "kind": kind})
        assert machine.call("enable", "cx0") == -signal.SIGKILL, step
        again(machine, fault={})
        changed += machine.machine() != before
        assert machine.call("restore") == 0, machine.said
        assert machine.machine() == before, f"killed at step {step} of {steps}"
    assert steps >= 12
    assert changed >= 3 or kind == "kill-then-act", (
        "no kill fell between a change and the end: proves nothing"
    )


def kill_at_fsync(number: int) -> Any:
    """A patch for the child: the Nth fsync is its last act."""

    def patch() -> None:
        real, seen = os.fsync, [0]

        def fsync(fd: int) -> None:
            seen[0] += 1
            if seen[0] == number:
                os.kill(os.getpid(), signal.SIGKILL)
            real(fd)

        os.fsync = fsync

    return patch


def test_killed_while_writing_the_journal(machine: FakeMachine) -> None:
    """A kill inside any journal write leaves a journal that can be read and the state found."""
    before, killed = machine.machine(), 0
    for number in range(1, STEPS):
        code = machine.call("enable", "cx0", patch=kill_at_fsync(number))
        killed += code == -signal.SIGKILL
        assert machine.call("restore") == 0, machine.said
        assert machine.machine() == before, number
        if code == 0:
            break
    assert killed == 6, "two writes (file, folder) for each of three changes"


def test_killed_in_restore_a_second_restore_finishes(machine: FakeMachine) -> None:
    before = machine.machine()
    for step in range(1, 40):
        assert machine.call("enable", "cx0") == 0
        again(machine, fault={"at": step, "kind": "kill-after"})
        code = machine.call("restore")
        again(machine, fault={})
        assert machine.call("restore") == 0
        assert machine.machine() == before, step
        if code == 0:
            break
    assert 8 < step < 39


def journal(machine: FakeMachine, **keys: Any) -> None:
    """Change every entry of the journal."""
    file = machine.journal / "journal.json"
    data = json.loads(file.read_text())
    data["entries"] = [{**e, **keys} for e in data["entries"]]
    file.write_text(json.dumps(data))


def test_after_a_reboot_the_journal_is_void(machine: FakeMachine) -> None:
    """An entry of an earlier boot is dropped, not applied."""
    machine.call("enable", "cx0")
    journal(machine, boot="00000000-0000-0000-0000-000000000000")
    now = machine.machine()
    assert machine.call("restore") == 0
    assert "before the last boot" in machine.said and machine.machine() == now
    assert machine.call("restore") == 0 and machine.said == "nothing to put back\n"


def test_a_renamed_device_is_recognized(machine: FakeMachine) -> None:
    """The change is undone on the device that had it, whatever its name is now."""
    machine.call("enable", "cx0")
    machine.set(devices={"lan7": machine.state()["devices"]["cx0"]})
    assert machine.call("restore", "lan7") == 0
    assert not machine.state()["devices"]["lan7"]["features"]["tls-hw-tx-offload"]["active"]
    assert "it was called cx0" in machine.said


def test_another_device_of_the_same_name_is_left_alone(machine: FakeMachine) -> None:
    """A new card under the old name keeps its own settings."""
    machine.call("enable", "cx0")
    other = card("mlx5_core", "22", "0000:09:00.0", feature(True), feature(True), ifindex=33)
    machine.set(devices={"cx0": other})
    assert machine.call("restore", "cx0") == 0
    assert "a new device" in machine.said and machine.machine()[0]["cx0"] == other["features"]


def test_another_device_with_the_same_index_is_left_alone(machine: FakeMachine) -> None:
    """An index used again by another card is noticed by its bus and driver."""
    machine.call("enable", "cx0")
    other = card("mlx5_core", "22", "0000:09:00.0", feature(True), feature(True), ifindex=8)
    machine.set(devices={"cx0": other})
    assert machine.call("restore") == 0
    assert "another device now" in machine.said and machine.machine()[0]["cx0"] == other["features"]


def test_a_device_of_another_namespace_is_kept(machine: FakeMachine) -> None:
    """An entry of another network namespace stays in the journal, and that is said."""
    machine.call("enable", "cx0")
    journal(machine, netns="net:[1]")
    machine.call("restore")
    assert "another network namespace" in machine.said
    assert "cx0" in (machine.journal / "journal.json").read_text()


def test_a_device_that_is_gone_is_kept(machine: FakeMachine) -> None:
    """A device that cannot be seen stays in the journal until the next boot."""
    machine.call("enable", "cx0")
    machine.set(devices={})
    assert machine.call("restore") == 0
    assert "is not here" in machine.said and "cx0" in (machine.journal / "journal.json").read_text()
