"""What tests change on a host is noted first; damaged notes and what is not ours are named."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from offload.errors import ConfigError, RigError
from offload.host.base import Completed
from offload.suite.bench.lab.changes import notes
from offload.suite.bench.lab.changes.asked import PROGRAMS, asked
from offload.suite.bench.lab.changes.noted import NotedHost
from offload.suite.bench.lab.changes.notes import Change, Notes
from offload.suite.bench.lab.changes.put_back import put_back
from offload.suite.bench.lab.changes.values import command, lost_with
from offload.switch.journal import Journal

ROOT = Path(__file__).parents[5]
MTU = Change("mtu", "eth0", "", "1500", ("600",))
RINGS = "Pre-set maximums:\nRX:\t4096\nTX:\tn/a\nCurrent hardware settings:\nRX:\t1024\nTX:\tn/a\n"


class Card:
    """A host with one port: `ip`, `ethtool`, `tc` and `sysctl` as far as they are asked here."""

    name = "dut"

    def __init__(self) -> None:
        self.boot, self.ran, self.deaf = "boot-1", list[tuple[str, ...]](), False
        self.now = {"mtu": "1500", "sack": "1", "rx": "1024", "usecs": "8", "gro": "on", "root": ""}

    def read(self, path: str) -> bytes:
        """Return which boot this is."""
        return self.boot.encode()

    def write(self, path: str, data: bytes, mode: int = 0o600) -> None:
        """Nothing is written."""

    def start(self, argv: Sequence[str], **more: Any) -> Any:
        """Nothing is started."""
        self.ran.append(tuple(argv))

    def run(self, argv: Sequence[str], **more: Any) -> Completed:
        """Answer, or change."""
        self.ran.append(tuple(argv))
        text = " ".join(argv)
        said = next((say(self) for known, say in SAYS.items() if text.startswith(known)), "")
        if not self.deaf:
            self._change(argv)
        return Completed(tuple(argv), 0, said.encode(), b"", 0.0)

    def _change(self, argv: Sequence[str]) -> None:
        for words, key in CHANGES.items():
            if " ".join(argv).startswith(words):
                self.now[key] = argv[-1].partition("=")[2] or argv[-1]
        if argv[:2] == ["tc", "qdisc"] and argv[2] in ("add", "del"):
            self.now["root"] = "netem" if argv[2] == "add" else ""


SAYS: dict[str, Callable[[Card], str]] = {
    "readlink": lambda card: "net:[1]",
    "ip -j -d link": lambda card: json.dumps([{"mtu": int(card.now["mtu"]), "flags": ["UP"]}]),
    "sysctl -n": lambda card: f"{card.now['sack']}\n",
    "ethtool -g": lambda card: RINGS.replace("1024", card.now["rx"]),
    "ethtool -c": lambda card: f"Adaptive RX: off  TX: off\nrx-usecs:\t{card.now['usecs']}\n",
    "ethtool -k": lambda card: f"generic-receive-offload: {card.now['gro']}\nntuple: off [fixed]\n",
    "tc -j": lambda card: json.dumps(
        [{"kind": card.now["root"] or "mq", "root": True, "handle": "8001:" if card.now["root"] else "0:"}]
    ),
}
CHANGES = {
    "ip link set eth0 mtu": "mtu",
    "ip link set dev eth0 mtu": "mtu",
    "sysctl -qw": "sack",
    "ethtool -G eth0 rx": "rx",
    "ethtool -C eth0 rx-usecs": "usecs",
    "ethtool -K": "gro",
}


@pytest.fixture
def card() -> Card:
    """A host."""
    return Card()


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """Where a host's changes are noted."""
    return Journal(tmp_path / "here")


@pytest.fixture
def host(card: Card, journal: Journal) -> NotedHost:
    """The host as tests have it."""
    return NotedHost(card, journal)


EACH = {
    "mtu": ("ip link set eth0 mtu 600", "eth0 mtu: 1500, as before (was 600)"),
    "sysctl": ("sysctl -qw net.ipv4.tcp_sack=0", "sysctl net.ipv4.tcp_sack: 1, as before (was 0)"),
    "ring": ("ethtool -G eth0 rx 512", "eth0 ring rx: 1024, as before (was 512)"),
    "coalesce": ("ethtool -C eth0 rx-usecs 58", "eth0 coalesce rx-usecs: 8, as before (was 58)"),
    "feature": ("ethtool -K eth0 gro off", "eth0 feature generic-receive-offload: on, as before (was off)"),
    "qdisc": ("tc qdisc add dev eth0 root netem delay 1ms", "eth0 qdisc root: none, as before (was netem)"),
}


@pytest.mark.parametrize("kind", EACH)
def test_a_change_is_noted_and_put_back(kind: str, host: NotedHost, card: Card, journal: Journal) -> None:
    """The value found is on disk before the command runs, comes back once, and nothing is left to do."""
    before, (words, line) = dict(card.now), EACH[kind]
    host.run(words.split())
    assert [one.kind for one in notes.read(journal).changes] == [kind] and card.now != before
    said: list[str] = []
    assert put_back(card, journal, said.append) == (1, []) and said == [line]
    assert card.now == before
    assert put_back(card, journal, said.append) == (0, []) and len(said) == 1
    assert not (journal.place / notes.NAME).exists()


def test_what_a_test_put_back_itself_is_forgotten_silently(
    host: NotedHost, card: Card, journal: Journal
) -> None:
    """The ordinary end says nothing and changes nothing; a second change of a setting costs no look."""
    for mtu in ("600", "9000", "1500"):
        host.run(["ip", "link", "set", "eth0", "mtu", mtu])
    looks = [argv for argv in card.ran if argv[:4] == ("ip", "-j", "-d", "link")]
    assert len(looks) == 1 and notes.read(journal).changes == (
        Change("mtu", "eth0", "", "1500", ("600", "9000")),
    )
    assert put_back(card, journal, pytest.fail) == (0, []) and card.ran[-1][:2] == ("ip", "-j")


def test_what_somebody_else_set_is_left_alone(host: NotedHost, card: Card, journal: Journal) -> None:
    """A value that no test has set is named with the command that would restore, once."""
    host.run(["ip", "link", "set", "eth0", "mtu", "600"])
    card.now["mtu"], said = "4000", list[str]()
    assert put_back(card, journal, said.append) == (0, []) and card.now["mtu"] == "4000"
    hint = "`ip link set dev eth0 mtu 1500` restores 1500"
    assert said == [f"eth0 mtu: 4000 is not of a test: left alone; {hint}"]
    assert not notes.read(journal).changes


def test_what_does_not_follow_stays_noted(host: NotedHost, card: Card, journal: Journal) -> None:
    """A setting that does not come back is named with the command to type, and is tried again."""
    host.run(["sysctl", "-qw", "net.ipv4.tcp_sack=0"])
    card.deaf = True
    count, stuck = put_back(card, journal, pytest.fail)
    assert count == 0 and "type: sysctl -qw net.ipv4.tcp_sack=1" in stuck[0]
    card.deaf = False
    assert put_back(card, journal, lambda line: None) == (1, [])


def test_changes_of_another_boot_and_namespace(card: Card, journal: Journal) -> None:
    """Notes of an earlier boot are dropped, as those of a named namespace that was made anew; others stay."""
    journal.place.mkdir(mode=0o700)
    said: list[str] = []
    notes.write(journal, Notes("boot-0", "net:[1]", (MTU,)))
    assert put_back(card, journal, said.append) == (0, []) and "that boot is gone" in said.pop()
    notes.write(journal, Notes("boot-1", "net:[7]", (MTU,)))
    assert "another network namespace" in put_back(card, journal, said.append)[1][0]
    assert notes.read(journal).changes == (MTU,)
    assert put_back(card, journal, said.append, "ktls-peer") == (0, [])
    assert "that network namespace is gone" in said.pop() and not notes.read(journal).changes


def test_without_a_journal_nothing_is_changed(
    card: Card, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change whose value found cannot be written is not made."""

    def full(file: Path, text: str) -> None:
        raise RigError("cannot write: no space left")

    monkeypatch.setattr(notes, "durable", full)
    with pytest.raises(RigError, match="no space left"):
        NotedHost(card, journal).run(["ip", "link", "set", "eth0", "mtu", "600"])
    assert card.now["mtu"] == "1500"


GOOD = {"schema": 1, "boot": "boot-1", "netns": "net:[1]", "changes": [asdict(MTU)]}


def hostile() -> Iterator[tuple[str, str]]:
    """Files that are not what we wrote, with a name each."""
    whole = json.dumps(GOOD)
    yield "cut", whole[:-9]
    yield "empty", ""
    yield "another schema", json.dumps({**GOOD, "schema": 2})
    yield "deep", "[" * 100_000
    yield "no list", json.dumps({**GOOD, "changes": 7})
    yield "twice", json.dumps({**GOOD, "changes": [asdict(MTU)] * 2})
    for name, odd in {
        "kind": {"kind": "shell"},
        "more keys": {"argv": ["rm"]},
        "option for a port": {"dev": "-batch"},
        "path for a port": {"dev": "eth0 up"},
        "option for a value": {"found": "-force"},
        "line break": {"found": "1500\nup"},
        "number": {"found": 1500},
        "sysctl elsewhere": {"kind": "sysctl", "dev": "", "what": "kernel.core_pattern", "found": "|sh"},
        "route of nothing": {"kind": "route", "dev": "", "what": "default"},
        "long": {"found": "x" * 400},
    }.items():
        yield name, json.dumps({**GOOD, "changes": [{**asdict(MTU), **odd}]})


@pytest.mark.parametrize(("name", "text"), [*hostile()], ids=lambda value: value if len(value) < 20 else "")
def test_a_damaged_file_changes_nothing(name: str, text: str, card: Card, journal: Journal) -> None:
    """A file that we did not write is named in one sentence, and nothing is done by it."""
    journal.place.mkdir(mode=0o700)
    (journal.place / notes.NAME).write_text(text)
    with pytest.raises(ConfigError, match="changes.json: damaged"):
        put_back(card, journal, pytest.fail)
    with pytest.raises(ConfigError, match="changes.json: damaged"):
        NotedHost(card, journal).run(["ip", "link", "set", "eth0", "mtu", "600"])
    assert card.now["mtu"] == "1500" and (journal.place / notes.NAME).read_text() == text


def test_a_link_or_a_pipe_is_no_journal(tmp_path: Path, journal: Journal) -> None:
    """A symbolic link to a good file, and a pipe, are refused; neither is followed nor waited for."""
    journal.place.mkdir(mode=0o700)
    file, good = journal.place / notes.NAME, tmp_path / "good"
    good.write_text(json.dumps(GOOD))
    file.symlink_to(good)
    with pytest.raises(ConfigError, match="damaged"):
        notes.read(journal)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(ConfigError, match="not a file of this user"):
        notes.read(journal)
    file.unlink()
    file.write_text(good.read_text())
    assert notes.read(journal).changes == (MTU,)


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
            "/x/build/wirebox vw0 vw1 --seed 1 --bridge br0",
            [("master", "vw0", "", ""), ("master", "vw1", "", "")],
        ),
        ("ethtool -L eth0 combined 3", [("channel", "eth0", "combined", "3")]),
        ("tc qdisc add dev eth0 clsact", [("qdisc", "eth0", "clsact", "clsact")]),
        ("ethtool -K eth0 tls-hw-tx-offload on", []),  # settings.py notes it
        ("ip -j link show dev eth0", []),
        ("sysctl -n net.ipv4.tcp_sack", []),
        ("ip link set", []),
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


def test_what_a_port_loses_comes_back_in_order(card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses come back first, then routes that lead somewhere, then those through a gateway."""
    near = {"type": "unicast", "dst": "10.2.0.0/16", "protocol": "static"}
    far = {**near, "dst": "10.3.0.0/16", "gateway": "10.2.0.9"}
    own = {"family": "inet", "local": "10.1.0.1", "prefixlen": 24, "scope": "global"}
    says: dict[str, Callable[[Card], str]] = {
        "ip -j -d -4 route": lambda card: json.dumps([near, {**near, "protocol": "kernel"}, far]),
        "ip -j -d address": lambda card: json.dumps([{"addr_info": [own, {**own, "scope": "link"}]}]),
    }
    for words, answer in says.items():
        monkeypatch.setitem(SAYS, words, answer)
    lost = lost_with(card, MTU)
    order = ["-4 10.3.0.0/16 metric 0 table main", "-4 10.2.0.0/16 metric 0 table main", "10.1.0.1/24"]
    assert [one.what for one in lost] == order and all(one.ours == ("",) for one in lost)


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
