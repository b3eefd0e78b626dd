"""openssl.cnf: what every program on this host gets that does not say otherwise (system_default)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from offload.doctor.apps.conf import Settings
from offload.doctor.apps.files import Files, Place, entering
from offload.doctor.apps.model import DEFAULT, SUITES, App, Said, Service, span
from offload.doctor.versions import numbers
from offload.host.base import Host

NAME = "system_default"
STOP = "MaxProtocol = TLSv1.2"
GCM = "CipherString = ECDHE+AESGCM"
ASK = "Options = KTLS"


@dataclass
class Sections:
    """openssl.cnf as config(5) reads it: section -> (key, value, place); `heads`: where each begins."""

    rows: dict[str, list[tuple[str, str, Place]]] = field(default_factory=dict)
    heads: dict[str, Place] = field(default_factory=dict)
    last: Place | None = None

    def get(self, section: str, key: str) -> tuple[str, Place] | None:
        """The last value of a key."""
        found = [(value, at) for name, value, at in self.rows.get(section, []) if name == key]
        return found[-1] if found else None


def default_path(host: Host, environment: Mapping[str, str]) -> str:
    """Where OpenSSL looks: $OPENSSL_CONF, or openssl.cnf in its folder."""
    if path := environment.get("OPENSSL_CONF"):
        return path
    said = host.run(["openssl", "version", "-d"], check=False, timeout=20)
    found = re.search(r'OPENSSLDIR: "(/[^"]{1,300})"', said.text)
    return f"{found[1] if found else '/usr/lib/ssl'}/openssl.cnf"


def parse(files: Files, path: str) -> Sections:
    """The whole file with what it includes."""
    found = Sections()
    _file(files, found, path, (), "default")
    return found


def _file(
    files: Files, into: Sections, path: str, stack: tuple[str, ...], section: str, asked: object = ""
) -> str:
    """Read one file into `into`; the section in which it ends."""
    text = entering(files, stack, path, asked)
    for number, line in _lines(text or ""):
        at = Place(path, number)
        into.last = at
        if head := re.fullmatch(r"\[\s*([^\]\s]+)\s*\]", line):
            section = head[1]
            into.heads.setdefault(section, at)
            into.rows.setdefault(section, [])
        elif include := re.match(r"\.include\s*=?\s*(.+)", line):
            section = _include(files, into, include[1].strip("\"' "), (*stack, path), section, at)
        elif pair := re.match(r"([^=\s]+)\s*=\s*(.*)", line):
            name, _, key = pair[1].rpartition("::")
            into.rows.setdefault(name or section, []).append((key, _value(pair[2]), at))
        elif not line.startswith(".pragma"):
            files.problem(at, f"no = in {line[:60]!r}")
    return section


def _include(files: Files, into: Sections, path: str, stack: tuple[str, ...], section: str, at: Place) -> str:
    """A file, or the *.cnf and *.conf of a folder; relative to where a program happens to run."""
    if "$" in path or not path.startswith("/"):
        files.problem(at, f".include {path}: only the program knows where that file is")
        return section
    folder = files.host.run(["test", "-d", path], check=False).rc == 0
    names = [n for end in ("cnf", "conf") for n in files.matching(f"{path}/*.{end}")] if folder else [path]
    for name in sorted(names):
        section = _file(files, into, name, stack, section, at)
    return section


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Number and text of each line that says something: joined at a backslash, without comment."""
    first, held = 0, ""
    for number, raw in enumerate(text.splitlines(), 1):
        first = first if held else number
        line = held + re.sub(r"""^((?:[^#"'\\]|\\.|"[^"]*"|'[^']*')*)#.*$""", r"\1", raw)
        if line.endswith("\\") and len(line) < 10_000:
            held = line[:-1]
            continue
        held = ""
        if line.strip():
            yield first, line.strip()
    if held.strip():
        yield first, held.strip()


def _value(text: str) -> str:
    """A value without its quotes."""
    return re.sub(r"""["']""", "", text).strip()


def settings(files: Files, path: str) -> tuple[Settings, Sections, str]:
    """Return what system_default sets, the file, and the name of that section ('' if there is none)."""
    sections, section, found = parse(files, path), "default", Settings()
    for key in ("openssl_conf", "ssl_conf", "system_default"):
        row = sections.get(section, key)
        if row is None:
            return found, sections, ""
        section = row[0]
        if "$" in section:
            files.problem(row[1], f"{key} = {section}: variables are not expanded")
            return found, sections, ""
    for key, value, at in sections.rows.get(section, []):
        if "$" in value:
            files.problem(at, f"{key} = {value}: variables are not expanded")
        # `1.Options`: what stands before the last dot only makes the key another one (config(5))
        found = found.after(key.rpartition(".")[2], value, str(at))
    return found, sections, section


def base(files: Files, environment: Mapping[str, str]) -> Settings:
    """Return what OpenSSL gives every program here before it speaks itself."""
    path = default_path(files.host, environment)
    return settings(files, path)[0] if files.there(path) else Settings()


def look(files: Files, path: str, environment: Mapping[str, str]) -> App:
    """openssl.cnf, as one service: every program that does not say otherwise."""
    host = files.host
    path = path or default_path(host, environment)
    found, sections, section = settings(files, path)
    said = host.run(["openssl", "version"], check=False, timeout=20).text
    library = " ".join(said.split()[:2]) if said.startswith("OpenSSL") else ""
    low, high = found.lowest, found.highest
    versions = span(low.text if low else "", high.text if high else "")
    spoke = [s.where for s in (high, low) if s]
    service = Service(
        name=NAME,
        where=str(sections.heads[section]) if section in sections.heads else path,
        side="both",
        address="",
        ask=found.ask or Said(""),
        versions=Said(versions, spoke[0] if spoke else DEFAULT),
        ciphers=found.ciphers or Said("DEFAULT"),
        suites=found.suites or Said(SUITES),
        put=f"after {sections.heads.get(section, sections.last or path)}",
        line=ASK if section in sections.heads else _whole(sections),
        stop=STOP,
        gcm=GCM,
    )
    app = App("openssl", numbers(library), library, [service], files=files)
    service.notes.add("D827", path, where=path)
    return app


def _whole(sections: Sections) -> str:
    """Return what is missing on the way to system_default, as lines to write one below the other."""
    found, lines = sections.get("default", "openssl_conf"), []
    init = found[0] if found else "openssl_init"
    if not found:
        lines.append(f"(at the top of the file) openssl_conf = {init}")
    ssl = sections.get(init, "ssl_conf")
    if not ssl:
        lines.append(f"(in [{init}]) ssl_conf = ssl_sect")
    name = ssl[0] if ssl else "ssl_sect"
    if not sections.get(name, "system_default"):
        lines.append(f"(in [{name}]) system_default = system_default_sect")
    return "; ".join([*lines, f"(in [system_default_sect]) {ASK}"])
