"""`report` and what is not a result: pipes, impossible numbers, folders for files, disks that refuse."""

from __future__ import annotations

import argparse
import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from offload.errors import ConfigError, RigError
from offload.suite.report import files
from offload.suite.report.events import parse
from offload.suite.report.trust import manifest
from offload.suite.report.verbs import add_parser
from tests.unit.suite.report import report_whole

FORMS = ("ktap", "junit", "checkbox", "in-toto")
HUGE = "9" * 400  # JSON may say it, no double holds it
ODD = [("fifo", "not a plain file"), ("/dev/zero", "not a plain file"), ("folder", "Is a directory")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with every section that a report can have."""
    place = report_whole.folder(tmp_path_factory.mktemp("whole"))
    manifest.write(place)
    return place


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(whole, tmp_path / "run")
    return tmp_path / "run"


def call(*words: str | Path) -> int:
    """Run `ktls-offload report WORDS`."""
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    args = parser.parse_args(["report", *map(str, words)])
    return int(args.func(args))


def put_odd(path: Path, kind: str) -> None:
    """What is no file, in place of one."""
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(kind)


def readers(folder: Path) -> list[list[str | Path]]:
    """Every verb that reads report.json."""
    exports: list[list[str | Path]] = [["export", folder, "--as", form] for form in FORMS]
    packed = folder.with_name("packed.tar.gz")
    return [
        ["show", folder],
        ["recompute", folder],
        ["diff", folder, folder],
        ["archive", folder, packed],
        *exports,
    ]


@pytest.mark.parametrize(("kind", "why"), ODD)
def test_no_verb_waits_for_a_pipe(run: Path, kind: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe, an endless device and a folder called report.json are refused at once."""
    put_odd(run / "report.json", kind)
    for words in readers(run):
        with pytest.raises(ConfigError, match=rf"report\.json: {why}"):
            call(*words)
    with pytest.raises(ConfigError, match="contains no result"):
        call("history", run)
    assert call("verify", run) == 1


@pytest.mark.parametrize(("kind", "why"), ODD)
def test_events_are_a_file(run: Path, kind: str, why: str) -> None:
    """A verdict is computed from a file, not from a pipe that never ends."""
    put_odd(run / files.EVENTS, kind)
    with pytest.raises(ConfigError, match=rf"events\.jsonl: {why}"):
        call("recompute", run)
    (run / "report.json").unlink()
    with pytest.raises(ConfigError, match=rf"events\.jsonl: {why}"):
        call("make", run)


@pytest.mark.parametrize("text", [HUGE, "-" + HUGE, "1e999", "NaN", "Infinity"])
def test_numbers_that_nobody_can_hold(run: Path, text: str) -> None:
    """A report with a number beyond a double, or with none, is not JSON, whoever reads it."""
    path = run / "report.json"
    path.write_text(path.read_text().replace('"seconds": 1.25', f'"seconds": {text}'))
    for words in readers(run):
        with pytest.raises(ConfigError, match=r"report\.json: not JSON"):
            call(*words)
    assert parse(f'{{"event": "x", "schema": 2, "value": {text}}}'.encode()) == "not JSON (ValueError)"


def texts(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: texts(value) for key, value in tree.items()}
    return [texts(one) for one in tree] if isinstance(tree, list) else "x" if type(tree) is float else tree


def test_words_for_numbers_are_damage(run: Path) -> None:
    """`show` says that a report is damaged, whatever the error behind it is called."""
    document = json.loads((run / "report.json").read_text())
    for section in ("migration", "impairment", "cpu", "wire"):
        (run / "report.json").write_text(json.dumps(document | {section: texts(document[section])}))
        try:
            call("show", run)
        except ConfigError as exc:
            assert "damaged" in str(exc)


def test_plan_of_anything(run: Path) -> None:
    """A plan whose tests have lists for names is computed like any other."""
    path = run / files.EVENTS
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        for test in line["tests"] if line["event"] == "plan" else ():
            test["id"] = [1]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert call("recompute", run) == 1


@pytest.mark.parametrize("name", [".", "/", "", "..", "folder"])
def test_folder_for_a_file(run: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--out` and `--html` that name a folder are a mistake of the person."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for words in (["export", run, "--as", "ktap", "--out", name], ["history", run, "--html", name]):
        with pytest.raises(ConfigError, match="a folder"):
            call(*words)


@pytest.mark.parametrize("code", [errno.ENOTDIR, errno.EROFS, errno.EACCES, errno.ENAMETOOLONG])
def test_disk_that_refuses_is_one_sentence(
    tmp_path: Path, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be written says why, also where the half of it cannot be removed."""

    def refuse(path: Path, *args: object, **kwargs: object) -> None:
        raise OSError(code, os.strerror(code), str(path))

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(RigError, match=rf"cannot write .*: {os.strerror(code)}"):
        files.put(tmp_path / "x", b"")


@pytest.mark.parametrize("words", [["show"], ["verify"], ["verify", "--json"], ["export", "--as", "ktap"]])
def test_output_that_cannot_be_written(run: Path, words: list[str]) -> None:
    """A full disk behind `>` is one sentence, and no success."""
    argv = [sys.executable, "-m", "offload", "report", words[0], str(run), *words[1:]]
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 7
    assert ended.stderr == "ktls-offload: error: cannot write the output: No space left on device\n"


def test_folder_that_is_not_there(tmp_path: Path) -> None:
    """A mistyped folder is not answered with how to make a report in it."""
    for words in readers(tmp_path / "none"):
        with pytest.raises(ConfigError, match="hint: name the folder of a run"):
            call(*words)
