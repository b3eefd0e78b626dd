"""Do the servers on this host ask for kernel TLS? Their configuration files, read line by line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from offload.doctor.reasons import Notes
from offload.host.base import Host

MAX_LINES = 2000
NO_13 = {
    "nginx": "ssl_protocols TLSv1.2;  and ssl_ciphers ECDHE+AESGCM;  where offload matters more",
    "HAProxy": "ssl-max-ver TLSv1.2 on the bind line, where offload matters more",
    "stunnel": "sslVersionMax = TLSv1.2 in the service's section, where offload matters more",
}


@dataclass(frozen=True)
class Program:
    """A server: where it is configured, which lines mean TLS at all, kTLS, and an end at TLS 1.2."""

    name: str
    place: str
    uses: str
    ktls: str
    stops: str
    code: str


PROGRAMS = (
    Program("nginx", "/etc/nginx", r"^listen\b.*\bssl\b|^ssl_certificate\b",
            r"^ssl_conf_command\s+Options\b.*\bKTLS\b", r"^ssl_protocols\b(?!.*TLSv1\.3)", "D601"),
    Program("HAProxy", "/etc/haproxy", r"^(bind|server|default-server)\b.*\bssl\b",
            r"\bktls\s+on\b", r"\bssl-max-ver\s+TLSv1\.[0-2]\b|\b(no-tlsv13|force-tlsv12)\b", "D604"),
    Program("stunnel", "/etc/stunnel", r"^(accept|connect)\s*=",
            r"^options\s*=\s*ENABLE_KTLS\b", r"^sslVersion(Max)?\s*=\s*TLSv1\.[0-2]\b", "D603"),
)  # fmt: skip


def examine(host: Host, notes: Notes) -> None:
    """Note what the configuration of every server that is configured says."""
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
                _one(program, found[program], notes)


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


def _one(program: Program, lines: list[tuple[str, str]], notes: Notes) -> None:
    """What one server's files say; nothing if it serves no TLS."""

    def first(pattern: str) -> str:
        return next((where for where, text in lines if re.search(pattern, text, re.IGNORECASE)), "")

    used = [(where, text) for where, text in lines if "/snippets/" not in where]  # until included
    uses = next((where for where, text in used if re.search(program.uses, text, re.IGNORECASE)), "")
    ktls = first(program.ktls)
    if not uses:
        return
    if not ktls:
        notes.add(program.code, f"{uses} uses TLS", where=uses)
        return
    notes.ok(f"{program.name} asks for kernel TLS ({ktls})")
    if not first(program.stops):
        notes.add("D602", f"{ktls} asks for kernel TLS, and nothing stops at TLS 1.2",
                  program=program.name, where=uses, how=NO_13[program.name])  # fmt: skip
