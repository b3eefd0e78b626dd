"""The journal: on disk, private, locked, and never trusted blindly."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from offload.cmd import KEEP_OPEN
from offload.errors import ConfigError, Refused, RigError
from offload.switch.journal import Entry, Journal, folder

ENTRY = Entry(
    "feature", "tls-hw-rx-offload", "eth0", 7, "0000:04:00.0", "mlx5_core", "net:[1]", "b", False, True
)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """An empty journal whose folder exists."""
    made = Journal(tmp_path / "a" / "state")
    with made.locked():
        pass
    return made


def test_the_first_value_found_stays(journal: Journal) -> None:
    """A second entry for the same thing does not replace the first."""
    journal.add(ENTRY)
    journal.add(replace(ENTRY, active=True, dev="lan0"))
    assert [(e.dev, e.active, e.requested) for e in journal.entries()] == [("eth0", False, True)]
    assert journal.entries()[0].found() == "off [requested on]"
    journal.remove(replace(ENTRY, dev="lan0"))
    assert journal.entries() == ()


def test_only_its_owner_can_enter(journal: Journal) -> None:
    """The folder is 0700 and the file 0600, also if the folder was open before."""
    journal.place.chmod(0o777)
    with journal.locked():
        journal.add(ENTRY)
    assert stat.S_IMODE(journal.place.stat().st_mode) == 0o700
    assert stat.S_IMODE(journal.file.stat().st_mode) == 0o600


def test_two_calls_wait_for_each_other(journal: Journal) -> None:
    """The lock is exclusive, handed to children, and let go at the end."""
    with journal.locked():
        assert len(KEEP_OPEN) == 1
        with (
            pytest.raises(RigError, match="another ktls-offload"),
            Journal(journal.place).locked(patience=0.1),
        ):
            pass
    assert not KEEP_OPEN
    with Journal(journal.place).locked(patience=0.1):
        pass


def test_one_run_at_a_time_claims_a_lab(journal: Journal) -> None:
    """The second is refused at once; calls that switch may go on meanwhile, and it is free afterwards."""
    with journal.claimed("lab x"):
        with pytest.raises(Refused, match="a run is using lab x"), Journal(journal.place).claimed("lab x"):
            pass
        with Journal(journal.place).locked(patience=0.1):
            pass
    with Journal(journal.place).claimed("lab x"):
        pass


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"schema": 2, "entries": []}',
        '{"schema": 1, "entries": [{"kind": "feature"}]}',
        '{"schema": 1, "entries": 3}',
    ],
)
def test_a_damaged_journal_is_reported_and_not_overwritten(journal: Journal, text: str) -> None:
    """A file that makes no sense stops the work and stays as it is."""
    journal.file.write_text(text)
    with pytest.raises(ConfigError, match="journal.json: damaged"):
        journal.add(ENTRY)
    assert journal.file.read_text() == text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("what", "--set-priv-flags"),
        ("what", "a b"),
        ("kind", "file"),
        ("dev", "x\n"),
        ("active", 1),
        ("ifindex", "7"),
        ("bus", None),
        ("what", "../tls"),
    ],
)
def test_an_odd_entry_is_refused(journal: Journal, key: str, value: object) -> None:
    """An entry that could become another command than ours is not taken."""
    journal.add(ENTRY)
    data = json.loads(journal.file.read_text())
    data["entries"][0][key] = value
    journal.file.write_text(json.dumps(data))
    with pytest.raises(ConfigError, match="damaged"):
        journal.entries()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    """A read-only or impossible place is one line that names the variable."""
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(RigError, match="cannot write the journal") as caught,
        Journal(tmp_path / "file" / "x").locked(),
    ):
        pass
    assert "KTLS_OFFLOAD_STATE" in caught.value.hint


def test_a_lock_that_is_a_link_is_not_followed(journal: Journal, tmp_path: Path) -> None:
    """A symbolic link in place of the lock is refused."""
    (journal.place / "lock").unlink()
    (journal.place / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RigError), journal.locked():
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_full_disk_leaves_the_old_journal(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails keeps what was there and says so."""
    journal.add(ENTRY)

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RigError, match="No space left"):
        journal.add(replace(ENTRY, what="tls-hw-tx-offload"))
    assert [e.what for e in journal.entries()] == ["tls-hw-rx-offload"]


def test_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable names the folder; without it, /var/lib."""
    monkeypatch.setenv("KTLS_OFFLOAD_STATE", "/somewhere")
    assert folder() == Path("/somewhere")
    monkeypatch.delenv("KTLS_OFFLOAD_STATE")
    assert folder() == Path("/var/lib/ktls-offload")
