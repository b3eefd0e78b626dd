"""The lines that make ESP say what they should, and no key is where somebody could read it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest

from offload.errors import ConfigError, Refused, RigError
from offload.host.base import Completed, Side
from offload.suite.traffic import ipsec

A, B = "192.0.2.1", "192.0.2.2"
KEY = re.compile(rb"0x[0-9a-f]{40,}")


class Machine:
    """A host on which `ip` does what it is told, or not; it keeps what was said to it."""

    def __init__(self, name: str, policies: str = "", fails: bytes = b"") -> None:
        self.name, self.policies, self.fails = name, policies, fails
        self.argv: list[str] = []
        self.said: list[bytes] = []
        self.states = 0

    def run(self, argv: Sequence[str], *, input: bytes = b"", check: bool = True, **_: Any) -> Completed:
        self.argv.append(" ".join(argv))
        self.said.append(input)
        added = input.count(b"xfrm state add")
        if added and self.fails:
            return Completed(tuple(argv), 1, b"", self.fails, 0.0, self.name)
        self.states = 0 if b"deleteall" in input else self.states + added
        out = self.policies if "policy" in argv else "state\n" * self.states if "state" in argv else ""
        return Completed(tuple(argv), 0, out.encode(), b"", 0.0, self.name)


def sides(**more: Any) -> tuple[Side, Side]:
    """DUT and peer; `more` is the DUT's."""
    return Side(Machine("dut", **more), "eth0", A, ""), Side(Machine("peer"), "eth1", B, "")  # type: ignore[arg-type]


@pytest.mark.parametrize("cipher, size", [("null", 0), ("gcm-128", 20), ("gcm-256", 36)])
def test_keys_are_long_enough_and_new(cipher: str, size: int) -> None:
    """Each direction has a key of its own (RFC 4106: and four bytes of salt)."""
    associations = [ipsec.association(A, B, cipher) for _ in range(3)]
    assert {len(one.key.removeprefix("0x")) // 2 for one in associations} == {size or 1}
    assert len({one.key for one in associations}) == (3 if size else 1)
    assert len({one.spi for one in associations}) == 3 and all(one.spi > 255 for one in associations)


def test_a_cipher_that_there_is_not() -> None:
    with pytest.raises(ConfigError, match="no IPsec cipher 'rot13'"):
        ipsec.association(A, B, "rot13")


def test_lines() -> None:
    """A state is of one direction and ends by itself; the card's part names device and side."""
    one = ipsec.association(A, B, "gcm-128")
    line = ipsec.state(one, "gcm-128", "eth0 out", 60)
    assert f"src {A} dst {B} proto esp spi {one.spi:#x}" in line and "mode transport" in line
    assert f"aead rfc4106(gcm(aes)) {one.key} 128" in line
    assert line.endswith("limit time-hard 60 offload dev eth0 dir out")
    assert "offload" not in ipsec.state(one, "gcm-128") and "esn" in line
    demand = ipsec.policy(one, "in", 60)
    assert f"src {A}/32 dst {B}/32 proto 6 dir in" in demand and "level required" in demand
    assert "limit time-hard 60" in demand


def test_no_key_is_seen() -> None:
    """Keys go to standard input only: in no argv, and nothing that shows values shows them."""
    near, far = sides()
    with ipsec.protected(near, far, "gcm-256", card=True) as esp:
        assert "key" not in repr(esp.out) and esp.out.key not in f"{esp.out} {vars(esp)}"
    for machine in (near.host, far.host):
        assert isinstance(machine, Machine)
        assert not KEY.search(" ".join(machine.argv).encode())
        assert sum(len(KEY.findall(said)) for said in machine.said) == 2, "both states at each end"


def test_the_card_is_the_near_one() -> None:
    """Only the DUT's card is asked for its crypto."""
    near, far = sides()
    with ipsec.protected(near, far, "gcm-128", card=True):
        pass
    given = [b" ".join(side.host.said) for side in (near, far)]  # type: ignore[attr-defined]
    assert b"offload dev eth0 dir out" in given[0] and b"offload dev eth0 dir in" in given[0]
    assert b"offload" not in given[1]


def test_what_esp_taught_of_the_path_is_forgotten_when_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """With ESP in place an open connection would only teach it again."""
    near, far = sides()
    left: list[int] = []
    ends = SimpleNamespace(close=lambda: left.append(near.host.states))  # type: ignore[attr-defined]
    monkeypatch.setattr(ipsec, "forgotten", lambda *_: closing(ends))
    with ipsec.protected(near, far, "gcm-128"):
        assert near.host.states == 2 and not left  # type: ignore[attr-defined]
    assert left == [0]


def test_an_answer_with_a_key_in_it() -> None:
    """What `ip` says of a line is passed on without the key."""
    near, far = sides(fails=b'Error: argument "0x' + b"ab" * 20 + b'" is wrong: x')
    with (
        pytest.raises(RigError, match=r"ip xfrm on dut: .*\(key\).*wrong"),
        ipsec.protected(near, far, "gcm-128"),
    ):
        pass


def test_somebody_elses_policy() -> None:
    """A pair that has IPsec already is refused before anything is touched."""
    near, far = sides(policies=f"src {A}/32 dst {B}/32 dir out priority 7")
    with pytest.raises(Refused, match="already"), ipsec.protected(near, far, "gcm-128"):
        pass
    assert not any(near.host.said), "something was said to ip"  # type: ignore[attr-defined]


def test_what_stays_is_named() -> None:
    """A policy of ours that does not go is an error, with the time at which it goes."""
    near, far = sides(policies=f"priority {ipsec.MARK}")
    with pytest.raises(RigError, match="could NOT remove IPsec policy on dut"):
        with ipsec.protected(near, far, "gcm-128", life=77):
            pass


class Counters(Machine):
    """A host with a /proc/net/xfrm_stat."""

    text = b"XfrmInError \t0\nXfrmInTmplMismatch \t3\n"

    def read(self, path: str) -> bytes:
        assert path == ipsec.STAT
        return self.text


def test_errors_are_read() -> None:
    """The kernel's counters are numbers by name, and nonsense is no figure."""
    host = Counters("dut")
    assert ipsec.errors(host) == {"XfrmInError": 0, "XfrmInTmplMismatch": 3}  # type: ignore[arg-type]
    host.text = b"what\n"
    with pytest.raises(RigError, match="xfrm_stat"):
        ipsec.errors(host)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ask for programs as for anything else."""
    monkeypatch.setattr(ipsec, "tool", lambda host, argv, **_: host.run(argv, check=False))
    yield
