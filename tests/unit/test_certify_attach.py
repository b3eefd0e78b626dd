"""`certify --attach` and `--nic FILE`: which lab, which card it plays, what they exclude."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from offload import certify, certify_attach, certify_plan, certify_run, certify_tests
from offload.errors import ConfigError

ROOT = Path(__file__).parents[2]
STATE = {
    "name": "it",
    "kind": "nicsim",
    "personality": "chelsio-t6,connectx-6-dx",
    "kernel": "6.12.95+deb13-amd64",
}


def typed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    certify.add_parser(parser.add_subparsers())
    return parser.parse_args(["certify", *words])


@pytest.fixture(autouse=True)
def up(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A lab that is up, as far as its description goes."""
    state = dict(STATE)
    monkeypatch.setattr("offload.vm.lab.described", lambda name: state)
    return state


def test_kernel_and_card_are_those_of_the_lab(tmp_path: Path) -> None:
    """Without a NIC a lab that is up says what is certified; nothing is booted for it."""
    plan = certify_plan.plan(typed("--attach", "it", "--out", str(tmp_path / "run")))
    assert (plan.attach, plan.kernel, plan.profile.id) == ("it", "6.12", "chelsio-t6")
    words = " ".join(certify_tests.command(plan, "it"))
    assert "--attach it --profile chelsio-t6 --kernel 6.12" in words


def test_a_running_lab_is_judged_by_a_file(tmp_path: Path) -> None:
    """Without a NIC the draft of a profile goes with a lab that is up, whatever its card plays."""
    file = tmp_path / "my-card.yaml"
    file.write_text((ROOT / "nic-profiles" / "nicsim.yaml").read_text().replace("id: nicsim", "id: my-card"))
    plan = certify_plan.plan(typed("--attach", "it", "--nic", str(file), "--out", str(tmp_path / "run")))
    assert (plan.attach, plan.kernel, plan.profile.id, plan.given) == ("it", "6.12", "my-card", str(file))
    assert f"--attach it --profile {file} --kernel 6.12" in " ".join(certify_tests.command(plan, "it"))
    said: list[str] = []
    certify_run.Run(plan, said.append).report()
    assert "the card of lab it as" in said[0] and not any("does not play" in line for line in said), said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--kernel", "6.1"], "--kernel 6.1: lab it has 6.12"),
        (["--nic", "connectx-6-dx"], "--nic connectx-6-dx: lab it has chelsio-t6"),
        (["--keep-lab"], "--attach and --keep-lab exclude each other"),
        (["--replay", "results/x"], "--attach and --replay exclude each other"),
        (["--nicsim-patch", "x.patch"], "--attach and --nicsim-patch exclude each other"),
    ],
)
def test_what_a_running_lab_excludes(words: list[str], why: str) -> None:
    """Without a NIC options that want another lab are refused before anything starts."""
    with pytest.raises(ConfigError) as wrong:
        certify_attach.attached(typed("--attach", "it", *words))
    assert why in str(wrong.value)


def test_a_lab_without_a_card(up: dict[str, str]) -> None:
    """Without a NIC a lab of two veths is no bench for a certificate."""
    up["kind"] = "veth"
    with pytest.raises(ConfigError, match="has no card"):
        certify_attach.attached(typed("--attach", "it"))


@pytest.mark.parametrize("option", ["replay", "nicsim-patch", "attach", "kernel", "nic"])
def test_what_many_benches_exclude(option: str) -> None:
    """Without a NIC options of one bench are refused for all benches."""
    with pytest.raises(ConfigError, match=f"--all-benches and --{option} exclude"):
        certify.all_benches(typed("--all-benches", "nic=x", f"--{option}", "6.1"))


def test_a_profile_from_elsewhere_is_the_one_that_judges(tmp_path: Path) -> None:
    """Without a NIC a file of the same id as a shipped profile is not taken for that one."""
    text = (ROOT / "nic-profiles" / "nicsim.yaml").read_text()
    for ident, played in (("nicsim", "nicsim"), ("my-card", "nicsim")):
        file = tmp_path / f"{ident}.yaml"
        file.write_text(text.replace("id: nicsim", f"id: {ident}"))
        plan = certify_plan.plan(typed("--nic", str(file), "--out", str(tmp_path / f"run-{ident}")))
        assert (plan.profile.id, plan.played) == (ident, played)
        assert f"--profile {file}" in " ".join(certify_tests.command(plan, "it"))
