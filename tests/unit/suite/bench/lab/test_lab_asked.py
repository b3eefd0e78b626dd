"""Each command of a test that changes a host is known: what it sets, and the command that puts it back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from offload.suite.bench.lab.changes.asked import PROGRAMS, asked
from offload.suite.bench.lab.changes.notes import Change
from offload.suite.bench.lab.changes.values import command

ROOT = Path(__file__).parents[5]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("ip link set dev eth0 down", [("link", "eth0", "", "down")]),
        ("ip link set vw0 master br0 up", [("master", "vw0", "", "br0"), ("link", "vw0", "", "up")]),
        ("ip link set vw0 nomaster", [("master", "vw0", "", "")]),
        ("ip link set eth0 netns far", [("home", "eth0", "far", "far")]),
        ("ip link add link eth0 name kvlan type vlan id 7", [("device", "kvlan", "", "there")]),
        ("ip netns add far", [("netns", "", "far", "there")]),
        ("ip -6 address add fd00::1/64 dev eth0 nodad", [("address", "eth0", "fd00::1/64", "fd00::1/64")]),
        (
            "ip route add 10.0.0.2/32 dev eth0 metric 7",
            [("route", "", "-4 10.0.0.2 metric 7 table main", "dev eth0")],
        ),
        (
            "ip route add fd00::2/128 via fd00::9 dev eth0",
            [("route", "", "-6 fd00::2 metric 1024 table main", "via fd00::9 dev eth0")],
        ),
        (
            "ip -4 route replace unicast 10.1.0.0/16 via 10.0.0.9 proto static dev eth0",
            [("route", "", "-4 10.1.0.0/16 metric 0 table main", "via 10.0.0.9 dev eth0")],
        ),
        (
            "/x/build/wirebox vw0 vw1 --seed 1 --bridge br0",
            [("master", "vw0", "", ""), ("master", "vw1", "", "")],
        ),
        ("ethtool -L eth0 combined 3", [("channel", "eth0", "combined", "3")]),
        ("ethtool -K eth0 sg off", [("feature", "eth0", "scatter-gather", "off")]),
        ("tc qdisc add dev eth0 clsact", [("qdisc", "eth0", "clsact", "clsact")]),
        ("ethtool -K eth0 tls-hw-tx-offload on", []),  # settings.py notes it
        ("ip -j link show dev eth0", []),
        ("sysctl -n net.ipv4.tcp_sack", []),
        ("ip link set", []),
        ("ip -6", []),
        ("true", []),
    ],
)
def test_what_a_command_changes(words: str, found: list[tuple[str, ...]]) -> None:
    """Each change that a command makes is read off its words; one that only looks makes none."""
    assert [(one.kind, one.dev, one.what, *one.ours) for one in asked(words.split())] == found


def test_the_command_to_put_back() -> None:
    """A route comes back with all its words; one of ours goes from where it leads."""
    lost = Change(
        "route", "", "-4 10.0.0.0/8 metric 5 table main", "-4 unicast 10.0.0.0/8 metric 5 dev eth0", ("",)
    )
    assert command(lost, "") == [
        "ip",
        "-4",
        "route",
        "replace",
        "unicast",
        "10.0.0.0/8",
        "metric",
        "5",
        "dev",
        "eth0",
    ]
    ours = Change("route", "", "-4 10.0.0.2 metric 7 table main", "", ("dev eth0",))
    assert command(ours, "-4 unicast 10.0.0.2 dev eth0") == (
        ["ip", "-4", "route", "del", "10.0.0.2", "metric", "7", "table", "main", "dev", "eth0"]
    )


CHANGING = {
    "set",
    "add",
    "del",
    "delete",
    "replace",
    "change",
    "-K",
    "-C",
    "-G",
    "-L",
    "-A",
    "-s",
    "-qw",
    "-w",
}
# what goes by itself: neighbors, links and settings of a bond with the device that a test made, IPsec by its
# time limit, filters with clsact, a namespace once its port is home; a qdisc that a test made is noted when
# it is added. XDP is put on cards of a VM only.
BY_ITSELF = {
    ("ip", "neigh"),
    ("ip", "xfrm"),
    ("ip", "-s", "xfrm"),
    ("ip", "link", "set", "?", "xdpgeneric"),
    ("ip", "link", "set", "kbond", "type", "bond"),
    ("ip", "-n"),
    ("tc", "filter"),
    ("tc", "-s"),
    ("ip", "netns", "del"),
    ("ip", "link", "del"),
    ("tc", "qdisc", "del"),
    ("tc", "qdisc", "change"),
}


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every list in the tests that is a command of a program that changes settings; ? for a variable."""
    folders = (
        "tests/hw",
        "tests/lib/impair",
        "tests/lib/life",
        "tests/lib/scenario",
        "tests/lib/wire",
        "offload/suite/traffic",
    )
    for path in sorted(p for folder in folders for p in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.List) and len(node.elts) > 2:
                words = [str(e.value) if isinstance(e, ast.Constant) else "?" for e in node.elts]
                if words[0] in PROGRAMS and CHANGING & set(words[1:]):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", words


def test_every_change_of_the_tests_is_known() -> None:
    """No test has a command that changes a host and is not noted."""
    found = list(commands())
    unknown = [
        (where, words)
        for where, words in found
        if not any(tuple(words[: len(known)]) == known for known in BY_ITSELF)
        and not asked([*words, "x=1", "up", "x"])
    ]
    assert not unknown and len(found) > 25
