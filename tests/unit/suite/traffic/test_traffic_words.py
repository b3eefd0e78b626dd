"""The traffic room writes the right commands and configurations, and takes any report."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from offload.card.profile_model import ALL_CELLS
from offload.cmd import wait_until
from offload.suite.traffic import certs, drive, handoff, openssl, stunnel
from offload.suite.traffic.certs import Placed

AT = Placed("/run/x", "/run/x/ca.pem", "/run/x/cert.pem", "/run/x/key.pem")


@pytest.mark.parametrize("cell", ALL_CELLS, ids=str)
def test_every_cell_has_an_openssl_name(cell: tuple[str, str, str]) -> None:
    """Each version and cipher of a profile is one that this OpenSSL has."""
    _, version, cipher = cell
    name = handoff.CIPHERS[version, cipher]
    known = subprocess.run(["openssl", "ciphers", "-s", "ALL"], capture_output=True, text=True).stdout
    assert name in known.strip().split(":")


def test_handoff_command_verifies_and_names_no_key() -> None:
    """A connecting helper always verifies; the key is a path, never a value."""
    argv = handoff.connect("192.0.2.2", 4433, AT.ca, cipher="aes-gcm-128")
    assert argv[1:6] == ["connect", "192.0.2.2", "4433", "--ca", AT.ca]
    assert "--no-verify" not in argv
    assert handoff.accept("192.0.2.1", 4433, AT)[4:8] == ["--cert", AT.cert, "--key", AT.key]


def test_handoff_line_may_have_more_and_less() -> None:
    """Null values and unknown keys in the helper's line are no error."""
    line = handoff.parse({"ok": True, "tx": "hw", "rx_seq": None, "peer": None, "new": 1})
    assert line is not None and (line.tx, line.peer) == ("hw", "")
    assert handoff.parse(None) is None


def test_stunnel_configuration_is_plain() -> None:
    """A service says what is wanted and nothing else, so that the rest is stunnel's default."""
    text = stunnel.config([stunnel.Service("s", ":::1", "127.0.0.1:2", version="1.3", ciphers="X")], AT)
    assert "[s]\naccept = :::1\nconnect = 127.0.0.1:2\n" in text
    assert "sslVersion = TLSv1.3\nciphersuites = X\n" in text
    assert "KTLS" not in text and "client" not in text
    client = stunnel.config([stunnel.Service("c", "127.0.0.1:1", "192.0.2.1:2", client=True)], AT)
    assert "client = yes\nCAfile = /run/x/ca.pem\nverifyChain = yes\n" in client


def test_openssl_client_brackets_ipv6_and_verifies() -> None:
    """s_client reaches an IPv6 address and ends if the certificate is not ours."""
    argv = openssl.client("fd00:2::1", 4433, AT, version="1.3")
    assert "[fd00:2::1]:4433" in argv and "-verify_return_error" in argv and "-tls1_3" in argv


def test_openssl_server_reads_no_certificates_of_the_system(tmp_path: Path) -> None:
    """s_server is up without a look at the bundle of certificates that it knows of."""
    pair = certs.make([])
    for name, content in (("ca.pem", pair.ca), ("cert.pem", pair.cert), ("key.pem", pair.key)):
        (tmp_path / name).write_bytes(content)
    at = certs.Placed(str(tmp_path), *(str(tmp_path / name) for name in ("ca.pem", "cert.pem", "key.pem")))
    bundle = tmp_path / "fifo"
    os.mkfifo(bundle)  # who opens it waits for ever
    argv = [word for word in openssl.server(0, at) if word != "-quiet"]
    said = tmp_path / "said"
    with said.open("wb") as out:
        child = subprocess.Popen(argv, stdout=out, env={**os.environ, "SSL_CERT_FILE": str(bundle)})
    try:
        wait_until(lambda: b"ACCEPT" in said.read_bytes(), 20, "s_server to listen")
    finally:
        child.kill()
        child.wait()


def test_plan_splits_and_hashes() -> None:
    """A plan's writes add up, and its hash is that of the bytes that the pump makes."""
    plan = drive.sending("seed", 100_000, 30_000)
    assert plan.sizes == (30_000, 30_000, 30_000, 10_000) and plan.total == 100_000
    assert plan.sha256() == hashlib.sha256(hashlib.shake_128(b"seed").digest(100_000)).hexdigest()


def test_pump_answers_nonsense_and_goes_on(tmp_path: Path) -> None:
    """A command that makes no sense is refused in words, and the next one is obeyed."""
    asks = b'nonsense\n{"do": "transfer", "id": 1}\n{"do": "listen", "id": 2}\n'
    (tmp_path / "pump.zip").write_bytes(drive.archive())
    argv = [sys.executable, "-I", "-S", str(tmp_path / "pump.zip")]
    done = subprocess.run(argv, input=asks, capture_output=True)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [e["event"] for e in events if e["event"] != "done"] == ["ready", "refused", "listening"]
    assert [e for e in events if e["event"] == "done"][0]["error"].startswith("KeyError")
    assert done.returncode == 0
