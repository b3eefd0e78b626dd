"""The events file: nothing lost, nothing believed blindly."""

import json
import os
from pathlib import Path

import pytest

from offload.errors import ConfigError
from offload.suite.report.events import MAX_LINE, Writer, parse, plain, read, resume


def test_events_are_on_disk_when_written(tmp_path: Path) -> None:
    """An event is in the file before the writer does anything else."""
    writer = Writer(tmp_path / "deep" / "events.jsonl")
    writer.write("progress", id="a")
    log = read(tmp_path / "deep" / "events.jsonl")
    writer.close()
    assert [(event["seq"], event["id"]) for event in log.events] == [(0, "a")] and not log.problems


def test_preamble_is_continued_and_an_old_run_replaced(tmp_path: Path) -> None:
    """What certify wrote before the tests stays, and an earlier run does not."""
    path = tmp_path / "e"
    for events in (["phase"], ["run-start"], ["phase"]):
        writer = Writer(path)
        for event in events:
            writer.write(event, name="boot", seconds=1.0, rig={}, profile="", simulated=True, kernel="")
        writer.close()
    assert [(e["seq"], e["event"]) for e in read(path).events] == [(0, "phase")]


def test_what_is_no_file_stays(tmp_path: Path) -> None:
    """As root `--events /dev/null` took the device away from every program of the machine."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for place in (pipe, tmp_path):
        with pytest.raises(ConfigError, match="not a plain file"):
            Writer(place)
    assert pipe.is_fifo()


def test_resume_cuts_a_torn_line_and_numbers_on(tmp_path: Path) -> None:
    """A killed writer's half line goes, and the numbering stays whole."""
    path = tmp_path / "e"
    writer = Writer(path)
    writer.write("progress", id="a")
    writer.close()
    path.write_bytes(path.read_bytes() + b'{"schema": 2, "seq"')
    assert read(path).torn
    last = resume(path)
    last.write("abort", reason="killed")
    last.close()
    assert [(e["seq"], e["event"]) for e in read(path).events] == [(0, "progress"), (1, "abort")]
    assert not read(path).problems


def test_what_json_cannot_hold_becomes_text() -> None:
    """Any evidence can be written down."""

    class Rude:
        def __str__(self) -> str:
            raise RuntimeError

    loop: list[object] = []
    loop.append(loop)
    found = plain(
        {"nan": float("nan"), "bytes": b"\x01\x02", "path": Path("x"), "rude": Rude(), "loop": loop}
    )
    assert json.loads(json.dumps(found, allow_nan=False))["bytes"] == "0102"
    assert "RuntimeError" in found["rude"] and found["nan"] == "nan"


GOOD = {
    "schema": 2,
    "event": "test",
    "id": "a",
    "outcome": "pass",
    "seconds": 1,
    "reason": "",
    "evidence": {},
}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"schema": 1}, "schema 1"),
        ({"event": 3}, "not an event"),
        ({"outcome": "passed"}, "not one of"),
        ({"outcome": ["x"]}, "outcome is"),
        ({"seconds": "1"}, "seconds"),
        ({"seconds": True}, "seconds"),
        ({"seconds": -1}, "seconds"),
        ({"seconds": 10**400}, "not JSON"),
        ({"seconds": float("nan")}, "not JSON"),
        ({"evidence": {"x": float("inf")}}, "not JSON"),
        ({"evidence": []}, "evidence"),
        ({"cell": 1}, "cell"),
        ({"promise": {}}, "promise"),
        ({"reason": "x" * MAX_LINE}, "longer"),
    ],
)
def test_wrong_event_is_named(change: dict[str, object], why: str) -> None:
    """An event that says nonsense is a problem, never a crash."""
    found = parse(json.dumps(GOOD | change).encode())
    assert isinstance(found, str) and why in found


@pytest.mark.parametrize(
    "line", [b"", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"schema":2,"event":"x","v":1e999}']
)
def test_garbage_is_a_problem(line: bytes) -> None:
    """Bytes that are no event are refused."""
    assert isinstance(parse(line), str)
