"""Weaknesses that the profile of mlx5 notes, shown with the real mlx5_core on a simulated ConnectX-6 Dx."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from offload.card.counters import tls_stat
from offload.cmd import settles
from offload.debian.kernels import fetch
from offload.driver.build import place
from offload.driver.kinds import kind
from offload.host.base import Host
from offload.suite.bench.cards.silicon import Silicon
from offload.suite.bench.lab import traffic
from offload.suite.bench.vm import cards, qemu
from offload.suite.bench.vm.lab import Lab
from tests.lib.catalogue import real_driver
from tests.lib.catalogue.real_driver import by_card, dev
from tests.lib.rig.rig import Labs
from tests.lib.wire.records_trace import TRACING

MORE = 8 << 20  # bytes: hundreds of records
RULES = 65535  # receive flows per IP family (en_accel/fs_tcp.c:175)
GROUPS = "events/mlx5/mlx5_fs_add_fg/enable"
DECRYPTED, ASKED = "rx_tls_decrypted_packets", "rx_tls_resync_req_pkt"


@pytest.fixture(scope="module")
def lab(pytestconfig: pytest.Config, labs: Labs) -> Iterator[Lab]:
    """Two simulated ConnectX-6 Dx that offload both ways; skipped where nobody has built the driver."""
    with real_driver.lab(pytestconfig, labs) as booted:
        on = ["ethtool", "-K", dev(booted), "tls-hw-tx-offload", "on", "tls-hw-rx-offload", "on"]
        booted.bench.dut.host.run(on)
        yield booted


@pytest.mark.long
def test_a_crash_kernel_has_no_tls(
    pytestconfig: pytest.Config, labs: Labs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that a crash starts has this word on its command line (mlx5-no-tls-in-switchdev)."""
    clock = qemu.tsc_khz
    monkeypatch.setattr(qemu, "tsc_khz", lambda: f"{clock()} elfcorehdr=0x1000000")
    with real_driver.lab(pytestconfig, labs) as lab:
        said = lab.bench.dut.host.run(["ethtool", "-k", dev(lab)]).text
    assert [f"tls-hw-{way}-offload: off [fixed]" in said for way in ("tx", "rx")] == [True, True]


@pytest.fixture
def silicon(lab: Lab) -> Iterator[Silicon]:
    """The cards' knobs, which are all back to 0 afterwards."""
    asked = Silicon(Path(lab.folder) / cards.CONTROL)
    yield asked
    asked.turn(0, "all", 0)


def counted(lab: Lab, name: str) -> int:
    """A counter of the DUT's port."""
    said = lab.bench.dut.host.run(["ethtool", "-S", dev(lab)]).text
    return next(int(line.split()[1]) for line in said.splitlines() if line.strip().startswith(f"{name}:"))


def after(flow: traffic.Flow, size: int) -> Callable[[], bool]:
    """Whether so many bytes more have arrived."""
    end = flow.moved()["rx"][1] + size
    return lambda: flow.moved()["rx"][1] >= end


def unasked(lab: Lab, flow: traffic.Flow) -> bool:
    """Whether the card asked for no resync while so many bytes arrived: none waits for its answer now."""
    asked = counted(lab, ASKED)
    assert settles(after(flow, MORE), 120), flow.lost()
    return counted(lab, ASKED) == asked


@pytest.fixture(scope="module")
def patient(pytestconfig: pytest.Config) -> None:
    """A driver that waits for ever; skipped if it cancels: the model's card asks no second time (a guess)."""
    release = fetch(pytestconfig.getoption("--kernel")).release
    source = next(place(kind("mlx5"), release, None).rglob("en_accel/ktls_rx.c"))
    if "tls_offload_rx_resync_async_request_cancel" in source.read_text():
        pytest.skip(f"the driver of {release} cancels a resync without an answer")


@pytest.mark.long
@pytest.mark.usefixtures("patient")
def test_a_resync_without_an_answer_is_never_cancelled(lab: Lab, silicon: Silicon) -> None:
    """Once the card has not answered one, hundreds of records stay in software (mlx5-resync-stuck)."""
    with ExitStack() as undo:
        flow = traffic.Flow(lab, undo)
        assert flow.open("rx") == "hw"
        found, asked = counted(lab, DECRYPTED), counted(lab, ASKED)
        assert settles(lambda: counted(lab, DECRYPTED) > found + 100, 60), "nothing decrypted"
        silicon.turn(0, "rx-no-resync-answer", 1)
        silicon.turn(0, "rx-drop", 40)
        assert settles(lambda: counted(lab, ASKED) > asked, 60), "no resync was asked for"
        assert settles(lambda: silicon.truth(0)["rx-no-resync-answer"] > 0, 60), "the card was not asked"
        silicon.turn(0, "rx-drop", 0)
        assert settles(lambda: unasked(lab, flow), 120), "the card asks again and again"
        silicon.turn(0, "all", 0)
        found = counted(lab, DECRYPTED)
        assert unasked(lab, flow), "the card has asked again"
        assert counted(lab, DECRYPTED) == found
        assert counted(lab, "rx_tls_resync_res_skip") == 0
    assert by_card(lab) == {"hw"}


def by_kernel(lab: Lab) -> int:
    """How many connections the DUT's kernel has given to the card to receive."""
    return (tls_stat(lab.bench.dut.host)[0] or {})["TlsRxDevice"]


@pytest.mark.long
def test_a_rule_that_fails_is_not_reported(lab: Lab, silicon: Silicon) -> None:
    """The kernel says hardware; the card decrypts nothing, also later (mlx5-rx-rule-fails-silently)."""
    with ExitStack() as undo:
        flow = traffic.Flow(lab, undo)
        silicon.turn(0, "rx-no-rule", 1)
        given, found = by_kernel(lab), counted(lab, DECRYPTED)
        assert flow.open("rx") == "hw"
        assert settles(lambda: silicon.truth(0)["rx-no-rule"] == 1, 60), "no rule was asked for"
        silicon.turn(0, "all", 0)
        assert settles(after(flow, MORE), 120), flow.lost()
        assert (by_kernel(lab), counted(lab, DECRYPTED)) == (given + 1, found)
    assert by_card(lab) == {"hw"}


@pytest.mark.long
def test_a_rule_without_room_is_asked_for_without_end(lab: Lab, silicon: Silicon) -> None:
    """The driver repeats the command until there is room; then the card decrypts (mlx5-rx-rule-endless)."""
    with ExitStack() as undo:
        flow = traffic.Flow(lab, undo)
        silicon.turn(0, "rx-no-room", 1)
        found = counted(lab, DECRYPTED)
        assert flow.open("rx") == "hw"
        assert settles(lambda: silicon.truth(0)["rx-no-room"] > 1000, 60), "it has given up"
        assert counted(lab, DECRYPTED) == found
        silicon.turn(0, "all", 0)
        assert settles(lambda: counted(lab, DECRYPTED) > found + 100, 60), "nothing decrypted"
    assert by_card(lab) == {"hw"}


def groups(host: Host, dev: str) -> list[tuple[str, ...]]:
    """Where each flow group starts and ends, and its mask, of those made while receive offload goes on."""
    host.run(["sh", "-c", f": > {TRACING}/trace; echo 1 > {TRACING}/{GROUPS}"])
    try:
        for word in ("off", "on"):
            host.run(["ethtool", "-K", dev, "tls-hw-rx-offload", word])
        said = host.run(["cat", f"{TRACING}/trace"]).text
    finally:
        host.run(["sh", "-c", f"echo 0 > {TRACING}/{GROUPS}"])
    return re.findall(r"mlx5_fs_add_fg: .* start=(\d+) end=(\d+) bit_mask=\w+ *(.*)", said)


@pytest.mark.long
def test_the_driver_makes_room_for_so_many_rules(lab: Lab) -> None:
    """One group of rules for TCP's ports over IPv4, and one over IPv6 (mlx5-rx-flow-limit)."""
    made = [found for found in groups(lab.bench.dut.host, dev(lab)) if "tcp_dport" in found[2]]
    assert [int(end) - int(start) for start, end, _ in made] == [RULES, RULES], made
