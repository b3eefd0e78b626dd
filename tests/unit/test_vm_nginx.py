"""Without a NIC the newer nginx comes with what it needs to run here, and only from Debian 13."""

from __future__ import annotations

from pathlib import Path

import pytest

from offload.errors import RigError
from offload.vm import cache, nginx
from offload.vm.packages import INTERESTING, Package


def package(name: str, version: str, suite: str = "trixie", depends: str = "") -> Package:
    """A package of an archive."""
    return Package(name, version, suite, depends, 1, 1)


ARCHIVE = (
    package(
        "nginx", "1.26.3-3", depends="libc6 (>= 2.38), libssl3t64 (>= 3.5), nginx-common (= 1), iproute2"
    ),
    package("nginx", "1.30.1-1", "trixie-backports"),
    package("libssl3t64", "3.5.7-1~deb13u2"),
    package("libssl3t64", "3.5.7-1~deb13u3", "trixie-security", "libc6, libzstd1"),
    package("libzstd1", "1.5.4", "bookworm"),
    package("libc6", "2.36-9", "bookworm"),
    package("libc6", "2.41-12"),
)


def test_it_comes_with_its_loader() -> None:
    """Without a NIC nginx, its C library and the newest OpenSSL of one release are taken, nothing else."""
    found = {(p.name, p.version) for p in nginx.choose(ARCHIVE)}
    assert found == {("nginx", "1.26.3-3"), ("libc6", "2.41-12"), ("libssl3t64", "3.5.7-1~deb13u3")}
    assert nginx.choose(ARCHIVE[1:]) == [], "a backport alone is not what is asked for"
    assert INTERESTING.search(b"Package: nginx\nVersion: 1\n"), "the lists are read without it"
    assert not INTERESTING.search(b"Package: nginx-common\nVersion: 1\n")


def test_one_that_cannot_be_had_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a NIC an archive without it, and one that does not run here, are told in a sentence."""
    monkeypatch.setattr(cache, "cache_root", lambda: tmp_path)
    monkeypatch.setattr(nginx, "refresh", lambda: "")
    monkeypatch.setattr(nginx, "index", lambda: ARCHIVE[1:])
    with pytest.raises(RigError, match="no nginx of Debian 13 in the archive's lists"):
        nginx.find()
    monkeypatch.setattr(nginx, "index", lambda: ARCHIVE)
    monkeypatch.setattr(nginx, "download", lambda parts, into: None)
    with pytest.raises(RigError, match="does not run here"):
        nginx.find(lambda line: None)
    starter = tmp_path / "nginx/1.26.3-3/nginx"
    starter.write_text("#!/bin/sh\necho built with OpenSSL 3.5.7 >&2\n")
    assert nginx.find() == str(starter), "what was fetched is used again"
