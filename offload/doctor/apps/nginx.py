"""nginx: every server that does TLS, with what its levels say; http, stream and mail alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from offload.doctor.apps import known, openssl
from offload.doctor.apps.conf import Settings
from offload.doctor.apps.files import Files
from offload.doctor.apps.model import DEFAULT, SUITES, App, Said, Service
from offload.doctor.apps.nginx_file import Directive, Parser
from offload.doctor.versions import dots, numbers
from offload.host.base import Host

PATH = "/etc/nginx/nginx.conf"
ASK = "ssl_conf_command Options KTLS;"
STOP = "ssl_protocols TLSv1.2;"
CIPHERS = "HIGH:!aNULL:!MD5"  # ngx_http_ssl_module.c, NGX_DEFAULT_CIPHERS  # codespell:ignore
GCM = "ssl_ciphers ECDHE+AESGCM;"
FIRST = (1, 19, 4)  # ssl_conf_command; CHANGES
SENDFILE = (1, 21, 4)  # SSL_sendfile; CHANGES, commit 1fc61b7b1
BY_DEFAULT_13 = (1, 23, 4)  # commit 7b24b93d6
HELLO = (1, 29, 2)  # the TLS version follows the name since the ClientHello callback, commit 0373fe5d9
BUFFER = 16 << 10
NAMES = {"TLSv1.2": "1.2", "TLSv1.3": "1.3"}


@dataclass(frozen=True)
class Server:
    """A server block with the levels around it, the innermost first, and its addresses that do TLS."""

    levels: tuple[Directive, ...]
    listens: tuple[Directive, ...]

    @property
    def block(self) -> Directive:
        return self.levels[0]

    def said(self, name: str, default: str) -> Said:
        """A directive that a level takes from the one around it."""
        for level in self.levels:
            if found := level.last(name):
                return Said(" ".join(found.words), str(found.at))
        return Said(default)

    def commands(self) -> tuple[list[Directive], list[Directive]]:
        """The ssl_conf_command lines that count, and those that they hide: a level has all or none."""
        groups = [found for level in self.levels if (found := level.all("ssl_conf_command"))]
        return (groups[0] if groups else []), [d for group in groups[1:] for d in group]


def look(files: Files, path: str, environment: Mapping[str, str]) -> App:
    """nginx and its configuration: `path` is nginx.conf or what `nginx -T` printed."""
    host = files.host
    version, library = installed(host)
    app = App("nginx", version, library, files=files)
    base = openssl.base(Files(host), environment)
    app.lent = base.ask
    root = Parser(files, files.unpack(path or PATH)).root
    servers = [s for kind in ("http", "stream", "mail") for s in _servers(root, kind)]
    first = _defaults(servers)
    for server in servers:
        refuses = server.said("ssl_reject_handshake", "off").text == "on"
        if not refuses and any(_tls(server, d, servers) for d in server.listens):
            app.services.append(_service(server, servers, first, app, base))
    return app


def installed(host: Host) -> tuple[tuple[int, ...], str]:
    """nginx's version, and the OpenSSL that it runs with."""
    done = host.run(["nginx", "-V"], check=False, timeout=20)
    said = done.stderr.decode("utf-8", "replace") + done.text
    found = re.search(r"nginx/([0-9.]{1,20})", said)
    library = re.search(r"running with (\w+ [0-9.]{1,20})", said) or re.search(
        r"built with (\w+ [0-9.]{1,20})", said
    )
    return (numbers(found[1]) if found else ()), (library[1] if library else "")


def _servers(root: Directive, kind: str) -> Iterator[Server]:
    """Every server of http, stream or mail."""
    for outer in root.all(kind):
        for block in outer.all("server"):
            listens = tuple(d for d in block.all("listen") if d.words)
            yield Server((block, outer), listens)


def _tls(server: Server, listen: Directive, servers: Sequence[Server]) -> bool:
    """Say whether an address does TLS: `ssl` on any server's listen of it is enough."""
    if server.said("ssl", "off").text == "on":  # until nginx 1.25.1
        return True
    same = (
        d
        for s in servers
        for d in s.listens
        if _address(d) == _address(listen) and s.levels[1:] == server.levels[1:]
    )
    return any({"ssl", "quic"} & set(d.words[1:]) for d in same)


def _address(listen: Directive) -> str:
    """An address in one form: to nginx `443`, `*:443` and `0.0.0.0:443` are one; the port is 80 if unsaid."""
    word = listen.words[0]
    if word.startswith("unix:"):
        return word
    host, colon, port = word.rpartition(":")
    if word.isdigit():
        host, port = "*", word
    elif not colon or word.endswith("]"):
        host, port = word, "80"
    return f"{'*' if host == '0.0.0.0' else host}:{port}"


def _defaults(servers: Sequence[Server]) -> dict[str, Server]:
    """The default server of each address: the one that says so, or the first."""
    first: dict[str, Server] = {}
    for server in servers:
        for listen in server.listens:
            if {"default_server", "default"} & set(listen.words[1:]):
                first[_address(listen)] = server
            first.setdefault(_address(listen), server)
    return first


def _protocols(server: Server, app: App) -> Said:
    """The versions of TLS that a server's own lines offer."""
    wide = not app.version or app.version >= BY_DEFAULT_13
    said = server.said("ssl_protocols", "TLSv1.2 TLSv1.3" if wide else "TLSv1.2")
    return Said(" ".join(NAMES[w] for w in said.text.split() if w in NAMES), said.where)


def _service(
    server: Server, servers: Sequence[Server], first: Mapping[str, Server], app: App, base: Settings
) -> Service:
    """One server, judged by its own lines and those around it."""
    conf, (mine, hidden) = base, server.commands()
    for command in mine:
        conf = conf.after(
            command.words[0] if command.words else "", " ".join(command.words[1:]), str(command.at)
        )
    tls = [d for d in server.listens if _tls(server, d, servers)]
    names = server.said("server_name", "")
    put = (server.block.last("listen") or server.block).at
    found = Service(
        name=names.text.split()[0] if names.text else f"server at {server.block.at}",
        where=str(server.block.at),
        side="server",
        address=", ".join(d.words[0] for d in tls),
        ask=conf.ask or Said(""),
        versions=_limited(_protocols(server, app), conf, base),
        ciphers=_own(conf.ciphers, base.ciphers) or server.said("ssl_ciphers", CIPHERS),
        suites=conf.suites or Said(SUITES),
        put=f"after {put}",
        line=ASK,
        stop=STOP,
        gcm=GCM,
    )
    _hidden(found, mine, hidden, base)
    _transport(found, tls)
    _default(found, server, tls, first, app)
    if server.levels[1].name == "http":
        _files(found, server, app)
        _http2(found, server, tls, app)
    return found


def _own(said: Said | None, outer: Said | None) -> Said | None:
    """Return what ssl_conf_command says; nginx overwrites what openssl.cnf does."""
    return said if said != outer else None


def _limited(versions: Said, conf: Settings, base: Settings) -> Said:
    """MaxProtocol and its like by ssl_conf_command; nginx overwrites those of openssl.cnf."""
    high, low = _own(conf.highest, base.highest), _own(conf.lowest, base.lowest)
    left = versions
    if high and high.text.lower() != "tlsv1.3":
        left = Said("1.2" if "1.2" in left.text and high.text.lower() == "tlsv1.2" else "", high.where)
    if low and low.text.lower() == "tlsv1.3":
        left = Said("1.3" if "1.3" in left.text else "", low.where)
    return left


def _hidden(found: Service, mine: Sequence[Directive], hidden: Sequence[Directive], base: Settings) -> None:
    """Note an ssl_conf_command around that asks, and does not count here."""
    outer = base
    for command in hidden:
        outer = outer.after(
            command.words[0] if command.words else "", " ".join(command.words[1:]), str(command.at)
        )
    if not found.ask.text and outer.ask and outer.ask.text == "on":
        put = f"after {mine[-1].at}"
        found.notes.add(
            "D803",
            f"{mine[-1].at}: ssl_conf_command {' '.join(mine[-1].words)}",
            name=found.title(),
            by=str(mine[-1].at),
            asked=outer.ask.where,
            put=put,
            line=ASK,
        )


def _transport(found: Service, tls: Sequence[Directive]) -> None:
    """Note what no card is asked about: QUIC, and sockets of this host."""
    kinds = {
        "QUIC": [d for d in tls if "quic" in d.words[1:]],
        "a Unix socket": [d for d in tls if d.words[0].startswith("unix:")],
    }
    for kind, listens in kinds.items():
        if listens:
            code = "D812" if len(listens) == len(tls) else "D828"
            found.notes.add(
                code,
                f"{listens[0].at}: listen {' '.join(listens[0].words)}",
                name=found.title(),
                kind=kind,
                where=str(listens[0].at),
            )


def _default(
    found: Service, server: Server, tls: Sequence[Directive], first: Mapping[str, Server], app: App
) -> None:
    """TLS's version is chosen before the name is known: by the default server of the address."""
    if app.version >= HELLO:
        return
    for listen in tls:
        other = first[_address(listen)]
        chosen = _protocols(other, app)
        if other is not server and chosen.text != _protocols(server, app).text:
            where = chosen.where if chosen.where != DEFAULT else str(other.block.at)
            seen = f"{listen.at}: listen {listen.words[0]}; default server at {other.block.at}"
            found.notes.add(
                "D824", seen, name=found.title(), other=where, mine=found.versions.where, line=STOP
            )
            found.versions = Said(chosen.text, where)
            return


def _files(found: Service, server: Server, app: App) -> None:
    """How files go out: by sendfile or not."""
    sendfile, buffer = server.said("sendfile", "off"), server.said("ssl_buffer_size", "16k")
    if sendfile.text != "on" or (app.version and app.version < SENDFILE):
        where = (
            sendfile.where if app.version >= SENDFILE or not app.version else f"nginx before {dots(SENDFILE)}"
        )
        found.notes.add(
            "D814", f"{where}: sendfile {sendfile.text}", name=found.title(), where=where, put=found.put
        )
    elif (aio := server.said("aio", "off")).text.startswith("threads"):
        found.notes.add("D815", f"{aio.where}: aio {aio.text}", name=found.title(), where=aio.where)
    if (size := _bytes(buffer.text)) is not None and size < BUFFER:
        found.notes.add(
            "D816",
            f"{buffer.where}: ssl_buffer_size {buffer.text}",
            name=found.title(),
            size=buffer.text,
            where=buffer.where,
        )


def _http2(found: Service, server: Server, tls: Sequence[Directive], app: App) -> None:
    """HTTP/2, by `http2 on` or a word of a listen line, and whether nginx reads on after its end."""
    said, linger = server.said("http2", "off"), server.said("lingering_close", "on")
    where = said.where if said.text == "on" else ""
    where = where or next((str(d.at) for d in tls if "http2" in d.words[1:]), "")
    known.lingering_http2(app, found, where, linger.where if linger.text != "off" else "")


def _bytes(text: str) -> int | None:
    """16384 of `16k`; None for what is no size."""
    found = re.fullmatch(r"([0-9]{1,9})([kKmM]?)", text)
    return int(found[1]) << {"": 0, "k": 10, "m": 20}[found[2].lower()] if found else None
