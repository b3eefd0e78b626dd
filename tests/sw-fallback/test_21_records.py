"""Without a NIC that offloads the kernel's records are byte for byte right, and no key is left anywhere."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from offload.card.profile import Cell
from offload.suite.traffic.drive import Sending, sending
from tests.lib.flow import proof
from tests.lib.flow.flow import Several, Traffic
from tests.lib.rig.rig import Rig
from tests.lib.wire import secrets
from tests.lib.wire.wire import WireTap

pytestmark = pytest.mark.requires("tls", "ktls-handoff", "stunnel", "openssl", "wire", "wire-tap")
TX = Cell("tx", "1.2", "aes-gcm-128")
# as in tests/hw/2_bytes/test_21_records.py: ends of records, and of segments
EDGES = {
    "write": (1, 16383, 1, 16384, 1, 16385, 2, 32767, 32768, 32769, 1),
    "sendfile": tuple(n * mss - 29 + d for mss in (1448, 1428) for n in (1, 2, 11) for d in (-1, 0, 1)),
}
WHOLE = {size % 16384 for sizes in EDGES.values() for size in sizes} - {0} | {16384}


@pytest.mark.promise("wire.records")
@pytest.mark.cells("all")
def test_records_of_software(
    traffic: Traffic, wire_tap: WireTap, evidence: dict[str, Any], cell: Cell
) -> None:
    """Without a NIC that offloads each version and cipher has the records that a correct sender makes."""
    plan = Several(tuple(Sending(f"sw records {cell} {how}", sizes, how) for how, sizes in EDGES.items()))
    family = 6 if cell.cipher == "aes-gcm-256" else 4
    with wire_tap.open() as watch:
        if cell.direction == "tx":
            flow = traffic.sent(cell, plan, family=family)
            seen = watch.proves(evidence, "client", plan.total, payload=plan.content())
            proof.intact(flow.far, plan)
            proof.done_by_software(flow, "tx")
            assert {int(size) for size in seen["sizes"]} >= WHOLE, (
                "the records are not those that were written"
            )
            assert (seen["protected"], seen["closed"]) == (seen["app_records"] + 2, "close_notify")
            return
        single = plan.parts[0]
        if cell.version == "1.3":  # OpenSSL before 3.2 has no kTLS receive for TLS 1.3; stunnel is the client
            flow = traffic.received_by_openssl(cell, single)
            watch.proves(evidence, "client", single.total, payload=single.content())
        else:
            flow = traffic.received(cell, single, family=family)
            watch.proves(evidence, "server", single.total, reply=single.content())
            own = watch.document()["connections"][0]["from_client"]
            assert (own["protected"], own["closed"]) == (2, "close_notify")
        proof.intact(flow.dut, single)


@pytest.mark.promise("wire.records")
def test_records_of_connections_at_once(
    traffic: Traffic, wire_tap: WireTap, evidence: dict[str, Any]
) -> None:
    """Without a NIC that offloads the records of four connections at the same time are kept apart."""
    plans = [sending(f"sw at once {number}", 1 << 17, 20_000 + number) for number in range(4)]
    with wire_tap.open() as watch:
        flows = traffic.sent_at_once(TX, plans)
        for plan, (port, flow) in zip(plans, flows.items(), strict=True):
            watch.proves(evidence, "client", plan.total, payload=plan.content(), port=port)
            proof.intact(flow.far, plan)
        together = watch.document()
        assert (together["outcome"], len(together["connections"])) == ("equal", 4)


# Two tests of a run of its own: one passes, one fails, with all shown that pytest can show. Each stands in
# the middle of its connection until somebody has looked for its keys.
INNER = '''
"""Two connections whose keys must not be found."""
from pathlib import Path
import pytest
from offload.cmd import wait_until
from offload.card.profile import Cell
from offload.suite.traffic.drive import send, sending, take

@pytest.mark.parametrize("number", [1, 2])
def test_inner(traffic, wire_tap, evidence, number):
    """Without a NIC the keys of this connection stay in memory."""
    plan, before = sending("inner", 1 << 17, gate=1), traffic.rig.counters()
    with wire_tap.open() as watch:
        with traffic.behind_stunnel(take()) as (port, far):
            argv = traffic.argv(Cell("tx", "1.3", "aes-gcm-256"), port)
            near = traffic.dut.pump.handoff(argv, send(plan))
            near.at_gate()
            wait_until(Path(__file__).with_name(f"seen-{number}").exists, 600, "somebody to look")
            near.go()
            flow = traffic.ended(near, far, before)
        print(vars(watch), vars(wire_tap), vars(traffic), flow, watch.document(), vars(watch))
        evidence["watch"] = vars(watch) | vars(wire_tap)
        payload = plan.content() if number == 1 else plan.content()[::-1]
        watch.proves(evidence, "client", plan.total, payload=payload)
'''


def test_no_key_is_found_after_a_run(rig: Rig, pytestconfig: pytest.Config, tmp_path: Path) -> None:
    """Without a NIC a run's keys are in its key log alone, and nowhere once it is over, also if it failed."""
    test, out = tmp_path / "sw-fallback" / "test_inner.py", tmp_path / "results"
    test.parent.mkdir()
    out.mkdir()
    test.write_text(INNER)
    options = f"-vv -rA -l -p tests.conftest -p no:cacheprovider --attach {rig.lab.name}"
    argv = [sys.executable, "-m", "pytest", *options.split(), str(test), "-c", str(pytestconfig.inipath)]
    argv += ["--events", str(out / "events.jsonl"), "--junitxml", str(out / "junit.xml")]
    log = out / "output.txt"
    with log.open("wb") as output:
        with subprocess.Popen(argv, stdout=output, stderr=output, cwd=pytestconfig.rootpath) as run:
            try:
                lines, places = follow(run, rig, test.parent)
            finally:
                run.terminate()
    needles = secrets.forms(lines)
    text = log.read_text()
    assert "1 failed, 1 passed" in text, text[-3000:]
    assert len({line.split()[1] for line in lines.splitlines()}) == 2, "not every key was seen"
    assert places and all("/keys-" in place for place in places), f"keys are in {places}"
    assert list((out / "captures").glob("*.pcapng")), "the failed test kept no capture: is it looked at?"
    assert secrets.in_files(needles, tmp_path, rig.lab.folder / "console.log", rig.lab.out) == []
    assert secrets.in_guest(needles, rig.lab.root) == []


def follow(run: subprocess.Popen[bytes], rig: Rig, folder: Path) -> tuple[bytes, set[str]]:
    """Return the key log lines that a run wrote, and every place in the guest where they were meanwhile."""
    lines: set[bytes] = set()
    places: set[str] = set()
    deadline = time.monotonic() + 900
    while run.poll() is None:
        assert time.monotonic() < deadline, "the inner run does not end"
        now = rig.lab.root.run(["sh", "-c", "cat /run/ktls-offload-*/keys-*"], check=False).stdout
        if new := secrets.whole(now) - lines:
            lines |= new
            places |= set(secrets.in_guest(secrets.forms(b"".join(new)), rig.lab.root))
            (folder / f"seen-{len({line.split()[1] for line in lines})}").touch()
        time.sleep(0.1)
    return b"".join(sorted(lines)), places
