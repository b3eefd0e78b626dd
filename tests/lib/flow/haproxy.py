"""HAProxy of Debian experimental, built with kernel TLS, and its libraries of sid: never installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from offload.cmd import wait_until
from offload.debian.cache import cache_root, kept, new_folder, read_json
from offload.debian.headers import LOADER
from offload.debian.packages import Lists, Package, amd64_only, download, index, refresh
from offload.suite.bench.programs.managers import choose
from tests.lib.rig.rig import Rig, in_lab

PLACE = "haproxy"
LISTS = Lists("apt-experimental", ("sid", "experimental"))
PACKAGES = ["haproxy", "zlib1g"]
STARTER = (
    '#!/bin/sh\nexec "{0}/{1}" --library-path "{0}/usr/lib/x86_64-linux-gnu" "{0}/usr/sbin/haproxy" "$@"\n'
)
PROGRAM = "/usr/sbin/haproxy"  # which doctor asks for its version
GLOBAL = """\
global
 maxconn 20
 nbthread 1
{0}defaults
 mode http
 timeout client 120s
"""
FRONTEND = """\
frontend {name}
 bind {address}:{port} ssl crt {pem} ciphers ECDHE+AESGCM {more}
 http-request return status 200 content-type text/plain file {file}
"""


def fetch(say: Callable[[str], None] = print) -> str:
    """The path of haproxy, fetched if need be; RigError if it cannot be had."""
    amd64_only()
    return str(kept(PLACE, lambda root: _fetch(root, say), say) / "haproxy")


def had() -> str:
    """The same path if it has been fetched, else ''."""
    state = read_json(cache_root() / PLACE / "current.json")
    path = cache_root() / PLACE / state["folder"] / "haproxy" if state else None
    return str(path) if path and path.is_file() else ""


def _fetch(root: Path, say: Callable[[str], None]) -> Path:
    refresh(lists=LISTS)
    parts = choose(of_sid(index(LISTS)), "sid", set(), PACKAGES)
    say(f"fetching HAProxy {parts[0].version} of Debian experimental: {sum(p.size for p in parts) >> 20} MiB")
    folder = root / parts[0].version
    with new_folder(folder) as temp:
        download(parts, temp, LISTS)
        starter = temp / "haproxy"
        starter.write_text(STARTER.format(folder, LOADER))
        starter.chmod(0o755)
    index.cache_clear()
    return folder


def of_sid(packages: tuple[Package, ...]) -> tuple[Package, ...]:
    """These packages as if sid had experimental's HAProxy and nothing else were there."""
    wanted = {True: "experimental", False: "sid"}
    return tuple(replace(p, suite="sid") for p in packages if p.suite == wanted[p.name == PLACE])


def missing(rig: Rig) -> str:
    """What is lacking for it, as a clause, or ''."""
    if not in_lab(rig.bench):
        return "the suite does this only in a lab VM, never on real hosts"
    return "" if had() else "HAProxy of Debian experimental is not in the cache (make fetch)"


@contextmanager
def instead(rig: Rig) -> Iterator[str]:
    """The DUT's haproxy is this one while the block runs, also where it had none."""
    run = rig.bench.dut.host.run
    with ExitStack() as undo:
        if run(["test", "-e", PROGRAM], check=False).rc != 0:
            undo.callback(run, ["rm", "-f", PROGRAM])
            run(["touch", PROGRAM])
        run(["mount", "--bind", had(), PROGRAM])
        undo.callback(run, ["umount", PROGRAM])
        yield PROGRAM


def written(rig: Rig, folder: str, body: bytes, binds: dict[int, str], more: str = "") -> str:
    """Write haproxy.cfg on the DUT: for each port a frontend with these words on its bind line; its path."""
    at, dut = rig.end("dut").at, rig.bench.dut
    pem, file = f"{folder}/both.pem", f"{folder}/file"
    dut.host.run(["mkdir", "-p", "-m", "755", folder])
    dut.host.write(pem, dut.host.read(at.cert) + dut.host.read(at.key), 0o600)
    dut.host.write(file, body, 0o644)
    rows = (
        FRONTEND.format(name=f"www{port}", address=dut.v4, port=port, pem=pem, file=file, more=words)
        for port, words in binds.items()
    )
    dut.host.write(f"{folder}/haproxy.cfg", (GLOBAL.format(more) + "".join(rows)).encode(), 0o644)
    return f"{folder}/haproxy.cfg"


def after_key_update(rig: Rig, port: int, ask: bytes) -> bytes:
    """What the server sends to a client that first asks it for new keys, until one of them closes."""
    end, v4 = rig.end("peer"), rig.bench.dut.v4
    argv = ["openssl", "s_client", "-tls1_3", "-connect", f"{v4}:{port}", "-CAfile", end.at.ca, "-brief"]
    process = end.side.host.start(argv)
    with ExitStack() as undo:
        undo.callback(process.kill)
        wait_until(lambda: b"Verification" in b"".join(process.output()), 120, "the handshake", 0.5)
        process.stdin(b"K\n")
        wait_until(lambda: b"KEYUPDATE" in b"".join(process.output()), 120, "the KeyUpdate", 0.5)
        process.stdin(ask)
        wait_until(lambda: not process.running(), 240, "an end of the connection", 0.5)
        return process.output()[0]
