"""What runs on a host to hold many connections in its hand: open, secure, send, take and end them one by one.

Only the standard library, one file: copied to the host and run by its plain `python3 -I -S`. It installs keys
of its own (from a secret that comes on stdin) on plain TCP connections: no handshake, so a thousand of them
take seconds. Each line on stdin is a JSON list of commands, and the next one on stdout that of their answers:
  {"do": "listen", "host": H}                                -> {"port": P}; one listener, the last one stays
      "options": [[level, name, value in hex]] that its connections inherit
  {"do": "connect", "host": H, "port": P, "count": N}        -> {"from": first number, "ports": [our ports]}
  {"do": "accept", "count": N}                               -> the same; "ports" are those of the clients
  {"do": "secure", "at": [numbers], "client": bool, "secret": text, "tls": "1.2" | "1.3", "turn": 0}
      -> {"micros": {"ulp" | "tx" | "rx": [per connection]}}; turn: number of the key; "only": "tx" | "rx";
      "cipher": a name of CIPHERS; "number": of the first record
  {"do": "send", "at", "seed": text, "size": bytes, "write": bytes}  -> {"sent": bytes}
      "writes": [bytes of each write] in place of size and write; "cork": true: TCP_CORK until all is written;
      "call": write | more | gather | splice | sendfile | zerocopy (sendfile, of a socket with that option),
      for each write  -> and {"calls": how many}
  {"do": "pace", "at", "seed", "size", "write"}  -> {"sent", "nanos": [CPU time per write]}; each write begins
      when all before it was acknowledged, so that it goes down to the card inside the call
  {"do": "take", "at", "size": bytes, or -1 for all}   -> {"bytes", "sha256", "closed": how it ended, or ""}
      "seed", "wanted": SHA-256 of what was sent; where it is another one, "unlike" says where it differs
      and "reads": how many calls it took
  {"do": "reads", "at": [numbers], "how": read | read-pieces | peek}   how `take` reads from now on
  {"do": "record", "at", "type": 21, "content": hex}         a record that is not data: an alert
  {"do": "option", "at": [numbers], "level", "name", "value"}   setsockopt; value: a number, or bytes in hex
  {"do": "mss", "at"}  -> {"mss": bytes of payload in a segment, "window": segments that may be in flight}
  {"do": "sent", "at"}   -> {"sent": bytes that TCP sent, again included}; waits until all are acknowledged
  {"do": "shut", "at"}   no more sending        {"do": "close", "at": [numbers], "reset": bool}
A command that fails answers {"error": "ECONNRESET"}, or words. "at" is a number where no list is named.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import socket
import struct
import sys
import time
from typing import Any

SOL_TLS, SET_TYPE, GET_TYPE, NAMES = 282, 1, 2, {"tx": 1, "rx": 2}  # include/uapi/linux/tls.h
VERSIONS = {"1.2": 0x0303, "1.3": 0x0304}
CIPHERS = {"aes-gcm-128": (51, 16), "aes-gcm-256": (52, 32)}  # number, bytes of the key
ALERT, DATA = 21, 23
TCP_ULP = 31
SIOCOUTQ = 0x5411  # include/uapi/linux/sockios.h: bytes that are not acknowledged
SND_CWND, BYTES_SENT = 80, 200  # offsets in struct tcp_info (include/uapi/linux/tcp.h, Linux 4.19)
PATIENCE = 60  # seconds for anything that waits
READ, PIECE = 65536, 400  # bytes that a call reads at most, and one that reads small pieces


def key(
    secret: str,
    port: int,
    direction: str,
    version: str,
    turn: int,
    cipher: str = "aes-gcm-128",
    number: int = 0,
) -> bytes:
    """Return struct tls12_crypto_info_aes_gcm_* of one way of a connection, named by its client's port."""
    kind, size = CIPHERS[cipher]
    made = hashlib.shake_128(f"{secret} {port} {direction} {turn}".encode()).digest(12 + size)
    # nonce, key, salt, number of the first record
    parts = (made[:8], made[8 : 8 + size], made[8 + size :], number.to_bytes(8, "big"))
    return struct.pack(f"=HH8s{size}s4s8s", VERSIONS[version], kind, *parts)


class ManyConnections:
    """The connections, and one method per command (do_*)."""

    def __init__(self) -> None:
        self.listener = socket.socket()
        self.sockets: dict[int, socket.socket] = {}
        self.clients: dict[int, int] = {}
        self.how: dict[int, str] = {}
        self.next = 0

    def add(self, sock: socket.socket, client: int) -> None:
        """Keep a connection; everything on it waits no longer than its timeout."""
        limit = struct.pack("ll", PATIENCE, 0)
        sock.setblocking(True)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sockets[self.next], self.clients[self.next] = sock, client
        self.next += 1

    def since(self, first: int) -> dict[str, Any]:
        """Return what was added."""
        return {"from": first, "ports": [self.clients[n] for n in range(first, self.next)]}

    def do_listen(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Listen in place of the last listener."""
        self.listener.close()
        self.listener = socket.create_server((ask["host"], 0), family=family(ask["host"]), backlog=1024)
        self.listener.settimeout(PATIENCE)
        for level, name, value in ask.get("options", ()):
            self.listener.setsockopt(level, name, bytes.fromhex(value))
        return {"port": self.listener.getsockname()[1]}

    def do_connect(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Open connections."""
        first = self.next
        for _ in range(ask["count"]):
            sock = socket.socket(family(ask["host"]))
            sock.settimeout(PATIENCE)
            sock.connect((ask["host"], ask["port"]))
            self.add(sock, sock.getsockname()[1])
        return self.since(first)

    def do_accept(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Take connections."""
        first = self.next
        for _ in range(ask["count"]):
            sock, peer = self.listener.accept()
            self.add(sock, peer[1])
        return self.since(first)

    def do_secure(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Give keys to the kernel, and say how long each call took."""
        took: dict[str, list[float]] = {"ulp": [], "tx": [], "rx": []}
        directions = {"tx": "up" if ask["client"] else "down", "rx": "down" if ask["client"] else "up"}
        for number in ask["at"]:
            sock, turn, version = self.sockets[number], ask.get("turn", 0), ask.get("tls", "1.2")
            if turn == 0:
                took["ulp"].append(timed(sock, socket.IPPROTO_TCP, TCP_ULP, b"tls"))
            for name in [ask["only"]] if ask.get("only") else ["tx", "rx"]:
                more = (ask.get("cipher", "aes-gcm-128"), ask.get("number", 0))
                info = key(ask["secret"], self.clients[number], directions[name], version, turn, *more)
                took[name].append(timed(sock, SOL_TLS, NAMES[name], info))
        return {"micros": took}

    def do_send(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Send a payload."""
        sock, sizes, at = self.sockets[ask["at"]], writes(ask), 0
        data = hashlib.shake_128(ask["seed"].encode()).digest(sum(sizes))
        if ask.get("cork"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        calls = 0
        for size in sizes:
            calls += CALLS[ask.get("call", "write")](sock, data[at : at + size])
            at += size
        if ask.get("cork"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
        return {"sent": len(data), "calls": calls}

    def do_pace(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Send a payload write by write, and say what each costs this thread."""
        data, sock, nanos = (
            hashlib.shake_128(ask["seed"].encode()).digest(ask["size"]),
            self.sockets[ask["at"]],
            [],
        )
        for at in range(0, len(data), ask["write"]):
            piece, began = data[at : at + ask["write"]], time.thread_time_ns()
            sock.sendall(piece)
            nanos.append(time.thread_time_ns() - began)
            acknowledged(sock)
        return {"sent": len(data), "nanos": nanos}

    def do_take(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Receive this many bytes, or all until the peer ends the stream."""
        seen, count, closed, error, reads = hashlib.sha256(), 0, "", "", 0
        kept: list[bytes] = []
        sock, how = self.sockets[ask["at"]], self.how.get(ask["at"], "read")
        limit = PIECE if how == "read-pieces" else READ
        while not closed and (ask["size"] < 0 or count < ask["size"]):
            try:
                most = limit if ask["size"] < 0 else min(limit, ask["size"] - count)
                ahead = sock.recvmsg(most, socket.CMSG_SPACE(1), socket.MSG_PEEK)[0] if how == "peek" else b""
                data, control, _, _ = sock.recvmsg(most, socket.CMSG_SPACE(1))
            except OSError as exc:
                error = word(exc)
                break
            reads += 1 + (how == "peek")
            if data[: len(ahead)] != ahead[: len(data)]:
                error = "MSG_PEEK saw other bytes than the read behind it"
                break
            closed = ending(data, control)
            if not closed:
                seen.update(data)
                count += len(data)
                if "wanted" in ask:
                    kept.append(data)
        found = {"bytes": count, "sha256": seen.hexdigest(), "closed": closed, "error": error}
        found["reads"] = reads
        if ask.get("wanted", found["sha256"]) != found["sha256"]:
            found["unlike"] = unlike(b"".join(kept), ask["seed"])
        return found

    def do_reads(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Read some connections in another way."""
        self.how.update(dict.fromkeys(ask["at"], ask["how"]))
        return {}

    def do_record(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Send a record that is not data."""
        control = [(SOL_TLS, SET_TYPE, bytes([ask["type"]]))]
        return {"sent": self.sockets[ask["at"]].sendmsg([bytes.fromhex(ask["content"])], control)}

    def do_option(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Set an option of one connection or of some."""
        value = ask["value"] if isinstance(ask["value"], int) else bytes.fromhex(ask["value"])
        for number in ask["at"] if isinstance(ask["at"], list) else [ask["at"]]:
            self.sockets[number].setsockopt(ask["level"], ask["name"], value)
        return {}

    def do_mss(self, ask: dict[str, Any]) -> dict[str, Any]:
        """How much payload a segment holds, and how many of them TCP sends before one is acknowledged."""
        sock = self.sockets[ask["at"]]
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, SND_CWND + 4)
        mss = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
        return {"mss": mss, "window": struct.unpack_from("I", info, SND_CWND)[0]}

    def do_sent(self, ask: dict[str, Any]) -> dict[str, Any]:
        """How much TCP has sent once nothing is on its way: the same bytes again count, too."""
        sock = self.sockets[ask["at"]]
        acknowledged(sock)
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, BYTES_SENT + 8)
        return {"sent": struct.unpack_from("Q", info, BYTES_SENT)[0]}

    def do_shut(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Say that we send no more."""
        self.sockets[ask["at"]].shutdown(socket.SHUT_WR)
        return {}

    def do_close(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Close; `reset`: without waiting, what was not sent is discarded."""
        for number in ask["at"]:
            sock = self.sockets.pop(number)
            if ask.get("reset"):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
        return {}


def written(sock: socket.socket, data: bytes) -> int:
    """Send a record by one call; this and the next ones return how many calls it took."""
    sock.sendall(data)
    return 1


def pieces(data: bytes) -> list[bytes]:
    """Three pieces of a record, or fewer of one that is shorter."""
    size = -(-len(data) // 3)
    return [data[at : at + size] for at in range(0, len(data), size)]


def grown(sock: socket.socket, data: bytes) -> int:
    """Send a record that grows over several calls, of which all but the last say MSG_MORE."""
    *first, last = pieces(data)
    for piece in first:
        sock.sendall(piece, socket.MSG_MORE)
    sock.sendall(last)
    return len(first) + 1


def gathered(sock: socket.socket, data: bytes) -> int:
    """Send a record from several places by one call."""
    sent = sock.sendmsg(pieces(data))
    return 1 if sent == len(data) else 1 + written(sock, data[sent:])


def spliced(sock: socket.socket, data: bytes) -> int:
    """Send a record out of a pipe."""
    source, into = os.pipe()
    try:
        os.write(into, data)
        left, calls = len(data), 0
        while left:
            left, calls = left - splice(source, sock.fileno(), left), calls + 1
        return calls
    finally:
        os.close(source)
        os.close(into)


def splice(source: int, target: int, size: int) -> int:
    """splice(2): Python has it since 3.10."""
    if hasattr(os, "splice"):
        return os.splice(source, target, size)
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    moved = int(libc.splice(source, None, target, None, ctypes.c_size_t(size), 0))
    if moved < 0:
        raise OSError(ctypes.get_errno(), "splice")
    return moved


def filed(sock: socket.socket, data: bytes) -> int:
    """Send a record out of the pages of a file, from its middle."""
    file, before = os.memfd_create("payload"), 1000
    try:
        os.write(file, bytes(before) + data)
        at, calls = before, 0
        while at < before + len(data):
            at, calls = at + os.sendfile(sock.fileno(), file, at, before + len(data) - at), calls + 1
        return calls
    finally:
        os.close(file)


CALLS = {"write": written, "more": grown, "gather": gathered, "splice": spliced, "sendfile": filed}
CALLS["zerocopy"] = filed  # on a socket with TLS_TX_ZEROCOPY_RO


def writes(ask: dict[str, Any]) -> list[int]:
    """The bytes of each write of a payload."""
    if "writes" in ask:
        return list(ask["writes"])
    total, size = ask["size"], ask.get("write", 16384)
    return [min(size, total - at) for at in range(0, total, size)]


def family(host: str) -> int:
    """The family of an address."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def acknowledged(sock: socket.socket) -> None:
    """Wait until the peer's TCP has all that was sent; ETIMEDOUT if it does not come to that."""
    ends, pause = time.monotonic() + PATIENCE, 0.0002
    while struct.unpack("i", fcntl.ioctl(sock, SIOCOUTQ, bytes(4)))[0]:
        if time.monotonic() > ends:
            raise OSError(errno.ETIMEDOUT, "not acknowledged")
        time.sleep(pause)
        pause = min(2 * pause, 0.02)


def timed(sock: socket.socket, level: int, name: int, value: bytes) -> float:
    """Set an option: microseconds."""
    began = time.perf_counter_ns()
    sock.setsockopt(level, name, value)
    return (time.perf_counter_ns() - began) / 1000


def ending(data: bytes, control: list[tuple[int, int, bytes]]) -> str:
    """How a stream ended with what was received; nothing if that is data."""
    kind = next((v[0] for level, name, v in control if (level, name) == (SOL_TLS, GET_TYPE)), DATA)
    if kind == ALERT:
        return "close_notify" if data[1:] == b"\0" else f"alert {data[-1]}"
    if kind != DATA:
        return f"record {kind}"
    return "" if data else "eof"


def unlike(got: bytes, seed: str) -> str:
    """Where what came is not what was sent."""
    sent = hashlib.shake_128(seed.encode()).digest(len(got))
    wrong = [at for at in range(len(got)) if got[at] != sent[at]]
    if not wrong:
        return "each byte is right when looked at again"
    first, last = wrong[0], wrong[-1]
    piece = slice(first, first + 16)
    words = f"{len(wrong)} bytes are wrong, from {first} to {last}"
    return f"{words}; at {first} came {got[piece].hex()}, sent was {sent[piece].hex()}"


def word(exc: OSError) -> str:
    """The name of an error."""
    return errno.errorcode.get(exc.errno or 0, str(exc))


def obeyed(many: ManyConnections, ask: dict[str, Any]) -> dict[str, Any]:
    """Answer one command."""
    try:
        answer: dict[str, Any] = getattr(many, f"do_{ask['do']}")(ask)
        return answer
    except OSError as exc:
        return {"error": word(exc)}
    except Exception as exc:  # a command that makes no sense is answered, not fatal
        return {"error": f"{type(exc).__name__}: {exc}"}


def say(answers: list[dict[str, Any]]) -> None:
    """Answer a list of commands."""
    sys.stdout.write(json.dumps(answers) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Obey until standard input ends. One list for many commands: JSON costs an emulated host a call each."""
    many = ManyConnections()
    say([{"ready": os.getpid()}])
    for line in sys.stdin:
        say([obeyed(many, ask) for ask in json.loads(line)])


if __name__ == "__main__":
    main()
