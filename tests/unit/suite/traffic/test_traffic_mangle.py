"""The mangler's filters alter the content of chosen records, nothing else, and go away."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest

from offload.errors import ConfigError, Refused, RigError
from offload.host.base import Completed, Process
from offload.suite.traffic.mangle import REACH, TCP_WORDS, Target, mangling

PORT = 4433


class FakeTc:
    """A host with one interface whose `tc` knows qdiscs and filters; `refuses` a command with this word."""

    def __init__(self, qdiscs: list[str], egress: list[int], refuses: str = "") -> None:
        self.name, self.qdiscs, self.egress, self.refuses = "fake", qdiscs, egress, refuses
        self.lines: list[str] = []

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes = b"",
        timeout: float = 60.0,
        check: bool = True,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Answer as tc does."""
        words = [word for word in argv[1:] if not word.startswith("-") or word == "-batch"]
        self.lines += input.decode().splitlines()
        if self.refuses and self.refuses in (input.decode() or " ".join(words)):
            return Completed(tuple(argv), 1, b"", b"RTNETLINK answers: No such file", 0.0, self.name)
        return Completed(tuple(argv), 0, self._answer(words, input.decode()), b"", 0.0, self.name)

    def _answer(self, words: list[str], lines: str) -> bytes:
        if words[:2] == ["qdisc", "show"]:
            return json.dumps([{"kind": kind} for kind in self.qdiscs]).encode()
        if words[:2] == ["filter", "show"]:
            found = self.egress if words[-1] == "egress" else []
            action = {"kind": "pedit", "stats": {"packets": 3}}
            return json.dumps([{"pref": p, "options": {"actions": [action]}} for p in found]).encode()
        if words[:2] == ["qdisc", "add"]:
            self.qdiscs.append("clsact")
        elif words[:2] == ["qdisc", "del"]:
            self.qdiscs.remove("clsact")
            self.egress.clear()
        elif words[:2] == ["filter", "del"]:
            self.egress.clear()
        else:
            self.egress += [int(line.split()[line.split().index("pref") + 1]) for line in lines.splitlines()]
        return b""

    def start(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> Process:
        """Never asked for."""
        raise NotImplementedError

    def read(self, path: str) -> bytes:
        """Never asked for."""
        raise NotImplementedError

    def write(self, path: str, data: bytes, mode: int = 0o600) -> None:
        """Never asked for."""
        raise NotImplementedError


def packet(target: Target, words: int, payload: bytes) -> bytes:
    """An IP packet to or from the target's port."""
    ports = (target.port, 9) if target.sends else (9, target.port)
    tcp = struct.pack("!HHIIBBHHH", *ports, 0x17030340, 2, words << 4, 0x18, 3, 4, 0).ljust(4 * words, b"\1")
    if target.family == 4:
        return struct.pack("!BBHHHBBH8x", 0x45, 0, 40 + len(payload), 1, 0, 64, 6, 0) + tcp + payload
    return struct.pack("!IHBB32x", 6 << 28, 20 + len(payload), 6, 64) + tcp + payload


def through(rule: Sequence[str], data: bytes) -> bytes:
    """What u32 and pedit make of a packet (net/sched/cls_u32.c, act_pedit.c)."""
    out, words = bytearray(data), list(rule)
    for at, word in enumerate(words):
        if word == "match":
            size = int(words[at + 1][1:]) // 8
            value, mask, where = (int(words[at + k], 0) for k in (2, 3, 5))
            if int.from_bytes(data[where : where + size], "big") & mask != value:
                return data
        elif word == "munge":
            assert words[at + 3 : at + 6 : 2] == ["u8", "retain"]
            out[int(words[at + 2])] ^= int(words[at + 6], 0)
    return bytes(out)


@pytest.mark.parametrize("words", TCP_WORDS)
@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("sends", [False, True])
def test_only_content_of_that_record_is_altered(words: int, family: int, version: str, sends: bool) -> None:
    """Header, nonce, tag and every other packet stay as they are."""
    target = Target(PORT, 300, {0: 1, 7: 0x80, 299: 0xFF}, version, family, sends)
    rule, before = target.filter(words, False), 13 if version == "1.2" else 5
    content, after = bytes(range(256)) + bytes(44), bytes(16 if version == "1.2" else 17)
    nonce = bytes(before - 5)
    payload = b"\x17\x03\x03" + (before - 5 + 300 + len(after)).to_bytes(2, "big") + nonce + content + after
    data = packet(target, words, payload)
    out = through(rule, data)[-len(payload) :]
    assert out[:before] == payload[:before] and out[-len(after) :] == after
    assert out[before : before + 300] == target.altered(content) != content
    other_port = Target(PORT + 1, 300, {0: 1}, version, family, sends)
    other_length = payload[:4] + bytes([payload[4] ^ 1]) + payload[5:]
    others = [packet(target, words, payload[1:]), packet(other_port, words, payload)]
    others += [packet(target, words, other_length), packet(target, 6, payload)]
    assert [through(rule, one) for one in others] == others


@pytest.mark.parametrize(
    ("size", "flips"),
    [
        (100, {}),
        (100, {112: 1}),
        (100, {-1: 1}),
        (9000, {REACH: 1}),
        (16385, {0: 1}),
        (9, {0: 256}),
        (9, {0: 0}),
    ],
)
def test_refuses_what_is_not_content(size: int, flips: dict[int, int]) -> None:
    """A place outside the first segment of a record's content and tag is no target."""
    with pytest.raises(ConfigError):
        Target(PORT, size, flips)


def test_tag_is_behind_the_content() -> None:
    """A bit of the tag is altered behind the content, which stays; in TLS 1.3 there is none."""
    target = Target(PORT, 100, {111: 4})
    assert target.altered(bytes(100)) == bytes(100)
    assert f"offset {20 + 20 + 13 + 111} u8 invert retain 0x4" in " ".join(target.filter(5, False))
    with pytest.raises(ConfigError):
        Target(PORT, 100, {111: 4}, version="1.3")


@pytest.mark.parametrize("found", [["fq_codel"], ["fq_codel", "clsact"], []])
def test_what_was_found_is_there_after(found: list[str]) -> None:
    """A clsact that was there stays, and ours goes, also after a failure inside."""
    host = FakeTc(list(found), [])
    targets = [Target(PORT, 100, {1: 1}), Target(PORT, 200, {1: 1}, family=6)]
    with pytest.raises(KeyError), mangling(host, "eth0", targets, checksum=True) as mangler:
        assert "clsact" in host.qdiscs and len(host.egress) == 4
        assert mangler.hits() == [6, 6]  # two filters for each target
        assert all(line.endswith("pipe action csum tcp") for line in host.lines)
        assert {pair for pair in pairwise(" ".join(host.lines).split()) if pair[0] == "protocol"} == {
            ("protocol", "ip"),
            ("protocol", "ipv6"),
        }
        raise KeyError
    assert (host.qdiscs, host.egress) == (found, [])


@pytest.mark.parametrize(
    ("qdiscs", "egress", "word"), [(["ingress"], [], "ingress qdisc"), (["clsact"], [7], "filters")]
)
def test_stays_away_from_filters_of_others(qdiscs: list[str], egress: list[int], word: str) -> None:
    """Filters that were there are neither altered nor met: refused, saying where to look."""
    host = FakeTc(list(qdiscs), list(egress))
    with pytest.raises(Refused, match=word), mangling(host, "eth0", [Target(PORT, 9, {0: 1})]):
        pass
    assert (host.qdiscs, host.egress, host.lines) == (qdiscs, egress, [])


def test_a_kernel_that_does_not_take_it_is_a_broken_rig() -> None:
    """The kernel's words, the command and a hint are shown, and nothing is left."""
    host = FakeTc([], [], refuses="pedit")
    with (
        pytest.raises(RigError, match="No such file") as caught,
        mangling(host, "eth0", [Target(1, 9, {0: 1})]),
    ):
        pass
    assert "munge offset" in str(caught.value) and "modprobe" in str(caught.value)
    assert (host.qdiscs, host.egress) == ([], [])
