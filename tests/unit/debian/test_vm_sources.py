"""The lab finds this machine's Debian mirror in apt's configuration, and trusts none of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from offload.debian.sources import Entry, archive, deb822, entries, one_line
from offload.errors import RigError

STANZAS = """\
# a comment
Types: deb deb-src
URIs: http://mirror.example/debian
 https://second.example/debian
Suites: bookworm bookworm-updates
Components: main
 contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
"""


def apt(folder: Path, **files: str) -> Path:
    """An /etc/apt with these files; `_list` and `_sources` end their names."""
    (folder / "sources.list.d").mkdir()
    for name, text in files.items():
        stem, _, kind = name.rpartition("_")
        where = (
            folder / f"{stem}.{kind}" if name == "sources_list" else folder / f"sources.list.d/{stem}.{kind}"
        )
        where.write_text(text)
    return folder


def test_deb822_gives_one_entry_per_uri() -> None:
    """Continuation lines and several URIs of a stanza are understood."""
    first, second, third = deb822(STANZAS)
    assert first == Entry(
        "http://mirror.example/debian", ("bookworm", "bookworm-updates"), ("main", "contrib")
    )
    assert second.uri == "https://second.example/debian"
    assert third.suites == ("bookworm-security",)


@pytest.mark.parametrize(
    "line, want",
    [
        ("deb http://m.example/debian trixie main contrib", ("trixie",)),
        ("deb [arch=amd64 signed-by=/k.gpg] http://m.example/debian/ stable main # why", ("stable",)),
        ("  deb\tcopy:/srv/debian\tsid main", ("sid",)),
    ],
)
def test_one_line_entries(line: str, want: tuple[str, ...]) -> None:
    """Options, blanks and comments of one-line sources are understood."""
    assert [e.suites for e in one_line(line)] == [want]


@pytest.mark.parametrize(
    "line",
    [
        "deb-src http://m.example/debian trixie main",
        "# deb http://m.example/debian trixie main",
        "deb",
        "deb [trusted=yes",
        "deb http://m.example/debian",
        "deb cdrom:[Debian]/ trixie main",
        "deb $(reboot) trixie main",
        "deb exec:/bin/sh trixie main",
        "deb http://m.example/\x1b[2J trixie main",
    ],
)
def test_one_line_leaves_out_what_it_cannot_trust(line: str) -> None:
    """A damaged or hostile line gives no entry, and no traceback."""
    assert list(one_line(line)) == []


@pytest.mark.parametrize(
    "kind, switch, entries_left",
    [("deb", "no", 0), ("deb", "false", 0), ("deb-src", "yes", 0), ("deb-src deb", "yes", 1)],
)
def test_disabled_stanza_is_left_out(kind: str, switch: str, entries_left: int) -> None:
    """A stanza that is switched off, or has sources only, gives no archive."""
    text = (
        f"Types: {kind}\nEnabled: {switch}\nURIs: http://m.example/debian\nSuites: trixie\nComponents: main\n"
    )
    assert len(list(deb822(text))) == entries_left


def test_archive_is_the_main_one_and_its_security(tmp_path: Path) -> None:
    """Other vendors' sources beside Debian's are not taken for it."""
    other = "Types: deb\nURIs: http://vendor.example/apt\nSuites: nodistro\nComponents: main\n"
    found = archive(apt(tmp_path, aaa_sources=other, debian_sources=STANZAS))
    assert (found.main, found.security) == (
        "http://mirror.example/debian",
        "http://mirror.example/debian-security",
    )
    assert "debian-archive-keyring" in found.keyring


def test_archive_from_one_line_without_security(tmp_path: Path) -> None:
    found = archive(apt(tmp_path, sources_list="deb http://old.example/debian trixie main\n"))
    assert (found.main, found.security) == ("http://old.example/debian", None)


@pytest.mark.parametrize(
    "text", ["", "\0\xff garbage\n\n: :\n", "Types: deb\nURIs: http://x.example\n", "deb " * 9999]
)
def test_no_archive_is_one_clear_line(tmp_path: Path, text: str) -> None:
    """A machine without a Debian source is told so."""
    with pytest.raises(RigError, match="no Debian archive"):
        archive(apt(tmp_path, some_sources=text, other_list=text))


def test_unreadable_and_strange_files_are_left_out(tmp_path: Path) -> None:
    """Backups and folders among the sources do no harm."""
    folder = apt(tmp_path, debian_sources=STANZAS, debian_save="deb http://bad.example/debian trixie main\n")
    (folder / "sources.list.d/folder.list").mkdir()
    assert {e.uri.split("/")[2] for e in entries(folder)} == {"mirror.example", "second.example"}
