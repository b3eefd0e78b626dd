"""This NIC works for the connections of real programs as `doctor --app` says of their configuration."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from offload.card.counters import Snapshot
from offload.card.profile import DIRECTIONS, Cell, Profile
from offload.card.profile_model import ALL_CELLS
from offload.doctor.apps.run import ask
from offload.doctor.examine import Doctor
from offload.doctor.library import Trial
from tests.lib.flow import apps, haproxy
from tests.lib.rig.rig import Rig
from tests.lib.rig.switch import Switch

FILE = hashlib.shake_128(b"apps on a card").digest(64 << 10)
SHA = hashlib.sha256(FILE).hexdigest()
GET, BODY = b"GET /file HTTP/1.0\r\n\r\n", "\r\n\r\n"
ALL = Trial(cells=dict.fromkeys(ALL_CELLS, 0), asked=frozenset(DIRECTIONS))  # test_11 tries it
LINES = "ssl_protocols TLSv1.2 TLSv1.3; ssl_ciphers ECDHE+AESGCM"


def nginx(rig: Rig, folder: str, ports: tuple[int, int, int]) -> str:
    """Write nginx.conf on the DUT: a server that asks, one that does not, one on loopback; its path."""
    at, v4, asks = rig.end("dut").at, rig.bench.dut.v4, "ssl_conf_command Options KTLS;"
    rows = ((v4, ports[0], asks), (v4, ports[1], ""), ("127.0.0.1", ports[2], asks))
    servers = "\n".join(
        f"server {{ listen {host}:{port} ssl; {LINES}; {more} }}" for host, port, more in rows
    )
    temp = " ".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = (
        f"daemon off; pid {folder}/pid; error_log stderr warn; user root; worker_processes 1;\n"
        f"events {{ worker_connections 64; }}\nhttp {{ access_log off; sendfile on; {temp}\n"
        f"ssl_certificate {at.cert}; ssl_certificate_key {at.key}; root {folder};\n{servers}\n}}\n"
    )
    host = rig.bench.dut.host
    host.run(["mkdir", "-p", "-m", "755", folder])
    host.write(f"{folder}/file", FILE, 0o644)
    host.write(f"{folder}/nginx.conf", text.encode(), 0o644)
    return f"{folder}/nginx.conf"


@pytest.mark.once
@pytest.mark.promise("tools.honest")
@pytest.mark.requires("tls", "openssl", "nginx-server")
def test_nginx_does_what_doctor_says(
    rig: Rig, offload: Switch, profile: Profile, counters: Callable[[], Snapshot]
) -> None:
    """This NIC encrypts what nginx sends by sendfile where doctor says hw, and nothing where it does not."""
    offload.on()
    host, folder = rig.bench.dut.host, f"{rig.end('dut').at.folder}/apps-hw"
    asks, silent, here = ports = (rig.next_port(), rig.next_port(), rig.next_port())
    with ExitStack() as undo:
        undo.callback(host.run, ["rm", "-rf", folder])
        path = nginx(rig, folder, ports)
        diagnosis = Doctor(host, trial=ALL).diagnose([rig.bench.dut.dev])
        reported = ask(host, "nginx", path, diagnosis=diagnosis)
        undo.enter_context(apps.program(host, ["nginx", "-e", "stderr", "-c", path], here))
        far, before = undo.enter_context(apps.client(rig)), counters()
        both = set() if Cell("tx", "1.3", "aes-gcm-256") in profile.promises else {"D808"}
        for port, version, wanted in ((asks, "1.3", both), (silent, "1.2", {"D802"})):
            ruling = apps.of_port(reported, port)
            seen = far.connect(rig.bench.dut.v4, port, version=version, ask=GET, after=BODY)
            assert {"D808", "D802"} & {*apps.codes(ruling)} == wanted, ruling
            assert seen.sha256 == SHA and seen.version == version
            apps.as_reported(ruling, seen)
        ruling = apps.of_port(reported, asks)
        assert "D813" in apps.codes(ruling) or reported.app.library_version() >= (3, 2)
        for name in ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384"):
            seen = far.connect(rig.bench.dut.v4, asks, ciphers=name, ask=GET, after=BODY)
            who = "hw" if Cell("tx", "1.2", seen.cipher) in profile.promises else "sw"
            assert (seen.version, seen.sha256, seen.who["tx"]) == ("1.2", SHA, who), f"{name}: {seen}"
            apps.as_reported(ruling, seen)
        done = (counters() - before).get("tx_tls_encrypted_bytes", 0) or 0
        assert "tx" not in profile.directions() or done >= len(FILE), f"the card encrypted {done} bytes"
        near, ruling = undo.enter_context(apps.client(rig, "dut")), apps.of_port(reported, here)
        seen = near.connect("127.0.0.1", here, ask=GET, after=BODY)
        assert "D811" in apps.codes(ruling) and ruling.state() == "never" and seen.sha256 == SHA
        apps.as_reported(ruling, seen)


@pytest.mark.once
@pytest.mark.promise("tools.honest")
@pytest.mark.requires("tls", "openssl", "haproxy-ktls")
def test_haproxy_does_what_doctor_says(
    rig: Rig, offload: Switch, profile: Profile, counters: Callable[[], Snapshot]
) -> None:
    """This NIC encrypts what HAProxy 3.4 sends on a line with `ktls on`, and nothing of a line without."""
    offload.on()
    host, folder, small = rig.bench.dut.host, f"{rig.end('dut').at.folder}/haproxy-hw", FILE[:9000]
    asks, silent = rig.next_port(), rig.next_port()
    with ExitStack() as undo:
        undo.callback(host.run, ["rm", "-rf", folder])
        program, binds = undo.enter_context(haproxy.instead(rig)), {asks: "ktls on", silent: ""}
        path = haproxy.written(rig, folder, small, binds, " expose-experimental-directives\n")
        diagnosis = Doctor(host, trial=ALL).diagnose([rig.bench.dut.dev])
        rulings = dict(zip(binds, ask(host, "haproxy", path, diagnosis=diagnosis).rulings, strict=True))
        undo.enter_context(apps.program(host, [program, "-db", "-f", path], silent))
        far, before = undo.enter_context(apps.client(rig)), counters()
        for port, version, name in (
            (asks, "1.2", "ECDHE-RSA-AES128-GCM-SHA256"),
            (asks, "1.2", "ECDHE-RSA-AES256-GCM-SHA384"),
            (asks, "1.3", "ECDHE-RSA-AES256-GCM-SHA384"),
            (silent, "1.2", "ECDHE-RSA-AES128-GCM-SHA256"),
        ):
            seen = far.connect(rig.bench.dut.v4, port, version=version, ciphers=name, ask=GET, after=BODY)
            who = "hw" if Cell("tx", version, seen.cipher) in profile.promises else "sw"
            assert (seen.version, seen.sha256) == (version, hashlib.sha256(small).hexdigest())
            assert seen.who["tx"] == (who if port == asks else "user"), f"{port} {name}: {seen}"
            apps.as_reported(rulings[port], seen)
        done = (counters() - before).get("tx_tls_encrypted_bytes", 0) or 0
        assert "tx" not in profile.directions() or done >= len(small), f"the card encrypted {done} bytes"
