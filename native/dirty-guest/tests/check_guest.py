"""Does the guest fill its memory, and write it at its rate? With qemu-system-x86_64."""

from __future__ import annotations

import json
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

QEMU, STATUS, AREA, PAGE, MAGIC = "qemu-system-x86_64", 0x200000, 0x400000, 4096, 0x59545244
MIB, SEED, RATE = 5, 3, 200


def boot(guest: str, folder: Path) -> subprocess.Popen[bytes]:
    """QEMU with the guest, its monitor a socket in the folder."""
    argv = [QEMU, "-machine", "isapc", "-cpu", "486", "-accel", "tcg", "-m", str(MIB), "-nodefaults"]
    argv += ["-display", "none", "-bios", guest, "-qmp", f"unix:{folder}/qmp,server=on,wait=off"]
    for number, value in enumerate((MIB, SEED, RATE), 1):
        argv += ["-device", f"loader,addr={STATUS + 4 * number:#x},data={value},data-len=4"]
    return subprocess.Popen(argv)


def monitor(folder: Path) -> Callable[..., object]:
    """What tells QEMU something."""
    sock = socket.socket(socket.AF_UNIX)
    for _ in range(2400):
        try:
            sock.connect(f"{folder}/qmp")
            break
        except OSError:
            time.sleep(0.05)
    lines = sock.makefile("rw")

    def qmp(execute: str, **arguments: object) -> object:
        lines.write(json.dumps({"execute": execute, "arguments": arguments}) + "\n")
        lines.flush()
        while "return" not in (answer := json.loads(lines.readline())):
            assert "error" not in answer, answer
        return answer["return"]

    lines.readline()
    qmp("qmp_capabilities")
    return qmp


def dump(guest: str, folder: Path) -> bytes:
    """Boot, let it write every page twice or so, stop it; its memory."""
    child = boot(guest, folder)
    try:
        qmp = monitor(folder)
        written, ends = 0, time.monotonic() + 300
        while written < 600:
            assert time.monotonic() < ends, f"{written} pages written in five minutes"
            time.sleep(0.2)
            qmp("pmemsave", val=STATUS, size=32, filename=f"{folder}/status")
            written = struct.unpack("<6IQ", (folder / "status").read_bytes())[-1]
        qmp("stop")
        qmp("pmemsave", val=0, size=MIB << 20, filename=f"{folder}/memory")
        return (folder / "memory").read_bytes()
    finally:
        child.kill()
        child.wait()


@pytest.mark.skipif(not shutil.which(QEMU), reason=f"no {QEMU} (apt-get install qemu-system-x86)")
def check_memory_is_what_seed_and_rate_say(program: str, tmp_path: Path) -> None:
    """Each page was written as often as its turn came, with the words of its seed."""
    memory = dump(program, tmp_path)
    magic, mib, seed, rate, pages, _, written = struct.unpack_from("<6IQ", memory, STATUS)
    assert (magic, mib, seed, rate, pages) == (MAGIC, MIB, SEED, RATE, (MIB << 8) - AREA // PAGE)
    for page in range(pages):
        words = struct.unpack_from(f"<{PAGE // 4}I", memory, AREA + page * PAGE)
        count = written // pages + (page < written % pages)
        assert words[0] in (count, count + 1), f"page {page} says {words[0]} writes, wanted {count}"
        x = (seed * 2654435761 + page) & 0xFFFFFFFF
        for word in words[1:]:
            x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
            if word != x:
                pytest.fail(f"page {page} is not what its seed says")
