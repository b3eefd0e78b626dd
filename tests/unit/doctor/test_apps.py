"""doctor --app: each reason comes from the line that it names, and the remedy takes it away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from offload.card.profile import DIRECTIONS, load_all
from offload.cli.main import main
from offload.doctor.apps.document import as_json
from offload.doctor.apps.judge import Answer
from offload.doctor.apps.run import APPS, ask
from offload.doctor.apps.text import as_text
from offload.doctor.examine import EXITS, Doctor
from offload.doctor.reasons import load
from offload.errors import ConfigError
from tests.unit.doctor.fake_apps import (
    APP_CASES,
    CNF,
    CNF_KTLS,
    FILES,
    HAPROXY,
    NGINX_36,
    PATHS,
    STORAGE,
    STUNNEL,
    AppHost,
    changed,
    said,
)
from tests.unit.doctor.fake_doctor import feature

PROFILES = load_all()
SCHEMA = Path(__file__).parents[3] / "offload/doctor/schema/doctor-app-1.schema.json"


def answer(host: AppHost, app: str, path: str = "", **more: Any) -> Answer:
    """The answer about a program of a recorded host, for eth0."""
    found = Doctor(host, DIRECTIONS, PROFILES).diagnose(["eth0"])
    return ask(host, app, path, diagnosis=found, **more)


def codes(found: Answer) -> set[str]:
    return {f.code for f in (*found.findings, *(f for r in found.rulings for f in r.findings))}


def cells(found: Answer, at: int = 0) -> dict[str, str]:
    """Who does what of a service: `tx 1.2 aes-gcm-128` -> hw."""
    return {" ".join(w.cell): w.who for w in found.rulings[at].cells}


@pytest.mark.parametrize("app", sorted({*APPS} - {*STORAGE}))
def test_a_good_configuration_is_ready(app: str) -> None:
    """A program that asks, with TLS 1.2 and AES-GCM only, is offloaded in both directions."""
    host = AppHost()
    changed(app)(host)
    found = answer(host, app)
    assert found.state() == "ready" and len(found.rulings) == 1
    assert codes(found) <= {"D827"} and set(cells(found).values()) == {"hw"}
    assert len(cells(found)) == 4, "two ciphers, two directions"


@pytest.mark.parametrize("code", APP_CASES)
def test_a_line_gives_its_code(code: str) -> None:
    """Each condition is found, with the state of its level, a place and a line to write."""
    app, make = APP_CASES[code]
    host = AppHost()
    make(host)
    found = answer(host, app)
    assert code in codes(found)
    level = load()[code].level
    if level in ("never", "off"):
        assert found.state() == level
    reported = [
        f for f in (*found.findings, *(f for r in found.rulings for f in r.findings)) if f.code == code
    ]
    assert all(f.remedy and "{" not in f.remedy + f.what + f.consequence for f in reported)
    if code not in ("D827", "D822", "D805", "D806", "D819", "D801", "D821", "D835"):
        assert PATHS[app] in reported[0].what + reported[0].evidence + reported[0].remedy


def test_remedies_lead_to_ready() -> None:
    """The lines of the remedies, written where they say, make an offloaded service of nginx."""
    host = AppHost()
    lines = "events {}\nhttp {\nserver {\n listen 443 ssl;\n server_name www;\n}\n}\n".splitlines()
    for code in ("D802", "D810", "D814"):
        host.put("nginx", "\n".join(lines))
        reported = {f.code: f for f in answer(host, "nginx").rulings[0].findings}
        place, _, line = reported[code].remedy.partition(": ")
        lines.insert(int(place.rpartition(":")[2]), line.partition("  # ")[0])
    host.put("nginx", "\n".join(lines))
    found = answer(host, "nginx")
    assert found.state() == "ready" and not codes(found), codes(found)


def test_versions_that_nobody_wrote() -> None:
    """nginx 1.22 offers TLS 1.2 by default, 1.24 also TLS 1.3."""
    host = AppHost()
    changed("nginx", ("ssl_protocols TLSv1.2;", ""))(host)
    assert answer(host, "nginx").rulings[0].service.versions.text == "1.2"
    host.said["nginx", "-V"] = (0, "", "nginx version: nginx/1.24.0\nbuilt with OpenSSL 3.0.19")
    assert answer(host, "nginx").rulings[0].service.versions.text == "1.2 1.3"


def test_who_does_what() -> None:
    """A table says hw, sw or user per cell: TLS 1.3 receives in user space with OpenSSL 3.0."""
    host = AppHost()
    changed("nginx", ("TLSv1.2;", "TLSv1.2 TLSv1.3;"), ("ECDHE+AESGCM", "HIGH"))(host)
    found = cells(answer(host, "nginx"))
    assert found["tx 1.2 aes-gcm-128"] == found["rx 1.2 aes-gcm-256"] == "hw"
    assert found["tx 1.2 chacha20-poly1305"] == found["tx 1.3 aes-gcm-256"] == "sw"
    assert found["rx 1.3 aes-gcm-256"] == found["tx 1.2 other"] == "user"


def test_the_card_decides_last() -> None:
    """Without a NIC's switch on, a good configuration is off for the reason of the card."""
    host = AppHost()
    changed("nginx")(host)
    host.change("tls-hw-rx-offload", feature(False))
    ruling = answer(host, "nginx").rulings[0]
    assert ruling.states == {"tx": ("ready", ""), "rx": ("off", "D301")} and ruling.state() == "off"
    host.fix()
    assert answer(host, "nginx").state() == "unknown", "the card may lack the license"


def test_an_openssl_cnf_of_the_environment() -> None:
    """OPENSSL_CONF names the file that asks for every program, and a line of its own wins."""
    host = AppHost()
    host.files["/x.cnf"] = CNF_KTLS.encode()
    changed("nginx", ("ssl_conf_command Options KTLS;", ""))(host)
    assert codes(answer(host, "nginx")) == {"D802"}
    assert codes(answer(host, "nginx", environment={"OPENSSL_CONF": "/x.cnf"})) == {"D821"}
    changed("nginx", ("Options KTLS", "options -ktls"))(host)
    assert "D804" in codes(answer(host, "nginx", environment={"OPENSSL_CONF": "/x.cnf"}))


def test_what_nginx_printed() -> None:
    """The output of `nginx -T` is read as the files that it shows."""
    host = AppHost()
    text = FILES["nginx"].replace("server {", "include /etc/nginx/sites/*;\nserver {")
    site = "server { listen 8443 ssl; server_name b; }\n"
    shown = {"/etc/nginx/nginx.conf": text, "/etc/nginx/sites/b": site}
    host.files["/srv/dump"] = "".join(f"# configuration file {p}:\n{t}\n" for p, t in shown.items()).encode()
    found = answer(host, "nginx", "/srv/dump")
    assert [(r.service.name, r.service.where) for r in found.rulings] == [
        ("b", "/etc/nginx/sites/b:1"),
        ("www", "/etc/nginx/nginx.conf:5"),
    ]


def test_one_address_in_other_words() -> None:
    """nginx does TLS at each server of an address, however it is written, if it does."""
    host = AppHost()
    more = (
        "server { listen *:443; server_name any; }\nserver { listen 0.0.0.0:443; server_name zero; }\n"
        "server { listen 80; server_name plain; }\nserver { listen 127.0.0.1 ssl; server_name port; }\n"
        "server { listen 127.0.0.1:80; server_name same; }\nserver { listen 8443 ssl; server_name _;\n"
        "ssl_conf_command Options -KTLS; ssl_reject_handshake on; }\n"
    )
    changed("nginx", ("server {", f"{more}server {{"))(host)
    found = answer(host, "nginx")
    assert [r.service.name for r in found.rulings] == ["any", "zero", "port", "same", "www"], found.rulings
    assert not codes(found) & {"D804", "D824"}


def test_haproxy_defaults_reach_its_lines() -> None:
    """What `defaults`, default-server and global say counts for HAProxy's lines."""
    host = AppHost()
    host.put(
        "haproxy",
        "global\n ssl-default-bind-options no-tlsv13\n ssl-default-bind-ciphers ECDHE+AESGCM\n"
        " expose-experimental-directives\ndefaults d\n default-server ssl ktls on force-tlsv12\n"
        'frontend "a b"\n bind :443 ssl crt a.pem ktls on # no\nbackend b from d\n server one 192.0.2.1:443\n'
        " server two 192.0.2.2:80 no-ssl\n server-template s 1-3 a.test:443\n",
    )
    early = HAPROXY.format("+").replace("3.4.7", "3.4.0")
    host.said["haproxy", "-vv"] = (0, early, "")
    found = answer(host, "haproxy")
    assert [r.service.where.rpartition(":")[2] for r in found.rulings] == ["8", "10", "12"]
    assert found.rulings[2].service.name == "backend b server s a.test:443"
    assert found.state() == "ready" and codes(found) == {"D823", "D810"}


@pytest.mark.parametrize(
    ("wording", "library"),
    [
        ("SSL library version : OpenSSL 3.5.7 9 Jun 2026 (VERSIONS DIFFER!)", "OpenSSL 3.5.7"),  # 3.4.7
        ("OpenSSL version : OpenSSL 3.0.19 27 Jan 2026", "OpenSSL 3.0.19"),  # 2.6.12
    ],
)
def test_haproxy_says_its_library_in_two_ways(wording: str, library: str) -> None:
    """The TLS library that HAProxy runs on is found, and with it the library's own bug."""
    host = AppHost()
    said = HAPROXY.format("+").replace("SSL library version : OpenSSL 3.6.5 29 Sep 2026", wording)
    host.put("haproxy", FILES["haproxy"])
    host.said["haproxy", "-vv"] = (0, said, "")
    found = answer(host, "haproxy")
    assert found.app.library == library and "D829" in codes(found)


@pytest.mark.parametrize(
    ("app", "pair", "line"),
    [
        ("haproxy", ("ktls on ", "${MORE} "), 4),
        ("haproxy", (":443", '"$ADDRESS"'), 4),
        ("haproxy", ("frontend", " ssl-default-bind-options $MORE\nfrontend"), 3),
        ("openssl", ("= KTLS", "= $default::more"), 7),
        ("openssl", ("= KTLS", "= ${ENV::MORE}"), 7),
        ("openssl", ("Options", "nonsense\nOptions"), 7),
        ("nginx", ("server {", "} server {"), 8),
    ],
)
def test_what_is_not_followed_is_named(app: str, pair: tuple[str, str], line: int) -> None:
    """A variable in a line that counts, or a line that is none, is unknown, with its place."""
    host = AppHost()
    changed(app, pair)(host)
    found = answer(host, app)
    reported = [f.what for f in found.findings if f.code == "D820"]
    assert len(reported) == 1 and f"{PATHS[app]}:{line}: " in reported[0], reported


@pytest.mark.parametrize(
    ("library", "moves"),
    [
        ("OpenSSL 3.0.22", True),
        ("OpenSSL 3.5.9", True),
        ("OpenSSL 3.6.2", True),
        ("OpenSSL 3.6.3", False),
        ("OpenSSL 4.0.0", True),
        ("OpenSSL 4.0.1", False),
        ("OpenSSL 4.1.0", False),
        ("AWS-LC 1.5.0", False),
    ],
)
def test_a_buffer_that_moves(library: str, moves: bool) -> None:
    """stunnel and HAProxy move their buffers, which OpenSSL got wrong until 3.6.3; nginx does not."""
    for app, text in (("stunnel", STUNNEL), ("haproxy", HAPROXY.format("+")), ("nginx", NGINX_36)):
        host, old = AppHost(), "OpenSSL 3.6.5" if app == "haproxy" else "OpenSSL 3.6.3"
        command = {"stunnel": "stunnel -options", "haproxy": "haproxy -vv", "nginx": "nginx -V"}[app]
        assert old in text
        said(app, command, text.replace(old, library))(host)
        assert ("D829" in codes(answer(host, app))) == (moves and app != "nginx"), app
    host = AppHost()
    said("stunnel", "stunnel -options", STUNNEL.replace("3.6.3", "3.0.22"), ("options = ENABLE_KTLS", ""))(
        host
    )
    assert "D829" not in codes(answer(host, "stunnel")), "without kernel TLS OpenSSL copies what it sends"


@pytest.mark.parametrize(
    ("says", "pairs", "reported"),
    [
        (NGINX_36, [("http2 on;", "http2 on;")], True),
        (NGINX_36, [("http2 on;", ""), ("443 ssl", "443 ssl http2")], True),
        (NGINX_36, [("http2 on;", "")], False),
        (NGINX_36, [("http2 on;", "http2 on; lingering_close off;")], False),
        (NGINX_36.replace("3.6.3", "3.1.6"), [], False),
    ],
)
def test_http2_closes_with_an_error(says: str, pairs: list[tuple[str, str]], reported: bool) -> None:
    """nginx meets EIO with HTTP/2, lingering_close and OpenSSL 3.2 or newer, all three."""
    host = AppHost()
    said("nginx", "nginx -V", says, ("server_name www;", "http2 on;"), *pairs)(host)
    assert ("D830" in codes(answer(host, "nginx"))) == reported


@pytest.mark.parametrize(
    ("version", "lines", "reported"),
    [
        ("3.4.2", "defaults\n option splice-auto\n", True),
        ("3.3.15", "defaults\n option splice-response\n", True),
        ("3.4.3", "defaults\n option splice-auto\n", False),
        ("3.4.2", "defaults\n", False),
        ("3.4.2", "defaults\n option splice-auto\n no option splice-auto\n", False),
    ],
)
def test_a_key_update_that_splicing_meets(version: str, lines: str, reported: bool) -> None:
    """HAProxy before 3.4.3 loops on a KeyUpdate where it splices, and only there."""
    host = AppHost()
    says = HAPROXY.format("+").replace("3.4.7", version)
    said("haproxy", "haproxy -vv", says, ("global", f"{lines}global"), (" ssl-max-ver TLSv1.2", ""))(host)
    assert ("D831" in codes(answer(host, "haproxy"))) == reported


def test_keys_that_cannot_change() -> None:
    """A kernel before 6.14 keeps the first keys of TLS 1.3; TLS 1.2 has no KeyUpdate."""
    for release, lines, reported in (
        ("6.12.95-amd64", "TLSv1.3;", True),
        ("6.14.2-amd64", "TLSv1.3;", False),
        ("6.12.95-amd64", "TLSv1.2;", False),
    ):
        host = AppHost()
        changed("nginx", ("TLSv1.2;", lines))(host)
        host.release, host.version = release, "#1 SMP"
        assert ("D832" in codes(answer(host, "nginx"))) == reported, (release, lines)


def test_storage_is_never_on_a_card() -> None:
    """NFS and NVMe/TCP speak TLS 1.3 only: never on a card, in software where the kernel has it, and why."""
    host = AppHost()
    host.files |= {
        "/proc/mounts": STORAGE["nfs"].encode(),
        "/etc/fstab": b"192.0.2.9:/x /mnt nfs4 vers=4.2,xprtsec=mtls 0 0\n# x:/y /z nfs xprtsec=tls 0 0\n",
        "/etc/exports": b"/srv *(rw,xprtsec=none:tls)\n/open *(rw)\n",
        "/sys/kernel/config/nvmet/ports/1/addr_tsas": b"tls1.3\n",
        "/sys/kernel/config/nvmet/ports/2/addr_tsas": b"none\n",
        PATHS["nvme"]: b"1a2b3c4d\n",
    }
    found = answer(host, "nfs")
    assert [r.service.name for r in found.rulings] == [
        "mount /mnt",
        "export /srv",
    ] and found.state() == "never"
    assert found.rulings[0].service.address == "192.0.2.9" and found.app.library == "ktls-utils 1.3.0"
    assert codes(found) == {"D833"} and set(cells(found).values()) == {"sw"}
    found = answer(host, "nvme")
    assert [(r.service.name, r.service.side) for r in found.rulings] == [("nvme0", "client"), ("1", "server")]
    assert codes(found) == {"D833", "D834"} and found.state() == "never"
    host.release = "7.2.12+deb13-amd64"
    found = answer(host, "nfs")
    stalls = [f.what for r in found.rulings for f in r.findings if f.code == "D836"]
    assert len(stalls) == 1 and "mount /mnt" in stalls[0], "the server's side was not tried"
    host.release = "6.1.0-56-amd64"
    reported = answer(host, "nfs")
    assert "D805" in codes(reported) and "NFS of Linux 6.1 has no kernel TLS" in str(
        reported.rulings[0].findings
    )
    host.files["/proc/mounts"] = host.files["/etc/fstab"] = host.files["/etc/exports"] = b""
    assert codes(answer(host, "nfs")) == {"D801"}, "no mount asks for TLS"


def test_stunnel_takes_from_above() -> None:
    """stunnel's options above the first service reach each, and a minus wins."""
    host = AppHost()
    host.put(
        "stunnel",
        "\ufeffoptions = ENABLE_KTLS\nsslVersion = TLSv1.2\nciphers = ECDHE+AESGCM\n; x\n[a]\naccept = 1\n"
        "[b]\nclient = yes\nconnect = 192.0.2.1:2\noptions = -ENABLE_KTLS\n",
    )
    found = answer(host, "stunnel")
    assert [r.state() for r in found.rulings] == ["ready", "off"] and "D804" in codes(found)
    assert found.rulings[1].service.title() == "[b] 192.0.2.1:2"


def test_the_document_fits_its_schema() -> None:
    """Each answer fits the published schema, which refuses one without a key."""
    judge = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    judge.check_schema(judge.schema)
    for code, (app, make) in APP_CASES.items():
        host = AppHost()
        make(host)
        found = answer(host, app)
        document = json.loads(as_json(found))
        judge.validate(document)
        assert document["exit"] == EXITS[found.state()], code
        for key in document:
            assert not judge.is_valid({k: v for k, v in document.items() if k != key}), key
    for part in ("app", "device", "services"):
        inner = document[part][0] if part == "services" else document[part]
        for key in list(inner):
            less = {k: v for k, v in inner.items() if k != key}
            assert not judge.is_valid({**document, part: [less] if part == "services" else less}), key


def test_text_names_place_and_line() -> None:
    """The page shows each server with its state, and the line to write with its place."""
    host = AppHost()
    changed("nginx", ("ssl_conf_command Options KTLS;", ""))(host)
    text = as_text(answer(host, "nginx"))
    assert "www 443  /etc/nginx/nginx.conf:4\n  transmit  off " in text
    assert "    do    after /etc/nginx/nginx.conf:5: ssl_conf_command Options KTLS;\n" in text


def test_no_configuration_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is not there is an error for a person, exit 2, as is --config alone."""
    host = AppHost()
    with pytest.raises(ConfigError, match="nginx: no configuration at /etc/nginx/nginx.conf"):
        answer(host, "nginx")
    assert main(["doctor", "--app", "nginx", "--config", "/nowhere/x"]) == 2
    assert "No such file" in capsys.readouterr().err
    assert main(["doctor", "--config", CNF]) == 2
    assert "--config needs --app" in capsys.readouterr().err
