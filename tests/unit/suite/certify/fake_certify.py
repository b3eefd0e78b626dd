"""A checkout whose tests pass, on a lab that is only a name: what tests of `certify` stand on."""

from __future__ import annotations

import argparse
import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from offload.debian.record import Booted, Checked
from offload.suite.bench.vm.console import faults
from offload.suite.certify import collect, tests, verbs
from offload.suite.certify import plan as certify_plan
from offload.suite.certify import run as certify_run

HEAD = """
import pytest
from offload.suite.report.criteria import load
from offload.suite.report.record.plugin import set_rig
from offload.card.profile import find

@pytest.fixture(autouse=True, scope="session")
def bench(pytestconfig):
    set_rig(pytestconfig, {"qemu": "7.2"}, profile="connectx-6-dx", kernel="6.1.0", simulated=True)

def param(p, cell, number):
    mark = pytest.mark.promise(p.id, cell=cell)
    return pytest.param(p, cell, number, marks=mark, id=f"{p.id}-{cell}-{number}")

CELLS = [param(p, c, n) for p in load().promises.values()
         for c in (find("connectx-6-dx").cells() if p.cells else (None,)) for n in range(p.tests)
         if c is None or p.direction in (None, c.direction)
         and (p.cells == "promised") == (c in find("connectx-6-dx").promises)]

@pytest.mark.parametrize(("promise", "cell", "number"), CELLS)
def test_promise(promise, cell, number, evidence):
    evidence.update({name: level.min for name, level in promise.levels.items()})
    if promise.crossed:
        evidence["scenario"] = {"met": {"direction": "tx", "event": "none"}}
    if promise.proof not in ("A", None):
        evidence["wire"] = {"proof": promise.proof, "outcome": "equal", "records": 1, "bytes": 1}
"""


OPTIONS = """
from offload.suite.report.record.testinfo import CONDITIONS

def pytest_configure(config):
    config.stash[CONDITIONS] = {
        "depth": "quick", "sha256": "", "scenarios": 1,
        "dimensions": {"direction": ["tx"], "event": ["none"]},
        "triples": [], "impossible": [], "not_yet_with": [], "no_lab": [], "not_yet": [], "reasons": [],
    }

def pytest_addoption(parser):
    for name in ("--profile", "--kernel", "--working"):
        parser.addoption(name)
"""


class FakeLab:
    name, kernel = "fake", "6.1.0"
    rig: dict[str, str]
    up, pair = 0, "connectx-6-dx,connectx-6-dx"
    cpus: object = None

    @classmethod
    def start(cls, kernel: object, **options: object) -> FakeLab:
        assert options["personality"] == cls.pair
        FakeLab.up, FakeLab.cpus = FakeLab.up + 1, options["cpus"]
        lab = cls()
        patched = options.get("patched")
        lab.rig = {"cpus": "2"} | ({"nicsim": str(patched)} if patched else {})
        return lab

    def ready(self) -> FakeLab:
        return self

    said = "[    0.0] Linux\n"

    def console_text(self) -> str:
        return self.said

    def console_mark(self) -> int:
        return 0

    def console_faults(self, since: int) -> list[str]:
        return faults(self.said[since:])

    def run(self, argv: list[str], check: bool) -> types.SimpleNamespace:
        assert argv == ["ethtool", "-i", "nicsim0"]
        return types.SimpleNamespace(
            text="driver: nicsim\nversion: 1\nfirmware-version: sim/x\nexpansion: \n"
        )

    dut = property(lambda self: self)
    bench = types.SimpleNamespace(dut=types.SimpleNamespace(dev="nicsim0"))

    def stop(self) -> None:
        FakeLab.up -= 1

    def detach(self) -> None:
        pass


def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python: str) -> Iterator[Path]:
    """A checkout whose tests pass, on a lab that is only a name; this Python runs pytest."""
    for name in ("native/nicsim", "native/ktls-handoff", "tests/hw"):
        (tmp_path / "tree" / name).mkdir(parents=True)
    (tmp_path / "tree/native/ktls-handoff/Makefile").write_text("all:\n\t@true\n")
    (tmp_path / "tree/tests/hw/test_it.py").write_text(HEAD)
    (tmp_path / "tree/tests/hw/conftest.py").write_text(OPTIONS)
    (tmp_path / "tree/pytest.ini").write_text("[pytest]\n")
    kernel = types.SimpleNamespace(release="6.1.0", version="6.1.0-1")
    fakes = {
        "offload.debian.kernels": {
            "SERIES": ("6.1", "6.12"),
            "fetch": lambda series, say: kernel,
            "hands_over_tls13": lambda series: False,
        },
        "offload.suite.bench.cards.module": {"build_nicsim": lambda kernel, say: Path(__file__)},
        "offload.debian.record": {"check": lambda kernel: Booted("a" * 64, "b" * 64, Checked.FETCHED)},
        "offload.suite.bench.programs.unpacked": {"find": lambda say: "nginx"},
        "offload.suite.bench.vm.lab": {"Lab": FakeLab},
        "offload.suite.bench.vm.recipe": {"cpus_wanted": lambda cpus: cpus or 1},
    }
    for name, parts in fakes.items():
        module = types.ModuleType(name)
        vars(module).update(parts)
        monkeypatch.setitem(sys.modules, name, module)
    for module in (certify_plan, certify_run, collect, tests):
        monkeypatch.setattr(module, "ROOT", tmp_path / "tree")
    for module in (collect, tests):
        monkeypatch.setattr(module, "sys", types.SimpleNamespace(executable=python))
    real = tests.command
    monkeypatch.setattr(tests, "command", lambda plan, lab: without_attach(real(plan, lab)))
    monkeypatch.setattr(certify_run, "forecast", lambda bench, profile, given: [f"{' '.join(bench)}: all"])
    FakeLab.up = 0
    yield tmp_path
    assert not FakeLab.up


def without_attach(argv: list[str]) -> list[str]:
    """The command without the options that belong to the real tests' conftest."""
    place = argv.index("--attach")
    assert set(argv[place + 1].split(",")) == {"fake"}
    return argv[:place] + argv[place + 6 :]


def call(root: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """Run `ktls-offload certify`: (exit code, its report)."""
    parser = argparse.ArgumentParser()
    verbs.add_parser(parser.add_subparsers())
    jobs = [] if "--jobs" in words else ["--jobs", "1"]
    args = parser.parse_args(["certify", "--out", str(root / "run"), *jobs, *words])
    code = int(args.func(args))
    return code, json.loads((root / "run/report.json").read_text())


def add(root: Path, body: str) -> None:
    """Add a test to the fake tests/hw."""
    with (root / "tree/tests/hw/test_it.py").open("a") as out:
        out.write(f"\n@pytest.mark.promise('sizes.tx')\ndef test_more():\n    {body}\n")
