"""Which archive does this machine use? Reads apt's own configuration: deb822 .sources and one-line .list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from offload.errors import RigError

APT = Path("/etc/apt")
KEYRINGS = (
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/usr/share/keyrings/debian-archive-keyring.pgp",
)
RELEASES = ("bookworm", "trixie", "stable", "oldstable", "testing", "forky", "sid", "unstable")
# what apt understands as a URI, and nothing that could end a line or a field of our own file
URI = re.compile(r"^(?:http|https|ftp|file|copy|mirror(?:\+[a-z]+)?):[!-~]+$")
ONE_LINE = re.compile(r"^deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s*(.*)$")


@dataclass(frozen=True)
class Entry:
    """One source of packages as the administrator wrote it."""

    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]


@dataclass(frozen=True)
class Archive:
    """Where to fetch from: main archive, security archive (None: not configured), and the keyring."""

    main: str
    security: str | None
    keyring: str


def one_line(text: str) -> Iterator[Entry]:
    """Entries of a .list file; what is not understood is left out, as is deb-src."""
    for raw in text.splitlines():
        match = ONE_LINE.match(raw.split("#", 1)[0].strip())
        if match and URI.match(match[2]):
            yield Entry(match[2], (match[3],), tuple(match[4].split()))


def deb822(text: str) -> Iterator[Entry]:
    """Entries of a .sources file, one per URI; stanzas that are disabled or hold no `deb` are left out."""
    for stanza in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n")):
        fields: dict[str, str] = {}
        key = ""
        for line in stanza.splitlines():
            if line.startswith("#"):
                continue
            if line[:1] in (" ", "\t"):
                fields[key] = f"{fields.get(key, '')} {line.strip()}"
            elif ":" in line:
                key, _, value = line.partition(":")
                key = key.strip().lower()
                fields[key] = value.strip()
        if fields.get("enabled", "yes").lower() in ("no", "false", "0", "off", "without", "disable"):
            continue
        if "deb" not in fields.get("types", "").split():
            continue
        suites, components = (tuple(fields.get(k, "").split()) for k in ("suites", "components"))
        for uri in fields.get("uris", "").split():
            if URI.match(uri):
                yield Entry(uri, suites, components)


def entries(folder: Path = APT) -> list[Entry]:
    """Every usable entry below /etc/apt, in apt's order; unreadable files are left out."""
    found: list[Entry] = []
    for path in [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]:
        if path.suffix not in (".list", ".sources"):
            continue
        try:
            text = path.read_text(errors="replace")
        except OSError:
            continue
        found += one_line(text) if path.suffix == ".list" else deb822(text)
    return found


def archive(folder: Path = APT) -> Archive:
    """The host's main Debian archive, its security archive, and the keyring; RigError if there is none."""
    main, security = None, None
    for entry in entries(folder):
        if "main" not in entry.components:
            continue
        if not main and any(s in RELEASES for s in entry.suites):
            main = entry.uri
        if not security and any(s.partition("-")[2] == "security" for s in entry.suites):
            security = entry.uri
    if not main:
        raise RigError(
            f"no Debian archive among the apt sources below {folder}",
            "the lab downloads stock Debian kernels from this machine's own mirror",
        )
    return Archive(main, security, keyring())


def keyring() -> str:
    """The Debian archive's own keys; apt checks every index and package against them."""
    for path in KEYRINGS:
        if Path(path).is_file():
            return path
    raise RigError(f"no {KEYRINGS[0]}", "apt-get install debian-archive-keyring")
