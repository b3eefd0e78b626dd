"""What may be typed to `certify` together, and what a run says at its end."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from offload.errors import ConfigError
from offload.suite.certify import end
from tests.unit.suite.certify.test_certify_attach import typed

OPTIONS = {
    "all-benches": ["a=b"],
    "attach": ["it"],
    "card": ["mlx5"],
    "coordinator": ["host:1"],
    "depth": ["deep"],
    "driver": ["folder"],
    "hang": ["9"],
    "jobs": ["2"],
    "keep-lab": [],
    "kernel": ["6.1"],
    "lab": ["lab.yaml"],
    "modules": ["folder"],
    "nic": ["chelsio-t6"],
    "nicsim-patch": ["x.patch"],
    "only": ["test_a"],
    "replay": ["results/x"],
    "retry": [],
    "scenario": ["4711"],
    "timing": [],
    "wait": ["9"],
}
# an option, and what it cannot be typed with
CROSSED = {
    "all-benches": "attach card driver jobs keep-lab kernel lab modules nic nicsim-patch replay scenario",
    "attach": "card driver jobs keep-lab lab nicsim-patch replay",
    "card": "lab replay",
    "depth": "replay scenario",
    "driver": "lab",
    "jobs": "keep-lab lab replay",
    "keep-lab": "lab",
    "kernel": "lab",
    "lab": "modules nicsim-patch replay",
    "replay": "scenario",
}
NEEDED = {
    "coordinator": {"all-benches"},
    "driver": {"card", "replay"},
    "hang": {"all-benches"},
    "modules": {"kernel"},
    "retry": {"all-benches", "lab"},
    "wait": {"all-benches"},
}


def words(*names: str) -> list[str]:
    """The options as they are typed."""
    return [word for name in names for word in (f"--{name}", *OPTIONS[name])]


def refusal(*names: str) -> str:
    """What is said of these options, or ''."""
    try:
        typed(*words(*names))
    except ConfigError as exc:
        return str(exc)
    return ""


def test_what_excludes_each_other() -> None:
    """Each pair of options is refused if it has no meaning, with both names; every other pair is taken."""
    found = {pair for pair in combinations(sorted(OPTIONS), 2) if "exclude each other" in refusal(*pair)}
    assert found == {(one, other) for one, others in CROSSED.items() for other in others.split()}
    for one, other in found:
        said = refusal(one, other)
        assert f"--{one}" in said and f"--{other}" in said and "hint" not in said.partition("\n")[0]


@pytest.mark.parametrize("name", OPTIONS)
def test_what_needs_another(name: str) -> None:
    """An option that says more about another one is refused without it, and taken with it."""
    needed = NEEDED.get(name, set())
    assert (" needs " in refusal(name)) is bool(needed)
    assert not [other for other in needed if refusal(name, other)] or name == "modules"


def test_one_lab_is_what_any_run_may_have() -> None:
    """--jobs 1 excludes nothing; a lab that is somebody else's, stays, or repeats a run is one."""
    assert typed("--attach", "it", "--jobs", "1").attach == "it"
    assert typed(*words("kernel", "modules")).modules == "folder"
    for name in OPTIONS:
        if not NEEDED.get(name):
            assert typed(*words(name)).one_lab is (name in ("attach", "keep-lab", "replay", "lab")), name
    assert typed().crossed == "quick" and typed("--depth", "deep").crossed == "deep"


def plan(out: Path, **more: Any) -> Any:
    """A plan, as far as its end is concerned."""
    return SimpleNamespace(out=out, patch=None, driver=None, hosts=None, **more)


def test_how_to_repeat_what_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a path that can be typed here, with the run's patch; not for hosts, and not if nothing failed."""
    monkeypatch.chdir(tmp_path)
    failed = {"counts": dict.fromkeys(end.FAILED, 0) | {end.FAILED[0]: 3}}
    run = plan(tmp_path / "results/x")
    said = end.again(run, failed)
    assert said.startswith("repeat what failed (3): ") and "results/x" in said and str(tmp_path) not in said
    assert "--nicsim-patch" not in said
    run.patch = "text of a patch"
    assert "--nicsim-patch results/x/" in end.again(run, failed)
    assert end.again(run, {"counts": dict.fromkeys(end.FAILED, 0)}) == ""
    run.driver = tmp_path / "a driver"
    assert end.again(run, failed).endswith(f" --driver '{run.driver}'\n")
    run.hosts = ("dut",)
    assert end.again(run, failed) == ""
    elsewhere = plan(tmp_path.parent / "other/y")
    assert str(elsewhere.out) in end.again(elsewhere, failed)


def test_files_are_those_that_are_there(tmp_path: Path) -> None:
    """The console of each lab is named, of the last one, too."""
    for name in ("report.html", "console.log", f"console-{end.MOST}.log", "other"):
        (tmp_path / name).write_text("")
    shown = end.files(plan(tmp_path)).split()
    assert shown == [str(tmp_path / n) for n in ("report.html", "console.log", f"console-{end.MOST}.log")]


@pytest.mark.parametrize("option", ["--kernel", "--nic", "--lab", "--only"])
def test_an_empty_value_is_no_default(option: str) -> None:
    """A script whose variable is unset does not run for minutes on something that nobody named."""
    with pytest.raises(ConfigError, match=f"{option} is empty"):
        typed(option, "")
