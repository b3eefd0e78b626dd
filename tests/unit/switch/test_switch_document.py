"""enable, disable and restore for programs: one document, also of a call that was refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import validate

from tests.unit.switch.fake_bench import FakeMachine

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "offload/switch/schema/switch-1.schema.json").read_text())
TX, RX = "tls-hw-tx-offload", "tls-hw-rx-offload"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    return FakeMachine(tmp_path, monkeypatch)


def document(machine: FakeMachine, code: int, *argv: str) -> tuple[Any, str]:
    """What a call prints for programs, and what it says after that."""
    assert machine.call(*argv, "--json") == code, machine.said
    found, end = json.JSONDecoder().raw_decode(machine.said)
    validate(found, SCHEMA)
    assert found["exit"] == code and machine.said[end] == "\n"
    return found, machine.said[end + 1 :]


def test_what_was_done_and_how_the_device_is_now(machine: FakeMachine) -> None:
    """Each direction with its three states; the messages are those for people."""
    found, rest = document(machine, 0, "enable", "eth0")
    assert (found["schema"], found["verb"], found["dry_run"], found["error"], rest) == (
        1,
        "enable",
        False,
        None,
        "",
    )
    on = {"active": True, "requested": True, "fixed": False}
    assert found["devices"] == [
        {"dev": "eth0", "directions": {"tx": {"feature": TX, **on}, "rx": {"feature": RX, **on}}}
    ]
    machine.call("restore")
    assert machine.call("enable", "eth0") == 0 and found["said"] == machine.said.splitlines()


def test_what_was_refused_is_in_the_document_and_said(machine: FakeMachine) -> None:
    """A program need not read what is for people; a device that is not there has no directions."""
    found, rest = document(machine, 5, "enable", "cx0", "--rx")
    assert found["error"]["message"] in rest and "transmit only" in found["error"]["message"]
    assert not found["devices"][0]["directions"]["tx"]["active"]
    found, _ = document(machine, 3, "disable", "nosuch0")
    assert found["devices"] == [{"dev": "nosuch0", "directions": {}}] and found["verb"] == "disable"


def test_what_would_be_done_is_marked(machine: FakeMachine) -> None:
    """Nothing is, and the device is as it was."""
    assert machine.call("enable", "eth0") == 0
    found, _ = document(machine, 0, "restore", "eth0", "--dry-run")
    assert found["dry_run"] and found["devices"][0]["directions"]["rx"]["active"]
    assert any("would put back" in line for line in found["said"])
