"""What a migration has to show of its transport, and what it took as evidence."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from offload.card.counters import Delta
from offload.card.profile import find
from offload.errors import RigError
from offload.suite.measure.cpu import meter as cpu
from offload.suite.report import migration as report
from tests.lib.flow.migration import Guest, Moved, Status
from tests.lib.flow.migration_cost import ARMS, Move, Ran, active, by_card, cipher_of, proved, skipped

GUEST = Guest()
STATUS = Status(0, 6, 7, 20, GUEST.pages, 9, 5)
MOVED = Moved("completed", 900, 90, 3 << 20, 3)
LINE = {"tx": "hw", "kernel_cipher": "aes-gcm-256"}
HELD = {"bytes": 5 << 20, "sha256": "0"}
RAN = Ran(MOVED, STATUS, LINE, 1000, (0.123, 0.4), ({"cores": 1.5, "margin": 0.1}, {}), HELD)
NAMES = ("TlsTxDevice", "TlsTxSw", "tx_tls_encrypted_bytes")


def transport(*counted: int, **more: Any) -> Move:
    """A migration, and what was counted."""
    return Move(replace(RAN, **more), Delta("eth0", 1.0, dict(zip(NAMES, counted, strict=True))))


def test_cipher_is_one_that_the_card_takes() -> None:
    """Every transport has the cipher that the card promises; a transport that cannot be has a reason."""
    assert [cipher_of(find(name)) for name in ("connectx-6-dx", "chelsio-t6")] == [
        "aes-gcm-256",
        "aes-gcm-128",
    ]
    none = replace(find("chelsio-t6"), promises=frozenset())
    assert cipher_of(none) == "aes-gcm-256" and not by_card(none)
    real = SimpleNamespace(
        profile=none, bench=SimpleNamespace(simulated=False, dut=SimpleNamespace(host=None))
    )
    assert [arm for arm in ARMS if skipped(arm, real)] == ["ktls-hw"]  # type: ignore[arg-type]
    real.bench.simulated, real.profile = True, find("chelsio-t6")
    assert [arm for arm in ARMS if skipped(arm, real)] == ["qemu-tls"]  # type: ignore[arg-type]


def test_evidence_is_what_the_report_reads() -> None:
    """The row of a migration is read by the report, and has the names that it has there."""
    transports = [{"transport": arm, "runs": [RAN.row()]} for arm in ARMS]
    found = {
        "schema": report.SCHEMA,
        "simulated": True,
        "transports": transports,
        "guest": {},
        "about": {},
        "skipped": [],
    }
    test = {"id": "a", "outcome": "pass", "reason": "", "evidence": {"migrations": found}}
    reported = report.section([test], True)["transports"]
    assert [one["transport"] for one in reported] == list(ARMS) == list(report.TRANSPORTS)
    assert (reported[0]["seconds"], reported[0]["arrived"], reported[0]["ends"][0]["cores"]) == (
        0.9,
        1.0,
        1.5,
    )
    assert reported[0]["ends"][1] == {"end": "destination", "cpu_seconds": 0.4, "cores": None, "margin": None}


def test_each_transport_is_what_it_is_called() -> None:
    """A transport is believed if socket, kernel and card agree with its name."""
    proved("ktls-hw", transport(1, 0, 3 << 20), "aes-gcm-256", GUEST)
    proved("ktls-sw", transport(0, 1, 0, line=LINE | {"tx": "sw"}), "aes-gcm-256", GUEST)
    proved("plain", transport(0, 0, 0, line={}), "aes-gcm-256", GUEST)


@pytest.mark.parametrize(
    ("name", "found", "said"),
    [
        ("plain", transport(0, 1, 0), "plain: counted"),
        ("ktls-hw", transport(0, 1, 0), "ktls-hw: counted"),
        ("ktls-hw", transport(1, 0, (3 << 20) - 1), "the card encrypted 3145727"),
        ("ktls-hw", transport(1, 0, 3 << 20, line=LINE | {"tx": "sw"}), "ktls-hw: {'tx': 'sw'"),
        ("ktls-hw", transport(1, 0, 3 << 20, line=LINE | {"kernel_cipher": "x"}), "'kernel_cipher': 'x'"),
        (
            "plain",
            transport(0, 0, 0, moved=replace(MOVED, copied=GUEST.pages * 4096 - 1)),
            "less than the guest",
        ),
        ("plain", transport(0, 0, 0, guest=replace(STATUS, written=0)), "wrote nothing"),
    ],
)
def test_another_path_is_noticed(name: str, found: Move, said: str) -> None:
    """A stream that took another transport, or did not flow, is no figure."""
    with pytest.raises(AssertionError) as caught:
        proved(name, found, "aes-gcm-256", GUEST)
    assert said in str(caught.value)


def shot(at: float, idle: int, host: str = "a") -> cpu.Snapshot:
    """One CPU, idle for so many ticks of 10 ms."""
    return cpu.Snapshot(
        host, at, 0.001, 100, {0: dict.fromkeys(cpu.COLUMNS, 0) | {"idle": idle, "user": int(at)}}
    )


def test_cores_are_reported_where_they_can_be() -> None:
    """A host's cores are those of the migration; if that is too short they are left out."""

    def meter(now: cpu.Snapshot) -> Any:
        return SimpleNamespace(snapshot=lambda: now)

    assert active(shot(0, 0), meter(shot(10, 750)))["cores"] == pytest.approx(0.25)
    assert active(shot(0, 0), meter(shot(0.005, 0))) == {} == active(shot(0, 0), meter(shot(9, 1, "b")))
    with pytest.raises(RigError):
        shot(9, 1, "b") - shot(0, 0)
