"""`certify --card mlx5`: which lab and driver a run gets, what it refuses, what its report says was real."""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from offload.card.profile import find
from offload.errors import ConfigError
from offload.suite.bench.vm import cards, own_driver
from offload.suite.certify import attach
from offload.suite.certify.patch import Patch
from offload.suite.certify.plan import check_card, plan
from tests.unit.suite.certify.fake_certify import FakeLab, add, call, checkout
from tests.unit.suite.certify.test_certify import again
from tests.unit.suite.certify.test_certify_attach import STATE, typed
from tests.unit.suite.report.test_replay import RIG, planned, result

ABOUT = {
    "driver under test": "mlx5_core of Debian's Linux 6.1, unmodified",
    "card": "simulated by cx6sim; 7 are guesses",
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm_python: str) -> Iterator[Path]:
    """A checkout whose tests pass, on a lab that is only a name."""
    yield from checkout(tmp_path, monkeypatch, warm_python)


def test_the_real_driver_is_built_booted_and_named(
    root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The lab is of that kind, its driver is what was built, and the reports say what was real."""
    kinds = list[object]()
    start = FakeLab.start.__func__  # type: ignore[attr-defined]

    def started(cls: type[FakeLab], kernel: object, **options: object) -> FakeLab:
        kinds.append(options["kind"])
        lab: FakeLab = start(cls, kernel, **options)
        lab.rig |= ABOUT
        return lab

    said = "driver: mlx5_core\nversion: 6.1.0\nfirmware-version: 22.41.1000\n"
    monkeypatch.setattr(FakeLab, "start", classmethod(started))
    monkeypatch.setattr(FakeLab, "run", lambda *_, **__: types.SimpleNamespace(text=said))
    monkeypatch.setattr(cards, "driver", lambda kernel, say: Path(__file__))
    code, report = call(root, "--card", "mlx5")
    assert (code, report["simulated"], kinds) == (0, True, ["mlx5"])
    assert [phase["name"] for phase in report["phases"]][1] == "driver"
    assert report["rig"].items() >= ABOUT.items() and len(report["judged"]["kernel"]["driver"]) == 64
    out = capfd.readouterr().out
    assert "certifying Debian's mlx5_core on a simulated NVIDIA ConnectX-6 Dx, kernel 6.1" in out
    page = (root / "run/report.html").read_text()
    for words in ABOUT.values():
        assert words in out and words.replace("'", "&#39;") in page
    assert "in place of" not in page, "the driver is the card's own"


def test_what_the_model_is_not_is_refused() -> None:
    """Another card, a patch of the other simulator, a bench that exists: before anything is made."""
    for words, why in (
        (["--nic", "chelsio-t6"], "cannot be tested as Chelsio"),
        (["--attach", "it"], "--attach and --card exclude each other"),
        (["--lab", "lab.yaml"], "--lab and --card exclude each other"),
        (["--replay", "results/x"], "--replay and --card exclude each other"),
        (["--all-benches", "nic=x"], "--all-benches and --card exclude each other"),
    ):
        with pytest.raises(ConfigError, match=why):
            plan(typed("--card", "mlx5", *words))


def test_a_patch_of_nicsim_is_not_one_of_this_card() -> None:
    """It would be built and never run."""
    patch = Patch(Path("x.patch"), ("x.patch",), "0", b"", b"")
    check_card("nicsim", find("chelsio-t6"), patch)
    check_card("mlx5", find("connectx-6-dx"), None)
    with pytest.raises(ConfigError, match="--nicsim-patch changes nicsim, not cx6sim"):
        check_card("mlx5", find("connectx-6-dx"), patch)


def test_a_running_lab_and_a_replay_bring_their_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lab of the real driver is attached to as it is; what failed on it is repeated on it."""
    state = {**STATE, "kind": "mlx5", "personality": "connectx-6-dx"}
    monkeypatch.setattr("offload.suite.bench.vm.lab.described", lambda name: state)
    assert attach.attached(typed("--attach", "it")).card == "mlx5"
    assert planned(result(tmp_path / "run", rig=RIG | ABOUT)).card == "mlx5"
    assert planned(result(tmp_path / "other")).card == "nicsim"


def test_your_own_driver_is_named_and_asked_for_again(
    root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The lab loads it, the first line and the command to repeat name it; a replay does not run without."""
    mine, loaded = Path(__file__), list[object]()
    start = FakeLab.start.__func__  # type: ignore[attr-defined]

    def started(cls: type[FakeLab], kernel: object, **options: object) -> FakeLab:
        loaded.append(options["driver"])
        lab: FakeLab = start(cls, kernel, **options)
        lab.rig |= {**ABOUT, "driver under test": f"{own_driver.OWN}, {mine}"}
        return lab

    monkeypatch.setattr(FakeLab, "start", classmethod(started))
    monkeypatch.setattr(FakeLab, "run", lambda *_, **__: types.SimpleNamespace(text="driver: mlx5_core\n"))
    monkeypatch.setattr(own_driver, "check_path", lambda path: None)
    monkeypatch.setattr(own_driver, "prepare", lambda path, kernel, say: path)
    add(root, "assert 0")
    code, _ = call(root, "--card", "mlx5", "--driver", str(mine))
    out = capfd.readouterr().out
    assert (code, loaded) == (20, [mine])
    assert f"certifying mlx5_core of {mine} on a simulated NVIDIA ConnectX-6 Dx, kernel 6.1" in out
    assert f" --driver {mine}\n" in out
    with pytest.raises(ConfigError, match="was a run with a driver of your own"):
        again(root)


def test_a_driver_needs_the_card_that_it_drives(tmp_path: Path) -> None:
    """nicsim, a lab, a bench and a fleet have their own; what is no driver leaves no folder behind."""
    for words, why in (
        ([], "--driver needs --card or --replay"),
        (["--card", "nicsim"], "--driver replaces mlx5_core, which the simulated card nicsim does not use"),
        (["--attach", "it"], "--attach and --driver exclude each other"),
        (["--lab", "lab.yaml"], "--lab and --driver exclude each other"),
        (["--all-benches", "nic=x"], "--all-benches and --driver exclude each other"),
        (["--card", "mlx5"], "is no kernel module"),
    ):
        with pytest.raises(ConfigError, match=why):
            plan(typed("--driver", __file__, "--out", str(tmp_path / "run"), *words))
    assert not (tmp_path / "run").exists()
