"""The provider in programs that know nothing of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

VARIABLE = "KTLS_OFFLOAD_TEST_RANDOM"
CONF = Path(__file__).parents[1] / "openssl.cnf"
# what one thread draws in pieces, what another one draws at once, and what many at the same time get
THREADS = """
import ssl, threading
pieces = b"".join(ssl.RAND_bytes(n) for n in (1, 2, 3, 5, 7, 8, 9, 65))
got = [pieces]
def draw(): got.append(ssl.RAND_bytes(100))
many = [threading.Thread(target=draw) for _ in range(20)]
for thread in many: thread.start()
for thread in many: thread.join()
assert len(got) == 21 and set(got) == {pieces}, "a thread that starts anew gets other numbers"
print(ssl.RAND_bytes(200_000).hex())
"""


def wanted(seed: bytes, count: int) -> bytes:
    """FNV-1a and splitmix64 as their authors wrote them down."""
    mask, state, out = 2**64 - 1, 0xCBF29CE484222325, b""
    for byte in seed:
        state = (state ^ byte) * 0x100000001B3 & mask
    while len(out) < count:
        state = z = state + 0x9E3779B97F4A7C15 & mask
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        out += (z ^ z >> 31).to_bytes(8, "little")
    return out[:count]


class Rig:
    """Runs programs under a configuration that loads the provider."""

    def __init__(self, module: str, preload: str, folder: Path) -> None:
        conf = folder / "openssl.cnf"
        conf.write_text(CONF.read_text().format(module=module))
        self.env = {k: v for k, v in os.environ.items() if k != VARIABLE} | {"OPENSSL_CONF": str(conf)}
        # what openssl and python keep until they end is theirs
        self.env |= {"LD_PRELOAD": preload, "ASAN_OPTIONS": "detect_leaks=0"} if preload else {}

    def run(self, *argv: str, seed: str | None = "client") -> tuple[int, str, str]:
        """Exit code, standard output and standard error."""
        env = self.env | ({} if seed is None else {VARIABLE: seed})
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout, done.stderr

    def draw(self, seed: str, count: int = 1000) -> bytes:
        """Random bytes by openssl; it has to warn exactly once."""
        rc, out, err = self.run("openssl", "rand", "-hex", str(count), seed=seed)
        assert (rc, err) == (0, "detrand: TEST ONLY: every key of this process is predictable\n"), err
        return bytes.fromhex(out)


@pytest.fixture
def rig(program: str, preload: str, tmp_path: Path) -> Rig:
    """The provider, and a configuration that loads it."""
    return Rig(program, preload, tmp_path)


def check_numbers(rig: Rig) -> None:
    """The same seed gives the same numbers, the right ones; another seed gives others."""
    for seed in ("client", "server", "x" * 5000, "\u00e4"):
        assert rig.draw(seed) == rig.draw(seed) == wanted(seed.encode(), 1000), seed[:20]
    assert len({rig.draw(seed, 32) for seed in ("client", "server", "a", "b", "aa", "ab")}) == 6


def check_threads(rig: Rig) -> None:
    """Each thread starts from the seed; pieces and long draws give the same stream."""
    rc, out, err = rig.run(sys.executable, "-I", "-c", THREADS)
    assert rc == 0, err
    assert bytes.fromhex(out) == wanted(b"client", 200_100)[100:]


def check_guard(rig: Rig) -> None:
    """Without a seed it refuses with one line, and OpenSSL then has no random numbers at all."""
    for seed in (None, ""):
        rc, out, err = rig.run("openssl", "rand", "-hex", "8", seed=seed)
        said = [line for line in err.splitlines() if line.startswith("detrand:")]
        assert (rc, out) == (1, "") and len(said) == 1 and VARIABLE in said[0], err


def check_shape(rig: Rig) -> None:
    """OpenSSL takes it for every use of random numbers."""
    rc, out, err = rig.run("openssl", "list", "-random-instances")
    assert rc == 0 and out.count("DET-RAND @ detrand") == out.count("state = ready") == 3, out + err
