"""A bad card is bad only where its knobs say so: elsewhere nothing acts, there it is counted and seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from offload.host.base import Host
from offload.suite.bench.cards import knobs
from tests.lib.catalogue.run import fired
from tests.lib.life.life import Contexts
from tests.lib.rig.rig import Labs
from tests.lib.scenario.check import fails
from tests.lib.scenario.space import Scenario, load
from tests.lib.scenario.stand import Stand, ended, stand_of

PLAIN = "seed=1"
SNMP = "/proc/net/snmp"
# knobs: a scenario in which the fault must not act, one in which it must, what is said of that
GATED = {
    "cipher": (
        "0/tx_ks=1 0/when_key=256",
        PLAIN,
        "seed=1,cell=1.2-aes-gcm-256",
        "wrong keystream|ciphertext",
    ),
    "forged": (
        "0/rx_noauth=1 0/when_record=16384",
        "seed=1,direction=rx,trouble=forged-body",
        "seed=1,direction=rx,record=16384,trouble=forged-body",
        "altered record",
    ),
    "sent again": (
        "0/tx_clear=1 0/when_again=1",
        PLAIN,
        "seed=1,trouble=lost-inside",
        "plaintext|with other bytes",
    ),
    "event": ("0/tx_leak=1 0/when_after=1", PLAIN, "seed=1,event=toggle", "plaintext"),
}


@pytest.fixture(scope="module")
def stand(labs: Labs) -> Iterator[Stand]:
    """A lab of the simulated card, with the connections that scenarios find there."""
    rig = labs.get("nicsim")
    found, _ = stand_of(rig)
    yield found
    ended(rig)
    Contexts(rig).forget()


@contextmanager
def bad(stand: Stand, words: str) -> Iterator[None]:
    """Turn knobs of the DUT's card; all are back after it, and nothing has acted."""
    root = stand.rig.lab.root
    knobs.turn(root, words)
    try:
        yield
    finally:
        root.run(["tee", f"{knobs.FOLDER}/0/reset"], input=b"1\n")
        assert fired(stand.rig.lab) == 0


def acts(stand: Stand, words: str, scenario: Scenario) -> str:
    """What a bad card did in a scenario in which TCP sent nothing again on its own; a loaded lab makes it."""
    for _ in range(10):
        with bad(stand, words):
            before = resent(stand.rig.bench.dut.host)
            said = fails(stand, scenario)
            if resent(stand.rig.bench.dut.host) == before:
                return said or "it acted" * bool(fired(stand.rig.lab))
        stand.renew()
    pytest.fail("TCP sent something again in each of ten runs")


def resent(host: Host) -> int:
    """How many segments TCP has sent again on this host: RetransSegs of /proc/net/snmp."""
    names, values = (line.split() for line in host.run(["cat", SNMP]).text.splitlines() if line[:4] == "Tcp:")
    return int(dict(zip(names, values, strict=True))["RetransSegs"])


@pytest.mark.parametrize("name", GATED)
def test_acts_under_its_condition_only(stand: Stand, name: str) -> None:
    """Without its condition a gated fault does nothing at all; with it, it is counted and told."""
    words, without, under, says = GATED[name]
    space = load(stand.rig.profile)
    assert not acts(stand, words, space.parse(without))
    with bad(stand, words):
        said = fails(stand, space.parse(under))
        assert fired(stand.rig.lab) > 0
        assert re.search(says, said), said


def test_fault_acts_one_time_in_four(stand: Stand) -> None:
    """Without another condition a fault that acts one time in four acts less than half as often."""
    scenario, counts = load(stand.rig.profile).parse(PLAIN), []
    for every in (1, 4):
        with bad(stand, f"0/tx_dup=1 0/when_every={every}"):
            fails(stand, scenario)
            counts.append(fired(stand.rig.lab))
    assert counts[0] > 2 * counts[1] > 0, counts
