"""Without a NIC that offloads, what `doctor --app` says of a program is what its connections then are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import PurePosixPath

import pytest

from offload.card.profile import DIRECTIONS
from offload.card.profile_model import ALL_CELLS
from offload.doctor.apps.judge import Answer
from offload.doctor.apps.run import ask
from offload.doctor.examine import Diagnosis, Doctor
from offload.doctor.library import Trial
from tests.lib.flow import apps, haproxy
from tests.lib.rig.rig import Rig

FILE = hashlib.shake_128(b"apps").digest(64 << 10)
SHA = hashlib.sha256(FILE).hexdigest()
GET = b"GET /file HTTP/1.0\r\n\r\n"
BODY = "\r\n\r\n"
CNF = "openssl_conf = a\n[a]\nssl_conf = b\n[b]\nsystem_default = c\n[c]\n{}\n"
GCM = "ssl_ciphers ECDHE+AESGCM"
TWELVE = f"ssl_protocols TLSv1.2; {GCM}"
CHACHA, CBC = "ECDHE-RSA-CHACHA20-POLY1305", "ECDHE-RSA-AES256-SHA384"


ALL = Trial(cells=dict.fromkeys(ALL_CELLS, 0), asked=frozenset(DIRECTIONS))  # test_11 tries it


class Shared:
    """What is made once for the tests of this file: what the doctor says of this lab, and a client."""

    def __init__(self) -> None:
        self.undo = ExitStack()
        self.diagnosis: Diagnosis | None = None
        self.client: apps.Client | None = None


@pytest.fixture(scope="module")
def shared() -> Iterator[Shared]:
    """Made when first asked for, ended after the last test of this file."""
    found = Shared()
    with found.undo:
        yield found


class Bench:
    """A folder on the DUT with a file to serve, and what the doctor says of a program here."""

    def __init__(self, rig: Rig, shared: Shared) -> None:
        self.rig, self.end, self.host, self.shared = rig, rig.end("dut"), rig.bench.dut.host, shared
        self.v4, self.folder = rig.bench.dut.v4, PurePosixPath(self.end.at.folder) / "apps"
        self.host.run(["mkdir", "-p", "-m", "755", f"{self.folder}/files"])
        self.host.write(f"{self.folder}/files/file", FILE, 0o644)
        if shared.client is None:
            shared.client = shared.undo.enter_context(apps.client(rig))
        self.connect = shared.client.connect

    def reported(self, app: str, path: str, **environment: str) -> Answer:
        """What `doctor --app` says of it."""
        if self.shared.diagnosis is None:
            self.shared.diagnosis = Doctor(self.host, trial=ALL).diagnose([self.rig.bench.dut.dev])
        return ask(self.host, app, path, diagnosis=self.shared.diagnosis, environment=environment)

    def put(self, name: str, text: str) -> str:
        """Write a file; its path."""
        self.host.write(f"{self.folder}/{name}", text.encode(), 0o644)
        return f"{self.folder}/{name}"

    def nginx(self, servers: str, name: str = "nginx.conf", more: str = "") -> str:
        """Write nginx.conf with these servers; its path."""
        temp = " ".join(
            f"{kind}_temp_path {self.folder}/{kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        at = self.end.at
        return self.put(
            name,
            (
                f"daemon off; pid {self.folder}/pid; error_log stderr warn; user root; worker_processes 1;\n"
                f"events {{ worker_connections 64; }}\nhttp {{ access_log off; sendfile on; {temp}\n"
                f"ssl_certificate {at.cert}; ssl_certificate_key {at.key}; root {self.folder}/files; {more}\n"
                f"{servers}\n}}\n"
            ),
        )


@pytest.fixture
def bench(rig: Rig, shared: Shared) -> Iterator[Bench]:
    """A folder on the DUT for this test's programs."""
    found = Bench(rig, shared)
    yield found
    found.host.run(["rm", "-rf", str(found.folder)])


def server(lines: str, address: str, port: int) -> str:
    """One server of nginx.conf."""
    return f"server {{ listen {address}:{port} ssl; {lines}; }}"


def run_nginx(path: str) -> list[str]:
    """The command that runs this nginx.conf."""
    return ["nginx", "-e", "stderr", "-c", path]


@pytest.mark.once
@pytest.mark.promise("enable.refuse")
@pytest.mark.requires("tls", "openssl", "nginx-server")
def test_nginx_as_its_lines_say(rig: Rig, bench: Bench) -> None:
    """Without a NIC each server of nginx.conf does what the doctor says: software, user space, by cell."""
    port = {key: rig.next_port() for key in ("D810", "D803", "D804", "D807", "D808", "D809", "D824")}
    v4, hidden = bench.v4, "ssl_conf_command Ciphersuites TLS_AES_256_GCM_SHA384"
    logs = [f"error_log {bench.folder}/{name} debug" for name in ("copied", "sent")]
    path = bench.nginx(
        "\n".join(
            [
                server("ssl_protocols TLSv1.2", v4, port["D810"]),
                server(f"{TWELVE}; {hidden}", v4, port["D803"]),
                server(f"{TWELVE}; ssl_conf_command Options -KTLS", v4, port["D804"]),
                server("ssl_protocols TLSv1.3", v4, port["D807"]),
                server(f"ssl_protocols TLSv1.2 TLSv1.3; {GCM}; sendfile off; {logs[0]}", v4, port["D808"]),
                server(f"ssl_protocols TLSv1.2; ssl_ciphers {CHACHA}", v4, port["D809"]),
                server(f"{TWELVE}; {logs[1]}", v4, port["D824"]),
                server(f"ssl_protocols TLSv1.2 TLSv1.3; {GCM}; server_name other.test", v4, port["D824"]),
            ]
        ),
        more="ssl_conf_command Options KTLS;",
    )
    reported = bench.reported("nginx", path)
    with apps.program(bench.host, run_nginx(path), port["D824"]):
        for code, more in (
            ("D810", {"ciphers": CBC}),
            ("D803", {}),
            ("D804", {}),
            ("D807", {"version": "1.3"}),
            ("D808", {"ciphers": "ECDHE-RSA-AES128-GCM-SHA256"}),
            ("D809", {"ciphers": CHACHA}),
            ("D824", {"version": "1.3", "sni": "other.test"}),
            ("D824", {}),
        ):
            seen = bench.connect(v4, port[code], ask=GET, after=BODY, **more)
            ruling = apps.of_port(
                reported, port[code], more.get("sni", "server at" if code == "D824" else "")
            )
            assert (code in apps.codes(ruling) or not more) and seen.sha256 == SHA
            apps.as_reported(ruling, seen)
            assert code != "D824" or seen.version == "1.2", "the default server decides"
    assert "D814" in apps.codes(apps.of_port(reported, port["D808"]))
    copied, sent = (bench.host.read(f"{bench.folder}/{name}") for name in ("copied", "sent"))
    assert b"SSL to write" in copied and b"SSL to sendfile" not in copied
    assert b"SSL to sendfile" in sent and "D814" not in apps.codes(ruling)


@pytest.mark.once
@pytest.mark.promise("enable.refuse")
@pytest.mark.requires("tls", "openssl", "nginx-server")
def test_nginx_as_openssl_cnf_says(rig: Rig, bench: Bench) -> None:
    """Without a NIC and a line in nginx.conf openssl.cnf decides; what nginx refuses is not understood."""
    port = rig.next_port()
    path, cnf = bench.nginx(server(TWELVE, bench.v4, port)), bench.put("k.cnf", CNF.format("Options = KTLS"))
    for environment, code, who in (({"OPENSSL_CONF": cnf}, "D821", "sw"), ({}, "D802", "user")):
        ruling = apps.of_port(bench.reported("nginx", path, **environment), port)
        with apps.program(bench.host, run_nginx(path), port, environment):
            seen = bench.connect(bench.v4, port, ask=GET, after=BODY)
        assert code in apps.codes(ruling) and (seen.sha256, seen.who["tx"]) == (SHA, who)
        apps.as_reported(ruling, seen)
    odd = f"include {bench.folder}/odd.conf;"
    bench.put("odd.conf", odd)
    path = bench.nginx(f"server {{ listen {port}; }} {odd}")
    assert {"D801", "D820"} == {f.code for f in bench.reported("nginx", path).findings}
    assert bench.host.run([*run_nginx(path), "-t"], check=False).rc != 0, "nginx takes an include of itself"
    path = bench.nginx(server("ssl_ciphers NONESUCH; ssl_conf_command Options KTLS", bench.v4, port))
    assert "D826" in apps.codes(apps.of_port(bench.reported("nginx", path), port))
    assert bench.host.run([*run_nginx(path), "-t"], check=False).rc != 0, "nginx takes a list without sense"


def service(name: str, port: int, bench: Bench, *lines: str) -> str:
    """One service of stunnel that sends back what comes."""
    head = [f"[{name}]", f"accept = {bench.v4}:{port}", "exec = /bin/cat", f"cert = {bench.end.at.cert}"]
    return "\n".join([*head, f"key = {bench.end.at.key}", "sslVersion = TLSv1.2", *lines, ""])


@pytest.mark.once
@pytest.mark.promise("enable.refuse")
@pytest.mark.requires("tls", "openssl", "stunnel")
def test_stunnel_as_its_lines_say(rig: Rig, bench: Bench) -> None:
    """Without a NIC each of stunnel's services does what the doctor says."""
    asks, silent, back = (rig.next_port() for _ in range(3))
    text = "foreground = yes\npid =\nsyslog = no\n" + "".join(
        [
            service("asks", asks, bench, "options = ENABLE_KTLS"),
            service("silent", silent, bench),
            service("back", back, bench, "options = -ENABLE_KTLS", "options = ENABLE_KTLS"),
        ]
    )
    path = bench.put("stunnel.conf", text)
    reported, small = bench.reported("stunnel", path), b"sent back" * 100
    with apps.program(bench.host, ["stunnel4", path], back):
        for port, code, who in ((asks, "", "sw"), (silent, "D802", "user"), (back, "D804", "user")):
            seen = bench.connect(bench.v4, port, ask=small, end=len(small))
            ruling = apps.of_port(reported, port)
            assert (not code or code in apps.codes(ruling)) and seen.who == {"tx": who, "rx": who}
            assert seen.sha256 == hashlib.sha256(small).hexdigest()
            apps.as_reported(ruling, seen)
    release = bench.host.run(["uname", "-r"]).text
    assert ("D825" in apps.codes(apps.of_port(reported, asks))) == release.startswith("6.1.")
    assert "D829" in apps.codes(apps.of_port(reported, asks)), "stunnel here runs with OpenSSL 3.0"
    assert "D829" not in apps.codes(apps.of_port(reported, silent)), "without kernel TLS OpenSSL copies"


@pytest.mark.once
@pytest.mark.promise("enable.refuse")
@pytest.mark.requires("tls", "openssl")
def test_openssl_as_its_file_says(rig: Rig, bench: Bench) -> None:
    """Without a NIC `openssl s_server` does what the doctor says of openssl.cnf: TLS 1.3, one direction."""
    port, at, line = rig.next_port(), bench.end.at, b"abc\n"
    argv = ["openssl", "s_server", "-accept", str(port), "-cert", at.cert, "-key", at.key, "-rev"]
    cnf = bench.put("k.cnf", CNF.format("Options = KTLS"))
    ruling = bench.reported("openssl", cnf).rulings[0]
    with apps.program(bench.host, argv, port, {"OPENSSL_CONF": cnf}):
        seen = bench.connect(bench.v4, port, version="1.3", ask=line, end=len(line))
    assert {"D827", "D808"} <= apps.codes(ruling) and seen.who["tx"] == "sw"
    release = bench.host.run(["uname", "-r"]).text
    assert ("D832" in apps.codes(ruling)) == (release.startswith(("6.1.", "6.12.")))
    assert seen.sha256 == hashlib.sha256(b"cba\n").hexdigest()
    assert ("D813" in apps.codes(ruling)) == (seen.who["rx"] == "user")
    apps.as_reported(ruling, seen)


@pytest.mark.once
@pytest.mark.promise("enable.refuse")
@pytest.mark.requires("tls", "openssl", "haproxy")
def test_haproxy_before_it_could(rig: Rig, bench: Bench) -> None:
    """Without a NIC HAProxy before 3.3 stays in user space, even if openssl.cnf asks for kernel TLS."""
    port, at, small = rig.next_port(), bench.end.at, FILE[:9000]
    both = bench.put("both.pem", bench.host.read(at.cert).decode() + bench.host.read(at.key).decode())
    bench.host.write(f"{bench.folder}/small", small, 0o644)
    path = bench.put(
        "haproxy.cfg",
        (
            "global\n maxconn 20\n nbthread 1\ndefaults\n mode http\n timeout client 30s\n"
            f"frontend www\n bind {bench.v4}:{port} ssl crt {both} "
            "ssl-max-ver TLSv1.2 ciphers ECDHE+AESGCM\n "
            "http-request return status 200 content-type text/plain "
            f"file {bench.folder}/small\n"
        ),
    )
    cnf = bench.put("ktls.cnf", CNF.format("Options = KTLS"))
    reported, argv = bench.reported("haproxy", path), ["haproxy", "-db", "-f", path]
    with apps.program(bench.host, argv, port, {"OPENSSL_CONF": cnf}):
        seen = bench.connect(bench.v4, port, ask=GET, after=BODY)
    assert reported.state() == "never" and "D805" in apps.codes(reported.rulings[0])
    assert seen.sha256 == hashlib.sha256(small).hexdigest() and set(seen.who.values()) == {"user"}
    apps.as_reported(reported.rulings[0], seen)


@pytest.mark.once
@pytest.mark.promise("enable.refuse")
@pytest.mark.requires("tls", "openssl", "haproxy-ktls")
def test_haproxy_as_its_lines_say(rig: Rig, bench: Bench) -> None:
    """Without a NIC HAProxy 3.4 does what the doctor says: by port, by TLS version, and after a KeyUpdate."""
    asks, silent, unexposed = (rig.next_port() for _ in range(3))
    small, folder = FILE[:9000], str(bench.folder)
    binds = {asks: "ktls on", silent: ""}
    with haproxy.instead(rig) as program:
        refused = haproxy.written(rig, f"{folder}/refused", small, {unexposed: "ktls on"})
        assert "D818" in apps.codes(bench.reported("haproxy", refused).rulings[0])
        assert bench.host.run([program, "-c", "-f", refused], check=False).rc != 0, "taken without the word"
        path = haproxy.written(rig, folder, small, binds, " expose-experimental-directives\n")
        rulings = dict(zip(binds, bench.reported("haproxy", path).rulings, strict=True))
        with apps.program(bench.host, [program, "-db", "-f", path], silent):
            for port, version, who in ((asks, "1.2", "sw"), (asks, "1.3", "sw"), (silent, "1.2", "user")):
                seen = bench.connect(bench.v4, port, version=version, ask=GET, after=BODY)
                assert (seen.version, seen.sha256) == (version, hashlib.sha256(small).hexdigest())
                assert seen.who["tx"] == who and ("D802" in apps.codes(rulings[port])) == (who == "user")
                apps.as_reported(rulings[port], seen)
            answered = haproxy.after_key_update(rig, asks, GET)
    assert (small in answered) == ("D832" not in apps.codes(rulings[asks])), answered[:2000]
