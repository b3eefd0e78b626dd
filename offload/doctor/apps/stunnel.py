"""stunnel: every service of its configuration files, with what stands above the first of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from offload.doctor.apps import known, openssl
from offload.doctor.apps.conf import Settings
from offload.doctor.apps.files import Files, Place, entering
from offload.doctor.apps.model import SUITES, App, Said, Service, span
from offload.doctor.versions import numbers
from offload.errata.match import AFFECTED, kernel, load, standing
from offload.host.base import Host

PATH = "/etc/stunnel/*.conf"
ASK = "options = ENABLE_KTLS"
STOP = "sslVersionMax = TLSv1.2"
GCM = "ciphers = ECDHE+AESGCM"
CIPHERS = "HIGH:!aNULL:!SSLv2:!DH:!kDHEPSK"  # src/options.c, stunnel_cipher_list  # codespell:ignore
FIRST = (5, 60)  # SSL_OP_ENABLE_KTLS in src/options.c
POLL = "poll-incomplete-record"


@dataclass
class Section:
    """A service, or (first) what stands before every service; (key, value, place) in order."""

    name: str
    at: Place
    rows: list[tuple[str, str, Place]] = field(default_factory=list)

    def all(self, key: str) -> list[tuple[str, Place]]:
        """The values of a key (case does not matter)."""
        return [(value, at) for name, value, at in self.rows if name.lower() == key.lower()]


def look(files: Files, path: str, environment: Mapping[str, str]) -> App:
    """stunnel and its configuration; without a path every file of /etc/stunnel is one stunnel."""
    host = files.host
    version, library, knows = installed(host)
    app = App("stunnel", version, library, files=files)
    base = openssl.base(Files(host), environment)
    app.lent = base.ask
    kernel_here = _polls(host)
    for name in sorted(files.matching(path or PATH)):
        sections = [Section("", Place(name, 1))]
        _file(files, sections, name, ())
        services = sections[1:] or ([sections[0]] if sections[0].rows else [])
        for section in services:
            made = _service(section, sections[0], base)
            if knows is False and version >= FIRST:
                made.notes.add(
                    "D819", "stunnel -options: no ENABLE_KTLS", app=app.shown, how="build it with OpenSSL 3"
                )
            if kernel_here and made.ask.text == "on":
                made.notes.add(
                    "D825", POLL, ["rx"], name=made.title(), kernel=kernel_here, where=made.ask.where
                )
            known.moving_buffer(app, made)  # src/ctx.c sets SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
            app.services.append(made)
    return app


def installed(host: Host) -> tuple[tuple[int, ...], str, bool | None]:
    """stunnel's version, the OpenSSL that it runs with, and whether it knows ENABLE_KTLS."""
    for program in ("stunnel", "stunnel4"):
        done = host.run([program, "-options"], check=False, timeout=20)
        said = done.stderr.decode("utf-8", "replace") + done.text
        if found := re.search(r"stunnel ([0-9.]{1,20}) on ", said):
            library = re.search(r"Running\s+with (\w+ [0-9.]{1,20})", said)
            library = library or re.search(r"(?:Compiled|Compiled/running)\s+with (\w+ [0-9.]{1,20})", said)
            listed = "options = " in said
            return (
                numbers(found[1]),
                library[1] if library else "",
                ("ENABLE_KTLS" in said) if listed else None,
            )
    return (), "", None


def _polls(host: Host) -> str:
    """The kernel's release, if its poll() reports records that are not complete; ''."""
    words = host.run(["uname", "-r", "-v"], check=False, timeout=20).text.split()
    package = next((b for a, b in zip(words, words[1:]) if a == "Debian"), "")
    release = words[0] if words else ""
    rows = [e for e in load() if e.id == POLL]
    return release if rows and standing(rows[0], kernel(release, package)).word == AFFECTED else ""


def _file(
    files: Files, sections: list[Section], path: str, stack: tuple[str, ...], asked: object = ""
) -> None:
    """Read one file into the sections; src/options.c, options_file."""
    for number, line in _lines(entering(files, stack, path, asked) or ""):
        at = Place(path, number)
        if line.startswith("[") and line.endswith("]"):
            sections.append(Section(line[1:-1], at))
            continue
        key, equals, value = (part.strip() for part in line.partition("="))
        if not equals:
            files.problem(at, f"no = in {line[:60]!r}")
        elif key.lower() == "include":
            for name in sorted(files.matching(f"{value}/*")):
                _file(files, sections, name, (*stack, path), at)
        else:
            sections[-1].rows.append((key, value, at))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Number and text of each line that is neither empty nor a comment."""
    for number, raw in enumerate(text.splitlines(), 1):
        if (line := raw.strip()) and line[0] not in "#;":
            yield number, line


def _said(section: Section, top: Section, key: str, default: str) -> Said:
    """The last value of a key: the service's, or what stands above all services."""
    for level in (section, top):
        if found := level.all(key):
            return Said(found[-1][0], str(found[-1][1]))
    return Said(default)


def _service(section: Section, top: Section, base: Settings) -> Service:
    client = _said(section, top, "client", "no").text.lower() == "yes"
    address = _said(section, top, "connect" if client else "accept", "")
    last = section.rows[-1][2] if section.rows else section.at
    found = Service(
        name=f"[{section.name}]" if section.name else "stunnel",
        where=str(section.at),
        side="client" if client else "server",
        address=address.text,
        ask=_ask(section, top, base),
        versions=_versions(section, top, base),
        ciphers=_said(section, top, "ciphers", CIPHERS),
        suites=_said(section, top, "ciphersuites", SUITES),
        put=f"after {last}",
        line=ASK,
        stop=STOP,
        gcm=GCM,
    )
    if address.text.startswith("/"):
        found.notes.add(
            "D812",
            f"{address.where}: {address.text}",
            name=found.title(),
            kind="a Unix socket",
            where=address.where,
        )
    if (packed := _said(section, top, "compression", "")).text:
        found.notes.add(
            "D817", f"{packed.where}: compression = {packed.text}", name=found.title(), where=packed.where
        )
    return found


def _options(section: Section, top: Section) -> list[tuple[str, Place]]:
    """`options` of the service and of what stands above, which stays."""
    return [
        row
        for level in dict.fromkeys([id(top), id(section)])
        for row in (top if level == id(top) else section).all("options")
    ]


def _ask(section: Section, top: Section, base: Settings) -> Said:
    """The last word on kernel TLS: what is taken away comes after all that is set (src/ctx.c, ctx_init)."""
    rows = _options(section, top)
    for word, text in (("-enable_ktls", "off"), ("enable_ktls", "on")):
        if found := [at for value, at in rows if value.lower() == word]:
            return Said(text, str(found[-1]))
    return base.ask or Said("")


def _versions(section: Section, top: Section, base: Settings) -> Said:
    """Which of TLS 1.2 and 1.3 it offers; where a service is silent openssl.cnf speaks."""
    low, high = base.lowest or Said(""), base.highest or Said("")
    for level in (top, section):
        for key, value, at in level.rows:
            said = Said(value, str(at))
            if key.lower() in ("sslversion", "sslversionmin"):
                low = said
            if key.lower() in ("sslversion", "sslversionmax"):
                high = said
    left = span(low.text, high.text).split()
    where = next((s.where for s in (high, low) if s.text), Said("").where)
    for value, at in _options(section, top):
        if found := re.fullmatch(r"NO_TLSv1[._]([23])", value, re.IGNORECASE):
            left, where = [v for v in left if v != f"1.{found[1]}"], str(at)
    return Said(" ".join(left), where)
