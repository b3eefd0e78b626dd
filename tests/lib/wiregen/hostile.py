"""Input made to break a verifier: each entry is files, the exit code and what the sentence must name."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from tests.lib.wiregen import files, frames
from tests.lib.wiregen.damage.kinds import KINDS, damaged, done, plain_style, steady_scene
from tests.lib.wiregen.engines import write
from tests.lib.wiregen.frames import Frame, Link, Net, any_net
from tests.lib.wiregen.good import good_case
from tests.lib.wiregen.scene import Case
from tests.lib.wiregen.tcp import ACK, SYN, Seg

SECTION = files.section(Random(1), "<")
EQUAL, USAGE, DIFFERENT, INCONCLUSIVE = 0, 2, 20, 21


@dataclass
class Bad:
    """A question that makes trouble. `prepare`: what is done to the folder after the files are written."""

    case: Case
    code: int
    word: str
    prepare: Callable[[Path], None] = field(default=lambda folder: None)


def known(name: str, word: str, code: int = INCONCLUSIVE) -> Callable[[], Bad]:
    """One of the kinds of damage."""
    assert name in KINDS
    return lambda: Bad(damaged(name, 0)[0], code, word)


def with_capture(make: Callable[[bytes], bytes], code: int, word: str) -> Callable[[], Bad]:
    """A good question whose capture is another."""
    return lambda: Bad(replace(good_case(3), capture=make(good_case(3).capture)), code, word)


def with_keylog(keylog: bytes, code: int, word: str) -> Callable[[], Bad]:
    """A good question with this keylog."""
    return lambda: Bad(replace(good_case(3), keylog=keylog), code, word)


def with_folder(prepare: Callable[[Path], None], word: str) -> Callable[[], Bad]:
    """A good question with a file that is not what it should be."""
    case = replace(good_case(3), payload=b"x")
    return lambda: Bad(case, USAGE, word, prepare)


def link_type(number: int) -> bytes:
    """A pcap with one frame of this link type."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, number)
    return head + struct.pack("<IIII", 0, 0, 60, 60) + bytes(60)


def gone(name: str) -> Callable[[Path], None]:
    """Remove a file."""
    return lambda folder: (folder / name).unlink()


def instead(name: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    """Put something else where a file is."""

    def change(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return change


def sparse(path: Path) -> None:
    """A file of 65 MiB that takes no room."""
    with path.open("wb") as file:
        file.truncate(65 << 20)


def no_handshake() -> Bad:
    """Only application records: the connection was there before the capture."""
    scene = steady_scene(Random("hostile no handshake"))
    case, _ = done(scene, [KINDS["handshake_missing"], KINDS["begun_without_syn"]])
    return Bad(case, INCONCLUSIVE, "no-hello")


def contradictions() -> Bad:
    """The same bytes sent again and again, each time different."""
    scene = steady_scene(Random("hostile contradictions"))
    scene.main.style = plain_style(scene.rng)
    case, _ = done(scene, [KINDS["again_as_noise"]] * 40)
    return Bad(case, DIFFERENT, "DIFFERENT")


BAD: dict[str, Callable[[], Bad]] = {
    "capture_empty": with_capture(lambda data: b"", USAGE, "pcap"),
    "capture_of_three_bytes": with_capture(lambda data: data[:3], USAGE, "pcap"),
    "capture_of_half_a_pcap_header": with_capture(lambda data: link_type(1)[:20], USAGE, "pcap"),
    "capture_of_half_a_section_header": with_capture(lambda data: SECTION[:20], 21, "capture-damaged"),
    "capture_is_text": with_capture(lambda data: b"hello, world\n" * 100, USAGE, "pcap"),
    "capture_without_frames": with_capture(lambda data: files.pcap(Random(1), [], "<", False), 21, "no-tls"),
    "capture_cut": known("file_cut", "capture-damaged"),
    "frame_of_17_MiB": known("frame_too_large", "capture-damaged"),
    "block_of_2_GiB": known("block_too_large", "capture-damaged"),
    "link_type_usb": with_capture(lambda data: link_type(220), USAGE, "220"),
    "link_type_huge": with_capture(lambda data: link_type(0xFFFF), USAGE, "65535"),
    "overlaps_contradict": contradictions,
    "overlap_with_one_bit": known("again_with_bit", "DIFFERENT", DIFFERENT),
    "record_over_16640": known("length_too_large", "DIFFERENT", DIFFERENT),
    "header_is_noise": known("noise_for_header", "DIFFERENT", DIFFERENT),
    "handshake_endless": known("handshake_too_long", "handshake-too-long"),
    "handshake_missing": known("handshake_missing", "no-hello"),
    "handshake_and_syn_missing": no_handshake,
    "begun_mid_stream": known("begun_mid_stream", "no-tls"),
    "keys_of_others": known("no_keys", "no-key"),
    "keylog_empty": with_keylog(b"", USAGE, "no valid"),
    "keylog_of_comments": with_keylog(b"# nothing\n\n", USAGE, "no valid"),
    "keylog_of_noise": with_keylog(Random(1).randbytes(5000), USAGE, "no valid"),
    "keylog_of_one_long_line": with_keylog(b"CLIENT_RANDOM " + b"0" * 10**6, USAGE, "no valid"),
    "keylog_gone": with_folder(gone("keylog"), "keylog"),
    "keylog_is_a_folder": with_folder(instead("keylog", Path.mkdir), "keylog"),
    "keylog_is_a_pipe": with_folder(instead("keylog", os.mkfifo), "keylog"),
    "keylog_of_65_MiB": with_folder(instead("keylog", sparse), "64 MiB"),
    "capture_gone": with_folder(gone("capture"), "capture"),
    "capture_is_a_folder": with_folder(instead("capture", Path.mkdir), "capture"),
    "capture_is_a_pipe": with_folder(instead("capture", os.mkfifo), "capture"),
    "payload_gone": with_folder(gone("payload"), "payload"),
    "payload_is_a_folder": with_folder(instead("payload", Path.mkdir), "payload"),
    "payload_is_a_pipe": with_folder(instead("payload", os.mkfifo), "payload"),
}


def files_of(bad: Bad, folder: Path) -> list[str]:
    """Write the files; the arguments of `ktls-offload wire verify`."""
    args = write(bad.case, folder)
    bad.prepare(folder)
    return args


def capture_of(rng: Random, net: Net, segs: Iterator[Seg]) -> bytes:
    """A pcap of segments of one connection."""
    link = Link()
    out: list[Frame] = [frames.seg_frame(rng, link, net, seg) for seg in segs]
    return files.pcap(rng, out, "<", False)


def plain_net(rng: Random) -> Net:
    """A connection without anything special."""
    net = any_net(rng, False, 443)
    return replace(net, options=0, extensions=(), stamps=False, big=False, trailer=0)


def flood(count: int) -> bytes:
    """A SYN each from this many connections."""
    rng, link = Random(1), Link()
    net = plain_net(rng)
    out = []
    for i in range(count):
        net.addr = (i.to_bytes(4, "big"), net.addr[1])
        out.append(frames.seg_frame(rng, link, net, Seg(0, -1, SYN)))
    return files.pcap(rng, out, "<", False)


def scattered(count: int) -> bytes:
    """A stream of which every second byte is missing."""
    rng = Random(1)
    segs = (Seg(0, 100 + 2 * i, ACK, b"\x17") for i in range(count))
    first = (Seg(0, -1, SYN), Seg(0, 0, ACK, b"\x16\3\1\0\x40"))
    return capture_of(rng, plain_net(rng), (seg for part in (first, segs) for seg in part))


def far_ahead() -> bytes:
    """A stream of two pieces with almost 1 GiB between them, in each of eight connections."""
    rng, link, out = Random(1), Link(), []
    for _ in range(8):
        net = plain_net(rng)
        for seg in (Seg(0, -1, SYN), Seg(0, 0, ACK, b"\x16\3\1\0\x40"), Seg(0, 2**30 - 9, ACK, b"\x17\3\3")):
            out.append(frames.seg_frame(rng, link, net, seg))
    return files.pcap(rng, out, "<", False)


HUGE: dict[str, tuple[Callable[[], bytes], str]] = {
    "connections": (lambda: flood(66000), "too-many-connections"),
    "ranges": (lambda: scattered(66000), "too-much-reorder"),
    "holes": (far_ahead, "gap"),
}
