"""enable, disable, restore --json: one document, also when it fails, and it fits the published schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lib.rig.schemas import checker
from tests.unit.switch.fake_bench import FakeMachine

TX, RX = "tls-hw-tx-offload", "tls-hw-rx-offload"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    return FakeMachine(tmp_path, monkeypatch)


def reported(machine: FakeMachine, code: int, *argv: str) -> dict[str, Any]:
    """The document of a call; an error follows it on standard error, as without --json."""
    assert machine.call(*argv, "--json") == code, machine.said
    found, end = json.JSONDecoder().raw_decode(machine.said)
    checker("switch").validate(found)
    rest = machine.said[end:].strip()
    assert rest.startswith("ktls-offload: error: ") if code else not rest
    assert found["exit"] == code and machine.said.isascii()
    return dict(found)


def state(found: dict[str, Any], direction: str, number: int = 0) -> tuple[bool, bool, bool]:
    """Active, requested and fixed of a direction."""
    row = found["devices"][number]["directions"][direction]
    return row["active"], row["requested"], row["fixed"]


def test_there_and_back(machine: FakeMachine) -> None:
    """Each document shows the device as it is then: switched on, off, and put back."""
    assert state(reported(machine, 0, "enable", "eth0"), "rx") == (True, True, False)
    assert state(reported(machine, 0, "disable", "eth0"), "tx") == (False, False, False)
    found = reported(machine, 0, "restore", "eth0")
    assert (state(found, "tx"), state(found, "rx")) == ((True, True, False), (False, False, False))
    assert found["verb"] == "restore" and found["error"] is None and found["said"]


def test_a_dry_run_shows_what_would_be_done(machine: FakeMachine) -> None:
    """Nothing is done, the commands are in the document, and the device is as it was."""
    found = reported(machine, 0, "enable", "eth0", "--dry-run")
    assert found["dry_run"] and any(f"ethtool -K eth0 {RX} on" in line for line in found["said"])
    assert state(found, "rx") == (False, False, False)


def test_an_error_is_in_the_document(machine: FakeMachine) -> None:
    """A refusal is in the document and on standard error, under the same exit code."""
    found = reported(machine, 5, "enable", "cx0", "--rx")
    assert "transmit only" in found["error"]["message"] and state(found, "rx") == (False, False, True)


def test_a_device_that_is_not_there(machine: FakeMachine) -> None:
    """A device that is missing has no directions, and the hint names what there is."""
    found = reported(machine, 3, "enable", "eth9")
    assert found["devices"] == [{"dev": "eth9", "directions": {}}]
    assert "eth0" in found["error"]["message"] + (found["error"]["hint"] or "")


def test_restore_of_everything_names_no_device(machine: FakeMachine) -> None:
    """Restore without a device says what it did line by line."""
    machine.call("enable", "eth0")
    found = reported(machine, 0, "restore")
    assert found["devices"] == [] and any(RX in line for line in found["said"])


@pytest.mark.parametrize("verb", ["status", "doctor"])
def test_error_of_a_look_is_a_document(machine: FakeMachine, verb: str) -> None:
    """A program that asks about a device that is not there gets the error as JSON, once."""
    assert machine.call(verb, "nope0", "--json") == 3
    found, end = json.JSONDecoder().raw_decode(machine.said)
    checker("error").validate(found)
    assert (found["verb"], found["exit"]) == (verb, 3) and "nope0" in found["error"]["message"]
    assert machine.said[end:].strip().startswith("ktls-offload: error: ")
