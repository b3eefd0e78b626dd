"""ls: what is doubtful is called so, by route and counters; the table fits where it is shown."""

from __future__ import annotations

import argparse
import io
import json
import os
import pty
import random
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from offload.card.counters import Snapshot
from offload.card.nic import Feature, Match, Nic
from offload.card.profile import FEATURES
from offload.connections.look import Inspector, Line, Listing, notes
from offload.connections.sockets import Found, Owner, Socket, Space
from offload.connections.stale import Card, doubt
from offload.connections.text import HEADS, age, as_text, size, table
from offload.connections.verbs import add_parser, as_json
from offload.connections.watch import Look, Pace, busiest, frame, rates, watch
from offload.errors import ConfigError

PAGE = Path(__file__).parents[3] / "docs/use/ls.md"
NGINX = Owner(1234, "nginx", 200.0, 1)


def connection(**more: Any) -> Socket:
    """One connection of nginx over eth0 whose transmit the kernel calls hw."""
    one = Socket(
        "192.0.2.1",
        443,
        "192.0.2.2",
        50000,
        "established",
        0,
        77,
        5,
        "1.2",
        "aes-gcm-128",
        "hw",
        "sw",
        False,
        1_500_000,
        0,
        900,
        "eth0",
        NGINX,
    )
    return one._replace(**more)


def nic(
    dev: str = "eth0",
    *,
    kind: str = "",
    up: bool = True,
    fixed: bool = False,
    active: bool = True,
    lower: str = "",
) -> Nic:
    """A device whose transmit is so; receive is never offered."""
    states = {
        "tx": Feature(FEATURES["tx"], active, fixed, active),
        "rx": Feature(FEATURES["rx"], False, True, False),
    }
    features = {FEATURES[d]: state for d, state in states.items()}
    return Nic(dev, 2, up, "up", kind, tuple(lower.split()), "mlx5_core", "", "", "", "", "", features)


def counted(taken: int | None, given: int | None, at: float = 0.0, **more: int) -> Snapshot:
    """Counters of a card that took and gave back so many contexts."""
    named = {"tx_tls_ctx": taken, "tx_tls_del": given, **more}
    return Snapshot("eth0", at, None, {name: n for name, n in named.items() if n is not None})


def card(
    have: Nic | None = None, *, hw: int = 1, taken: int | None = 1, given: int | None = 0, ports: Any = ()
) -> Card:
    """A card as it is now, with so many connections by the kernel's word."""
    now = counted(taken, given)
    return Card(1, have or nic(), Match(None), now, now, {"tx": hw, "rx": 0}, ports)


@pytest.mark.parametrize(
    ("one", "behind", "word", "why"),
    [
        (connection(), card(), "", ""),
        (connection(tx="sw"), card(taken=0), "", ""),
        (connection(device="?"), None, "", ""),
        (connection(device=""), None, "stale", "no route"),
        (connection(), None, "unsure", "could not be examined"),
        (connection(), card(nic(up=False)), "stale", "is down"),
        (connection(), card(nic(fixed=True, active=False)), "stale", "no transmit offload"),
        (connection(), card(nic(active=False)), "", ""),  # switched off: what is there stays
        (connection(), card(nic(kind="vlan", lower="eth1")), "stale", "a vlan on eth1"),
        (connection(), card(taken=9, given=9), "stale", "holds 0 of the 1"),
        (connection(), card(hw=3, taken=9, given=8), "unsure", "holds 1 of the 3"),
        (connection(), card(taken=None), "", ""),
        (connection(), card(given=None), "", ""),
        (connection(), card(nic(kind="bond", lower="a b"), ports=(card(nic("a")), card(nic("b")))), "", ""),
        (connection(), card(nic(kind="bond"), ports=(card(taken=0),)), "stale", "holds 0 of the 1"),
    ],
)
def test_doubt(one: Socket, behind: Card | None, word: str, why: str) -> None:
    """A connection is stale where route or counters say so, and nowhere else."""
    found = doubt(one, "tx", behind)
    assert found[0] == word
    assert why in found[1]


def test_plaintext_danger_is_named() -> None:
    """A VLAN that took over the route is more than slow: plaintext may leave."""
    assert "plaintext may leave" in doubt(connection(), "tx", card(nic(kind="vlan", lower="eth1")))[1]


def test_churn_is_never_called_stale() -> None:
    """Connections that come and go while we look make none of the others stale."""
    dice = random.Random(5)
    for _ in range(500):
        taken = given = dice.randrange(1000)
        alive = dice.randrange(50)
        taken += alive
        before = counted(taken, given)
        come, gone = dice.randrange(20), dice.randrange(alive + 1)
        shown = dice.randint(alive - gone, alive + come)  # as the dump happened to see it
        after = counted(taken + come, given + gone)
        assert not Card(1, nic(), Match(None), before, after, {"tx": shown, "rx": 0}).missing("tx")


def listing(*sockets: Socket, at: float = 0.0, behind: Card | None = None, **space: Any) -> Listing:
    fields: dict[str, Any] = {"names": (), "path": "/proc/1/ns/net", "here": True, "error": "", "notes": ()}
    fields |= {"tls_stat": {}, "at": at, **space}
    one = Space(inode=1, sockets=sockets, **fields)
    cards = {(1, "eth0"): behind or card(hw=len(sockets), taken=len(sockets))}
    lines = [Line(one, s, {d: doubt(s, d, cards.get((1, s.device))) for d in ("tx", "rx")}) for s in sockets]
    return Listing(Found(at, (one,), (), False), cards, tuple(lines))


def test_table_for_people() -> None:
    """A person sees who, where, how, and the sum."""
    shown = as_text(listing(connection(), connection(owner=None, inode=0, tx="sw", peer="2001:db8::2")))
    head, first, second, _, total = shown.splitlines()
    assert tuple(head.split()) == HEADS
    assert second.split()[:4] == ["nginx[1234]", "+1", "192.0.2.1:443", "192.0.2.2:50000"]
    assert second.split()[4:9] == ["1.2", "aes-gcm-128", "hw", "sw", "eth0"]
    assert first.startswith("(closed)")
    assert "[2001:db8::2]:50000" in first
    assert total == "2 connections under kernel TLS: transmit 1 hw, 1 sw; receive 2 sw"


def test_doubts_are_said_once() -> None:
    """A reason that many connections share is written once, with how many."""
    shown = as_text(
        listing(*(connection(cookie=n) for n in range(40)), behind=card(hw=40, taken=40, given=40))
    )
    assert shown.count("holds 0 of the 40") == 1
    assert "hw stale: transmit of 40:" in shown


def test_the_page_quotes_what_is_printed() -> None:
    """docs/use/ls.md shows the doubt in the words of the command."""
    _, why = doubt(connection(), "tx", card(nic("nicsim0"), taken=9, given=9))
    assert f"hw stale: transmit of 1: {why}" in " ".join(PAGE.read_text().split())


@pytest.mark.parametrize("columns", [0, 132, 100, 80, 60, 40])
def test_table_fits(columns: int) -> None:
    """No line is wider than the terminal, and what matters most stays."""
    rows = [line for line in as_text(listing(connection()), columns).splitlines()[:2]]
    assert not columns or max(map(len, rows)) <= columns
    assert columns == 40 or {"PEER", "TX", "RX", "DEVICE"} <= set(rows[0].split())


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "-"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (101_000, "98.6 KiB"),
        (1 << 40, "1.0 TiB"),
        (2**63, "8192 PiB"),
    ],
)
def test_size(count: int | None, text: str) -> None:
    """Bytes are short and right."""
    assert size(count) == text


def test_age() -> None:
    """An age is rounded up, since it is a bound."""
    assert [age(s) for s in (None, 0.2, 59.9, 60, 3599, 90_000)] == ["-", "1s", "60s", "2m", "60m", "2d"]


def test_json() -> None:
    """A program gets every fact, also what is unknown, as null."""
    reported = json.loads(as_json(listing(connection(sent=None), behind=card(taken=1, given=1))))
    row = reported["connections"][0]
    assert (reported["schema"], row["sent"], row["tx"]["conf"], row["tx"]["doubt"]) == (
        1,
        None,
        "hw",
        "stale",
    )
    assert row["process"] == {"pid": 1234, "name": "nginx", "others": 1}
    assert reported["devices"][0]["on_card"] == {"tx": 0, "rx": None}


def test_what_may_not_be_seen_is_said() -> None:
    """A user who may not see kernel TLS reads how much there is, and what to do."""
    found = listing(tls_stat={"TlsCurrTxSw": 3})
    assert any("counts 3 more" in note and "run it as root" in note for note in notes(found))
    shut = listing(error="Operation not permitted")
    assert any("could not be read: Operation not permitted: run it as root" in note for note in notes(shut))


def test_module_is_not_advised_where_there_is_none() -> None:
    """`modprobe tls` is advised only where the kernel may have the module."""
    unloaded = replace(listing(tls_stat=None), without="")
    assert "not loaded (modprobe tls)" in as_text(unloaded)
    absent = replace(unloaded, without="not in this kernel (/boot/config: CONFIG_TLS is not set)")
    bare, narrow = as_text(absent), as_text(absent, 60)
    assert "kernel TLS is not in this kernel" in bare and "modprobe" not in bare
    assert max(map(len, narrow.splitlines())) <= 60 and " ".join(narrow.split()) == bare


def looked(at: float, sent: int, bytes_: int) -> Look:
    """A look at one connection, and a card that has encrypted so much since the last look, a second ago."""
    old, new = (
        counted(1, 0, at - 1, tx_tls_encrypted_bytes=0),
        counted(1, 0, at, tx_tls_encrypted_bytes=bytes_),
    )
    behind = Card(1, nic(), Match(None), old, new, {"tx": 1, "rx": 0})
    return Look(listing(connection(sent=sent), at=at, behind=behind))


@pytest.mark.parametrize(
    ("card_bytes", "share"), [(1_000_000, 0.0), (250_000, 0.75), (0, 1.0), (2_000_000, 0.0)]
)
def test_share_of_software(card_bytes: int, share: float) -> None:
    """What the card did not encrypt of its connections' bytes is software's share."""
    row = rates(looked(1, 0, 0), looked(2, 1_000_000, card_bytes))[0]
    assert row["software_share"] == pytest.approx(share)
    assert row["bytes_per_s"] == card_bytes


def test_rates_are_over_the_time_between_two_looks() -> None:
    """A card that one look reads twice, as it does for a stale connection, tells the same."""
    first, second = looked(1, 0, 0), looked(3, 1_000_000, 600_000)
    card = second.listing.cards[1, "eth0"]
    just_now = replace(card.after, at=2.95, driver={**card.after.driver, "tx_tls_encrypted_bytes": 590_000})
    twice = replace(second.listing, cards={(1, "eth0"): replace(card, before=just_now)})
    row = rates(first, Look(twice))[0]
    assert (row["bytes_per_s"], row["software_share"]) == (300_000, pytest.approx(0.4))


def test_card_seen_once_has_no_rate() -> None:
    """A device that got its first connection since the last look shows no rate, and not 0."""
    row = rates(Look(replace(looked(1, 0, 0).listing, cards={})), looked(2, 200_000, 100_000))[0]
    assert (row["bytes_per_s"], row["packets_per_s"], row["software_share"]) == (None, None, None)


def test_namespaces_have_times_of_their_own() -> None:
    """A connection's rate is over the time between two readings of its own namespace."""
    first, second = (Look(listing(connection(sent=n << 20), at=t)) for n, t in ((0, 1.0), (6, 3.0)))
    late = replace(second.listing.found.spaces[0], at=4.0)  # three seconds after its first reading
    found = replace(second.listing.found, spaces=(late,))
    lines = tuple(line._replace(space=late) for line in second.listing.lines)
    then = Look(replace(second.listing, found=found, lines=lines))
    assert [moved["SENT/s"] for _, moved in busiest(first, then)] == ["2.0 MiB"]


def test_few_bytes_tell_no_share() -> None:
    """A nearly idle connection says nothing of the share."""
    assert rates(looked(1, 0, 0), looked(2, 1000, 0))[0]["software_share"] is None


@pytest.mark.parametrize("height", [5, 8, 12, 24])
def test_frame_fits(height: int) -> None:
    """A screen is never longer than the terminal, and says how many are left out."""
    many = tuple(connection(cookie=n, local_port=n) for n in range(100))
    lines = frame(None, Look(listing(*many)), 80, height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= 80
    assert height < 8 or "more" in lines[-1]


def test_keys_are_named_where_they_work() -> None:
    """A screen says how it ends, and a file does not: nobody can press q there."""
    assert "q ends it" in frame(None, Look(listing()), 80, 24)[0]
    assert "q ends" not in "".join(frame(Look(listing()), Look(listing()), 0, 0))


class FakeInspector(Inspector):
    """Looks that a test has prepared."""

    def __init__(self, *looks: Look) -> None:
        self.looks = list(looks)

    def look(self) -> Listing:
        """Return the next one, the last one for ever."""
        return self.looks.pop(0).listing if len(self.looks) > 1 else self.looks[0].listing


def test_watch_without_a_terminal() -> None:
    """A watch that is written to a file has no escape in it, and one block per look."""
    out = io.StringIO()
    assert watch(FakeInspector(looked(1, 0, 0), looked(2, 200_000, 200_000)), out, Pace(0.2, 2)) == 0
    assert "\x1b" not in out.getvalue()
    assert out.getvalue().count("--watch") == 2
    assert "200000" not in out.getvalue()
    assert "195 KiB" in out.getvalue()


def test_watch_for_programs() -> None:
    """A watch in JSON is one document per line, with rates from the second on."""
    out = io.StringIO()
    watch(FakeInspector(looked(1, 0, 0), looked(2, 200_000, 100_000)), out, Pace(0.2, 2), as_json)
    first, second = (json.loads(line) for line in out.getvalue().splitlines())
    assert (first["rates"], second["rates"][0]["software_share"]) == ([], 0.5)


def parts_of(terminal: int) -> Iterator[str]:
    """What was written to a terminal whose other end is closed."""
    with suppress(OSError), os.fdopen(terminal, "rb", 0) as file:
        while part := file.read(4096):
            yield part.decode()


@pytest.mark.parametrize(
    ("env", "screen", "heads"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, False, False),
    ],
)
def test_watch_on_a_terminal(
    env: Mapping[str, str], screen: bool, heads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal gets its screen back; NO_COLOR and TERM=dumb are obeyed."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as out:
        watch(FakeInspector(looked(1, 0, 0)), out, Pace(0.2, 1))
    said = "".join(parts_of(ours))
    assert (said.startswith("\x1b[?1049h"), said.endswith("\x1b[?25h\x1b[?1049l")) == (screen, screen)
    assert ("\x1b[7m" in said) == heads
    assert "nginx[1234]" in said


class Blind(Inspector):
    """Looks that take for ever: nothing comes."""

    def __init__(self) -> None:
        pass

    def look(self) -> Listing:
        """Be ended by Ctrl-C."""
        raise KeyboardInterrupt


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_watch_says_at_once_that_it_looks(term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person sees title and "looking" before the first look is done; a file does not."""
    monkeypatch.setenv("TERM", term)
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as out:
        watch(Blind(), out, Pace(0.2, 1))
    said = "".join(parts_of(ours))
    assert "ktls-offload ls --watch   " in said and "looking ..." in said
    assert ("q ends it" in said) == (term == "xterm")
    file = io.StringIO()
    watch(Blind(), file, Pace(0.2, 1))
    assert file.getvalue() == ""


@pytest.mark.parametrize("pace", [Pace(0.1, 0), Pace(4000, 0), Pace(float("nan"), 1), Pace(1, -1)])
def test_pace_that_makes_no_sense(pace: Pace) -> None:
    """An interval or a count that makes no sense is refused with what is wanted."""
    with pytest.raises(ConfigError, match="--interval|--count"):
        watch(FakeInspector(looked(1, 0, 0)), io.StringIO(), pace)


def test_table_of_nothing_is_heads_only() -> None:
    """The words of the command line are there."""
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    assert vars(parser.parse_args(["ls", "--watch"]))["interval"] == 2.0
    assert table([{"A": "x"}], ("A",), 0) == ["A", "x"]
