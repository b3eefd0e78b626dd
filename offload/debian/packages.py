"""Packages of other Debian suites, fetched by a private apt and unpacked into a folder; never installed."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from offload.cmd import run
from offload.debian.cache import cache_root, need_space
from offload.debian.sources import Archive, archive
from offload.errors import RigError

# what the lab ever asks for, and the libraries that this may need; 140,000 packages would fill the memory
INTERESTING = re.compile(
    rb"^Package: (?:linux-(?:image|headers|kbuild|base|binary|modules)-\d|qemu|seabios|ipxe|lib|zlib1g"
    rb"|linux-source-\d|(?:flex|bison|m4|nginx|wrk"
    rb"|haproxy|mstflint|systemd|udev|ifupdown|network-manager|ktls-utils|dbus(?:-daemon|-bin|-system-bus-common)?"
    rb"|chromium-(?:headless-shell|common)|fonts-liberation2?)(?=\n))"
    rb".*\n(?:.+\n)*",
    re.MULTILINE,
)
FRESH = 20 * 3600.0  # seconds for which the lists of the archive are good enough
LISTS = 128 << 20  # bytes: the lists of six suites and their caches take 41 MB
# what the administrator set about reaching the archive (proxies, time-outs); not hooks, not keys
TAKEN = re.compile(r'^Acquire::(?:https?|ftp|Retries|ForceIPv\d|Check-(?:Date|Valid-Until))\b.* ".+";$')
CONF = """\
Dir::Etc "{apt}/etc";
Dir::Etc::parts "/dev/null";
Dir::Etc::main "/dev/null";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::netrc "/etc/apt/auth.conf";
Dir::Etc::netrcparts "/etc/apt/auth.conf.d";
Dir::State "{apt}/state";
Dir::State::status "/dev/null";
Dir::Cache "{apt}/cache";
Dir::Log "{apt}/log";
APT::Architecture "amd64";
APT::Architectures {{ "amd64"; }};
APT::Sandbox::User "root";
APT::Get::AllowUnauthenticated "false";
Acquire::AllowInsecureRepositories "false";
Acquire::AllowDowngradeToInsecureRepositories "false";
Acquire::Languages "none";
Acquire::GzipIndexes "true";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
"""


@dataclass(frozen=True, slots=True)
class Lists:
    """Suites whose lists share a folder in the cache: each kind of use has its own, so nobody loads more."""

    place: str
    main: tuple[str, ...]
    security: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return cache_root() / self.place


RELEASES = ("bookworm", "bookworm-backports", "trixie", "trixie-backports")
LAB = Lists("apt", RELEASES, ("bookworm-security", "trixie-security"))


@dataclass(frozen=True, slots=True)
class Package:
    """One version of a package: where it is, what it needs; sizes in bytes."""

    name: str
    version: str
    suite: str
    depends: str
    size: int
    unpacked: int


def _apt(lists: Lists, argv: list[str], timeout: float, cwd: str | None = None) -> tuple[int, str, str]:
    """Run an apt program under our configuration."""
    env = {"APT_CONFIG": str(lists.folder / "apt.conf"), "DEBIAN_FRONTEND": "noninteractive"}
    guard = ["setpriv", "--pdeathsig", "TERM"]  # a killed run leaves no download behind
    rc, out, err, _ = run([*guard, *argv], timeout=timeout, env=env, cwd=cwd)
    return rc, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")


def _configure(found: Archive, lists: Lists) -> None:
    """Write the private configuration: our suites, the host's way to the archive, and its keyring."""
    apt = lists.folder
    for folder in (
        "etc/sources.list.d",
        "etc/preferences.d",
        "state/lists/partial",
        "cache/archives/partial",
    ):
        (apt / folder).mkdir(parents=True, exist_ok=True)
    _, dump, _, _ = run(["apt-config", "dump"])
    host = [line for line in dump.decode("utf-8", "replace").splitlines() if TAKEN.match(line)]
    retries = [] if any("::Retries" in line for line in host) else ['Acquire::Retries "3";']
    (apt / "apt.conf").write_text(CONF.format(apt=apt) + "\n".join([*host, *retries]) + "\n")
    pairs = ((found.main, lists.main), (found.security, lists.security))
    text = "\n".join(
        f"Types: deb\nURIs: {uri}\nSuites: {' '.join(suites)}\nComponents: main\nSigned-By: {found.keyring}\n"
        for uri, suites in pairs
        if uri and suites
    )
    (apt / "etc/sources.list.d/lab.sources").write_text(text)


def refresh(force: bool = False, lists: Lists = LAB) -> str:
    """Bring the lists up to date unless they are fresh: what apt complained of, or an empty string.

    A suite that the mirror lacks is a complaint, not an error: what is needed may be in another one.
    """
    found = archive()
    _configure(found, lists)
    stamp = lists.folder / "updated"
    sources = (lists.folder / "etc/sources.list.d/lab.sources").read_text()
    known = stamp.is_file() and stamp.read_text() == sources
    if not force and known and time.time() - stamp.stat().st_mtime < FRESH:
        return ""
    need_space(lists.folder, LISTS, "the package lists")
    rc, _, err = _apt(lists, ["apt-get", "-q", "update"], 900)
    index.cache_clear()
    if rc == 0 and "Failed to fetch" not in err:
        stamp.write_text(sources)
        return ""
    if not index(lists):
        raise RigError(
            f"cannot fetch the package lists from {found.main}: {last_words(err)}",
            "the first run needs the network; later runs use the cache",
        )
    return last_words(err)


def last_words(text: str) -> str:
    """The first error line of an apt program, without its E: mark."""
    lines = [line[2:].strip() for line in text.splitlines() if line.startswith(("E:", "W:"))]
    return lines[0] if lines else text.strip()[-300:] or "no message"


def stanzas(raw: bytes) -> Iterator[dict[str, str]]:
    """The interesting stanzas of a Packages file: their fields that have one line."""
    for match in INTERESTING.finditer(raw):
        block = match[0].decode("utf-8", "replace")
        pairs = (line.split(": ", 1) for line in block.splitlines() if ": " in line and line[0] != " ")
        fields = {pair[0]: pair[1] for pair in pairs}
        if "Version" in fields:
            yield fields


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0


@lru_cache(maxsize=1)
def index(lists: Lists = LAB) -> tuple[Package, ...]:
    """Every package of every suite that could be fetched, less what the lab never asks for."""
    shown = ["apt-get", "indextargets", "--format", "$(RELEASE) $(FILENAME)", "Created-By: Packages"]
    found: list[Package] = []
    for line in _apt(lists, shown, 60)[1].splitlines():
        suite, _, path = line.partition(" ")
        for f in stanzas(run(["/usr/lib/apt/apt-helper", "cat-file", path], timeout=120)[1]):
            size, unpacked = _number(f.get("Size", "")), _number(f.get("Installed-Size", "")) * 1024
            found.append(Package(f["Package"], f["Version"], suite, f.get("Depends", ""), size, unpacked))
    return tuple(found)


def version_key(version: str) -> tuple[tuple[int | str, ...], ...]:
    """A sort key for Debian versions: numbers by value, `~` before the end, letters before the rest.

    >>> version_key("6.12.95-1~bpo12+1") < version_key("6.12.95-1") < version_key("6.12.107-1")
    True
    """
    epoch, _, rest = version.rpartition(":")
    parts = re.findall(r"\d+|[^\d]", rest)
    key: list[tuple[int | str, ...]] = [(2, _number(epoch))]
    for part in parts:
        key.append((0,) if part == "~" else (2, int(part)) if part.isdigit() else (3, part))
    return (*key, (1,))


def newest(packages: Iterable[Package], suites: Container[str]) -> dict[str, Package]:
    """Of each name the newest version that these suites have; of equal ones the first seen."""
    best: dict[str, Package] = {}
    for package in packages:
        if package.suite in suites:
            known = best.get(package.name)
            if known is None or version_key(package.version) > version_key(known.version):
                best[package.name] = package
    return best


def depends(package: Package) -> list[str]:
    """Names that a package depends on; of alternatives the first."""
    return [
        m[1] for item in package.depends.split(",") if (m := re.match(r"\s*([a-z0-9][a-z0-9+.-]*)", item))
    ]


def download(packages: Iterable[Package], into: Path, lists: Lists = LAB) -> None:
    """Fetch and unpack packages into the folder `into`; RigError in one line if that is not possible.

    apt verifies size and hash of each file against the signed index; a part of one is never unpacked.
    """
    wanted = list(packages)
    room = sum(p.size + p.unpacked for p in wanted) * 11 // 10
    need_space(into, room, f"{wanted[0].name} and {len(wanted) - 1} more packages")
    debs = into / ".debs"
    debs.mkdir()
    specs = [f"{p.name}={p.version}" for p in wanted]
    rc, _, err = _apt(lists, ["apt-get", "-q", "download", *specs], 3600, str(debs))
    files = sorted(debs.glob("*.deb"))
    if rc != 0 or len(files) != len(wanted):
        raise RigError(
            f"download of {specs[0]} and {len(specs) - 1} more failed: {last_words(err)}",
            "run it again: partial downloads were discarded",
        )
    for file in files:
        rc, _, raw, _ = run(["dpkg-deb", "-x", str(file), str(into)], timeout=900)
        if rc != 0:
            raise RigError(f"cannot unpack {file.name}: {raw.decode('utf-8', 'replace').strip()[-300:]}")
        file.unlink()
    debs.rmdir()


def installed() -> set[str]:
    """Names of the packages installed on this machine."""
    _, out, _, _ = run(["dpkg-query", "-W", "-f", "${db:Status-Abbrev} ${Package}\n"], env={"LANG": "C"})
    return {line.split()[1] for line in out.decode().splitlines() if line.startswith("ii ")}


def amd64_only() -> None:
    """RigError on a machine that cannot run the fetched tools."""
    if os.uname().machine != "x86_64":
        raise RigError(f"the lab needs an amd64 machine; this is {os.uname().machine}")
