"""What is in the capture: both directions, once each, whole, with tags, times and the right link type."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import struct
import threading
import time
from pathlib import Path

from rig import MAC_A, STRANGER, Rig, carries, frame, ip, pair, read, send


def check_both_directions_once(rig: Rig) -> None:
    """Frames in and out are there, once, in order, also those that are for somebody else."""
    with pair(), rig.capturing("va") as (capture, _):
        send("va", frame(1))
        send("vb", frame(2, to=MAC_A), frame(3, to=STRANGER))
        send("va", frame(4, size=1514))
        assert "promiscuity 1" in ip("-d", "link", "show", "va")
    assert capture.numbers() == [1, 2, 3, 4]
    assert [len(f.data) for f in capture.frames] == [60, 60, 60, 1514]
    assert (capture.link, capture.snaplen) == (1, 0)


def check_promiscuous_mode_ends(rig: Rig) -> None:
    """The interface is as before when the program has ended, also by kill -9."""
    with pair():
        running = rig.start("va", rig.path())
        running.stop(signal.SIGKILL)
        assert "promiscuity 0" in ip("-d", "link", "show", "va")


def check_loopback_once(rig: Rig) -> None:
    """On loopback, where every frame goes out and comes in, it is there once."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        with rig.capturing("lo") as (capture, _):
            for number in range(5):
                sock.sendto(b"datagram %d" % number, sock.getsockname())
                assert sock.recv(100)  # a busy kernel shows it later
    assert [f.data[42:] for f in capture.frames] == [b"datagram %d" % n for n in range(5)]


def check_vlan_tags_are_put_back(rig: Rig) -> None:
    """The kernel takes the outer tag out of what it receives: it is back, with its type and priority."""
    tags = {
        1: struct.pack("!HH", 0x8100, 0xA005),
        2: struct.pack("!HH", 0x88A8, 7),
        3: struct.pack("!HHHH", 0x88A8, 7, 0x8100, 8),
        4: struct.pack("!HH", 0x8100, 0),
    }
    for dev in ("vb", "va"):  # the receiver's side and the sender's
        with pair(), rig.capturing(dev) as (capture, _):
            send("va", *(frame(n, between=tag) for n, tag in tags.items()))
        assert [f.data for f in capture.frames] == [frame(n, between=tag) for n, tag in tags.items()]
        assert all(f.length == len(f.data) for f in capture.frames)


def check_snaplen_cuts_and_says_so(rig: Rig) -> None:
    """--snaplen keeps the first bytes and the true length; a cut frame is counted."""
    tag = struct.pack("!HH", 0x8100, 5)
    with pair(), rig.capturing("vb", "--snaplen", "64") as (capture, counts):
        send("va", frame(1, 64), frame(2, 65), frame(3, 1514), frame(4, 64, between=tag))
    assert [(len(f.data), f.length) for f in capture.frames] == [(64, 64), (64, 65), (64, 1514), (64, 64)]
    assert counts["truncated"] == 2 and capture.snaplen == 64
    assert [f.data for f in capture.frames][:2] == [frame(1, 64), frame(2, 64)]


def tcp(data: bytes) -> tuple[int, int, bytes]:
    """Destination port, sequence and payload of TCP over IPv6; some kernels put a jumbo header before TCP."""
    head = data[54 + 8 * (data[20] == 0) :]
    port, sequence = struct.unpack_from("!2xHI", head)
    return port, sequence, head[head[12] >> 4 << 2 :]


def check_big_tcp_is_whole(rig: Rig) -> None:
    """Frames far beyond 64 KiB (BIG TCP) are there with every byte."""
    sent = os.urandom(8 << 20)
    ip("link", "set", "lo", "gso_max_size", "400000", "gro_max_size", "400000")
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        port = server.getsockname()[1]
        with rig.capturing("lo") as (capture, counts):
            with socket.create_connection(("::1", port)) as out, server.accept()[0] as into:
                thread = threading.Thread(target=out.sendall, args=(sent,))
                thread.start()
                got = into.recv(len(sent), socket.MSG_WAITALL)
                thread.join()
    found = [(sequence, data) for to, sequence, data in (tcp(f.data) for f in capture.frames) if to == port]
    assert got == sent and counts["truncated"] == 0
    assert max(len(data) for _, data in found) > 100_000
    stream = bytearray(len(sent))
    for sequence, data in found:  # two processors may show them in another order
        at = (sequence - found[0][0] - 1) % 2**32
        stream[at : at + len(data)] = data
    assert stream == sent


def check_times_are_of_now_in_nanoseconds(rig: Rig) -> None:
    """Each frame has the time when the kernel saw it, in order, finer than microseconds."""
    before = time.time_ns()
    with pair(), rig.capturing("va") as (capture, _):
        for number in range(50):
            send("va", frame(number))
    times = [f.when for f in capture.frames]
    assert before <= times[0] and times[-1] <= time.time_ns() and times == sorted(times)
    assert any(t % 1000 for t in times)


def open_tun(name: str) -> int:
    """An interface without Ethernet header: what is written to it comes in there."""
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, 0x400454CA, struct.pack("16sH22x", name.encode(), 0x1001))  # TUNSETIFF, IFF_TUN|IFF_NO_PI
    Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")
    ip("link", "set", name, "up")
    return fd


def check_interface_without_ethernet(rig: Rig) -> None:
    """A tun interface is captured as Linux cooked v2: protocol, direction, then the IP packet."""
    if not Path("/dev/net/tun").exists():
        return
    ends = b"\x7f\0\0\1", b"\x7f\0\0\2"
    packet = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 24, 1, 0, 64, 253, 0, *ends) + b"data"
    tun = open_tun("tun5")
    try:
        with rig.capturing("tun5") as (capture, _):
            os.write(tun, packet)
    finally:
        os.close(tun)
    assert capture.link == 276 and len(capture.frames) == 1
    head = struct.unpack_from("!HHIHBB", capture.frames[0].data)
    assert (head[0], head[3], head[4]) == (0x0800, 65534, 0)
    assert capture.frames[0].data[20:] == packet and capture.frames[0].length == len(packet) + 20


def check_link_down_and_up(rig: Rig) -> None:
    """A link that goes down and comes back does not end the capture."""
    with pair(), rig.capturing("va") as (capture, _):
        send("va", frame(1))
        ip("link", "set", "va", "down")
        ip("link", "set", "va", "up")
        carries()
        send("va", frame(2))
    assert capture.numbers() == [1, 2]


def check_interface_that_goes_away(rig: Rig) -> None:
    """An interface that is taken away, up or down, ends the capture: exit 2; what came before is there."""
    for down in (False, True):
        path = rig.path()
        with pair():
            running = rig.start("va", path)
            send("va", frame(1))
            if down:
                ip("link", "set", "va", "down")
                time.sleep(0.5)
            ip("link", "del", "va")
            running.child.wait(120)
        rc, counts, said = running.stop()
        assert (rc, counts["frames"], said) == (2, 1, "wiretap: va disappeared during the capture\n")
        assert read(path).numbers() == [1]


def check_file_is_private_and_new(rig: Rig) -> None:
    """The file is 0600; one that exists, or a link, is refused with exit 5 and left as it is."""
    path, old = rig.path(), os.umask(0)
    try:
        rig.start("lo", path).stop()
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o600
    kept = path.read_bytes()
    link = rig.path()
    link.symlink_to(rig.path())
    for name, words in ((path, "already exists"), (link, "already exists"), (path / "x", "Not a directory")):
        done = rig.run("lo", name)
        assert done.returncode == 5 and words in done.stderr and str(name) in done.stderr, done
    assert path.read_bytes() == kept and not link.exists()


def check_full_disk_is_5(rig: Rig) -> None:
    """A file that cannot grow is exit 5, and is named."""
    path = rig.path()
    with pair():
        running = rig.start("va", path, before=("prlimit", "--fsize=20000"))
        send("va", *(frame(n, 1514) for n in range(40)))
        rc, counts, said = running.stop()
    assert rc == 5 and counts == {} and str(path) in said and "too large" in said, said
    empty = rig.path()
    assert rig.run("lo", empty, before=("prlimit", "--fsize=10")).returncode == 5
    assert not empty.exists()
