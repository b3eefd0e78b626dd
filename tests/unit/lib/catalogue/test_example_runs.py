"""`make example`: real runs of the lab, a good card and a bad one of the catalogue; here without the lab."""

from __future__ import annotations

import struct
import subprocess
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.lib.catalogue import browser, example_runs
from tests.lib.catalogue import rows as catalogue
from tests.unit.suite.report import report_whole as made


class Fake:
    """Stands in for the lab and for `certify`: it notes what was asked, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ends: dict[str, int]) -> None:
        self.said: list[str] = []
        self._ends = ends
        monkeypatch.setattr(example_runs, "fetch", lambda kernel: f"kernel {kernel}")
        monkeypatch.setattr(example_runs, "turn", lambda root, knobs: self.said.append(f"turn {knobs}"))
        monkeypatch.setattr(example_runs.Lab, "boot", self._boot)
        monkeypatch.setattr(subprocess, "run", self._run)
        monkeypatch.setattr(example_runs.browser, "had", lambda: "")

    @contextmanager
    def _boot(self, kernel: str, personality: str) -> Any:
        self.said.append(f"boot {kernel} as {personality}")
        yield SimpleNamespace(root=None, name="bad-lab")
        self.said.append("stop")

    def _run(self, argv: list[str], check: bool) -> Any:
        folder = Path(argv[argv.index("--out") + 1])
        self.said.append(" ".join(argv[argv.index("certify") : argv.index("--out")]))
        folder.mkdir(parents=True)
        made.folder(folder, worst="fail" if folder.name == "failed" else "pass")
        return SimpleNamespace(returncode=self._ends[folder.name])


def test_a_good_and_a_bad_card_are_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The whole suite meets a good card; the card of the catalogue is bad before certify attaches to it."""
    fake = Fake(monkeypatch, {"certified": 0, "failed": 20})
    assert example_runs.main([str(tmp_path), "--kernel", "6.12", "--jobs", "2"]) == 0
    row = next(row for row in catalogue.load() if row.id == example_runs.BAD)
    assert fake.said == [
        "certify --nic connectx-6-dx --kernel 6.12 --jobs 2",
        f"boot kernel 6.12 as {row.card},connectx-6-dx",
        f"turn {row.knobs}",
        f"certify --nic {row.card} --kernel 6.12 --attach bad-lab --only {example_runs.ASKED}",
        "stop",
    ]
    cards = {path.name for path in (tmp_path / "pictures").iterdir()}
    assert cards == {"certified-card.svg", "failed-card.svg"}
    assert "This card " in (tmp_path / "pictures/failed-card.svg").read_text()


def test_another_end_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bad card that is certified, or a rig that broke, is no example."""
    Fake(monkeypatch, {"certified": 0, "failed": 22})
    assert example_runs.main([str(tmp_path), "--only", "failed"]) == 1
    assert "certify ended with 22, wanted 20" in capsys.readouterr().out
    assert not (tmp_path / "certified").exists()


def test_the_tests_that_are_asked_see_the_defect() -> None:
    """The catalogue's own triage of the bad card is among the tests that the failed run asks for."""
    row = next(row for row in catalogue.load() if row.id == example_runs.BAD)
    assert row.end == "failed" and any(test.startswith(example_runs.ASKED) for test in row.tests)


@pytest.mark.skipif(not browser.had(), reason=browser.ABSENT)
def test_pictures_show_every_look(tmp_path: Path) -> None:
    """A page is pictured light, dark, narrow and on A4; README and docs/ get light and dark of both."""
    made.folder(_new(tmp_path / "failed"), worst="fail")
    example_runs.pictures(tmp_path)
    place = tmp_path / "pictures"
    sizes = {name: _size(place / f"failed-{name}.png") for name in example_runs.LOOKS}
    assert sizes == example_runs.LOOKS
    assert (place / "failed-light.png").read_bytes() != (place / "failed-dark.png").read_bytes()
    assert (place / "failed.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(SystemExit, match="lacks certified-light.png, certified-dark.png: run `make example`"):
        example_runs.show(tmp_path, tmp_path)
    for look in ("light", "dark"):
        (place / f"certified-{look}.png").write_bytes(b"x")
    example_runs.show(tmp_path, _new(tmp_path / "docs"))
    assert len([*(tmp_path / "docs").glob("report-*.png")]) == 4


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _size(picture: Path) -> tuple[int, ...]:
    """Width and height of a PNG."""
    return struct.unpack(">II", picture.read_bytes()[16:24])
