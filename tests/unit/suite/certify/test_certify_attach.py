"""`certify --attach` and `--nic FILE`: which lab, which card it plays, what they exclude."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from offload.debian.record import Booted, Checked
from offload.errors import ConfigError, RigError
from offload.suite.bench.vm import lab as labs
from offload.suite.bench.vm.lab import Lab
from offload.suite.certify import attach, boot, tests, verbs
from offload.suite.certify import plan as certify_plan
from offload.suite.certify import run as certify_run
from offload.suite.certify.request import Request, read

ROOT = Path(__file__).parents[4]
STATE = {
    "name": "it",
    "kind": "nicsim",
    "personality": "chelsio-t6,connectx-6-dx",
    "kernel": "6.12.95+deb13-amd64",
}


def typed(*words: str) -> Request:
    parser = argparse.ArgumentParser()
    verbs.add_parser(parser.add_subparsers())
    return read(parser.parse_args(["certify", *words]))


@pytest.fixture(autouse=True)
def up(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A lab that is up, as far as its description goes."""
    state = dict(STATE)
    monkeypatch.setattr("offload.suite.bench.vm.lab.described", lambda name: state)
    return state


def test_kernel_and_card_are_those_of_the_lab(tmp_path: Path) -> None:
    """A lab that is up says what is certified; nothing is booted for it."""
    plan = certify_plan.plan(typed("--attach", "it", "--out", str(tmp_path / "run")))
    assert (plan.attach, plan.kernel, plan.profile.id) == ("it", "6.12", "chelsio-t6")
    words = " ".join(tests.command(plan, "it"))
    assert "--attach it --profile chelsio-t6 --kernel 6.12" in words


def test_a_lab_with_a_kernel_of_ones_own(up: dict[str, str], tmp_path: Path) -> None:
    """A lab of --kernel PATH names the cache's kernel, whatever its release looks like."""
    up |= {"kernel": "6.12.0-mine", "series": "own-0123456789ab"}
    plan = certify_plan.plan(typed("--attach", "it", "--out", str(tmp_path / "run")))
    assert plan.kernel == "own-0123456789ab"


def test_a_running_lab_is_judged_by_a_file(tmp_path: Path) -> None:
    """The draft of a profile goes with a lab that is up, whatever its card plays."""
    file = tmp_path / "my-card.yaml"
    file.write_text((ROOT / "nic-profiles" / "nicsim.yaml").read_text().replace("id: nicsim", "id: my-card"))
    plan = certify_plan.plan(typed("--attach", "it", "--nic", str(file), "--out", str(tmp_path / "run")))
    assert (plan.attach, plan.kernel, plan.profile.id, plan.given) == ("it", "6.12", "my-card", str(file))
    assert f"--attach it --profile {file} --kernel 6.12" in " ".join(tests.command(plan, "it"))
    said: list[str] = []
    certify_run.Run(plan, said.append).report()
    assert "the card of lab it as" in said[0] and not any("stands in" in line for line in said), said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--kernel", "6.1"], "--kernel 6.1: lab it has 6.12"),
        (["--nic", "connectx-6-dx"], "--nic connectx-6-dx: lab it has chelsio-t6"),
        (["--keep-lab"], "--attach and --keep-lab exclude each other"),
        (["--replay", "results/x"], "--attach and --replay exclude each other"),
        (["--nicsim-patch", "x.patch"], "--attach and --nicsim-patch exclude each other"),
        (["--jobs", "2"], "--attach and --jobs exclude each other"),
    ],
)
def test_what_a_running_lab_excludes(words: list[str], why: str) -> None:
    """Options that want another lab are refused before anything starts."""
    with pytest.raises(ConfigError) as wrong:
        attach.attached(typed("--attach", "it", *words))
    assert why in str(wrong.value)


def test_a_lab_without_a_card(up: dict[str, str]) -> None:
    """A lab of two veths is no bench for a certificate."""
    up["kind"] = "veth"
    with pytest.raises(ConfigError, match="is of kind veth, and certify wants nicsim or mlx5"):
        attach.attached(typed("--attach", "it"))


@pytest.mark.parametrize("option", ["replay", "nicsim-patch", "attach", "kernel", "nic", "jobs"])
def test_what_many_benches_exclude(option: str) -> None:
    with pytest.raises(ConfigError, match=f"--all-benches and --{option} exclude"):
        typed("--all-benches", "nic=x", f"--{option}", "6")


def test_a_profile_from_elsewhere_is_the_one_that_judges(tmp_path: Path) -> None:
    """A file of the same id as a shipped profile is not taken for that one."""
    text = (ROOT / "nic-profiles" / "nicsim.yaml").read_text()
    for ident in ("nicsim", "my-card"):
        file = tmp_path / f"{ident}.yaml"
        file.write_text(text.replace("id: nicsim", f"id: {ident}"))
        plan = certify_plan.plan(typed("--nic", str(file), "--out", str(tmp_path / f"run-{ident}")))
        assert (plan.profile.id, plan.played) == (ident, str(file))
        assert f"--profile {file}" in " ".join(tests.command(plan, "it"))


BOOTED = Booted("a" * 64, "b" * 64, Checked.FETCHED)


@pytest.mark.parametrize(
    "booted", [{}, {"kernel": "6.12", "checked": "as it was fetched", "image": "a" * 64}]
)
def test_a_report_names_what_a_running_lab_booted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, booted: dict[str, str]
) -> None:
    """The lab says what it booted; one of an earlier version does not, and is not known."""
    lab = SimpleNamespace(booted=booted, rig={}, detach=lambda: None, console_text=lambda: "")
    monkeypatch.setattr(Lab, "attach", lambda name: lab)
    run = certify_run.Run(certify_plan.plan(typed("--attach", "it", "--out", str(tmp_path / "r"))), print)
    with ExitStack() as stack:
        boot.join(stack, run.plan, run.log)
    found = run.report()["judged"]["kernel"]
    assert (found or {}).get("image") == booted.get("image")
    shown = (tmp_path / "r/report.html").read_text()
    assert ("as it was fetched" in shown) is bool(booted)
    assert ("not known: booted before this run" in shown) is not bool(booted)


def started(monkeypatch: pytest.MonkeyPatch, checks: Any, keep: bool, **more: Any) -> dict[str, str]:
    """What a lab notes of itself whose VM is only a name."""
    plan = SimpleNamespace(made=dict, module=Path(__file__), cpus=1, accel="tcg", why="", pair="", peer=None)
    plan.qemu, plan.memory, plan.slow, plan.spare = SimpleNamespace(version=""), 1024, 1.0, 0
    plan.machine = lambda devices: None
    run_dir = SimpleNamespace(name="it", path=Path("it"), release=lambda: None)
    monkeypatch.setattr(labs, "check", checks)
    monkeypatch.setattr(labs, "choose", lambda *words: plan)
    monkeypatch.setattr(labs, "versions", lambda *words: {"qemu": "10"})
    monkeypatch.setattr(labs.made, "host_files", dict)
    monkeypatch.setattr(labs.rundir, "create", lambda name: run_dir)
    child = SimpleNamespace(child=SimpleNamespace(pid=7))
    monkeypatch.setattr(labs.boot, "start", lambda *words: child)
    kernel: Any = SimpleNamespace(release="6.12.95", series="6.12")
    return Lab.start(kernel, name="it", keep=keep, **more).state


def test_a_lab_that_is_kept_notes_what_it_boots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernel is compared with the record, and its module's digest is noted beside it."""
    state = started(monkeypatch, lambda kernel: BOOTED, keep=True)
    lab = Lab(state | {"kind": "nicsim"}, Path("it"), None, None)  # type: ignore[arg-type]
    assert lab.booted == BOOTED.described(SimpleNamespace(release="6.12.95"), Path(__file__))  # type: ignore[arg-type]
    assert len(lab.booted["driver"]) == 64 and lab.rig == {"qemu": "10"}


def test_a_kept_lab_does_not_boot_a_changed_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random bytes in the cached kernel are met when a lab is to start, before its VM does."""

    def changed(kernel: object) -> Booted:
        raise RigError("not as it was fetched")

    with pytest.raises(RigError, match="not as it was fetched"):
        started(monkeypatch, changed, keep=True)
    assert "pid" in started(
        monkeypatch, changed, keep=False
    )  # it ends with its tests, and nobody reports on it


PATCHED = "patched by SHA-256 0a1b (my.patch)"


def test_a_report_names_the_patch_of_the_lab_it_attached_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lab that was booted with a patched card says so to every run that attaches to it."""
    state = started(monkeypatch, lambda kernel: BOOTED, keep=True, patched=PATCHED)
    rig = Lab(state | {"kind": "nicsim"}, Path("it"), None, None).rig  # type: ignore[arg-type]
    assert rig == {"qemu": "10", "nicsim": PATCHED}
    lab = SimpleNamespace(
        booted={}, rig=rig, kernel="6.12.95", name="it", detach=lambda: None, console_text=lambda: ""
    )
    monkeypatch.setattr(Lab, "attach", lambda name: lab)
    monkeypatch.setattr(boot, "identity", lambda lab: {})
    said: list[str] = []
    run = certify_run.Run(
        certify_plan.plan(typed("--attach", "it", "--out", str(tmp_path / "r"))), said.append
    )
    with ExitStack() as stack:
        boot.labs(stack, run.plan, None, run.log)
    assert run.report()["rig"]["nicsim"] == PATCHED and any(PATCHED in line for line in said)
    assert f"nicsim {PATCHED}" in (tmp_path / "r/summary.txt").read_text()
