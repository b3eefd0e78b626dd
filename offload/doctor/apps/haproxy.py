"""HAProxy: every bind and server line with ssl, with the defaults that reach it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from offload.doctor.apps import known
from offload.doctor.apps.files import Files, Place
from offload.doctor.apps.model import SUITES, App, Said, Service, span
from offload.doctor.versions import numbers
from offload.host.base import Host

PATH = "/etc/haproxy/haproxy.cfg"
ASK = "ktls on"
STOP = "ssl-max-ver TLSv1.2"
GCM = "ciphers ECDHE+AESGCM"
FIRST = (3, 3)  # commit e8674658a
CONNECTED = (3, 4, 1)  # asks for kernel TLS once it is connected; CHANGELOG, commit 96b08e959
KEY_UPDATE = (3, 4, 3)  # reads a KeyUpdate that splicing meets; CHANGELOG, commit da4e71d6d
SPLICE = ("option splice-auto", "option splice-request", "option splice-response")
SECTIONS = (
    "global",
    "defaults",
    "frontend",
    "backend",
    "listen",
    "peers",
    "log-forward",
    "ring",
    "resolvers",
    "cache",
    "userlist",
    "mailers",
    "program",
    "http-errors",
    "fcgi-app",
    "crt-store",
    "traces",
    "log-profile",
    "acme",
)
COUNTS = re.compile(r"(bind|server|server-template|default-server|ssl-default-\S+)$")  # lines that are judged
EXPOSE = "expose-experimental-directives"


@dataclass
class Section:
    """One section: its words (`frontend www`) and lines (words, place)."""

    words: list[str]
    at: Place
    lines: list[tuple[list[str], Place]] = field(default_factory=list)

    def all(self, name: str) -> list[tuple[list[str], Place]]:
        """The lines that begin with a word."""
        return [(words, at) for words, at in self.lines if words[0] == name]

    def last(self, name: str, default: str) -> Said:
        """The rest of the last line that begins with a word."""
        found = self.all(name)
        return Said(" ".join(found[-1][0][1:]), str(found[-1][1])) if found else Said(default)


@dataclass(frozen=True)
class Words:
    """The parameters of a line, what reaches it from elsewhere first; each with its place."""

    rows: tuple[tuple[str, str, str], ...]  # word, the word after it, FILE:LINE

    def has(self, *names: str) -> Said | None:
        """The last place of one of these words."""
        found = [Said(word, where) for word, _, where in self.rows if word in names]
        return found[-1] if found else None

    def value(self, name: str) -> Said | None:
        """The last value of a word."""
        found = [Said(value, where) for word, value, where in self.rows if word == name]
        return found[-1] if found else None


def look(files: Files, path: str, environment: Mapping[str, str]) -> App:
    """HAProxy and its configuration: a file, or the *.cfg of a folder. OpenSSL's own file has no say here."""
    version, library, built = installed(files.host)
    app = App("haproxy", version, library, files=files)
    path = path or PATH
    folder = files.host.run(["test", "-d", path], check=False).rc == 0
    sections: list[Section] = []
    for name in sorted(files.matching(f"{path}/*.cfg")) if folder else [path]:
        _file(files, name, sections)
    whole = Section(
        ["global"], Place(path, 1), [row for s in sections if s.words[0] == "global" for row in s.lines]
    )
    whole.at = next((s.at for s in sections if s.words[0] == "global"), whole.at)
    for section, defaults in _proxies(sections):
        mine = list(_services(section, defaults, whole))
        splice = _splices(section, defaults)
        for service in mine if splice and app.version < KEY_UPDATE else []:
            _loops(service, app, splice)
        app.services += mine
    for service in app.services:
        _possible(service, app, built, whole)
    return app


def installed(host: Host) -> tuple[tuple[int, ...], str, bool]:
    """HAProxy's version, its TLS library, and whether it is built with USE_KTLS."""
    said = host.run(["haproxy", "-vv"], check=False, timeout=20).text
    found = re.search(r"HAProxy version ([0-9.]{1,20})", said) or re.search(
        r"HA-Proxy version ([0-9.]{1,20})", said
    )
    library = re.search(r"Running on (?:SSL library|OpenSSL) version : ([\w-]+ [0-9.]{1,20})", said)
    return (numbers(found[1]) if found else ()), library[1] if library else "", "+KTLS" in said


def _file(files: Files, path: str, sections: list[Section]) -> None:
    """Read one file into sections."""
    for number, raw in enumerate((files.text(path) or "").splitlines(), 1):
        at = Place(path, number)
        words = _words(raw)
        if words is None:
            files.problem(at, "an unterminated quote")
        elif words and words[0].startswith("."):
            files.problem(at, f"{words[0]}: conditions are not evaluated; both branches were read")
        elif words and words[0] in SECTIONS:
            sections.append(Section(words, at))
        elif words and sections:
            sections[-1].lines.append((words, at))
            if COUNTS.match(words[0]) and _varies(raw):
                files.problem(at, f"{words[0]}: variables are not expanded")


def _varies(line: str) -> bool:
    """Say whether HAProxy puts a variable of its environment there: in single quotes it does not."""
    return re.search(r"\$\{?\w", re.sub(r"\\.|'[^']*'|#.*", "", line)) is not None


def _words(line: str) -> list[str] | None:
    """The words of a line, without comment and quotes; None if a quote has no end."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, "#"
    try:
        return list(lexer)
    except ValueError:
        return None


def _proxies(sections: Sequence[Section]) -> Iterator[tuple[Section, Section | None]]:
    """Every section that may bind or connect, with its defaults: `from NAME`, or those before it."""
    before: Section | None = None
    named: dict[str, Section] = {}
    for section in sections:
        if section.words[0] == "defaults":
            before = section
            named |= {section.words[1]: section} if len(section.words) > 1 else {}
        elif section.words[0] != "global":
            other = (
                named.get(section.words[3])
                if section.words[2:3] == ["from"] and len(section.words) > 3
                else None
            )
            yield section, other or before


def _services(section: Section, defaults: Section | None, whole: Section) -> Iterator[Service]:
    """The bind and server lines of a section that do TLS."""
    for words, at in section.all("bind"):
        rows = _rows(words[2:], at)
        if len(words) > 1 and Words(rows).has("ssl"):
            yield _service(section, words[1], at, "server", Words((*_of_global(whole, "bind"), *rows)), whole)
    around = [row for s in (defaults, section) if s for row in s.all("default-server")]
    many = [([*w[:2], *w[3:]], at) for w, at in section.all("server-template")]  # without how many
    for words, at in [*section.all("server"), *many]:
        rows = (*(r for w, a in around for r in _rows(w[1:], a)), *_rows(words[3:], at))
        last = Words(rows).has("ssl", "no-ssl")
        if len(words) > 2 and last and last.text == "ssl":
            name = f"{words[1]} {words[2]}"
            yield _service(section, name, at, "client", Words((*_of_global(whole, "server"), *rows)), whole)


def _rows(words: Sequence[str], at: Place) -> tuple[tuple[str, str, str], ...]:
    return tuple((word, after, str(at)) for word, after in zip(words, [*words[1:], ""]))


def _of_global(whole: Section, kind: str) -> tuple[tuple[str, str, str], ...]:
    """ssl-default-bind-options and its like, as parameters of every line of this kind."""
    rows = [row for words, at in whole.all(f"ssl-default-{kind}-options") for row in _rows(words[1:], at)]
    for name in ("ciphers", "ciphersuites"):
        said = whole.last(f"ssl-default-{kind}-{name}", "")
        rows += [(name, said.text, said.where)] if said.text else []
    return tuple(rows)


def _service(section: Section, name: str, at: Place, side: str, words: Words, whole: Section) -> Service:
    """One line. `name` has the address (bind), or the server's name and address."""
    asks = words.value("ktls")
    off = whole.all("noktls")
    ask = Said({"on": "on", "off": "off"}.get(asks.text.lower(), ""), asks.where) if asks else Said("")
    found = Service(
        name=f"{' '.join(section.words[:2])} {'server ' if side == 'client' else 'bind '}{name}",
        where=str(at),
        side=side,
        address="",
        ask=Said("off", str(off[0][1])) if off else ask,
        versions=_versions(words),
        ciphers=words.value("ciphers") or Said("DEFAULT"),
        suites=words.value("ciphersuites") or Said(SUITES),
        put=f"on {at}",
        line=ASK,
        stop=STOP,
        gcm=GCM,
    )
    address = name.split()[-1] if name.split() else ""
    kinds = {"QUIC": r"quic[46]?@", "a Unix socket": r"(unix|abns|abnsz|uxst|uxdg)@|/"}
    for kind, pattern in kinds.items():
        if re.match(pattern, address):
            found.notes.add("D812", f"{at}: {address}", name=found.title(), kind=kind, where=str(at))
    return found


def _versions(words: Words) -> Said:
    """Which of TLS 1.2 and 1.3 a line offers; the default is both (since 2.2)."""
    low, high = words.value("ssl-min-ver"), words.value("ssl-max-ver")
    left = span(low.text if low else "", high.text if high else "").split()
    where = (high or low or Said("")).where
    for version, digit in (("1.2", "2"), ("1.3", "3")):
        if only := words.has(f"force-tlsv1{digit}"):
            return Said(version, only.where)
        if gone := words.has(f"no-tlsv1{digit}"):
            left, where = [v for v in left if v != version], gone.where
    return Said(" ".join(left), where)


def _possible(service: Service, app: App, built: bool, whole: Section) -> None:
    """Note what HAProxy itself lacks."""
    if app.version and app.version < FIRST:
        return
    if app.version and not built:
        service.notes.add("D819", "haproxy -vv: no +KTLS", app=app.shown, how="build it with USE_KTLS=1")
    if service.ask.text != "on":
        return
    if not whole.all(EXPOSE):
        where = service.ask.where
        service.notes.add(
            "D818",
            f"{where}: ktls on",
            name=service.title(),
            where=where,
            put=f"after {whole.at}",
            line=EXPOSE,
        )
    known.moving_buffer(app, service)  # src/ssl_sock.c sets SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
    if service.side == "client" and app.version < CONNECTED:
        service.notes.add("D823", service.ask.where, name=service.title())


def _splices(section: Section, defaults: Section | None) -> str:
    """Where data is spliced through the kernel, or ''; `no option` takes it back."""
    found = dict.fromkeys(SPLICE, "")
    for words, at in [row for part in (defaults, section) if part for row in part.lines]:
        taken = words[0] == "no"
        if (name := " ".join(words[taken : 2 + taken])) in found:
            found[name] = "" if taken else str(at)
    return next((where for where in found.values() if where), "")


def _loops(service: Service, app: App, splice: str) -> None:
    """Note a HAProxy that leaves a client's KeyUpdate in the kernel and tries for ever."""
    if service.ask.text == "on" and service.offers("1.3"):
        service.notes.add(
            "D831",
            f"{app.shown}; {splice}; {service.versions.where}",
            ["rx"],
            name=service.title(),
            app=app.shown,
            splice=splice,
        )
