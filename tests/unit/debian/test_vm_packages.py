"""The lab chooses kernels and QEMU by what the suites offer, and says in a line what fails."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from offload.debian import kernels, packages
from offload.debian.packages import (
    Lists,
    Package,
    depends,
    download,
    last_words,
    refresh,
    stanzas,
    version_key,
)
from offload.debian.sources import Archive
from offload.errors import ConfigError, RigError
from offload.suite.bench.vm import qemu


def package(name: str, version: str, suite: str, needs: str = "") -> Package:
    """A package of 1 KiB."""
    return Package(name, version, suite, needs, 1024, 1024)


SHELF = (
    package("linux-image-6.1.0-9-amd64", "6.1.99-1", "bookworm"),
    package("linux-image-6.1.0-56-amd64", "6.1.192-2", "bookworm-security"),
    package("linux-image-6.1.0-56-cloud-amd64", "6.1.192-2", "bookworm-security"),
    package("linux-image-6.1-amd64", "6.1.300-1", "bookworm-security"),
    package("linux-image-6.12.117+deb12-amd64", "6.12.117-1~deb12u1", "bookworm-security"),
    package("linux-image-6.12.117+deb13-amd64", "6.12.117-1", "trixie-security"),
    package("linux-image-6.12.95+deb12-amd64", "6.12.95-1~bpo12+1", "bookworm-backports"),
    package(
        "linux-headers-6.1.0-56-amd64", "6.1.192-2", "bookworm-security", "linux-kbuild-6.1 (>= 6.1), gcc-12"
    ),
    package("linux-kbuild-6.1", "6.1.176-1", "bookworm"),
    package("linux-kbuild-6.1", "6.1.192-2", "bookworm-security"),
)


@pytest.mark.parametrize(
    "lower, higher",
    [
        ("6.1.99-1", "6.1.192-2"),
        ("6.12.95-1~bpo12+1", "6.12.95-1"),
        ("6.12.117-1~deb12u1", "6.12.117-1"),
        ("9.0", "1:7.2"),
        ("1.0", "1.0.1"),
    ],
)
def test_versions_sort_as_dpkg_does(lower: str, higher: str) -> None:
    """A newer package is seen as newer."""
    assert version_key(lower) < version_key(higher)


@pytest.mark.parametrize(
    "series, host, want",
    [
        ("6.1", "bookworm", "linux-image-6.1.0-56-amd64"),
        ("6.12", "bookworm", "linux-image-6.12.117+deb12-amd64"),
        ("6.12", "trixie", "linux-image-6.12.117+deb13-amd64"),
    ],
)
def test_newest_stock_kernel_built_for_this_host(series: str, host: str, want: str) -> None:
    """The newest kernel is chosen; of equal ones the one with this host's tools."""
    found = kernels.choose(series, SHELF, host)
    assert found and found.name == want


def test_no_kernel_of_a_series() -> None:
    """A series that no suite has is not replaced by another."""
    assert kernels.choose("7.2", SHELF, "bookworm") is None


def test_closure_takes_kernel_parts_only() -> None:
    """Headers bring their kbuild in the newest version, and no compiler."""
    names = {p.name: p.version for p in kernels.closure(["linux-headers-6.1.0-56-amd64"], "bookworm", SHELF)}
    assert names == {"linux-headers-6.1.0-56-amd64": "6.1.192-2", "linux-kbuild-6.1": "6.1.192-2"}


def test_unknown_series_names_the_known_ones() -> None:
    """A kernel that the lab does not know is a usage error."""
    with pytest.raises(ConfigError, match=r"6\.6.*\n.*6\.1, 6\.12, 7\.2"):
        kernels.fetch("6.6")


def test_qemu_brings_its_parts_and_missing_libraries() -> None:
    """The backported QEMU comes with its own data and only what is not installed."""
    shelf = (
        package("qemu-system-x86", "1:7.2-1", "bookworm", "libold"),
        package(
            "qemu-system-x86",
            "1:10.0.2-1~bpo12+1",
            "bookworm-backports",
            "qemu-system-data, liba, libb, libc6",
        ),
        package("qemu-system-data", "1:10.0.2-1~bpo12+1", "bookworm-backports", "seabios"),
        package("liba", "1", "bookworm"),
        package("libb", "1", "bookworm"),
        package("seabios", "1.16", "bookworm-backports"),
    )
    present = {"liba", "libc6", "seabios", "qemu-system-data"}
    names = {p.name for p in qemu.choose(shelf, "bookworm", present)}
    assert names == {"qemu-system-x86", "qemu-system-data", "libb", "seabios"}
    assert qemu.choose(shelf, "trixie", present) == []


def test_stanzas_keep_what_the_lab_asks_for() -> None:
    """A damaged or foreign stanza of a package list is left out."""
    text = b"Package: 0ad\nVersion: 1\n\nPackage: linux-kbuild-6.1\nVersion: 6.1.1\n b\n\nPackage: libx\n\n"
    assert [f["Package"] for f in stanzas(text)] == ["linux-kbuild-6.1"]


def test_depends_takes_first_alternatives() -> None:
    """Version bounds and alternatives do not end up in names."""
    assert depends(package("a", "1", "s", "libc6 (>= 2.34), x | y, zlib1g:any, ${bad}")) == [
        "libc6",
        "x",
        "zlib1g",
    ]


def test_too_small_disk_is_seen_before_the_download(tmp_path: Path) -> None:
    """A disk without room is an error before anything is fetched."""
    huge = Package("linux-image-9", "9", "s", "", shutil.disk_usage(tmp_path).free, 0)
    with pytest.raises(RigError, match="no space for linux-image-9"):
        download([huge], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_interrupted_download_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of which only a part came is refused in one line."""

    def half(lists: Lists, argv: list[str], timeout: float, cwd: str | None = None) -> tuple[int, str, str]:
        assert cwd
        (Path(cwd) / "x_1_amd64.deb").write_bytes(b"!<arch>\n half")
        return 100, "", "E: Failed to fetch somewhere/x_1_amd64.deb  Connection failed\n"

    monkeypatch.setattr(packages, "_apt", half)
    with pytest.raises(RigError, match="download of x=1 and 0 more failed: Failed to fetch"):
        download([package("x", "1", "s")], tmp_path)
    assert not list(tmp_path.glob("usr*"))


def test_last_words_are_apts_first_error() -> None:
    """The cause of an apt failure is one line of it."""
    assert (
        last_words("Get:1\nE: The suite is missing\nE: Some index files failed\n") == "The suite is missing"
    )


def test_lists_of_another_use_are_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What only a test wants is in lists of its own: the lab's are not longer for it, nor fetched again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found, asked = (
        Archive("http://mirror.test/debian", "http://mirror.test/security", "/k.gpg"),
        list[Lists](),
    )

    def apt(lists: Lists, argv: list[str], timeout: float, cwd: str | None = None) -> tuple[int, str, str]:
        asked.append(lists)
        return 0, "", ""

    monkeypatch.setattr(packages, "archive", lambda: found)
    monkeypatch.setattr(packages, "_apt", apt)
    other = Lists("apt-other", ("sid",))
    assert refresh() == refresh(lists=other) == refresh() == "" and asked == [packages.LAB, other]
    text = {
        place: (tmp_path / f"ktls-offload/{place}/etc/sources.list.d/lab.sources").read_text()
        for place in ("apt", "apt-other")
    }
    assert "bookworm-security" in text["apt"] and " sid" not in text["apt"]
    assert "Suites: sid\n" in text["apt-other"] and "security" not in text["apt-other"]
