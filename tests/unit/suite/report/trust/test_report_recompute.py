"""`report recompute` finds every figure and every page that does not follow from the events."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from offload.suite.report.events import Writer
from offload.suite.report.files import write
from offload.suite.report.trust import manifest
from offload.suite.report.trust.verify import compare
from offload.suite.report.verbs import add_parser
from tests.unit.suite.report import cpu_documents as made
from tests.unit.suite.report.test_report_impairment import lossy, met, record


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with impairment and active cores, its report and its manifest."""
    place = tmp_path_factory.mktemp("run")
    events = Writer(place / "events.jsonl")
    events.write("run-start", rig={"openssl": "3.0"}, profile="nicsim", kernel="6.1", simulated=True)
    rows = [
        made.row(arm, samples=made.rounds(cores, 30.0, 5, 0.01, seed=1))
        for arm, cores in (("sw", 14), ("hw", 8))
    ]
    back = {"software_records": 3, "calm_decrypted_percent": 100.0}
    random_loss = met("test_rain", "fail", impairment=record("b>a first drop"), recovery=back)
    results = [
        met("test_cores", cpu=made.document(rows)),
        random_loss,
        met("test_loss", **lossy(2.0, 20, 8, 4)),
    ]
    events.write("plan", tests=[{"id": row["id"], "promise": None} for row in results], deselected=[])
    for row in results:
        events.write(
            "test", **{key: row[key] for key in row if key not in ("schema", "seq", "event", "time")}
        )
    events.write("run-end", exit=1, seconds=1.0)
    events.close()
    write(place)
    manifest.write(place)
    return place


def call(*words: str | Path) -> int:
    """Run `ktls-offload report WORDS`."""
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    args = parser.parse_args(["report", *map(str, words)])
    return int(args.func(args))


def figures(tree: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every number below a tree."""
    if type(tree) in (int, float):
        yield where
    for key, value in (
        tree.items() if isinstance(tree, dict) else enumerate(tree if isinstance(tree, list) else ())
    ):
        yield from figures(value, (*where, key))


def test_every_figure_follows_from_the_events(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A figure of cores or impairment that was edited is found, and named."""
    path = folder / "report.json"
    good = path.read_bytes()
    assert call("recompute", folder) == 0
    tree = json.loads(good)
    places = [
        where for part in ("cpu", "impairment") if part in tree for where in figures(tree[part], (part,))
    ]
    assert {where[0] for where in places} == {"cpu", "impairment"}
    chosen = places[: len(places) // 6 * 6 : len(places) // 6] + places[-6::3]
    assert {where[0] for where in chosen} == {"cpu", "impairment"}
    for where in chosen:
        tree = json.loads(good)
        inner = tree
        for key in where[:-1]:
            inner = inner[key]
        inner[where[-1]] = inner[where[-1]] * 2 + 1
        path.write_text(json.dumps(tree))
        capsys.readouterr()
        assert call("recompute", folder) == 1
        assert f"{where[0]}." in capsys.readouterr().out
    path.write_bytes(good)
    assert call("recompute", folder) == 0


@pytest.mark.parametrize("name", ["report.html", "summary.txt", "report.ktap"])
def test_page_that_was_edited_is_found(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A page that was edited is found, even if the manifest was made anew."""
    path = folder / name
    good, listed = path.read_bytes(), (folder / manifest.NAME).read_bytes()
    path.write_bytes(good.replace(b"test_rain", b"test_gain"))
    assert path.read_bytes() != good
    manifest.write(folder)
    assert not compare(folder).problems
    assert call("recompute", folder) == 1
    assert f"DIFFERENT: {path} differs from what this version makes" in capsys.readouterr().out
    path.write_bytes(good)
    (folder / manifest.NAME).write_bytes(listed)
    assert call("recompute", folder) == 0
