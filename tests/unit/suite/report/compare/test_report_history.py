"""`report history`: results over time, counted once, by bench; damaged ones are named; queries are few."""

from __future__ import annotations

import argparse
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from benchmarks.history import fill
from offload.errors import ConfigError, RigError
from offload.suite.report.compare.history import (
    LETTERS,
    RECENT,
    RUNS,
    benches_query,
    history,
    rows_query,
    text,
)
from offload.suite.report.compare.history_store import ask, entry, open_store
from offload.suite.report.render.history_page import html
from offload.suite.report.verbs import add_parser
from tests.unit.suite.report.compare.test_report_diff import measured, report
from tests.unit.suite.report.render.test_report_render import EVIL, Page


def call(*words: str | Path) -> int:
    """Run `ktls-offload report history WORDS`."""
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    args = parser.parse_args(["report", "history", *map(str, words)])
    return int(args.func(args))


def save(folder: Path, number: int, found: dict[str, Any], **more: Any) -> Path:
    """A result of day `number`; `more` goes over its document."""
    found = found | {"finished": f"2026-03-{number:02}T10:00:00.000Z", "simulated": False} | more
    found["digests"] = {"events": f"{number:064x}", "criteria": "c" * 64}
    place = folder / f"run-{number:02}"
    place.mkdir(parents=True, exist_ok=True)
    (place / "report.json").write_text(json.dumps(found))
    return place


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Six results on one kernel, the last two of them failed, and one on another."""
    folder = tmp_path / "results"
    for number in range(1, 7):
        save(
            folder / "lab",
            number,
            report("fail" if number > 4 else "pass"),
            verdict="failed" if number > 4 else "certified",
        )
    save(folder, 9, report(), kernel="7.2.0", rig={"firmware": "22.1"})
    return folder


def test_folder_becomes_a_history(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder of results is told by bench, the latest first, verdicts oldest first."""
    assert call(results) == 0
    out = capsys.readouterr().out
    assert out.startswith("7 results of 2 benches\n")
    assert out.index("kernel 7.2.0, firmware 22.1\n") < out.index("kernel 6.1.0\n")
    assert "  2026-03-01 to 2026-03-06: 4 certified, 2 failed\n  CCCCFF  last: " in out
    assert "counters.move-when-on: broken since 2026-03-05 (2 runs)\n" in out
    assert "counters.move-when-on: offloaded_bytes_percent: 99.50 -> 99.50 (6 runs)" in out
    assert "SIMULATED" not in out and "not read" not in out


def test_simulated_results_are_a_bench_of_their_own(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A simulated run is never put among those of a card, not even if it does not say so."""
    save(results, 10, report(), simulated=True)
    save(results, 11, report(), simulated=None)
    assert call(results, "--kernel", "6.1") == 0
    out = capsys.readouterr().out
    assert out.startswith("8 results of 2 benches\n") and out.count("(SIMULATED)") == 1
    assert out.index("(SIMULATED)") < out.index("II  last")


def test_same_run_counts_once(results: Path, tmp_path: Path) -> None:
    """A copy of a result, or its report made anew, is the same result."""
    (results / "copy").mkdir()
    (results / "copy/report.json").write_bytes((results / "lab/run-01/report.json").read_bytes())
    for _ in range(2):
        assert call(results, "--db", tmp_path / "db") == 0
        with closing(open_store(tmp_path / "db")) as store:
            assert history(store)["results"] == 7
    save(results / "lab", 1, report(), verdict="incomplete")
    assert call(results, "--db", tmp_path / "db") == 0
    with closing(open_store(tmp_path / "db")) as store:
        (bench,) = history(store, {"kernel": "6.1"})["benches"]
        assert bench["verdicts"] == {"certified": 3, "incomplete": 1, "failed": 2}
        assert ask(store, "SELECT COUNT(*) FROM figure WHERE result NOT IN (SELECT id FROM result)") == [(0,)]


def test_file_of_results_needs_no_folder(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What --db kept gives the same answer without the results, and is not written."""
    assert call(results, "--db", tmp_path / "db", "--json") == 0
    first = json.loads(capsys.readouterr().out)
    before = (tmp_path / "db").read_bytes()
    (tmp_path / "db").chmod(0o400)
    assert call(tmp_path / "db", "--json") == 0
    assert json.loads(capsys.readouterr().out) == first and first["schema"] == "ktls-offload/history/1"
    assert (tmp_path / "db").read_bytes() == before
    assert [bench["runs"] for bench in first["benches"]] == [1, 6]
    assert [row["id"] for row in first["benches"][1]["promises"] if row["changed"]] == [
        "counters.move-when-on"
    ]


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (["--nic", "nicsim"], 7),
        (["--kernel", "7.2"], 1),
        (["--firmware", "22."], 1),
        (["--kernel", "6.1"], 6),
    ],
)
def test_part_of_a_name_chooses(
    results: Path, words: list[str], count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bench is chosen by a part of its name, and a quote in it is only a quote."""
    assert call(results, *words) == 0
    assert capsys.readouterr().out.startswith(f"{count} result")
    with pytest.raises(ConfigError, match="contains no result"):
        call(results, "--nic", "' OR 1 --")


def test_damaged_results_are_named(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be read is named with the reason, and costs no other result."""
    for number, data in enumerate((b"", b"{", b'{"schema": 2}', b'{"schema": 1}', b"[" * 100_000), 20):
        save(results, number, report())
        (results / f"run-{number}/report.json").write_bytes(data)
    save(results, 30, report(), promises=[{"id": 1}])
    save(results, 31, report(), phases=[{"name": "a", "seconds": "x"}])
    (results / "run-32").mkdir()
    (results / "run-32/report.json").symlink_to("nowhere")
    assert call(results, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["results"] == 7 and len(found["not_read"]) == 8
    assert call(results) == 0
    assert "not read:\n" in (out := capsys.readouterr().out) and "damaged: KeyError" in out


def test_what_is_no_history_is_one_line(tmp_path: Path, results: Path) -> None:
    """A wrong path, an empty folder, a file of something else are refused and left alone."""
    (tmp_path / "text").write_text("no database")
    (tmp_path / "nothing").write_bytes(b"")
    (tmp_path / "empty").mkdir()
    with closing(sqlite3.connect(tmp_path / "other")) as other:
        other.execute("CREATE TABLE result (id)")
    for name, why in (
        ("none", "no such folder"),
        ("text", "not a database"),
        ("nothing", "not a history"),
        ("empty", "contains no result"),
        ("other", "not a history"),
    ):
        with pytest.raises(ConfigError, match=why):
            call(tmp_path / name)
    for name in ("text", "nothing", "other"):
        with pytest.raises(ConfigError):
            call(results, "--db", tmp_path / name)
    with pytest.raises(ConfigError, match="omit --db"):
        call(tmp_path / "text", "--db", tmp_path / "db")
    with pytest.raises(ConfigError, match="unable to open"):
        call(results, "--db", tmp_path / "no/db")
    assert (tmp_path / "text").read_text() == "no database"


def test_damaged_file_is_one_line(results: Path, tmp_path: Path) -> None:
    """A history with damaged pages says so, one with values of other types draws none."""
    assert call(results, "--db", tmp_path / "db") == 0
    with closing(sqlite3.connect(tmp_path / "db")) as store, store:
        store.execute("UPDATE figure SET mean = 'evil', low = x'00'")
        store.execute("UPDATE result SET headline = x'1b5b324a'")
    assert call(tmp_path / "db", "--html", tmp_path / "page.html") == 0
    with closing(sqlite3.connect(tmp_path / "db")) as store, store:
        store.execute("DROP TABLE figure")
    with pytest.raises(ConfigError, match="the history is damaged"):
        call(tmp_path / "db")
    data = bytearray((tmp_path / "db").read_bytes())
    data[4096:12288] = bytes(8192)
    (tmp_path / "db").write_bytes(data)
    with pytest.raises(ConfigError, match="damaged|malformed"):
        call(tmp_path / "db")


def test_full_disk_is_a_broken_rig(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A history that cannot be written says so, and keeps what it had."""
    assert call(results, "--db", tmp_path / "db") == 0
    (results / "lab/run-01/report.json").touch()

    def full(*args: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("offload.suite.report.compare.history_store.add", full)
    with pytest.raises(RigError, match="disk is full"):
        call(results, "--db", tmp_path / "db")
    with closing(open_store(tmp_path / "db")) as store:
        assert history(store)["results"] == 7


def test_no_room_for_a_new_history(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full at once leaves no half history that would be refused later."""

    def full(*args: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("offload.suite.report.compare.history_store._made", full)
        with pytest.raises(RigError, match=r"cannot write .*db: database or disk is full"):
            call(results, "--db", tmp_path / "db")
    assert not (tmp_path / "db").exists()
    assert call(results, "--db", tmp_path / "db") == 0


def test_page_is_safe_whole_and_has_plots(tmp_path: Path) -> None:
    """The page runs and fetches nothing, whatever names say; plots have intervals."""
    folder = tmp_path / "results"
    for number in range(1, 5):
        save(folder, number, measured(0.6 + number / 50), rig={"firmware": EVIL}, headline=EVIL)
    assert call(folder, "--html", tmp_path / "page.html") == 0
    page = (tmp_path / "page.html").read_text()
    found = Page(page)
    names = [tag for tag, _ in found.tags]
    assert not found.depth and not set(names) & {"script", "img", "link", "iframe", "object", "form", "base"}
    assert all(
        (value or "#").startswith("#")
        for _, attrs in found.tags
        for key, value in attrs.items()
        if key == "href"
    )
    shapes = [attrs for tag, attrs in found.tags if tag == "svg"]
    assert len(shapes) >= 3 and all(attrs["role"] == "img" and attrs["aria-label"] for attrs in shapes)
    whiskers = [attrs["d"] for tag, attrs in found.tags if attrs.get("class") == "whisker"]
    assert any(d and d.count("V") == 4 for d in whiskers)
    assert "cores, hw to sw" in found.text and "http" not in page


def test_one_run_and_hostile_figures_are_drawn(tmp_path: Path) -> None:
    """One run, figures of 0, and numbers that are none make a page all the same."""
    found = report() | {"phases": []}
    found["promises"][0]["measured"] = {"x": {"value": True}, "y": {"value": 1e300}, "z": {"value": -1}}
    save(tmp_path / "results", 1, found, verdict="\x1b[2J", card={"name": 3})
    assert call(tmp_path / "results", "--html", tmp_path / "page.html") == 0
    assert "\x1b" not in (tmp_path / "page.html").read_text()
    kept = entry(json.loads((tmp_path / "results/run-01/report.json").read_text())).figures
    assert [row[0] for row in kept] == [
        "counters.move-when-on: offloaded_bytes_percent",
        "counters.move-when-on: offloaded_packets_percent",
        "run time in s",
    ]


def test_many_results_cost_few_steps(tmp_path: Path) -> None:
    """Every query reads by an index, and their number follows the benches, not the results."""
    fill(tmp_path / "db", 300, 3)
    with closing(open_store(tmp_path / "db")) as store:
        asked: list[str] = []
        store.set_trace_callback(asked.append)
        found = history(store)
        store.set_trace_callback(None)
        assert found["results"] == 300 and len(asked) == 1 + 3 * 3
        assert all(len(bench["recent"]) == RECENT and bench["runs"] == 100 for bench in found["benches"])
        for query, count in (
            (benches_query(), 0),
            (RUNS, 4),
            (rows_query("trouble", "state", 9), 9),
            (rows_query("figure", "mean", 9), 9),
        ):
            plan = ask(store, f"EXPLAIN QUERY PLAN {query}", ("1",) * count)
            steps = [str(row[3]) for row in plan]
            assert any("USING COVERING INDEX bench" in step or "SEARCH" in step for step in steps), steps
            assert not [step for step in steps if step.startswith("SCAN") and "INDEX" not in step], steps
        assert len(text(found)) < 20_000 and len(html(found)) < 1 << 20


def test_letters_are_the_verdicts() -> None:
    from offload.suite.certify.verbs import EXIT

    assert set(LETTERS) == set(EXIT) and len(set(LETTERS.values())) == len(LETTERS)
