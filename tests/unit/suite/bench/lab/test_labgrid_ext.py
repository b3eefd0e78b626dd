"""labgrid's resources, driver and strategy: in a real labgrid environment, with a shell that is played."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("labgrid", reason="pip install 'ktls-offload[lab]'")

import attr
import yaml
from labgrid import Environment
from labgrid.driver import Driver, ExecutionError
from labgrid.factory import target_factory
from labgrid.protocol import CommandProtocol
from labgrid.strategy import StrategyError

from offload.suite.bench.lab.file import load

ROOT = Path(__file__).parents[5]
SAID: list[str] = []


@target_factory.reg_driver
@attr.s(eq=False)
class PlayedShell(Driver, CommandProtocol):
    """Notes what is run; answers `status` as the program does."""

    def run(self, command: str, timeout: float | None = None) -> tuple[list[str], list[str], int]:
        SAID.append(command)
        return ([json.dumps({"schema": 1})] if "status" in command else []), [], 0

    def run_check(self, command: str, timeout: float | None = None) -> list[str]:
        return self.run(command, timeout)[0]

    def get_status(self) -> int:
        return 1

    def wait_for(self, *_: Any) -> None:
        raise NotImplementedError

    def poll_until_success(self, *_: Any, **__: Any) -> bool:
        raise NotImplementedError


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Any]:
    """The target of an environment file that imports ours."""
    SAID.clear()
    port = {"ifname": "ens1 f0", "profile": "connectx-6-dx", "v4": "192.0.2.1/24"}
    drivers = {"PlayedShell": {}, "OffloadNicDriver": {}, "OffloadStrategy": {}}
    file = tmp_path / "env.yaml"
    dut = {"resources": {"OffloadNic": port, "OffloadHost": {"netns": "far"}}, "drivers": drivers}
    file.write_text(json.dumps({"imports": ["offload.suite.bench.lab.labgrid_ext"], "targets": {"dut": dut}}))
    environment = Environment(str(file))
    yield environment.get_target("dut")
    environment.cleanup()


def test_goes_on_and_comes_back(target: Any) -> None:
    """The strategy switches by our command, with the name quoted, and undoes it once."""
    strategy = target.get_driver("OffloadStrategy")
    for state in ("on", "on", "off", "found"):
        strategy.transition(state)
    wanted = [f"ktls-offload {word} 'ens1 f0'" for word in ("enable", "disable", "restore")]
    assert wanted == SAID


def test_what_was_only_looked_at_is_not_restored(target: Any) -> None:
    """`status` answers with the document, and switches nothing back."""
    nic = target.get_driver("OffloadNicDriver")
    assert nic.status() == {"schema": 1}
    target.deactivate(nic)
    assert SAID == ["ktls-offload status --json 'ens1 f0'"]


def test_a_bench_that_ends_early_is_put_back(target: Any) -> None:
    """The switches come back with the target's own end, as after a test that failed."""
    target.get_driver("OffloadStrategy").transition("on")
    target.cleanup()
    assert SAID[-1] == "ktls-offload restore 'ens1 f0'"


def test_no_such_state(target: Any) -> None:
    """A state that there is not is refused, and nothing is run."""
    with pytest.raises(StrategyError, match="no state 'loud'"):
        target.get_driver("OffloadStrategy").transition("loud")
    assert SAID == []


def test_knows_every_resource_of_the_example() -> None:
    """labgrid can read the lab file that we ship, once it has imported ours."""
    import_module("offload.suite.bench.lab.labgrid_ext")
    text = yaml.safe_load((ROOT / "ci" / "lab.yaml").read_text())
    kinds = {kind for role in text["targets"].values() for kind in role["resources"]}
    environment = Environment(str(ROOT / "ci" / "lab.yaml"))
    for kind in kinds - {"NetworkService"}:
        assert target_factory.class_from_string(kind).__module__ == "offload.suite.bench.lab.labgrid_ext", (
            kind
        )
    assert environment.get_target("dut").get_resource("OffloadNic").ifname == "ens1f0np0"


PLAYED = """#!/bin/sh
shift 2
case "$*" in *broken*) echo "no such lab" >&2; exit 7;; *status*) echo '{"schema": 1}';; *) echo "$*";; esac
"""


def test_the_vm_has_the_roles_of_a_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ci/vm.yaml loads in labgrid: DUT, peer and wire, each with a shell in the VM."""
    (tmp_path / "python").write_text(PLAYED)
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr("offload.suite.bench.lab.labgrid_ext.sys.executable", str(tmp_path / "python"))
    environment, targets = Environment(str(ROOT / "ci/vm.yaml")), {}
    try:
        for role in load(ROOT / "ci/lab.yaml").targets:
            target = targets[role.role] = environment.get_target(role.role)
            shell = target.get_driver("OffloadVmShell")
            (said,) = shell.run_check("ip -br link")
            assert said.startswith(f"lab run --name vm --in {role.role} -- env PATH={tmp_path}:")
            with pytest.raises(ExecutionError, match=f"in {role.role} of vm: exit 7"):
                shell.run_check("broken")
        assert targets["dut"].get_driver("OffloadNicDriver").status() == {"schema": 1}
        assert targets["wire"].get_resource("OffloadWire").ports == ["nswire0", "nswire1"]
    finally:
        environment.cleanup()
