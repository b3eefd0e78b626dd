"""`report recompute` and `report show`: a report that follows from its events, and one that does not."""

import argparse
import io
import json
from pathlib import Path

import pytest

from offload.errors import ConfigError
from offload.suite.report.events import Writer
from offload.suite.report.files import write
from offload.suite.report.verbs import add_parser
from tests.lib.rig.schemas import fits


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of nothing, with its report."""
    events = Writer(tmp_path / "events.jsonl")
    events.write("run-start", rig={}, profile="nicsim", kernel="6.1", simulated=True)
    events.write("run-end", exit=5, seconds=1.0)
    events.close()
    write(tmp_path)
    return tmp_path


def call(*words: str | Path) -> int:
    """Run `ktls-offload report WORDS`."""
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    args = parser.parse_args(["report", *map(str, words)])
    return int(args.func(args))


def test_untouched_report_is_identical(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A report can be computed again from its events, byte for byte."""
    assert call("recompute", folder) == 0
    assert capsys.readouterr().out.startswith("identical: ")
    assert not list(folder.glob(".*"))


def test_changed_report_is_found_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A verdict that was edited is found, with the place and both values."""
    path = folder / "report.json"
    tree = json.loads(path.read_text())
    tree["verdict"] = "certified"
    path.write_text(json.dumps(tree))
    assert call("recompute", folder) == 1
    assert "verdict: written 'certified', recomputed 'void'" in capsys.readouterr().out


def test_changed_events_are_found_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Events that were edited after the report no longer fit it."""
    path = folder / "events.jsonl"
    path.write_text(path.read_text().replace('"kernel": "6.1"', '"kernel": "7.2"'))
    assert call("recompute", folder) == 1
    out = capsys.readouterr().out
    assert "digests.events" in out and "kernel: written '6.1', recomputed '7.2'" in out


def test_show_prints_the_summary(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A report can be read again in a terminal."""
    assert call("show", folder) == 0
    assert "verdict: VOID" in capsys.readouterr().out


def test_show_for_programs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`show --json` is report.json, which fits its schema, in ASCII; NaN is damage."""
    path = folder / "report.json"
    document = json.loads(path.read_text()) | {"headline": "\u00e9t\u00e9 \x9b31m"}
    path.write_text(json.dumps(document, ensure_ascii=False))
    assert call("show", folder, "--json") == 0
    said = capsys.readouterr().out
    assert said.isascii() and json.loads(said) == document
    fits("report", said)
    path.write_text(json.dumps(document | {"headline": float("nan")}))
    with pytest.raises(ConfigError, match=r"report\.json: not JSON \(NaN"):
        call("show", folder, "--json")


@pytest.mark.parametrize(
    ("env", "terminal", "colored"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "xterm"}, False, False),
    ],
)
def test_color_on_terminals_only(
    folder: Path, monkeypatch: pytest.MonkeyPatch, env: dict[str, str], terminal: bool, colored: bool
) -> None:
    """A report is colored on a terminal; NO_COLOR and TERM=dumb are obeyed."""
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: terminal)
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout", out)
    assert call("show", folder) == 0
    assert ("\x1b" in out.getvalue()) == colored and "VOID" in out.getvalue()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": 2}', '{"schema": 2, "verdict": 3}', "[" * 100_000]
)
def test_damaged_report_is_one_line(folder: Path, text: str) -> None:
    """A damaged report.json is refused with its name."""
    (folder / "report.json").write_text(text)
    with pytest.raises(ConfigError, match=r"report\.json"):
        call("show", folder)


def test_a_report_of_an_older_version_is_refused(folder: Path) -> None:
    """Every verb that reads a report names the schema of an older one, and what to do."""
    path = folder / "report.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": 1}))
    for verb in ("show", "recompute", "diff"):
        with pytest.raises(ConfigError, match="schema 1, this version reads schema 2") as refused:
            call(verb, folder, *([str(folder)] if verb == "diff" else []))
        assert "use the version" in str(refused.value)


def test_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    """A wrong folder is answered with what to name instead."""
    for verb in ("show", "recompute"):
        with pytest.raises(ConfigError, match="No such file"):
            call(verb, tmp_path)
