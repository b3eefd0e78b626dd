"""doctor --app: whatever files and programs say, there is an answer, and no byte steers a terminal."""

from __future__ import annotations

import json
import random
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from offload.card.profile import DIRECTIONS
from offload.doctor.apps import files
from offload.doctor.apps.document import as_json
from offload.doctor.apps.run import APPS, ask
from offload.doctor.apps.text import as_text
from offload.doctor.examine import Diagnosis, Doctor
from offload.errors import OffloadError
from offload.host.local import LocalHost
from tests.unit.doctor.fake_apps import APP_CASES, CNF, PATHS, AppHost
from tests.unit.doctor.test_apps import PROFILES, answer, codes
from tests.unit.doctor.test_doctor_hostile import clean

ESC = "\x1b]0;owned\x07\x1b[2J"
NASTY = (
    "",
    "\x00",
    ESC,
    "{" * 3000,
    "}" * 3000,
    '"',
    "'",
    "\\",
    "[",
    "[]",
    "[\x1b[31m]",
    "$" * 500,
    "${",
    "a{" * 500,
    f"http {{ server {{ listen {ESC} ssl; server_name {ESC}; }} }}",
    "http { server { listen ; } }",
    "include;",
    "include x y;",
    "include /etc/nginx/*;",
    "http { server { listen 1 ssl; ssl_conf_command; ssl_protocols; ssl_ciphers -V; } }",
    "frontend\n bind\n bind ssl\n server ssl\n server a b ssl",
    f"frontend {ESC}\n bind {ESC} ssl",
    ".include = /usr/lib/ssl/openssl.cnf",
    "openssl_conf = $x",
    "a = b\\\n" * 100,
    f"[{ESC}]\naccept = {ESC}\noptions = ENABLE_KTLS\nciphers = {ESC}",
    "include = /etc/stunnel",
    "= =\n=",
    "content_by_lua_block { { } } x;",
    "9" * 5000,
    "\ufeff\ufeff",
    "a\u2028b\x85c",
    "\udcff\udcfe;",
    "openssl_conf = default",
)


@cache
def diagnosis(release: str, version: str) -> Diagnosis:
    """What doctor says of a host itself: it asks none of these programs and reads none of their files."""
    host = AppHost()
    host.release, host.version = release, version
    return Doctor(host, DIRECTIONS, PROFILES).diagnose(["eth0"])


def reported(host: AppHost, app: str) -> None:
    """Both forms of the answer about a program are sound."""
    found = ask(host, app, "", diagnosis=diagnosis(host.release, host.version))
    assert clean(as_text(found)) and clean(as_text(found, verbose=True))
    document = as_json(found)
    assert document.isascii() and clean(document) and json.loads(document)["schema"] == 1


@pytest.mark.parametrize("app", APPS)
def test_any_file_may_hold_anything(app: str) -> None:
    """Each program's file may be any nonsense: an answer, or an error for a person."""
    for nonsense in NASTY:
        host = AppHost()
        host.put(app, nonsense)
        with suppress(OffloadError):
            reported(host, app)


@pytest.mark.parametrize(
    "words",
    [
        ("nginx", "-V"),
        ("haproxy", "-vv"),
        ("stunnel", "-options"),
        ("openssl", "version"),
        ("openssl", "version", "-d"),
    ],
)
def test_any_program_may_say_anything(words: tuple[str, ...]) -> None:
    for app, make in (APP_CASES["D810"], APP_CASES["D804"], APP_CASES["D818"], APP_CASES["D827"]):
        for nonsense in (*NASTY, "nginx/9.9.9.9.9", "stunnel 99999 on ", 'OPENSSLDIR: "/\x1b"'):
            host = AppHost()
            make(host)
            host.said[words] = (len(nonsense) % 2, nonsense, nonsense)
            with suppress(OffloadError):
                reported(host, app)


@pytest.mark.parametrize("seed", range(12))
def test_any_byte_may_be_another(seed: int) -> None:
    """Files with bytes changed, left out or repeated give no traceback."""
    chance = random.Random(seed)
    for app, make in APP_CASES.values():
        host = AppHost()
        make(host)
        data = bytearray(host.files[PATHS[app]])
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(data))
            odd = chance.choice(
                [b"", b"{", b"}", b'"', b";", b"\n", b"\xff", b"\x1b[31m", b"\\", b"#", b" ", b"="]
            )
            data[at : at + chance.randrange(4)] = odd
        host.files[PATHS[app]] = bytes(data)
        with suppress(OffloadError):
            reported(host, app)


@pytest.mark.parametrize(
    ("app", "line"),
    [
        ("nginx", "include nginx.conf;\n"),
        ("stunnel", "include = /etc/stunnel\n"),
        ("openssl", f".include {CNF}\n"),
    ],
)
def test_includes_without_end(app: str, line: str) -> None:
    """A file that includes itself many times is read once, and the place is named."""
    host = AppHost()
    make = next(make for name, make in APP_CASES.values() if name == app)
    make(host)
    host.files[PATHS[app]] = line.encode() * 50 + host.files[PATHS[app]]
    began = time.process_time()
    found = answer(host, app)
    assert time.process_time() - began < 30 and found.app.files and len(found.app.files.read) < 4
    assert "D820" in codes(found) and any(f"{PATHS[app]}:1" in f.what for f in found.findings)


def test_files_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree of includes, and a file too long, end at a bound that is said."""
    monkeypatch.setattr(files, "MAX_FILES", 20)
    host = AppHost()
    for depth in range(30):
        host.files[f"/etc/nginx/{depth}"] = f"include {depth + 1}; include {depth + 2};".encode()
    host.put("nginx", "include 0;")
    found = answer(host, "nginx")
    assert found.app.files and len(found.app.files.read) == 20
    assert any("more than 20 files" in f.what for f in found.findings)
    host.files["/etc/nginx/0"] = b"#" * (files.MAX_BYTES + 1)
    assert any("longer than 1 MiB" in f.what for f in answer(host, "nginx").findings)


def test_patterns_are_no_commands(tmp_path: Path) -> None:
    """A pattern with a shell's words in it is only a pattern; a pipe does not hold anybody."""
    found = files.Files(LocalHost())
    (tmp_path / "a b.conf").write_text("x")
    assert found.matching(f"{tmp_path}/*.conf") == [f"{tmp_path}/a b.conf"]
    for odd in ("$(touch {t}/no)*", "*;touch {t}/no", "`touch {t}/no`?", "* {t}/no", "-n*"):
        found.matching(odd.replace("{t}", str(tmp_path)))
    assert not (tmp_path / "no").exists()
    assert found.text(f"{tmp_path}/none") is None and "No such file" in found.problems[0][1]
    assert found.text(str(tmp_path)) is None and found.text("/dev/zero") is None
