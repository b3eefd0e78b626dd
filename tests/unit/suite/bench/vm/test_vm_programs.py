"""nginx and wrk come with what they need to run here, and only from Debian 13."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from offload.debian import cache
from offload.debian.packages import INTERESTING, Package
from offload.errors import RigError
from offload.suite.bench.programs import unpacked


def package(name: str, version: str, suite: str = "trixie", depends: str = "") -> Package:
    return Package(name, version, suite, depends, 1, 1)


ARCHIVE = (
    package(
        "nginx", "1.26.3-3", depends="libc6 (>= 2.38), libssl3t64 (>= 3.5), nginx-common (= 1), iproute2"
    ),
    package("nginx", "1.30.1-1", "trixie-backports"),
    package("wrk", "4.1.0-4", depends="libc6 (>= 2.38), libluajit-5.1-2, libssl3t64"),
    package("libluajit-5.1-2", "2.1.0"),
    package("libssl3t64", "3.5.7-1~deb13u2"),
    package("libssl3t64", "3.5.7-1~deb13u3", "trixie-security", "libc6, libzstd1"),
    package("libzstd1", "1.5.4", "bookworm"),
    package("libc6", "2.36-9", "bookworm"),
    package("libc6", "2.41-12"),
)


def test_it_comes_with_its_loader() -> None:
    """Both, their C library and the newest OpenSSL of one release are taken, nothing else."""
    found = {(p.name, p.version) for p in unpacked.choose(ARCHIVE)}
    assert found == {
        ("nginx", "1.26.3-3"),
        ("wrk", "4.1.0-4"),
        ("libluajit-5.1-2", "2.1.0"),
        ("libc6", "2.41-12"),
        ("libssl3t64", "3.5.7-1~deb13u3"),
    }
    assert unpacked.choose(ARCHIVE[1:]) == [], "a backport alone is not what is asked for"
    assert INTERESTING.search(b"Package: wrk\nVersion: 1\n"), "the lists are read without it"
    assert INTERESTING.search(b"Package: nginx\nVersion: 1\n"), "the lists are read without it"
    assert not INTERESTING.search(b"Package: nginx-common\nVersion: 1\n")


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and an archive that has everything; its programs are scripts."""
    monkeypatch.setattr(cache, "cache_root", lambda: tmp_path)
    monkeypatch.setattr(unpacked, "cache_root", lambda: tmp_path)
    monkeypatch.setattr(unpacked, "refresh", lambda: "")
    monkeypatch.setattr(unpacked, "index", lambda: ARCHIVE)
    monkeypatch.setattr(unpacked, "download", lambda parts, into: None)
    return tmp_path


def test_one_that_cannot_be_had_is_one_line(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive without it, and one that does not run here, are told in a sentence."""
    monkeypatch.setattr(unpacked, "index", lambda: ARCHIVE[1:])
    with pytest.raises(RigError, match="no nginx and wrk of Debian 13 in the archive's lists"):
        unpacked.find()
    monkeypatch.setattr(unpacked, "index", lambda: ARCHIVE)
    with pytest.raises(RigError, match="does not run here"):
        unpacked.find("wrk", lambda line: None)
    for name in unpacked.PROGRAMS:
        starter = archive / "programs/1.26.3-3" / name
        starter.write_text("#!/bin/sh\necho OpenSSL 3.5.7, Copyright >&2; exit 1\n")
        assert unpacked.find(name) == unpacked.had(name) == str(starter), "what was fetched is used again"


@pytest.mark.parametrize(("installed", "wanted"), [((), ["nginx", "wrk"]), (("nginx",), ["wrk"])])
def test_a_lab_borrows_what_is_not_installed(
    archive: Path, monkeypatch: pytest.MonkeyPatch, installed: tuple[str, ...], wanted: list[str]
) -> None:
    """The guest runs the unpacked program where this machine has none, and else its own."""
    ran: list[list[str]] = []
    guest: Any = SimpleNamespace(run=ran.append)
    monkeypatch.setattr(shutil, "which", lambda name, path: name if name in installed else None)
    unpacked.lend(guest)
    assert not ran, "nothing has been fetched yet"
    with pytest.raises(RigError):
        unpacked.find(say=lambda line: None)
    unpacked.lend(guest)
    folder = archive / "programs/1.26.3-3"
    assert ran == [["ln", "-sf", str(folder / name), f"/usr/bin/{name}"] for name in wanted]
