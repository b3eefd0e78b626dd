"""A weakness that the profile of mlx5 notes, shown with the real mlx5_core on a simulated ConnectX-6 Dx."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from offload.cmd import settles
from offload.debian.kernels import fetch
from offload.driver.build import place
from offload.driver.kinds import kind
from offload.suite.bench.cards.silicon import Silicon
from offload.suite.bench.lab import traffic
from offload.suite.bench.vm import cards
from offload.suite.bench.vm.lab import Lab
from tests.lib.catalogue import real_driver
from tests.lib.catalogue.real_driver import by_card, dev
from tests.lib.rig.rig import Labs

MORE = 8 << 20  # bytes: hundreds of records
DECRYPTED, ASKED = "rx_tls_decrypted_packets", "rx_tls_resync_req_pkt"


@pytest.fixture(scope="module")
def lab(pytestconfig: pytest.Config, labs: Labs) -> Iterator[Lab]:
    """Two simulated ConnectX-6 Dx that offload both ways; skipped where nobody has built the driver."""
    with real_driver.lab(pytestconfig, labs) as booted:
        on = ["ethtool", "-K", dev(booted), "tls-hw-tx-offload", "on", "tls-hw-rx-offload", "on"]
        booted.bench.dut.host.run(on)
        yield booted


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
        silicon.turn(0, "all", 0)
        assert settles(after(flow, MORE), 120), flow.lost()
        found = counted(lab, DECRYPTED)
        assert settles(after(flow, MORE), 120), flow.lost()
        assert counted(lab, DECRYPTED) == found
        assert counted(lab, "rx_tls_resync_res_skip") == 0
    assert by_card(lab) == {"hw"}
