"""The network managers for a test are those of the host's release, with their libraries."""

from __future__ import annotations

from pathlib import Path

import pytest

from offload.debian.packages import Package, stanzas
from offload.errors import RigError
from offload.suite.bench.programs import managers


def package(name: str, version: str, suite: str, needs: str = "") -> Package:
    """A package of 1 KiB."""
    return Package(name, version, suite, needs, 1024, 1024)


SHELF = (
    package("udev", "252.38-1", "bookworm-security", "libudev1"),
    package("udev", "252.39-1", "bookworm", "adduser, libudev1 (= 252.39-1), libkmod2"),
    package("udev", "257.1-1", "trixie", "libudev1"),
    package("libkmod2", "30-1", "bookworm", "libzstd1"),
    package("libzstd1", "1.5-1", "bookworm"),
    package("libudev1", "252.39-1", "bookworm"),
    package("adduser", "3.1", "bookworm"),
)


def test_of_this_release_with_what_is_not_installed() -> None:
    """The newest of the host's release is taken, and those libraries that the host lacks."""
    chosen = managers.choose(SHELF, "bookworm", {"libudev1"}, ["udev"])
    assert {(p.name, p.version) for p in chosen} == {
        ("udev", "252.39-1"),
        ("libkmod2", "30-1"),
        ("libzstd1", "1.5-1"),
    }


def test_a_release_that_lacks_one() -> None:
    """A system that has no such package is told its name."""
    with pytest.raises(RigError, match="no package ifupdown for bookworm"):
        managers.choose(SHELF, "bookworm", set(), ["udev", "ifupdown"])


def test_lists_are_searched_for_whole_names() -> None:
    """What is only called alike is not taken from the archive's lists."""
    names = [
        "systemd",
        "systemd-oomd",
        "udev",
        "network-manager",
        "network-manager-gnome",
        "ifupdown2",
        "dbus-x11",
    ]
    raw = "\n".join(f"Package: {name}\nVersion: 1\nDepends: libc6\n" for name in names).encode()
    assert [f["Package"] for f in stanzas(raw)] == ["systemd", "udev", "network-manager"]


def test_lies_where_a_merged_system_has_it(tmp_path: Path) -> None:
    """/lib of a package is below /usr, so that it does not hide the host's link."""
    for place in ("lib/udev", "usr/lib/udev"):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "lib/udev/a").write_text("a")
    (tmp_path / "usr/lib/udev/b").write_text("b")
    managers._merge(tmp_path)
    assert {p.name for p in (tmp_path / "usr/lib/udev").iterdir()} == {"a", "b"}
    assert not (tmp_path / "lib").exists()
