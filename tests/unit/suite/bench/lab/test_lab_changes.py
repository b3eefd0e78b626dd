"""What tests change on a host is noted first; damaged notes and what is not ours are named."""

from __future__ import annotations

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
from offload.suite.bench.lab.changes.noted import NotedHost
from offload.suite.bench.lab.changes.notes import Change, Notes
from offload.suite.bench.lab.changes.put_back import put_back
from offload.suite.bench.lab.changes.values import look, lost_with
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


def test_the_sysctls_that_a_port_loses(card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that differ from the default; not its MTU, which is noted, nor the secret of its addresses."""
    rows = {"forwarding": "1", "mtu": "900", "stable_secret": "5f", "accept_ra": "1", "tag": "3"}
    there = [f"net.ipv6.conf.eth0.{name} = {value}" for name, value in rows.items()]
    usual = [f"net.ipv6.conf.default.{name} = 0" for name in ("forwarding", "mtu", "stable_secret", "tag")]
    text = "\n".join([*there, *usual, "net.ipv6.conf.default.accept_ra = 1", "sysctl: permission denied"])
    monkeypatch.setitem(SAYS, "sysctl -a", lambda card: text)
    lost = [one for one in lost_with(card, MTU) if one.kind == "sysctl"]
    assert [(one.what, one.found, one.ours) for one in lost] == [
        ("net.ipv6.conf.eth0.forwarding", "1", ("0",)),
        ("net.ipv6.conf.eth0.tag", "3", ("0",)),
    ]


@pytest.mark.parametrize(
    ("kind", "what", "says"),
    [
        ("feature", "scatter-gather", "ethtool -k"),
        ("ring", "rx-mini", "ethtool -g"),
        ("qdisc", "root", "tc -j"),
    ],
)
def test_what_a_host_does_not_show_is_unknown(
    kind: str, what: str, says: str, card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A setting that the card lacks has no value; a port without a qdisc has none."""
    monkeypatch.setitem(SAYS, says, lambda card: "")
    assert look(card, Change(kind, "eth0", what)) == ("" if kind == "qdisc" else None)


@pytest.mark.parametrize(
    "odd", [Change("mtu", "eth0; true"), Change("ring", "eth0", "--all"), Change("sysctl", "", "a b")]
)
def test_what_cannot_be_noted_is_not_changed(odd: Change, journal: Journal) -> None:
    """Notes become commands that run as root: an odd name is refused before the change, not after it."""
    with pytest.raises(RigError, match="cannot journal this change, so it is not made"):
        notes.write(journal, Notes("boot-1", "net:[1]", (odd,)))
    assert not (journal.place / notes.NAME).exists()


@pytest.mark.parametrize(("kind", "what"), [("device", ""), ("qdisc", "root")])
def test_what_was_there_before_is_no_tests_own(
    kind: str, what: str, host: NotedHost, card: Card, journal: Journal
) -> None:
    """A command that wants to add what is there fails by itself: nothing is noted, and nothing taken away."""
    card.now["root"] = "netem"
    host.run(
        ["ip", "link", "add", "eth0", "type", "veth"]
        if kind == "device"
        else ["tc", "qdisc", "add", "dev", "eth0", what, "fq"]
    )
    assert not notes.read(journal).changes
