"""The cache never shows half a download, whoever is killed or runs in parallel."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from pathlib import Path

import pytest

from offload.cmd import wait_until
from offload.debian.cache import cache_root, kept, locked, need_space, new_folder, read_json, write_json
from offload.errors import RigError


def test_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    """A failure while a folder is filled leaves nothing behind."""
    with pytest.raises(ZeroDivisionError), new_folder(tmp_path / "k") as temp:
        (temp / "half").write_text("x")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with new_folder(tmp_path / "k") as temp:
        (temp / "whole").write_text("x")
    assert [p.name for p in tmp_path.rglob("*")] == ["k", "whole"]


def test_leftovers_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    """The next run clears what a killed one had begun."""
    (tmp_path / ".new-dead").mkdir()
    with new_folder(tmp_path / "k") as temp:
        temp.joinpath("x").touch()
    assert [p.name for p in tmp_path.iterdir()] == ["k"]


def _hold(path: Path) -> None:
    with locked(path):
        path.with_suffix(".held").touch()
        while not path.with_suffix(".enough").exists():
            time.sleep(0.01)


def test_lock_waits_for_another_process(tmp_path: Path) -> None:
    """Two runs that fill the cache take turns, and the one that waits says so."""
    lock, ours, said = tmp_path / "fill.lock", threading.Event(), list[str]()
    other = multiprocessing.get_context("fork").Process(target=_hold, args=(lock,))
    other.start()
    wait_until(lock.with_suffix(".held").exists, 60, "the other process")

    def take() -> None:
        with locked(lock, said.append):
            ours.set()

    waiting = threading.Thread(target=take)
    waiting.start()
    wait_until(lambda: said == [f"waiting: another ktls-offload holds {lock}"], 60, "a word from who waits")
    assert not ours.wait(0.2), "two have the lock"
    lock.with_suffix(".enough").touch()
    assert ours.wait(60)
    waiting.join(), other.join()
    with locked(lock, said.append):
        assert len(said) == 1, "nobody waits for a lock that is free"


def test_damaged_json_reads_as_missing(tmp_path: Path) -> None:
    """A damaged note in the cache is made again, not believed."""
    path = tmp_path / "n.json"
    write_json(path, {"a": "b"})
    assert read_json(path) == {"a": "b"}
    for text in ("", "{", "[1]", "\0\xff"):
        path.write_text(text)
        assert read_json(path) is None


def test_cache_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A cache in an impossible place is one clear line."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(RigError, match="cannot make the cache"):
        cache_root()


def test_room_is_asked_for(tmp_path: Path) -> None:
    """More than the disk has is refused, and says how much."""
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    with pytest.raises(RigError, match="no space for it: it needs"):
        need_space(tmp_path, free * 2, "it")


def test_what_was_made_is_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder is made once, and again if it is gone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made: list[Path] = []

    def make(root: Path) -> Path:
        made.append(root / f"v{len(made)}")
        made[-1].mkdir()
        return made[-1]

    assert kept("tool", make, print) == kept("tool", make, print) == made[0] and len(made) == 1
    made[0].rmdir()
    assert kept("tool", make, print) == made[1]
