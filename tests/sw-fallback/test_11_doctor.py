"""Without a NIC that offloads `doctor` gives the reason, the kernel's first, and software does the work."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from offload.card.profile import Cell
from offload.cmd import settles
from offload.doctor import programs
from offload.doctor.examine import Diagnosis, Doctor
from offload.doctor.library import Trial
from offload.doctor.process.judge import Answer, ask
from offload.doctor.reasons import Notes
from offload.host.base import Completed, Host, Side
from offload.suite.traffic.drive import sending
from tests.lib.flow import proof
from tests.lib.flow.flow import Traffic
from tests.lib.life.life import Life
from tests.lib.rig.absent import taken_away
from tests.lib.rig.rig import Rig

RULE = "/etc/modprobe.d/ktls-offload-test.conf"
FILES = {
    "/etc/nginx/a.conf": "server {\n  listen 443 ssl;\n  # ssl_conf_command Options KTLS;\n}\n",
    "/etc/haproxy/haproxy.cfg": "frontend a\n  bind :443 ssl crt a.pem\n",
    "/etc/stunnel/a.conf": "[a]\naccept = 443\noptions = ENABLE_KTLS\n",
}
NGINX = """\
daemon off; user root; pid {at.folder}/doctor.pid; error_log stderr warn; events {{}}
http {{
  access_log off; client_body_temp_path {at.folder}/a; proxy_temp_path {at.folder}/b;
  fastcgi_temp_path {at.folder}/c; uwsgi_temp_path {at.folder}/d; scgi_temp_path {at.folder}/e;
  server {{
    listen {address}:8443 ssl;
    ssl_certificate {at.cert}; ssl_certificate_key {at.key};
    ssl_conf_command Options KTLS;
    {line}
  }}
}}
"""
PROGRAMS = [f"/usr/local/sbin/{name}" for name in ("nginx", "haproxy", "stunnel")]


def codes(found: Diagnosis) -> set[str]:
    """Every code in an answer."""
    return {f.code for f in (*found.findings, *(f for d in found.devices for f in d.findings))}


@pytest.mark.promise("enable.refuse")
@pytest.mark.requires("tls", "ktls-handoff", "stunnel", "openssl")
def test_the_driver_is_the_reason(dut: Side, traffic: Traffic, evidence: dict[str, Any]) -> None:
    """Without a NIC that offloads the answer is never, exit 11, and the table says software, which is so."""
    done = dut.host.run(
        [sys.executable, "-m", "offload", "doctor", dut.dev, "--json"], check=False, timeout=900
    )
    reported = json.loads(done.text)
    assert (done.rc, reported["state"]) == (11, "never"), done.text
    device = reported["devices"][0]
    assert [f["code"] for f in device["findings"]] == ["D205"]
    cells = {(row["direction"], row["version"], row["cipher"]): row for row in device["table"]}
    cell, plan = Cell("tx", "1.2", "aes-gcm-128"), sending("doctor sw", 64 << 10)
    assert (cells[tuple(cell)]["who"], cells[tuple(cell)]["why"]) == ("sw", "D205")
    assert {row["who"] for row in cells.values()} == {"sw"}, "the lab's kernels take all six"
    flow = traffic.sent(cell, plan)
    evidence["counters"] = flow.tls()
    proof.intact(flow.far, plan)
    proof.done_by_software(flow, "tx")


def of_process(life: Life, dut: Side) -> tuple[Answer, set[str]]:
    """What doctor says of the process that opens the connections of these tests, and every code in it."""
    found = ask(dut.host, life.near.pid)
    return found, {f.code for f in found.findings}


@pytest.mark.promise("enable.refuse")
@pytest.mark.requires("tls")
def test_a_process_learns_why(life: Life, dut: Side, evidence: dict[str, Any]) -> None:
    """Without a NIC that offloads each connection has its reason: no TLS, loopback, TLS 1.3, the driver."""
    assert "D902" in of_process(life, dut)[1], "no connection yet"
    clear = life.plain()
    found, why = of_process(life, dut)
    assert "D907" in why and found.state() == "unknown" and not found.connections
    here = life.open(host="127.0.0.1", far=life.near)
    out = life.open()
    newer = life.open(tls="1.3")
    found, why = of_process(life, dut)
    evidence["doctor"] = sorted(why)
    states = {(k.line.socket.device, k.line.socket.version): k.states for k in found.connections}
    assert states["lo", "1.2"] == {"tx": ("never", "D910"), "rx": ("never", "D910")}
    assert states[dut.dev, "1.2"] == {"tx": ("never", "D205"), "rx": ("never", "D205")}
    assert states[dut.dev, "1.3"] == {"tx": ("off", "D908"), "rx": ("off", "D908")}
    assert {"D205", "D907", "D908", "D910"} <= why and len(found.others) == 1
    life.close(here)  # both ends are those of one program
    life.close([*newer, *out, *clear])


@pytest.mark.promise("enable.refuse")
@pytest.mark.requires("tls", "lab")
def test_the_module_is_the_reason(dut: Side) -> None:
    """Without a NIC and module tls that is the reason: not loaded, blocked by a rule, or not there at all."""
    host = dut.host
    try:
        gone = settles(lambda: host.run(["rmmod", "tls"], check=False).rc == 0, 30)
        assert gone, "connections of an earlier test still hold the module"
        found = Doctor(host).diagnose([])
        assert {"D106", "D201", "D503"} <= codes(found) and found.state() == "never"
        assert host.run(["test", "-e", "/proc/net/tls_stat"], check=False).rc != 0, "it loaded the module"
        host.write(RULE, b"install tls /bin/false\n", 0o644)
        assert {"D108"} <= codes(Doctor(host).diagnose([]))
        host.run(["rm", RULE])
        with hidden(host, "/lib/modules"):
            assert {"D107"} <= codes(Doctor(host).diagnose([]))
        with taken_away(host, "modprobe"):
            assert {"D112"} <= codes(Doctor(host).diagnose([]))
    finally:
        host.run(["rm", "-f", RULE])
        host.run(["modprobe", "tls"])
    assert not codes(Doctor(host).diagnose([])) & {"D106", "D107", "D108", "D503"}


class Reported:
    """A host whose programs are told that its kernel is Linux 2.6, by the kernel itself (personality(2))."""

    def __init__(self, host: Host) -> None:
        self.name, self.read, self.write, self.start, self._host = (
            host.name,
            host.read,
            host.write,
            host.start,
            host,
        )

    def run(self, argv: Sequence[str], **more: Any) -> Completed:
        """Run to the end; see Host.run."""
        return self._host.run(["setarch", "--uname-2.6", *argv], **more)


@pytest.mark.promise("enable.refuse")
@pytest.mark.requires("tls", "lab")
def test_an_old_kernel_is_the_reason(dut: Side) -> None:
    """Without a NIC and on a kernel older than TLS offload that is the reason, for both directions."""
    found = Doctor(Reported(dut.host), trial=Trial(why="not what is asked here")).diagnose([dut.dev])
    old = next(f for f in found.findings if f.code == "D101")
    assert "Linux 2.6." in old.what and set(old.directions) == {"tx", "rx"}
    assert {state for state, _ in found.devices[0].states.values()} == {"never"}


@contextmanager
def hidden(host: Host, folder: str) -> Iterator[None]:
    """Nothing in a folder, while the block runs."""
    host.run(["mount", "-t", "tmpfs", "none", folder])
    try:
        yield
    finally:
        host.run(["umount", folder])


@pytest.mark.promise("enable.refuse")
@pytest.mark.requires("tls", "lab")
def test_servers_are_read(dut: Side) -> None:
    """Without a NIC servers that do not ask for kernel TLS, or offer TLS 1.3, are named with their file."""
    with ExitStack() as undo:
        for path, text in FILES.items():
            folder = path.rpartition("/")[0]
            dut.host.run(["mkdir", "-p", folder])
            undo.enter_context(hidden(dut.host, folder))
            dut.host.write(path, text.encode(), 0o644)
        for path in PROGRAMS:
            undo.callback(dut.host.run, ["rm", "-f", path])
            dut.host.write(path, b"#!/bin/sh\n", 0o755)
        found = Doctor(dut.host).diagnose([])
        dut.host.write("/etc/stunnel/a.conf", b"[a]\naccept = 443\n", 0o644)
        again = Doctor(dut.host, trial=found.trial).diagnose([])
    reported = {f.code: f for f in found.findings}
    assert "D603" in {f.code for f in again.findings}
    assert "/etc/nginx/a.conf:2" in reported["D601"].what, reported["D601"]
    assert {"D604", "D602"} <= set(reported) and "stunnel" in reported["D602"].what
    assert "D603" not in reported, "stunnel asks for it"


@pytest.mark.promise("enable.refuse")
@pytest.mark.requires("tls", "lab", "nginx-server", "openssl")
def test_what_is_said_of_nginx_is_so(dut: Side, rig: Rig, evidence: dict[str, Any]) -> None:
    """Without a NIC nginx is said to offer TLS 1.3 when a client gets it, and only then."""
    end, reported, gets = rig.end("dut"), {}, {}
    with ExitStack() as undo:
        dut.host.run(["mkdir", "-p", "/etc/nginx"])
        undo.enter_context(hidden(dut.host, "/etc/nginx"))
        for line in ("", "ssl_protocols TLSv1.2 TLSv1.3;", "ssl_protocols TLSv1.2;"):
            text = NGINX.format(at=end.at, address=dut.v4, line=line)
            dut.host.write("/etc/nginx/nginx.conf", text.encode(), 0o644)
            notes = Notes()
            programs.examine(dut.host, notes)
            reported[line] = "D602" in {f.code for f in notes.findings}
            server = dut.host.start(["nginx", "-c", "/etc/nginx/nginx.conf"])
            try:
                client = ["openssl", "s_client", "-connect", f"{dut.v4}:8443"]
                up = settles(lambda: dut.host.run(client, check=False).rc == 0, 60)  # noqa: B023
                assert up, server.output()
                gets[line] = dut.host.run([*client, "-tls1_3"], check=False).rc == 0
            finally:
                server.kill(9)
                server.wait(120)
    evidence.update(reported=reported, gets=gets)
    assert gets["ssl_protocols TLSv1.2 TLSv1.3;"] and not gets["ssl_protocols TLSv1.2;"], "the trial is none"
    assert reported == gets
