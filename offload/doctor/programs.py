"""Do the servers on this host ask for kernel TLS? Their configuration files, read line by line."""

from __future__ import annotations

import re
from typing import NamedTuple

from offload.doctor.reasons import Notes
from offload.host.base import Host

MAX_LINES = 2000
Version = tuple[int, ...]
NO_13 = {
    "nginx": "ssl_protocols TLSv1.2;  and ssl_ciphers ECDHE+AESGCM;  if offload matters more",
    "HAProxy": "ssl-max-ver TLSv1.2 on the bind line, if offload matters more",
    "stunnel": "sslVersionMax = TLSv1.2 in the service's section, if offload matters more",
}


class Program(NamedTuple):
    """A server: where it is configured, which lines mean TLS at all, kTLS, an end at TLS 1.2, and TLS 1.3.

    `since`: from which version on it offers TLS 1.3 where no line says otherwise.
    """

    name: str
    place: str
    uses: str
    ktls: str
    stops: str
    offers: str
    since: Version
    code: str


PROGRAMS = (
    # since: nginx CHANGES, 1.23.4; the others leave it to OpenSSL, which has it since 1.1.1
    Program(
        "nginx",
        "/etc/nginx",
        r"^listen\b.*\bssl\b|^ssl_certificate\b",
        r"^ssl_conf_command\s+Options\b.*\bKTLS\b",
        r"^ssl_protocols\b(?!.*TLSv1\.3)",
        r"^ssl_protocols\b.*TLSv1\.3",
        (1, 23, 4),
        "D601",
    ),
    Program(
        "HAProxy",
        "/etc/haproxy",
        r"^(bind|server|default-server)\b.*\bssl\b",
        r"\bktls\s+on\b",
        r"\bssl-max-ver\s+TLSv1\.[0-2]\b|\b(no-tlsv13|force-tlsv12)\b",
        r"\bssl-max-ver\s+TLSv1\.3\b",
        (),
        "D604",
    ),
    Program(
        "stunnel",
        "/etc/stunnel",
        r"^(accept|connect)\s*=",
        r"^options\s*=\s*ENABLE_KTLS\b",
        r"^sslVersion(Max)?\s*=\s*TLSv1\.[0-2]\b",
        r"^sslVersion(Max)?\s*=\s*TLSv1\.3\b",
        (),
        "D603",
    ),
)


def examine(host: Host, notes: Notes, tls13: bool = False) -> None:
    """Note what the configuration of every server says; `tls13`: the kernel hands TLS 1.3 to cards."""
    wanted = "ssl|tls|^[[:space:]]*(accept|connect)[[:space:]]*="
    places = [program.place for program in PROGRAMS]
    # -R follows the links in sites-enabled
    argv = ["grep", "-RsiIHnE", "-m", "200", "--exclude-dir=sites-available", "--", wanted, *places]
    done = host.run(argv, check=False)
    lines = [_line(raw) for raw in done.text.splitlines()[:MAX_LINES]]
    found = {p: [row for row in lines if row[0].startswith(f"{p.place}/")] for p in PROGRAMS}
    if any(found.values()):
        there = _installed(host)
        for program in PROGRAMS:
            if program.name.lower() in there:
                _one(host, program, found[program], notes, tls13)


def _installed(host: Host) -> set[str]:
    """The servers whose program is there: files may be left from one that is not."""
    names = " ".join([*(p.name.lower() for p in PROGRAMS), "stunnel4"])
    look = f"PATH=$PATH:/usr/sbin:/usr/local/sbin; for p in {names}; do command -v $p; done"
    done = host.run(["sh", "-c", look], check=False)
    return {line.rpartition("/")[2].removesuffix("4") for line in done.text.splitlines()[:8]}


def _line(raw: str) -> tuple[str, str]:
    """`file:line` and the text without indentation, of a line of grep; ('', '') for a comment."""
    match = re.fullmatch(r"([^:]{1,200}:\d{1,7}):\s*([^\s#;].*)", raw)
    return (match[1], match[2]) if match else ("", "")


def _one(host: Host, program: Program, lines: list[tuple[str, str]], notes: Notes, tls13: bool) -> None:
    """The statements of one server's files; nothing if it serves no TLS."""

    def first(pattern: str) -> str:
        return next((where for where, text in lines if re.search(pattern, text, re.IGNORECASE)), "")

    used = [(where, text) for where, text in lines if "/snippets/" not in where]  # until included
    uses = next((where for where, text in used if re.search(program.uses, text, re.IGNORECASE)), "")
    if not uses:
        return
    version, built = _version(host, program.name)
    if not (ktls := first(program.ktls)):
        before = _before(program.name, version, built)
        notes.add(program.code, f"{uses} uses TLS", where=uses, before=before)
        return
    notes.ok(f"{program.name} asks for kernel TLS ({ktls})")
    if not first(program.stops) and not tls13:
        _newest(program, version, ktls, first(program.offers), notes)


def _newest(program: Program, version: Version, ktls: str, offers: str, notes: Notes) -> None:
    """Note a server that offers TLS 1.3: a line of its files says so, or none does and it is the default."""
    shown = f"{program.name} {'.'.join(map(str, version))}".strip()
    if not offers and version and version < program.since:
        first = ".".join(map(str, program.since))
        notes.ok(f"{shown} stops at TLS 1.2: no line offers 1.3, the default only since {first}")
        return
    why = (
        f"{offers} names TLS 1.3"
        if offers
        else f"it is the default of {shown}, and the configuration does not override it"
    )
    notes.add(
        "D602",
        f"{ktls} asks for kernel TLS, and {why}",
        program=program.name,
        where=offers or "by default",
        how=NO_13[program.name],
    )


def _version(host: Host, name: str) -> tuple[Version, bool]:
    """A server's version, () if it does not say; and whether it is built with kernel TLS, if it says."""
    from offload.doctor.apps import (
        haproxy,
        nginx,
        stunnel,  # read by those who have one of them only
    )

    if name == "nginx":
        return nginx.installed(host)[0], True
    if name == "stunnel":
        version, _, knows = stunnel.installed(host)
        return version, knows is not False
    version, _, built = haproxy.installed(host)
    return version, built


def _before(name: str, version: Version, built: bool) -> str:
    """Return what must come before the remedy: a newer program, or another build of it; '' if nothing."""
    from offload.doctor.apps.model import OLDEST

    oldest = OLDEST[name.lower()]
    if version and version < oldest:
        here, first = (".".join(map(str, v)) for v in (version, oldest))
        return f"a newer {name} (this is {here}, and {first} is the first with kernel TLS); then "
    return "" if built or not version else f"another {name} (this one is built without kernel TLS); then "
