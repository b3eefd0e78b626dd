"""sockets: the kernel's answers are read right, wrong ones are refused, and no name moves a terminal."""

from __future__ import annotations

import json
import random
import socket
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from offload.connections import sockets_reader as reader
from offload.connections.sockets import Inside, Socket, gather, understood
from offload.errors import RigError
from offload.host.base import Completed
from offload.host.local import LocalHost

TLS12, AES128, SW, HW = 0x0303, 51, 2, 3


def attribute(kind: int, body: bytes) -> bytes:
    """One netlink attribute, padded."""
    return struct.pack("=HH", 4 + len(body), kind) + body + bytes(-len(body) % 4)


def ulp(
    name: bytes = b"tls", version: int = TLS12, cipher: int = AES128, tx: int = HW, rx: int = SW
) -> bytes:
    """INET_DIAG_ULP_INFO as tcp_diag_put_ulp() and tls get_info() write it."""
    numbers = ((reader.VERSION, version), (reader.CIPHER, cipher), (reader.TXCONF, tx), (reader.RXCONF, rx))
    tls = b"".join(attribute(kind, struct.pack("=H", value)) for kind, value in numbers)
    inner = attribute(reader.ULP_NAME, name + b"\0") + attribute(reader.ULP_TLS | 0x8000, tls)
    return attribute(reader.ULP | 0x8000, inner)


def info(sent: int = 5000, again: int = 100, received: int = 700, size: int = 232) -> bytes:
    """struct tcp_info of a kernel that has so many bytes of it."""
    body = bytearray(232)
    struct.pack_into("=Q", body, 128, received)
    struct.pack_into("=QQ", body, 200, sent, again)
    return attribute(reader.INFO, bytes(body[:size]))


def diag(
    family: int = socket.AF_INET, ours: str = "192.0.2.1", theirs: str = "192.0.2.2", more: bytes = b""
) -> bytes:
    """struct inet_diag_msg of an established connection, port 443 to 50000, inode 77, cookie 5."""
    both = b"".join(socket.inet_pton(family, a).ljust(16, b"\0") for a in (ours, theirs))
    sockid = struct.pack("!HH", 443, 50000) + both + struct.pack("=III", 0, 5, 0)
    return bytes([family, 1, 0, 0]) + sockid + struct.pack("=IIIII", 0, 0, 0, 1000, 77) + more


def read(message: bytes) -> Any:
    """What the reader makes of a message, without the device."""
    return reader.row(message, 0, len(message))


def test_connection_is_read() -> None:
    """Every field of a kernel-TLS connection is found where the kernel puts it."""
    found = read(diag(more=attribute(reader.MARK, struct.pack("=I", 9)) + info() + ulp()))
    assert found[:7] == ["192.0.2.1", 443, "192.0.2.2", 50000, 4, 0, 9]
    assert found[7:] == [1, 1000, 77, 5, TLS12, AES128, HW, SW, 0, 4900, 100, 700]


@pytest.mark.parametrize(
    ("ours", "family", "shown"),
    [("2001:db8::1", 6, "2001:db8::1"), ("::ffff:192.0.2.1", 4, "192.0.2.1"), ("fe80::1", 6, "fe80::1")],
)
def test_ipv6(ours: str, family: int, shown: str) -> None:
    """IPv6 is read, and IPv4 in IPv6 shown as the IPv4 that it is."""
    found = read(diag(socket.AF_INET6, ours, ours, ulp()))
    assert (found[0], found[4]) == (shown, family)


def test_other_sockets_are_left_out() -> None:
    """A connection without kernel TLS is none of ours, whatever its attributes hold."""
    assert read(diag()) is None
    assert read(diag(more=ulp(name=b"mptcp"))) is None
    for ulps in (b"", ulp(name=b"mptcp")):  # the text is there, and the attribute is another
        assert read(diag(more=attribute(4, reader.IS_TLS) + ulps)) is None


@pytest.mark.parametrize(
    ("size", "wanted"), [(232, [4900, 100, 700]), (200, [-1, -1, 700]), (104, [-1, -1, -1])]
)
def test_older_tcp_info(size: int, wanted: list[int]) -> None:
    """A kernel that says less gives unknown, not 0."""
    assert read(diag(more=info(size=size) + ulp()))[16:19] == wanted


@pytest.mark.parametrize(
    "message",
    [
        diag()[:60],
        diag(more=ulp()[:-6]),
        diag(more=struct.pack("=HH", 2, 19) + ulp()),
        diag(more=struct.pack("=HH", 60000, 2) + ulp()),
        b"\x63" + diag(more=ulp())[1:],
    ],
    ids=["short", "cut", "tiny attribute", "huge attribute", "family 99"],
)
def test_what_makes_no_sense_is_odd(message: bytes) -> None:
    """A message that contradicts itself is refused as a whole."""
    with pytest.raises(reader.Odd):
        read(message)


@pytest.mark.parametrize("size", [0, 4, 15, 200, 2**32 - 1])
def test_message_of_an_odd_length_is_odd(size: int) -> None:
    """A netlink message of length 0 is no endless loop, a longer one than was sent no guess."""
    with pytest.raises(reader.Odd):
        list(reader.messages(struct.pack("=IHHII", size, 20, 2, 1, 0) + bytes(100)))


def test_damaged_messages_do_no_harm() -> None:
    """6,000 damaged answers give a row, nothing, or Odd, and no other exception."""
    dice = random.Random(13)
    good = [diag(more=info() + ulp()), diag(socket.AF_INET6, "2001:db8::1", "::1", ulp() + info())]
    kinds = set()
    for _ in range(6000):
        bad = bytearray(dice.choice(good))
        for _ in range(dice.randint(1, 6)):
            bad[dice.randrange(len(bad))] = dice.choice((0, 1, 4, 0xFF, dice.randrange(256)))
        whole = bytes(bad[: dice.randint(0, len(bad))] if dice.random() < 0.3 else bad)
        wrapped = (
            struct.pack("=IHHII", dice.choice((16 + len(whole), dice.randrange(1 << 20))), 20, 2, 1, 0)
            + whole
        )
        try:
            for _, at, end in reader.messages(wrapped):
                found = reader.row(wrapped, at, end)
                kinds.add(type(found))
                assert found is None or (len(found) == 19 and all(isinstance(v, (int, str)) for v in found))
        except reader.Odd:
            kinds.add(reader.Odd)
    assert kinds == {list, type(None), reader.Odd}


def test_known_shape_is_no_guess() -> None:
    """4,000 messages as long as one that was read are read as if they were the first."""
    dice = random.Random(19)
    good = diag(more=attribute(8, b"\0") + attribute(reader.MARK, bytes(4)) + info() + ulp())
    kinds = set()
    for _ in range(4000):
        bad = bytearray(good)
        for _ in range(dice.randint(0, 3)):
            bad[dice.choice((72, 73, 74, 76, 80, 81, 82, dice.randrange(len(bad))))] = dice.randrange(24)
        reader.SHAPES.clear()
        alone = outcome(bytes(bad))
        assert outcome(good)[7] == 1
        assert outcome(bytes(bad)) == alone
        kinds.add(type(alone))
    assert kinds == {list, type(None), str} and len(reader.SHAPES) == 1


def test_known_shapes_are_few() -> None:
    """Answers that all differ do not fill the memory."""
    for length in range(4, 8 * reader.MOST_SHAPES, 4):
        outcome(diag(more=attribute(4, bytes(length)) + ulp()))
    assert len(reader.SHAPES) <= reader.MOST_SHAPES


def outcome(message: bytes) -> Any:
    """What the reader makes of a message, or why it refuses it."""
    try:
        return read(message)
    except reader.Odd as why:
        return str(why)


def test_ten_thousand_take_no_time() -> None:
    """The parser reads 10,000 connections in well under a second of CPU."""
    one = diag(more=info() + ulp())
    data = b"".join(struct.pack("=IHHII", 16 + len(one), 20, 2, 1, 0) + one for _ in range(10_000))
    began = time.process_time()
    found = [reader.row(data, at, end) for _, at, end in reader.messages(data)]
    assert len(found) == 10_000
    assert time.process_time() - began < 0.8


class Said:
    """A host whose reader answers what a test says."""

    name = "fake"

    def __init__(self, stdout: bytes, rc: int = 0, stderr: bytes = b"") -> None:
        self.answer, self.argv = (rc, stdout, stderr), [""]

    def run(self, argv: Sequence[str], **_: Any) -> Completed:
        """Answer, and keep what was asked."""
        self.argv = list(argv)
        return Completed(tuple(argv), *self.answer, 0.0)


@pytest.mark.parametrize(
    "stdout",
    [b"", b"{", b"[]", b"{}", b'{"owners": 3}', b'{"owners": {}, "spaces": [{"inode": 1}], "at": 1}'],
)
def test_reader_that_fails_is_a_broken_rig(stdout: bytes) -> None:
    """A reader that died or says nonsense ends in one sentence with its last words."""
    with pytest.raises(RigError, match="exit 1: No module named socket"):
        gather(Said(stdout, 1, b"Traceback\nNo module named socket"))  # type: ignore[arg-type]


def document(name: str, rows: list[Any]) -> dict[str, Any]:
    """A reader's answer with one namespace."""
    space = {
        "inode": 1,
        "names": [name],
        "path": "/run/netns/x",
        "here": False,
        "error": name,
        "sockets": rows,
    }
    owners = {"77": [9, name, 3.5, 2]}
    space |= {"tls_stat": {"TlsCurrTxSw": 4}, "notes": [name]}
    return {"at": 1.0, "spaces": [space], "owners": owners, "notes": [name], "root": False}


def test_names_of_others_move_no_terminal() -> None:
    """A process, device or namespace with an escape in its name is shown without it."""
    evil = "a\x1b[2J\r\n\u202eb"
    found = understood(json.loads(json.dumps(document(evil, [[*read(diag(more=ulp())), evil]]))))
    one = found.spaces[0].sockets[0]
    assert one.owner is not None
    for text in (one.owner.name, one.device, found.spaces[0].title(), found.notes[0], found.spaces[0].error):
        assert text == "a?[2J???b"


def shown(found: list[Any], **numbers: int) -> Socket:
    """A socket as the reader has it, with other numbers."""
    places = {"state": 7, "version": 11, "cipher": 12, "tx": 13, "rx": 14, "zerocopy": 15}
    for name, number in numbers.items():
        found[places[name]] = number
    return understood(document("x", [[*found, "eth0"]])).sockets()[0]


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("state", {1: "established", 4: "fin-wait-1", 5: "fin-wait-2", 8: "close-wait", 9: "last-ack"}),
        ("state", {11: "closing", 6: "state 6"}),
        ("version", {0x0303: "1.2", 0x0304: "1.3", 0: "-", 0x0305: "0x0305"}),
        ("cipher", {51: "aes-gcm-128", 52: "aes-gcm-256", 53: "aes-ccm-128", 54: "chacha20-poly1305"}),
        ("cipher", {55: "sm4-gcm", 56: "sm4-ccm", 57: "aria-gcm-128", 58: "aria-gcm-256"}),
        ("cipher", {0: "-", 59: "cipher 59"}),
        ("tx", {0: "none", 1: "none", 2: "sw", 3: "hw", 4: "hw-record", 5: "conf 5"}),
        ("rx", {0: "none", 1: "none", 2: "sw", 3: "hw", 4: "hw-record", 5: "conf 5"}),
        ("zerocopy", {0: False, 1: True}),
    ],
)
def test_the_kernels_numbers_have_words(field: str, words: dict[int, object]) -> None:
    """Each number of the kernel's TLS and TCP headers has its word; an unknown one stays."""
    given = {n: getattr(shown(read(diag(more=ulp())), **{field: n}), field) for n in words}
    assert given == words


def test_directions_are_distinguished() -> None:
    """What a socket says of sending is not what it says of receiving."""
    one = shown(read(diag(more=ulp(tx=HW, rx=SW))))
    assert (one.conf("tx"), one.conf("rx")) == ("hw", "sw")


@pytest.mark.parametrize(
    ("names", "path", "here", "title"),
    [
        (["blue"], "/run/netns/blue", False, "blue"),
        (["blue", "b"], "/run/netns/blue", True, "blue b (this one)"),
        ([], "/proc/17/ns/net", False, "of process 17"),
        ([], "/proc/17/ns/net", True, "this one"),
    ],
)
def test_a_namespace_has_a_title(names: list[str], path: str, here: bool, title: str) -> None:
    """A namespace has the name of `ip netns`, or that of a process in it."""
    said = document("x", [])
    said["spaces"][0] |= {"names": names, "path": path, "here": here}
    assert understood(said).spaces[0].title() == title


def test_long_names_are_cut() -> None:
    """A name of 200 characters is shown whole, and no more of a longer one."""
    for length in (199, 200, 201, 5000):
        assert understood(document("n" * length, [])).notes == ("n" * min(length, 200),)


def test_the_reader_is_alone() -> None:
    """The reader runs in a Python that nobody's environment or folder reaches."""
    host = Said(json.dumps(document("x", [])).encode())
    for everywhere, word in ((True, "all"), (False, "here")):
        gather(host, everywhere=everywhere)  # type: ignore[arg-type]
        assert host.argv == ["/usr/bin/python3", "-I", "-S", "-", word]


@pytest.mark.parametrize("kind", ["TlsCurrTxSw", "TlsCurrTxDevice", "TlsCurrRxSw", "TlsCurrRxDevice"])
def test_each_kind_is_counted(kind: str) -> None:
    """Each of the kernel's four counts of directions in use tells of hidden ones."""
    said = document("x", [])
    said["spaces"][0]["tls_stat"] = {kind: 3, "TlsTxSw": 50}
    assert understood(said).spaces[0].unseen() == 3


def test_what_the_kernel_counts_and_does_not_show() -> None:
    """The kernel's own count tells how many directions are hidden from this user."""
    found = understood(document("x", []))
    assert found.spaces[0].unseen() == 4
    shown = understood(document("x", [[*read(diag(more=ulp())), "eth0"]]))
    assert shown.spaces[0].unseen() == 2
    assert isinstance(shown.sockets()[0], Socket)


def test_commands_enter_the_namespace() -> None:
    """A command for another namespace goes through nsenter, one for ours does not."""
    host = Said(b"")
    Inside(host, "/run/netns/x", "x").run(["ip", "link"])  # type: ignore[arg-type]
    assert host.argv == ["nsenter", "--net=/run/netns/x", "--", "ip", "link"]


def test_this_machine_can_be_read() -> None:
    """This machine's own sockets are listed, kernel TLS or not, and nothing fails."""
    found = gather(LocalHost(), everywhere=False)
    assert [(space.here, space.error) for space in found.spaces] == [(True, "")]


@pytest.mark.parametrize(("family", "here", "there"), [(4, "127.0.0.1", "127.0.0.2"), (6, "::1", "::1")])
def test_a_route_of_this_host_is_asked_for(family: int, here: str, there: str) -> None:
    """The kernel takes the question for both families, and with a source that is not ours."""
    six = Path("/proc/net/if_inet6")
    if family == 6 and not (six.exists() and f"{1:032x} " in six.read_text()):
        pytest.skip("this host has no ::1")
    with reader.opened(0) as sock:
        assert reader.device(sock, here, there, family, 0, 0) == "lo"
        if family == 4:
            assert reader.device(sock, "192.0.2.77", there, family, 0, 0) == "lo", "a transparent proxy"
        found, why = reader.route(sock, reader.question("", there, family, 0x7FFFFFFF, 0))
        assert not found and why, "an interface that there is not"


def test_the_question_for_a_route_is_as_the_kernel_reads_it() -> None:
    """struct rtmsg and its attributes, by include/uapi/linux/rtnetlink.h."""
    whole = reader.question("2001:db8::1", "2001:db8::2", 6, 5, 9)
    length, kind = struct.unpack_from("=IH", whole)
    assert (length, kind) == (len(whole), 26), "RTM_GETROUTE"
    assert struct.unpack_from("=BBB", whole, 16) == (socket.AF_INET6, 128, 128)
    said = {name: whole[at:end] for name, (at, end) in reader.attributes(whole, 28, length)}
    assert said == {
        1: socket.inet_pton(socket.AF_INET6, "2001:db8::2"),  # RTA_DST
        2: socket.inet_pton(socket.AF_INET6, "2001:db8::1"),  # RTA_SRC
        4: struct.pack("=I", 5),  # RTA_OIF
        16: struct.pack("=I", 9),  # RTA_MARK
    }
    assert struct.unpack_from("=BBB", reader.question("", "192.0.2.1", 4, 0, 0), 16) == (
        socket.AF_INET,
        32,
        0,
    )
