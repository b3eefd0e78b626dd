"""A port of the simulated ConnectX-6 Dx, through the real mlx5_core: settings, counters, VLANs, tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from offload.cmd import settles
from offload.suite.bench.lab import traffic
from offload.suite.bench.vm.lab import Lab
from tests.lib.catalogue import real_driver
from tests.lib.catalogue.real_driver import by_card, dev
from tests.lib.rig.rig import Labs

STAYS = "wasn't destroyed, refcount > 1"  # fs_core.c, of a table that a connection's rule still uses


@pytest.fixture(scope="module")
def lab(pytestconfig: pytest.Config, labs: Labs) -> Iterator[Lab]:
    """Two vCPUs, since a port has no more channels than that; TLS offload is on."""
    with real_driver.lab(pytestconfig, labs, cpus=2) as booted:
        on = ["ethtool", "-K", dev(booted), "tls-hw-tx-offload", "on", "tls-hw-rx-offload", "on"]
        booted.bench.dut.host.run(on)
        yield booted


@pytest.mark.long
@pytest.mark.parametrize(
    ("show", "change", "words", "back"),
    [
        ("-l", "-L", "combined 1", "combined 2"),
        ("-g", "-G", "rx 512 tx 256", "rx 1024 tx 1024"),
        ("-c", "-C", "adaptive-rx off", "adaptive-rx on"),
        ("-a", "-A", "rx on tx on", "rx off tx off"),
        ("", "-s", "speed 25000 autoneg off", "autoneg on"),
        ("-k", "-K", "rxhash off gro off", "rxhash on gro on"),
        ("--show-priv-flags", "--set-priv-flags", "rx_striding_rq on", "rx_striding_rq off"),
    ],
)
def test_settings_are_taken_and_tls_works_with_them(
    lab: Lab, show: str, change: str, words: str, back: str
) -> None:
    """The port shows the new value, the card does TLS with it, and the value found comes back."""

    def ethtool(option: str, *more: str) -> str:
        return lab.bench.dut.host.run(["ethtool", *option.split(), dev(lab), *more]).text

    before = ethtool(show)
    ethtool(change, *words.split())
    during, does = ethtool(show), by_card(lab)
    ethtool(change, *back.split())
    assert during != before and does == {"hw"}, f"{does}: {during}"
    assert settles(lambda: ethtool(show) == before, 10), ethtool(show)
    assert by_card(lab) == {"hw"}


def port_counters(lab: Lab, side: str) -> dict[str, int]:
    """What `ethtool -S` says of a port."""
    port = getattr(lab.bench, side)
    lines = port.host.run(["ethtool", "-S", port.dev]).text.splitlines()[1:]
    return {name.strip(): int(value) for name, value in (line.rsplit(":", 1) for line in lines)}


def at_rest(lab: Lab) -> dict[str, dict[str, int]]:
    """The counters of both ports, once nothing is on its way any more."""
    seen: list[dict[str, dict[str, int]]] = [{}]

    def still() -> bool:
        seen.append({side: port_counters(lab, side) for side in ("dut", "peer")})
        return seen[-1] == seen[-2]

    assert settles(still, 30), "the cable is never quiet"
    return seen[-1]


def moved(lab: Lab, act: Callable[[], object]) -> dict[str, dict[str, int]]:
    """How much the counters of both ports moved while something was done."""
    before = at_rest(lab)
    act()
    after = at_rest(lab)
    return {
        side: {name: after[side][name] - count for name, count in before[side].items()} for side in before
    }


def unicast(seen: dict[str, int], direction: str) -> int:
    """Frames for one receiver."""
    return (
        seen[f"{direction}_packets_phy"]
        - seen[f"{direction}_multicast_phy"]
        - seen[f"{direction}_broadcast_phy"]
    )


@pytest.mark.long
def test_the_port_counts_its_cable(lab: Lab) -> None:
    """What one port sends the other receives, in frames, bytes and sizes; a failed link is counted."""
    seen = moved(lab, lambda: by_card(lab))
    for one, other in (("dut", "peer"), ("peer", "dut")):
        sent, came = seen[one], seen[other]
        assert unicast(sent, "tx") == unicast(came, "rx") > 8
        more = came["rx_packets_phy"] - sent["tx_packets_phy"]  # multicast of the bridge between them
        assert 0 <= more * 60 <= came["rx_bytes_phy"] - sent["tx_bytes_phy"] <= more * 1518
        assert sent["tx_bytes_phy"] > 65536
        sizes = [came[n] for n in came if n.startswith("rx_") and n.endswith("_bytes_phy") and n[3].isdigit()]
        assert sum(sizes) == came["rx_packets_phy"], sizes
    assert seen["dut"]["link_down_events_phy"] == 0
    lab.bench.dut.host.run(["ip", "link", "set", dev(lab), "down"])
    lab.bench.dut.host.run(["ip", "link", "set", dev(lab), "up"])
    assert port_counters(lab, "dut")["link_down_events_phy"] >= 1


@pytest.fixture
def vlan(lab: Lab) -> Iterator[str]:
    """A VLAN on both ports; the net of its addresses."""
    ends = {"dut": 1, "peer": 2}
    for side, number in ends.items():
        port = getattr(lab.bench, side)
        words = f"link add link {port.dev} name vlan7 type vlan id 7"
        for line in (words, f"address add 198.51.100.{number}/24 dev vlan7", "link set vlan7 up"):
            port.host.run(["ip", *line.split()])
    yield "198.51.100"
    for side in ends:
        getattr(lab.bench, side).host.run(["ip", "link", "delete", "vlan7"])


@pytest.mark.long
@pytest.mark.parametrize("state", ["on", "off"])
def test_vlan_tags_are_the_cards_or_the_kernels(lab: Lab, vlan: str, state: str) -> None:
    """Data goes both ways through a VLAN; the card puts tags in and takes them out if it shall."""
    change = ["ethtool", "-K", dev(lab), "rx-vlan-offload", state, "tx-vlan-offload", state]
    lab.bench.dut.host.run(change)
    seen = moved(lab, lambda: by_card(lab, vlan))["dut"]
    lab.bench.dut.host.run([word if word != state else "on" for word in change])
    tags = [seen["tx_added_vlan_packets"] > 8, seen["rx_removed_vlan_packets"] > 8]
    assert tags == [state == "on"] * 2 and seen["rx_packets_phy"] > 8, seen


def commands(lab: Lab, *names: str) -> list[int]:
    """How often the driver has given the DUT's card each of these commands."""
    port = lab.bench.dut
    card = Path(port.host.run(["readlink", f"/sys/class/net/{port.dev}/device"]).text.strip()).name
    place = f"/sys/kernel/debug/mlx5/{card}/commands"
    return [int(lab.root.run(["cat", f"{place}/{name}/n"]).text) for name in names]


def tables(lab: Lab) -> int:
    """How many steering tables the driver has on the DUT's card."""
    made, gone = commands(lab, "CREATE_FLOW_TABLE", "DESTROY_FLOW_TABLE")
    return made - gone


def receiving(lab: Lab, state: str) -> None:
    """Switch receive offload."""
    lab.bench.dut.host.run(["ethtool", "-K", dev(lab), "tls-hw-rx-offload", state])


@pytest.mark.long
def test_tables_go_with_the_last_connection(lab: Lab) -> None:
    """Receive offload off: the log names a table that stays while a connection is open (mlx5-rx-toggle)."""
    receiving(lab, "off")
    without = tables(lab)
    receiving(lab, "on")
    marks = commands(lab, "SET_FLOW_TABLE_ENTRY") + [lab.root.run(["dmesg"]).text.count(STAYS)]
    with ExitStack() as undo:
        assert traffic.Flow(lab, undo).open("rx") == "hw"
        assert settles(lambda: commands(lab, "SET_FLOW_TABLE_ENTRY") > marks[:1], 30), "no rule for it"
        receiving(lab, "off")
        assert tables(lab) == without + 1
        assert lab.root.run(["dmesg"]).text.count(STAYS) == marks[1] + 2  # a table, and the group in it
    receiving(lab, "on")
    assert settles(lambda: tables(lab) == without + 2, 30), f"{tables(lab)} tables, {without} without receive"
    assert by_card(lab) == {"hw"}
