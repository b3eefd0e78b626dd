"""Runs on the host by `python3 -I -S -`: kernel-TLS sockets of every network namespace, as one JSON line.

Arguments: `all`, or `here` for this namespace only. Needs CAP_NET_ADMIN to see kernel TLS before Linux 7.2,
root for other namespaces and other people's processes; `notes` lists the rest. The kernel returns
no key material: inet_diag has none. Everything that comes back is bounded and checked.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import struct
import sys
import time

TYPE_CHECKING = False  # `typing` takes longer to import than all of the work
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    Span = tuple[int, int]  # first byte, end
    Row = list[Any]
    Place = tuple[str, list[str]]  # how to enter a namespace, its names

SOCK_DIAG_BY_FAMILY, DONE, ERROR, NEWROUTE, GETROUTE, DUMP, REQUEST = 20, 3, 2, 24, 26, 0x301, 0x1
STATES = sum(1 << n for n in (1, 4, 5, 8, 9, 11))  # established, and five in which it is being closed
INFO, MARK, ULP, ULP_NAME, ULP_TLS = 2, 15, 19, 1, 2  # include/uapi/linux/inet_diag.h
VERSION, CIPHER, TXCONF, RXCONF, ZC_RO_TX = 1, 2, 3, 4, 5  # TLS_INFO_*, include/uapi/linux/tls.h
IS_TLS = b"\x08\x00\x01\x00tls\x00"  # INET_ULP_INFO_NAME as every message of ours has it
HEAD, MESSAGE = 16, 72  # struct nlmsghdr, struct inet_diag_msg
START, PAIR, LONG, LONGS = (struct.Struct(f"={kind}").unpack_from for kind in ("IH", "HH", "Q", "QQ"))
# of struct inet_diag_msg: family, state, ports, addresses, device, cookie, uid, inode
FIXED = struct.Struct("=BBxxHH16s16sIII12xII").unpack_from
AS_ROOT = "" if os.geteuid() == 0 else ": run it as root"
PATIENCE = 10  # seconds for an answer of the kernel
MOST_MESSAGES, MOST_SOCKETS, MOST_FILES, MOST_SPACES, MOST_SHAPES = 2_000_000, 200_000, 4_000_000, 4096, 256
MAPPED = bytes(10) + b"\xff\xff"
ADDRESSES: dict[tuple[int, bytes], tuple[int, str]] = {}  # most connections share addresses
KEYS: dict[bytes, Row] = {}  # and nearly all the same few words of kernel TLS
SHAPES: dict[int, tuple[Any, tuple[int, ...], Sequence[Span | None]]] = {}  # by length, see shape()


class Odd(Exception):
    """The kernel's answer makes no sense, or it refuses."""


def attributes(data: bytes, at: int, end: int) -> Iterator[tuple[int, Span]]:
    """(type, (first byte, end)) of each netlink attribute; Odd if one leaves the message."""
    while end - at >= 4:
        size, kind = PAIR(data, at)
        if size < 4 or at + size > end:
            raise Odd("an attribute leaves its message")
        yield kind & 0x3FFF, (at + 4, at + size)
        at += size + 3 & ~3


def shape(data: bytes, at: int, end: int) -> Sequence[Span | None]:
    """Where INET_DIAG_ULP_INFO, _INFO and _MARK are in a message, from its start on; Odd if one leaves it.

    Nearly all messages of a dump are alike: one of a known length and with the same heads is known.
    """
    known = SHAPES.get(end - at)
    if known and known[0](data, at) == known[1]:
        return known[2]
    heads, before, found = "=", 0, {}
    for kind, (first, last) in attributes(data, at + MESSAGE, end):
        heads, before = f"{heads}{first - at - 4 - before}xHH", first - at
        found[kind] = first - at, last - at
    read = struct.Struct(heads).unpack_from
    if len(SHAPES) >= MOST_SHAPES:
        SHAPES.clear()
    SHAPES[end - at] = read, read(data, at), [found.get(kind) for kind in (ULP, INFO, MARK)]
    return SHAPES[end - at][2]


def number(data: bytes, at: int, where: Span | None) -> int:
    """An unsigned number of 1, 2, 4 or 8 bytes, from `at` on; 0 if there is none."""
    if where is None:
        return 0
    if where[1] - where[0] not in (1, 2, 4, 8):
        raise Odd("a number of an odd size")
    return int.from_bytes(data[at + where[0] : at + where[1]], sys.byteorder)


def messages(data: bytes) -> Iterator[tuple[int, int, int]]:
    """(type, first byte, end) of every netlink message in a buffer; Odd if one leaves it."""
    at, most = 0, len(data)
    while at + HEAD <= most:
        size, kind = START(data, at)
        if size < HEAD or at + size > most:
            raise Odd("a netlink message leaves its buffer")
        yield kind, at + HEAD, at + size
        at += size + 3 & ~3


def refused(data: bytes, at: int, end: int) -> int:
    """The errno of an error message as a positive number."""
    if end - at < 4:
        raise Odd("an error without a number")
    return -int(struct.unpack_from("=i", data, at)[0])


def address(family: int, raw: bytes) -> tuple[int, str]:
    """(4 or 6, text) of the 16 bytes that inet_diag has for an address; IPv4 in IPv6 counts as IPv4."""
    known = ADDRESSES.get((family, raw))
    if known is None:
        four = family == socket.AF_INET or raw.startswith(MAPPED)
        part = raw[:4] if family == socket.AF_INET else raw[12:] if four else raw
        kind = socket.AF_INET if four else socket.AF_INET6
        known = ADDRESSES[family, raw] = (4 if four else 6, socket.inet_ntop(kind, part))
    return known


def row(data: bytes, at: int, end: int) -> Row | None:
    """One kernel-TLS socket of an inet_diag message; None for another one. Odd if it makes no sense."""
    if end - at < MESSAGE:
        raise Odd("a short inet_diag message")
    if data.find(IS_TLS, at, end) < 0:
        return None
    ulp, info, mark = shape(data, at, end)
    conf = keys(data[at + ulp[0] : at + ulp[1]]) if ulp else None
    if conf is None:
        return None
    family, state, sport, dport, near, far, bound, low, high, uid, inode = FIXED(data, at)
    if family not in (socket.AF_INET, socket.AF_INET6):
        raise Odd("a socket of an unknown family")
    ours, theirs = address(family, near), address(family, far)
    ends = [ours[1], socket.ntohs(sport), theirs[1], socket.ntohs(dport), ours[0], bound]
    owner = [number(data, at, mark), state, uid, inode, high << 32 | low]
    return [*ends, *owner, *conf, *volume(data, at, info)]


def keys(raw: bytes) -> Row | None:
    """Version, cipher, who does transmit and receive, zero-copy, of INET_DIAG_ULP_INFO; None: no TLS."""
    if raw not in KEYS:
        ulp = dict(attributes(raw, 0, len(raw)))
        if ULP_NAME not in ulp or raw[slice(*ulp[ULP_NAME])] != b"tls\0":
            return None
        tls = dict(attributes(raw, *ulp[ULP_TLS])) if ULP_TLS in ulp else {}
        conf = [number(raw, 0, tls.get(kind)) for kind in (VERSION, CIPHER, TXCONF, RXCONF)]
        KEYS[raw] = [*conf, int(ZC_RO_TX in tls)]
    return KEYS[raw]


def volume(data: bytes, at: int, where: Span | None) -> tuple[int, int, int]:
    """Bytes sent, sent again and received, of struct tcp_info: -1 where this kernel does not say."""
    first, last = where or (0, 0)
    received = LONG(data, at + first + 128)[0] if last - first >= 136 else -1
    if last - first < 216:
        return -1, -1, received
    sent, again = LONGS(data, at + first + 200)
    return (sent - again if sent >= again else sent), again, received


def opened(protocol: int) -> socket.socket:
    """A netlink socket of this thread's namespace that never waits for ever."""
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", PATIENCE, 0))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    return sock


def heard(sock: socket.socket, ask: bytes) -> Iterator[bytes]:
    """Buffers that the kernel answers with; nobody else can write to this socket (its port is not 0)."""
    sock.sendto(ask, (0, 0))
    while True:
        data, _, flags, sender = sock.recvmsg(1 << 17)
        if sender[0] == 0:
            if flags & socket.MSG_TRUNC:
                raise Odd("an answer was cut")
            yield data


def dumped(family: int, notes: list[str]) -> tuple[list[Row], int]:
    """Every kernel-TLS socket of a family in this thread's namespace."""
    want = struct.pack("=BBBBI48x", family, socket.IPPROTO_TCP, 1 << INFO - 1, 0, STATES)
    ask = struct.pack("=IHHII", HEAD + len(want), SOCK_DIAG_BY_FAMILY, DUMP, 1, 0) + want
    found: list[Row] = []
    seen = odd = 0
    with opened(4) as sock:  # NETLINK_SOCK_DIAG
        for data in heard(sock, ask):
            for kind, at, end in messages(data):
                if kind in (DONE, ERROR):
                    if odd:
                        notes.append(f"{odd} sockets had a description that makes no sense")
                    return found, refused(data, at, end) if kind == ERROR else 0
                seen += 1
                try:
                    one = row(data, at, end)
                except Odd:
                    one, odd = None, odd + 1
                if one is not None:
                    found.append(one)
            if seen > MOST_MESSAGES or len(found) > MOST_SOCKETS:
                notes.append(f"stopped after {len(found)} kernel-TLS sockets of {seen}")
                return found[:MOST_SOCKETS], 0
    return found, 0


def question(ours: str, theirs: str, family: int, bound: int, mark: int) -> bytes:
    """RTM_GETROUTE for one pair of addresses (`ours` may be empty)."""
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    bits = 32 if family == 4 else 128
    body = struct.pack("=BBBBBBBBI", kind, bits, bits if ours else 0, 0, 0, 0, 0, 0, 0)
    for name, text in ((1, theirs), (2, ours)):  # RTA_DST, RTA_SRC
        if text:
            raw = socket.inet_pton(kind, text)
            body += struct.pack("=HH", 4 + len(raw), name) + raw
    for name, value in ((4, bound), (16, mark)):  # RTA_OIF, RTA_MARK
        body += struct.pack("=HHI", 8, name, value) if value else b""
    return struct.pack("=IHHII", HEAD + len(body), GETROUTE, REQUEST, 1, 0) + body


def route(sock: socket.socket, ask: bytes) -> tuple[int, int]:
    """(interface number, errno) of the route that the kernel takes."""
    for data in heard(sock, ask):
        for kind, at, end in messages(data):
            if kind == NEWROUTE and end - at >= 12:
                return number(data, 0, dict(attributes(data, at + 12, end)).get(4)), 0
            if kind == ERROR:
                return 0, refused(data, at, end)
        raise Odd("no answer about a route")
    return 0, 0


def routed(rows: list[Row], notes: list[str]) -> None:
    """Add to each socket the device that its route leads through now: '' if there is none, '?' if unknown."""
    known: dict[tuple[Any, ...], str] = {}
    with opened(0) as sock:  # NETLINK_ROUTE
        for one in rows:
            if (what := (one[0], one[2], *one[4:7])) not in known:
                try:
                    known[what] = device(sock, *what)
                except (OSError, Odd) as exc:
                    known[what] = "?"
                    notes.append(f"route to {one[2]} not read: {exc}")
            one.append(known[what])


def device(sock: socket.socket, ours: str, theirs: str, *more: int) -> str:
    """The device that a route leads through; '' if there is no route."""
    index, why = route(sock, question(ours, theirs, *more))
    if why == errno.ENETUNREACH:  # an address that is not ours (transparent proxies); seen on 6.1 to 7.2
        index, why = route(sock, question("", theirs, *more))
    return socket.if_indextoname(index) if index else ""


def statistics() -> dict[str, int] | None:
    """/proc/net/tls_stat of this thread's namespace; None if kernel TLS is not loaded."""
    try:
        with open("/proc/thread-self/net/tls_stat") as file:  # noqa: PTH123 - runs without our package
            lines = [line.split() for line in file.read(65536).splitlines()]
        return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdigit()}
    except OSError:
        return None


def look() -> dict[str, Any]:
    """The kernel-TLS sockets of this thread's namespace, and what was not seen."""
    at, notes = time.monotonic(), list[str]()
    rows: list[Row] = []
    why: list[str] = []
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            found, code = dumped(family, notes)
        except (OSError, Odd) as exc:
            why.append(str(exc))
            continue
        rows += found
        why += [os.strerror(code)] if code else []
    if why:
        notes.append(f"the kernel did not list its TCP sockets: {why[0]}")
    routed(rows, notes)
    return {"at": at, "sockets": rows, "tls_stat": statistics(), "notes": notes[:20]}


def enter(path: str) -> None:
    """Make this thread's namespace that of `path`. OSError if it may not."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if hasattr(os, "setns"):  # Python 3.12
            os.setns(fd, 0x40000000)  # CLONE_NEWNET
            return
        import ctypes

        if ctypes.CDLL(None, use_errno=True).setns(fd, 0x40000000):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
    finally:
        os.close(fd)


def pids() -> list[str]:
    """The processes that there are."""
    return [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208


def named() -> dict[int, Place]:
    """The namespaces of `ip netns`; a file there that is none (st_dev) is left out."""
    found: dict[int, Place] = {}
    kind = os.stat("/proc/self/ns/net").st_dev  # noqa: PTH116
    try:
        for name in sorted(os.listdir("/run/netns"))[:MOST_SPACES]:  # noqa: PTH208
            path = f"/run/netns/{name}"
            if (seen := os.stat(path)).st_dev == kind:  # noqa: PTH116
                found.setdefault(seen.st_ino, (path, []))[1].append(name)
    except OSError:
        pass  # no `ip netns` here, or one that ends meanwhile
    return found


def spaces(notes: list[str]) -> dict[int, Place]:
    """{number: [path, names]} of every network namespace that a name or a process leads to."""
    found = named()
    hidden = 0
    for pid in pids():
        path = f"/proc/{pid}/ns/net"
        try:
            inode = int(os.readlink(path)[5:-1])  # noqa: PTH115 - net:[4026531840]
        except (PermissionError, ValueError):
            hidden += 1
        except OSError:
            continue  # ended meanwhile
        else:
            if len(found) < MOST_SPACES:
                found.setdefault(inode, (path, []))
    if hidden:
        some = f"{hidden} process{'es' * (hidden > 1)}"
        notes.append(f"could not enter the network namespace of {some}: connections not listed{AS_ROOT}")
    return found


def owners(wanted: set[int], notes: list[str]) -> dict[int, Row]:
    """{inode: [pid, name, seconds since it started, how many processes have it]} of sockets."""
    found: dict[int, Row] = {}
    hidden, files, hertz = 0, 0, os.sysconf("SC_CLK_TCK")
    for pid in pids() if wanted else ():
        whose: tuple[str, float] | None = None
        try:
            for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
                files += 1
                link = os.readlink(f"/proc/{pid}/fd/{name}")  # noqa: PTH115
                if link.startswith("socket:[") and (inode := int(link[8:-1])) in wanted:
                    if inode in found:
                        found[inode][3] += found[inode][0] != int(pid)
                    else:
                        whose = whose or life(pid, hertz)
                        found[inode] = [int(pid), *whose, 1]
        except PermissionError:
            hidden += 1
        except (OSError, ValueError):
            continue  # ended meanwhile
        if files > MOST_FILES:
            notes.append(f"stopped looking for processes after {files} open files")
            break
    if hidden:
        some = f"{hidden} process{'es' * (hidden > 1)}"
        notes.append(f"could not read the files of {some}, so names may be missing{AS_ROOT}")
    return found


def life(pid: str, hertz: int) -> tuple[str, float]:
    """Name of a process, and the seconds since it started."""
    with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
        head, _, tail = file.read(4096).rpartition(b")")
    began = int(tail.split()[19]) / hertz
    return head.partition(b"(")[2].decode("utf-8", "replace"), max(0.0, time.clock_gettime(7) - began)


def visited(inode: int, place: Place, here: int) -> dict[str, Any]:
    """One namespace: entered if it is another one than ours."""
    path, names = place
    one = {"inode": inode, "names": names, "path": path, "here": inode == here, "error": ""}
    try:
        if inode != here:
            enter(path)
        return {**one, **look()}
    except OSError as exc:
        return {**one, "sockets": [], "tls_stat": None, "notes": [], "error": exc.strerror or str(exc)}


def main() -> None:
    """Look everywhere, say it in one line."""
    notes: list[str] = []
    here = os.stat("/proc/self/ns/net").st_ino  # noqa: PTH116
    places = spaces(notes) if sys.argv[-1] != "here" else {}
    places.setdefault(here, ("/proc/self/ns/net", []))
    order = sorted(places, key=lambda inode: (inode != here, places[inode][1], inode))
    at = time.monotonic()
    found = [visited(inode, places[inode], here) for inode in order]
    have = owners({one[9] for space in found for one in space["sockets"] if one[9]}, notes)
    said = {"at": at, "spaces": found, "owners": have, "notes": notes, "root": os.geteuid() == 0}
    sys.stdout.write(json.dumps(said))  # json.dump() writes piece by piece: six times as slow


if __name__ == "__main__":
    main()
