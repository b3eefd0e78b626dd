"""nginx serves files and a film to wrk and to the film's clients, over TLS in user space, on loopback."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from offload.errors import RigError
from offload.host.local import LocalHost
from offload.suite.traffic import certs, nginx, video, wrk
from offload.suite.traffic.nginx import Shop
from offload.suite.traffic.video import Seen, Want
from tests.lib.rig.sshd import free_port

pytestmark = pytest.mark.skipif(
    not (shutil.which("nginx") and shutil.which("wrk")), reason="needs nginx and wrk"
)
SIZE = 20_000


def asked(host: LocalHost, script: str, url: str, connections: int, threads: int) -> wrk.Result:
    """What wrk got in a second; in more where a busy machine had no answer in one."""
    for seconds in (1, 10, 60):
        found = wrk.parse(host.run(wrk.argv(script, url, connections, seconds, threads, close=False)))
        if found.requests:
            break
    return found


def test_serves_on_loopback(tmp_path: Path) -> None:
    """nginx serves the files whole to wrk, over TLS in user space; a wrong file is noticed."""
    here, folder = LocalHost(), str(tmp_path)
    with certs.placed(certs.make(["127.0.0.1"]), here, folder) as at:
        shop = Shop("127.0.0.1", free_port("127.0.0.1"), True)
        nginx.stock(here, folder, [4096])
        with nginx.running(here, shop, at):
            nginx.check(here, shop, 4096, at.ca)
            (tmp_path / "wrk.lua").write_text(wrk.SCRIPT)
            found = asked(here, f"{folder}/wrk.lua", shop.url(4096), 2, 1)
            assert found.requests > 0 and found.bytes >= found.requests * 4096
            (tmp_path / "files/4096").write_bytes(b"x" * 4096)
            with pytest.raises(RigError, match="nginx served 4096"):
                nginx.check(here, shop, 4096, at.ca)


def test_a_film_on_loopback(tmp_path: Path) -> None:
    """Two clients at once get segment and ranges whole; every answer to wrk has one size."""
    here, folder = LocalHost(), str(tmp_path)
    clients = [[Want(SIZE), Want(SIZE, 8 * SIZE, SIZE * n + 1)] for n in (0, 3)]
    with certs.placed(certs.make(["127.0.0.1"]), here, folder) as at:
        shop = Shop("127.0.0.1", free_port("127.0.0.1"), True)
        nginx.stock(here, folder, [SIZE, video.film(SIZE)])
        with nginx.running(here, shop, at):
            found = video.fetched(here, shop, clients, at.ca)
            assert found == [[want.seen() for want in client] for client in clients]
            assert video.fetched(here, shop, [[Want(SIZE + 1)]], at.ca)[0][0].status == 404
            (tmp_path / "wrk.lua").write_text(wrk.SCRIPT + video.requests(SIZE))
            seen = asked(here, f"{folder}/wrk.lua", shop.url(SIZE), 4, 2)
            assert seen.requests > 0 and SIZE < seen.bytes / seen.requests < SIZE + 600, seen
        assert video.fetched(here, shop, [[Want(SIZE)]], at.ca)[0] == [
            Seen(0, 0, "ConnectionRefusedError: [Errno 111] Connection refused")
        ]
