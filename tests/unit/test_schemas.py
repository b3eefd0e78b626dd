"""What the verbs print for programs fits the published schemas, which refuse what does not."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from offload.card.cards import as_json as cards_json
from offload.card.profile import DIRECTIONS
from offload.cli.main import main
from offload.connections.verbs import as_json as ls_json
from offload.connections.watch import rates
from offload.doctor.document import as_json as doctor_json
from offload.doctor.examine import Doctor
from offload.driver.status import Driver, Installed, Standing
from offload.driver.status import as_json as driver_json
from offload.suite.bench.vm.rundir import create
from offload.suite.bench.vm.verbs import for_programs
from offload.switch.status import as_json as status_json
from offload.switch.status import gather
from tests.lib.rig.schemas import FILES, checker, fits, schema
from tests.unit.connections.test_ls import connection, listing, looked
from tests.unit.doctor.fake_doctor import FakeHost, card
from tests.unit.doctor.test_doctor import PROFILES

CHANGE = {
    "kind": "feature",
    "what": "tls-hw-rx-offload",
    "dev": "eth0",
    "ifindex": 2,
    "bus": "0000:04:00.0",
    "driver": "mlx5_core",
    "netns": "n",
    "boot": "b",
    "active": False,
    "requested": False,
    "time": "t",
}


def listed() -> str:
    """What `ls --watch --json` prints of a second look: an owner, none; a doubt, none; unknown bytes."""
    first, second = looked(1, 0, 0), looked(2, 200_000, 100_000)
    ours = connection(owner=None, device="", sent=None, sent_again=None, received=None, version="0x9999")
    more = listing(*second.sockets().values(), ours, behind=next(iter(second.listing.cards.values())), at=2)
    return ls_json(more, at=7.5, rates=rates(first, type(first)(more)))


def standing() -> str:
    """What `status --json` prints of a card, one without its features, and a change to put back."""
    host = FakeHost()
    host.answers["ethtool", "-S"] = (0, "NIC statistics:\n     tx_tls_ctx: 5\n", "")
    host.devices["lo"] = card("", "", ":", link_type="loopback")
    host.devices["lo"]["features"].clear()
    return status_json(gather(host, (), [CHANGE]))


def diagnosed() -> str:
    """What `doctor --json` prints of a card."""
    return doctor_json(Doctor(FakeHost(), DIRECTIONS, PROFILES, tools=True).diagnose(["eth0"]))


def labs() -> str:
    """What `lab status --json` prints of a lab that is up and of one that boots."""
    state = {"kernel": "6.1.0-56-amd64", "kind": "nicsim", "personality": "connectx-6-dx", "pid": "7"}
    rows = [for_programs("one", state), for_programs("two", None)]
    return json.dumps({"schema": 1, "labs": rows, "removed": ["three"]})


def drivers() -> str:
    """What `driver status --json` prints of a driver that is loaded, and of one that is built."""
    was = Installed("6.1.192-2", "", {"/lib/modules/r/updates/ktls-offload/mlx5_core.ko": "gone"}, None)
    rows = (Driver("mlx5", "r", "/t", "6.1.192-2", was), Driver("mlx5", "s", "/u", "6.1.192-2", None))
    return driver_json(Standing("r", False, "no Secure Boot here", rows, {"mlx5": True}))


MADE: dict[str, Callable[[], str]] = {
    "cards": cards_json,
    "ls": listed,
    "status": standing,
    "doctor": diagnosed,
    "lab-status": labs,
    "driver-status": drivers,
}


@pytest.mark.parametrize("verb", FILES)
def test_documents_fit(verb: str) -> None:
    """A document with everything in it fits the schema, which is one itself."""
    jsonschema.Draft202012Validator.check_schema(schema(verb))
    assert fits(verb, MADE[verb]())["schema"] == 1


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every key of a document; of a list only to those of its first entry."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield (*path, key)
            yield from places(value, (*path, key))
    elif isinstance(node, list) and node:
        yield from places(node[0], (*path, 0))


def without(document: Any, path: tuple[Any, ...]) -> Any:
    """The document less one key."""
    left = copy.deepcopy(document)
    node = left
    for step in path[:-1]:
        node = node[step]
    del node[path[-1]]
    return left


@pytest.mark.parametrize("verb", FILES)
def test_a_key_that_is_missing_is_noticed(verb: str) -> None:
    """A document without any of its keys does not fit: no reader has to guess."""
    document = fits(verb, MADE[verb]())
    free = {
        "at",
        "rates",
        "counters",
        "tls_stat",
        "directions",
        "changed",
        "files",
        "loaded",
    }  # of --watch; mappings of any names
    keys = [p for p in places(document) if p[0] not in ("at", "rates") or len(p) > 1]
    wanted = [p for p in keys if not any(step in free for step in p[:-1])]
    assert len(wanted) > (20 if verb in ("ls", "status", "doctor") else 8), "what is looked at?"
    assert not [path for path in wanted if checker(verb).is_valid(without(document, path))]


@pytest.mark.parametrize(
    "words",
    [["ls", "--here"], ["status"], ["status", "lo"], ["doctor", "lo"], ["driver", "status"], ["cards"]],
)
def test_this_machine_fits(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main([*words, "--json"])
    said = capsys.readouterr()
    assert not said.err
    verb = "driver-status" if words[0] == "driver" else words[0]
    assert fits(verb, said.out)["schema"] == 1 and json.loads(said.out)


def test_labs_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A lab that runs, one that boots, and a dead one whose remains go, are in the document."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert main(["lab", "status", "--json"]) == 0
    assert fits("lab-status", capsys.readouterr().out) == {"schema": 1, "labs": [], "removed": []}
    boots, up, dead = (create(name) for name in ("boots", "up", "dead"))
    os.close(dead.lock)
    state = {"kernel": "k", "kind": "veth", "personality": "plain", "pid": "7"}
    (up.path / "lab.json").write_text(json.dumps(state))
    assert main(["lab", "status", "--json"]) == 0
    found = fits("lab-status", capsys.readouterr().out)
    assert [(lab["name"], lab["up"], lab["pid"]) for lab in found["labs"]] == [
        ("boots", False, None),
        ("up", True, 7),
    ]
    assert found["removed"] == ["dead"]
    for lab in (boots, up):
        lab.release()
