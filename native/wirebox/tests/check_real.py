"""Does the kernel's own TCP, with large frames and checksums left to the card, get every byte through?"""

from __future__ import annotations

import hashlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rig import Rig, Tcp, sh

SIZE = 4 << 20
SINK = """
import hashlib, socket, sys
with socket.create_server(("192.0.2.2", 4433)) as listener:
    print("listening", flush=True)
    conn, seen = listener.accept()[0], hashlib.sha256()
    while part := conn.recv(1 << 16): seen.update(part)
    print(seen.hexdigest(), flush=True)
"""
SOURCE = f"""
import hashlib, socket
data = hashlib.shake_128(b"x").digest({SIZE})
with socket.create_connection(("192.0.2.2", 4433)) as conn: conn.sendall(data)
"""


@contextmanager
def spaces() -> Iterator[dict[str, int]]:
    """Put each far end into a namespace of its own, with an address; back after."""
    held = {s: subprocess.Popen(["unshare", "--net", "sleep", "300"]) for s in "ab"}
    try:
        for number, (side, child) in enumerate(held.items(), 1):
            while sh(f"readlink /proc/{child.pid}/ns/net") == sh("readlink /proc/self/ns/net"):
                time.sleep(0.01)
            sh(f"ip link add r{side}0 type veth peer name r{side}1 && ip link set r{side}1 netns {child.pid}")
            inside = f"nsenter -t {child.pid} -n"
            sh(f"ip link set r{side}0 up")
            sh(f"{inside} ip addr add 192.0.2.{number}/24 dev r{side}1 && {inside} ip link set r{side}1 up")
        yield {side: child.pid for side, child in held.items()}
    finally:
        for child in held.values():
            child.kill()
            child.wait()
        for side in "ab":
            sh(f"ip link del r{side}0 2>/dev/null || true")


@contextmanager
def python(pid: int, text: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program in the namespace of a process; it does not outlive the block."""
    argv = ["nsenter", "-t", str(pid), "-n", sys.executable, "-c", text]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def transfer(rig: Rig, *rules: str) -> tuple[str, dict, int]:
    """Send SIZE bytes from a to b: the sink's hash, the summary, the exit code."""
    with spaces() as pids, rig.started(ports=("ra0", "rb0")) as child:
        assert child.stdin and child.stdout
        child.stdin.write("".join(f"{rule}\n" for rule in rules).encode())
        child.stdin.flush()
        assert child.stdout.readline() == b'{"ready":true}\n'
        with python(pids["b"], SINK) as sink:
            assert sink.stdout and sink.stdout.readline() == "listening\n"
            with python(pids["a"], SOURCE) as source:
                assert source.wait(120) == 0
            digest = sink.stdout.readline().strip()
        child.terminate()
        out, err = child.communicate(timeout=120)
        assert err == b""
    return digest, json.loads(out.splitlines()[-1])["summary"], child.returncode


WANT = hashlib.sha256(hashlib.shake_128(b"x").digest(SIZE)).hexdigest()


def check_kernel_tcp(rig: Rig) -> None:
    """4 MiB arrive; the sender's large frames were cut to what the cable takes."""
    digest, summary, rc = transfer(rig)
    assert (digest, rc) == (WANT, 0)
    assert summary["a>b"]["cut"] > 10 and summary["a>b"]["too_big"] == 0
    assert summary["a>b"]["frames"] >= SIZE // 1448 and summary["a>b"]["sent"] == summary["a>b"]["frames"]
    assert summary["gaps"] == 0 and summary["flows"] == 1


def check_kernel_tcp_under_impairment(rig: Rig) -> None:
    """4 MiB arrive through loss, duplicates, reordering and noise both ways, and a chosen loss."""
    kinds = "loss 1% duplicate 1% reorder 1% corrupt 0.5% noise"
    digest, summary, rc = transfer(rig, f"impair both {kinds} seed 4", "a>b offset 1000000 drop times 2")
    assert (digest, rc) == (WANT, 0)
    moved = summary["a>b"]
    assert all(moved[name] > 0 for name in ("dropped", "duplicated", "delayed", "flipped"))


def check_capture_sees_both_sides(rig: Rig) -> None:
    """Another raw socket on a port sees what wirebox sends: captures beside it work."""
    seen = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    seen.bind(("b0", 3))
    seen.settimeout(60)
    frames = Tcp().cut(bytes(3000))
    with rig.box("a>b first drop"):
        assert rig.through(frames) == frames
        assert [seen.recv(2000) for _ in frames] == frames
    seen.close()
