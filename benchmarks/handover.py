"""What does a hand-over cost beside a running stunnel, and does anything leak in many of them?

usage: python -m benchmarks.handover [--pairs 300] [--count 10000] [--clients 64] [--failures 1000]

Latency: a C client (ktls-connect.h, as a toolstack has it) and an ordinary connection to a running stunnel
take turns, through one unmodified stunnel server to a program that greets. Measured is from the first
system call of the client to the socket (fd), and to the first byte of the greeting (byte): with a running
stunnel only that byte says that the set-up is done. That stunnel shakes hands anew for each connection, as
the resident does; one that resumes sessions (its default: then the master secret stays in its memory) is
shown, without a bar.

Leaks: a resident has --clients clients at a time whose peers stall, then hands over --count sockets:
descriptors, threads, memory, and the keys of the last ones. --failures: helpers and residents that fail in
every way, at random; each stream has to arrive by stunnel, byte by byte. Where the kernel has no TLS, a
library of ktls-handoff's checks stands in for it (`make -C native/ktls-handoff check` builds it): all else
is real. Exit 0 if every bar is met, 1 if not.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import socket
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.handover_testbed import (
    REAL,
    Testbed,
    attended,
    processor,
    under_stand_in,
    until,
)
from offload.connect import client as connect_client
from offload.connect.client import Policy, Target, connect

SOL_TLS, TLS_TX, TLS_RX, GCM256 = 282, 1, 2, 56  # linux/tls.h; size of tls12_crypto_info_aes_gcm_256
RATIO = 1.2  # bar: of a stunnel's set-up
MEMORY_KIB, GROWN_KIB = 8192, 256  # bars: in all, one hand-over at a time; after the first tenth
CLIENT_KIB = 128  # bar: more for each of many clients
WARM = 5  # the first ones find cold caches
LAST = 20  # so many of the last keys are looked for
GOOD = b'{"ok":true,"via":"ktls","version":"1.2","cipher":"x","tx":"sw","rx":"sw"}\n'
ARMS = ("C client, fd", "C client, byte", "stunnel, byte", "resumed, byte", "Python, fd")


def round_of(testbed: Testbed, number: int) -> dict[str, float]:
    """One round: every arm once, another one first each time; milliseconds."""
    found: dict[str, float] = {}

    def ours() -> None:
        found["C client, fd"], found["C client, byte"] = testbed.timed("ktls", testbed.greets)

    def python() -> None:
        began = time.perf_counter()
        testbed.ask(testbed.greets).close()
        found["Python, fd"] = (time.perf_counter() - began) * 1000

    def full() -> None:
        found["stunnel, byte"] = testbed.timed("tcp", testbed.full)[1]

    def resumed() -> None:
        found["resumed, byte"] = testbed.timed("tcp", testbed.resumed)[1]

    turns = [ours, full, python, resumed]
    for turn in turns[number % 4 :] + turns[: number % 4]:
        turn()
    return found


def latency(testbed: Testbed, pairs: int) -> bool:
    """The arms take turns; the bars are on the medians of the pairs' ratios and of the figures."""
    for number in range(WARM):
        round_of(testbed, number)
    rounds = [round_of(testbed, number) for number in range(pairs)]
    for name in ARMS:
        values = [found[name] for found in rounds]
        low, high = min(values), max(values)
        print(f"{name:16} ms  min {low:7.2f}  median {statistics.median(values):7.2f}  max {high:7.2f}")
    return all([ratio(rounds, "C client, fd"), ratio(rounds, "C client, byte"), cpu(testbed, pairs)])


def ratio(rounds: Sequence[dict[str, float]], name: str) -> bool:
    """The median of an arm beside that of a stunnel's set-up, and of what it is in each round."""
    other = "stunnel, byte"
    medians = [statistics.median(found[arm] for found in rounds) for arm in (name, other)]
    whole, paired = medians[0] / medians[1], statistics.median(f[name] / f[other] for f in rounds)
    figure = f"{whole:.2f} times (in pairs {paired:.2f})"
    return line(f"{name}, beside stunnel's set-up", figure, max(whole, paired) <= RATIO)


def cpu(testbed: Testbed, count: int) -> bool:
    """Processor time of the resident and of a stunnel client per connection, in turns of ten."""
    used = {"resident": 0.0, "stunnel": 0.0, "resumed": 0.0}
    acts = {
        "resident": (testbed.resident, "ktls", testbed.greets),
        "stunnel": (testbed.by_full, "tcp", testbed.full),
        "resumed": (testbed.by_resumed, "tcp", testbed.resumed),
    }
    turns = max(1, count // 10)
    for _ in range(turns):
        for name, (child, how, port) in acts.items():
            before = processor(child)
            for _ in range(10):
                testbed.timed(how, port)
            time.sleep(0.01)  # what comes after the byte: the end of the connection
            used[name] += processor(child) - before
    each = {name: total / (10 * turns) for name, total in used.items()}
    print("processor ms for each: " + ", ".join(f"{name} {value:.2f}" for name, value in each.items()))
    share = each["resident"] / each["stunnel"]
    return line("processor time beside stunnel's", f"{share:.2f} times", share <= RATIO)


def line(what: str, figure: str, held: bool) -> bool:
    """Print one figure beside its bar."""
    print(f"{what:44} {figure:28} {'held' if held else 'MISSED'}", flush=True)
    return held


def leaks(testbed: Testbed, count: int) -> bool:
    """So many hand-overs; then descriptors, threads, memory and keys of the resident."""
    testbed.ask(testbed.greets).close()
    time.sleep(0.5)
    Path(f"/proc/{testbed.resident.pid}/clear_refs").write_text("5")  # VmHWM starts anew
    before, keys, early = testbed.files(), [], 0
    print(f"memory after many clients, KiB: {testbed.memory()}")
    for number in range(count):
        with testbed.ask(testbed.greets) as sock:
            if REAL and number >= count - LAST:
                keys += [sock.getsockopt(SOL_TLS, direction, GCM256)[12:44] for direction in (TLS_TX, TLS_RX)]
        if number == count // 10:
            early = testbed.status("VmRSS")
    time.sleep(1)
    print(f"memory with {count} more, KiB: {testbed.memory()}")
    if not REAL:
        text = testbed.keys.read_bytes()[-2 * LAST * GCM256 :]
        keys = [text[at + 12 : at + 44] for at in range(0, len(text), GCM256)]
    assert len(keys) == 2 * min(LAST, count) and all(len(set(key)) > 8 for key in keys), "no keys to look for"
    # the memory first: a look for keys brings in pages that the resident never uses
    grown, most = testbed.status("VmRSS") - early, testbed.status("VmHWM")
    left = found(testbed.resident.pid, keys)
    return all(
        [
            line(
                f"{count} hand-overs: descriptors more",
                str(testbed.files() - before),
                testbed.files() == before,
            ),
            line("threads of the resident", str(testbed.status("Threads")), testbed.status("Threads") == 1),
            line("memory grown after the first tenth, KiB", str(grown), grown <= GROWN_KIB),
            line("memory at most, KiB", str(most), most < MEMORY_KIB),
            line(f"of {len(keys)} keys found in its memory", str(left), left == 0),
        ]
    )


def found(pid: int, secrets: Sequence[bytes]) -> int:
    """How many of these are anywhere in a process's memory."""
    seen: set[bytes] = set()
    with Path(f"/proc/{pid}/mem").open("rb", 0) as memory:
        for row in Path(f"/proc/{pid}/maps").read_text().splitlines():
            begin, end = (int(n, 16) for n in row.split()[0].split("-"))
            if row.split()[1][0] == "r" and "[v" not in row:
                memory.seek(begin)
                data = memory.read(end - begin)
                seen |= {secret for secret in secrets if secret in data}
    return len(seen)


def many_clients(testbed: Testbed, count: int) -> bool:
    """So many clients at a time, whose peers stall: what each takes, and what stays of it."""
    testbed.ask(testbed.greets).close()
    until(lambda: testbed.status("Threads") == 1)
    before, files = testbed.status("VmRSS"), testbed.files()
    print(f"memory with one hand-over, KiB: {testbed.memory()}")
    with socket.create_server(("127.0.0.1", 0), backlog=count) as mute, ExitStack() as undo:
        words = ["connect", "127.0.0.1", mute.getsockname()[1], "--timeout", 5]
        words += ["--digest", Policy(ca=testbed.ca).digest()]
        request = "".join(f"{word}\n" for word in words).encode()
        clients = [
            undo.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)) for _ in range(count)
        ]
        for client in clients:
            client.connect(testbed.path)
            client.send(request)
        until(lambda: testbed.status("Threads") == count + 1)
        time.sleep(2)  # all wait for a peer's first word
        at_most = testbed.status("VmRSS")
        print(f"memory with {count} clients at a time, KiB: {testbed.memory()}")
        timed_out = sum(b'"cause":"timeout"' in client.recv(8192) for client in clients)
    until(lambda: testbed.status("Threads") == 1)
    time.sleep(0.5)
    each, after = (at_most - before) // count, testbed.status("VmRSS")
    return all(
        [
            line(f"{count} clients at a time: told of the time-out", str(timed_out), timed_out == count),
            line(f"{count} clients at a time: memory for each, KiB", str(each), each <= CLIENT_KIB),
            line("memory after them, KiB", str(after), after < MEMORY_KIB),
            line("descriptors more", str(testbed.files() - files), testbed.files() == files),
        ]
    )


def lie(conn: socket.socket) -> None:
    """One of the ways in which a resident can fail."""
    conn.recv(4096)
    null = os.open(os.devnull, os.O_RDONLY)
    failures_of: list[tuple[bytes, int]] = [
        (b"", 0),
        (GOOD, 0),
        (GOOD, 1),
        (GOOD, 2),
        (GOOD, 100),
        (GOOD[:30], 1),
        (b"x" * 9000, 1),
        (b"[1]\n", 0),
        (random.randbytes(200) + b"\n", 1),
        (b'{"ok":false,"message":"no","exit":2}\n', 0),
        (b'{"ok":false,"message":"no","exit":4}\n', 1),
    ]
    data, fds = random.choice(failures_of)
    if data:
        socket.send_fds(conn, [data], [null] * fds)
    elif random.random() < 0.2:
        time.sleep(1)  # mute
    os.close(null)


@contextmanager
def liar(path: str) -> Iterator[None]:
    """A resident that always fails."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen(64)
        with attended(listener, lie):
            yield


def failures(testbed: Testbed, count: int) -> bool:
    """So many streams whose hand-over fails; each has to arrive, with one warning."""
    connect_client.SPARE = -29.5  # with ten seconds for each of three steps: half a second for a mute one
    path, arrived, why = str(testbed.folder / "liar"), 0, Counter[str]()
    failures_of: list[dict[str, str]] = [{"via": path}] * 8 + [{"via": "/nowhere"}, {"program": "/nowhere"}]
    failures_of += [{"program": "/bin/false"}, {"program": "/bin/cat"}]
    if (
        not REAL
    ):  # a kernel whose tls cannot be loaded, and one that takes another cipher (CCM) than was negotiated
        odd = ({"FAKE_KTLS_ABSENT": "1"}, {"FAKE_KTLS_CIPHER": "53"}, {"FAKE_KTLS_TX": "0"})
        failures_of += [
            {"via": testbed.serving(f"odd{number}", **fake)[0]} for number, fake in enumerate(odd)
        ]
    with liar(path):
        for _ in range(count):
            warnings: list[str] = []
            payload = random.randbytes(random.randint(1, 1 << 17))
            how = random.choice(failures_of)
            got = connect(
                Target("127.0.0.1", testbed.echoes), Policy(ca=testbed.ca), warn=warnings.append, **how
            )
            arrived += returned(got.sock, payload) and len(warnings) == 1 and got.line["via"] == "stunnel"
            assert got.process is not None
            got.process.wait(20)
            why[re.sub(r".*: |\).*", "", warnings[0].split("no kTLS (")[1].split(");")[0])] += 1
    print("reasons: " + ", ".join(f"{text} {n}" for text, n in why.most_common()))
    return line(f"of {count} failures, streams that arrived", str(arrived), arrived == count)


def returned(sock: socket.socket, payload: bytes) -> bool:
    """Whether everything that is sent comes back as it was."""
    sock.settimeout(60)
    with sock:
        writer = threading.Thread(target=sock.sendall, args=(payload,))
        writer.start()
        got = b""
        while len(got) < len(payload) and (part := sock.recv(1 << 17)):
            got += part
        writer.join(60)
    return got == payload


def main() -> int:
    """Run what is asked for; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (("pairs", 300), ("count", 10000), ("clients", 64), ("failures", 1000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    under_stand_in()
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"kernel {os.uname().release}: TLS {'of its own' if REAL else 'by a stand-in'}; load {load}")
    with ExitStack() as undo:
        testbed = Testbed(undo)
        asked = (
            (many_clients, args.clients),
            (leaks, args.count),
            (latency, args.pairs),
            (failures, args.failures),
        )
        held = [act(testbed, number) for act, number in asked if number]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
