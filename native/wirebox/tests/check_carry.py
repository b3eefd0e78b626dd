"""Is wirebox a cable: every frame, whole, in order, both ways, and nothing else?"""

from __future__ import annotations

import json
import socket
import struct
import threading

from rig import ACK, MARK, PSH, Far, Rig, Tcp, checksum, sh


def check_in_order_in_both_directions(rig: Rig) -> None:
    """Frames of every size arrive in order, both ways at once, unchanged."""
    there = [Tcp().frame(i * 10, bytes([i % 256]) * (i % 1461)) for i in range(3000)]
    back = [MARK + struct.pack("!I", 1 << 20 | i) + bytes(46 + i % 1400) for i in range(3000)]
    with rig.box() as box:
        got: list[list[bytes]] = [[], []]

        def run(k: int, frames: list[bytes], reverse: bool) -> None:
            for at in range(0, len(frames), 100):
                got[k] += rig.through(frames[at : at + 100], reverse)

        threads = [threading.Thread(target=run, args=a) for a in ((0, there, False), (1, back, True))]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert got[0] == there and got[1] == back
        summary = box.end()
        assert summary["a>b"]["tcp"] == 3000 and summary["b>a"]["tcp"] == 0


def check_odd_frames(rig: Rig) -> None:
    """VLAN tags (one, two, priority), runts, full frames, broken IP and TCP headers go through."""
    one = Tcp(vlan=0x6123).frame(0, b"tagged")
    two = one[:12] + struct.pack("!HH", 0x88A8, 7) + one[12:]
    whole = Tcp().frame(0, bytes(1460))
    broken = [whole[:14] + bytes([b]) + whole[15:] for b in (0x00, 0x4F, 0x44, 0x95)]
    broken += [whole[:46] + b"\xf0" + whole[47:], whole[:16] + b"\xff\xff" + whole[18:], whole[:34]]
    v6 = Tcp("fd00::1", "fd00::2").frame(0, bytes(1440))
    broken += [v6[:20] + bytes([kind]) + v6[21:] for kind in (0, 43, 44, 60, 59)]
    frames = [one, two, whole, v6, MARK + b"x", *broken]
    with rig.box("impair both loss 0%", "a>b first drop"):
        assert rig.through(frames) == frames
        assert rig.through(frames, back=True) == frames


def check_nothing_comes_back(rig: Rig) -> None:
    """A frame goes to the other port only, once, though both ports hear what they send."""
    with rig.box() as box:
        frames = Tcp().cut(bytes(10000))
        assert rig.through(frames) == frames
        assert rig.a.one(0.1) is None and rig.b.one(0) is None
        assert box.end()["b>a"]["frames"] == 0


def check_hears_only_what_arrives(rig: Rig) -> None:
    """What this machine itself sends out of a port is not carried to the other one."""
    with rig.box() as box, socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as own:
        own.bind(("b0", 0))
        own.send(MARK + bytes(46))
        assert rig.b.one() == MARK + bytes(46)
        assert rig.through([], back=True) == []
        assert box.end()["b>a"]["frames"] == 1


def check_promiscuous(rig: Rig) -> None:
    """Both ports take frames for every address while it runs, and not after."""

    def modes() -> list[int]:
        rows = json.loads(sh("ip -j -d link show"))
        return [row["promiscuity"] for row in rows if row["ifname"] in ("a0", "b0")]

    with rig.box() as box:
        assert modes() == [1, 1]
        box.end()
    assert modes() == [0, 0]


def check_large_frames_are_cut(rig: Rig) -> None:
    """A frame that its sender left to a card is cut as the card would: sizes, numbers, flags, checksums."""
    with rig.box("a>b frame 2 drop") as box:
        for src, dst in (("192.0.2.1", "192.0.2.2"), ("fd00::1", "fd00::2")):
            flow = Tcp(src, dst)
            payload = bytes(i % 251 for i in range(5000))
            rig.a.send([flow.syn()])
            send_large(rig.a, flow, payload, 1400)
            got = rig.b.until(rig.a.mark())[1:]
            want = [flow.frame(at, payload[at : at + 1400]) for at in range(0, 5000, 1400)]
            want[-1] = flow.frame(4200, payload[4200:], PSH | ACK)
            assert [f[-300:] for f in got] == [want[i][-300:] for i in (0, 1, 3)], "payloads"
            assert all(flow.right(f) for f in got)
            head = 54 if src == "192.0.2.1" else 74
            assert [f[head - 20 : head - 4] for f in got] == [
                want[i][head - 20 : head - 4] for i in (0, 1, 3)
            ]
            if head == 54:
                assert [struct.unpack("!H", f[18:20])[0] for f in got] == [7, 8, 10], "IP identification"
                assert all(checksum(f[14:34]) == 0 for f in got)
        summary = box.end()
        assert summary["a>b"]["cut"] == 2 and summary["a>b"]["dropped"] == 2


def send_large(far: Far, flow: Tcp, payload: bytes, size: int) -> None:
    """Send one frame of more than the MTU with its metadata, as TSO does."""
    frame = flow.frame(0, payload, PSH | ACK)
    v6 = ":" in flow.src
    start = 54 if v6 else 34
    # struct virtio_net_hdr: needs a checksum; GSO type TCPv4 (1) or TCPv6 (4)
    head = struct.pack("=BBHHHH", 1, 4 if v6 else 1, start + 20, size, start, 16)
    pseudo = ~checksum(flow._pseudo(len(frame) - start)) & 0xFFFF
    frame = frame[: start + 16] + struct.pack("!H", pseudo) + frame[start + 18 :]
    far.sock.setsockopt(263, 15, 1)  # PACKET_VNET_HDR
    try:
        far.sock.send(head + frame)
    finally:
        far.sock.setsockopt(263, 15, 0)


def check_too_big_is_said(rig: Rig) -> None:
    """A frame that does not fit is counted and said once; it harms no other."""
    sh("ip link set b0 mtu 1000")
    try:
        with rig.box() as box:
            flow = Tcp()
            small, large = flow.frame(0, bytes(500)), flow.frame(500, bytes(1400))
            assert rig.through([small, large, large, small]) == [small, small]
            assert (
                "a>b: a frame of 1454 bytes exceeds the MTU of the other port" in box.read("error")["error"]
            )
            assert box.end()["a>b"]["too_big"] == 2
            assert sum("error" in line for line in box.said) == 1
    finally:
        sh("ip link set b0 mtu 1500")
