"""The checks that need kTLS in the kernel: minutes, as root, in a lab of kind veth (README.md)."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest
import rig as rigs
from check_data import MODES, moved
from rig import Answer, Rig, records, relay

SIZE = ("-n", "8M")
RX13 = (
    "sw" if ssl.OPENSSL_VERSION_INFO >= (3, 2) else "user"
)  # OpenSSL before 3.2 installs no receive for 1.3


@pytest.fixture(scope="module", autouse=True)
def kernel() -> None:
    """kTLS in the kernel, and time for an emulated guest on a machine that others use."""
    rigs.LIMIT = 120
    # aesni_intel: without it the kernel encrypts in plain C, an emulated guest 1 MiB in seconds
    subprocess.run(["modprobe", "-a", "tls", "aesni_intel"], check=False)


def stat() -> dict[str, int]:
    """The counters of /proc/net/tls_stat."""
    rows = (line.split() for line in Path("/proc/net/tls_stat").read_text().splitlines())
    return {name: int(value) for name, value in rows}


def sides(end: Answer) -> set[tuple[str, str]]:
    """(tx, rx) of every stream of one end."""
    return {(row["tls"]["tx"], row["tls"]["rx"]) for row in end.json["end"]["streams"]}


def check_every_mode_in_the_kernel(rig: Rig) -> None:
    """Both versions, -P, -R, --bidir, -Z: sw at both ends, every byte verified, counted by the kernel."""
    for version, rx in (("1.2", "sw"), ("1.3", RX13)):
        for mode in MODES:
            before = stat()
            with rig.server("-1", "-J") as server:
                got = rig.client(
                    server.port, f"--tls={version}", "--ktls=both", "--tls-verify-payload", *SIZE, *mode
                )
            after = stat()
            moved(got)
            assert server.answer and server.answer.rc == 0, (mode, server.answer)
            assert sides(got) == sides(server.answer) == {("sw", rx)}, (mode, sides(got))
            assert after["TlsTxSw"] - before["TlsTxSw"] == 2 * len(got.json["end"]["streams"])
            assert after["TlsDecryptError"] == before["TlsDecryptError"]


def check_directions(rig: Rig) -> None:
    """tx, rx, off: that direction only; the server without a word of its own does the same."""
    for word, wanted in (("tx", ("sw", "user")), ("rx", ("user", "sw")), ("off", ("user", "user"))):
        with rig.server("-1", "-J") as server:
            got = rig.client(server.port, "--tls=1.2", f"--ktls={word}", "--tls-verify-payload", *SIZE)
        moved(got)
        assert server.answer and sides(got) == sides(server.answer) == {wanted}, (word, sides(got))


def check_sendfile(rig: Rig) -> None:
    """-Z with kTLS is sendfile(), not zero-copy in software; records are of the size asked for."""
    for size in (4096, 16384):
        with rig.server("-1") as server, relay(server.port, lambda number, data: data) as (port, seen):
            args = ("--tls=1.2", "--ktls=both", "-Z", "--tls-verify-payload", f"--tls-record-size={size}")
            got = rig.client(port, *args, *SIZE)
        moved(got)
        tls = got.json["end"]["streams"][0]["tls"]
        assert tls["sendfile"] and not tls["zerocopy_sendfile"], tls
        payload = [length for kind, length in records(bytes(seen[1])) if kind == 23]
        assert max(payload) == size + 24 and len(payload) > 100, (size, max(payload))


def check_require(rig: Rig) -> None:
    """require holds where the kernel does it, and is exit 3 where OpenSSL does not."""
    with rig.server() as server:
        for mode in ((), ("-R",), ("--bidir",)):
            moved(rig.client(server.port, "--tls=1.2", "--ktls=require", *SIZE, *mode))
        if RX13 == "user":
            got = rig.client(server.port, "--tls=1.3", "--ktls=require", "-R", *SIZE)
            assert got.rc == 3 and "OpenSSL before 3.2" in got.words, got


def check_cipher_that_no_card_does(rig: Rig) -> None:
    """ChaCha20-Poly1305 in the kernel's software, and CBC nowhere in it: require is exit 3."""
    with rig.server() as server:
        chacha = "--tls-ciphers=ECDHE-ECDSA-CHACHA20-POLY1305"
        got = rig.client(server.port, "--tls=1.2", "--ktls=require", chacha, *SIZE)
        moved(got)
        cbc = "--tls-ciphers=ECDHE-ECDSA-AES256-SHA384"
        got = rig.client(server.port, "--tls=1.2", "--ktls=require", cbc, *SIZE)
        assert got.rc == 3 and "kTLS send refused" in got.words, got
