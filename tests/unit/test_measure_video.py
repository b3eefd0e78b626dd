"""Without a NIC a film's clients see what they ask for, and wrk asks for segments and ranges of one size."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from offload import measure_programs
from offload.errors import RigError
from offload.host.local import LocalHost
from offload.measure_arms import impossible
from offload.measure_plan import Setting
from offload.measure_video import Video
from offload.profile import find
from offload.traffic import certs, nginx, video, wrk
from offload.traffic.nginx import Shop
from offload.traffic.video import Seen, Want
from tests.lib.sshd import free_port

SIZE = 20_000


def test_what_has_to_arrive() -> None:
    """Without a NIC a range is part of the film, and not what stands at its beginning."""
    whole, first, later = (Want(SIZE), Want(SIZE, 8 * SIZE), Want(SIZE, 8 * SIZE, SIZE + 1))
    assert (whole.span, later.span, later.path) == ("", f"{SIZE + 1}-{2 * SIZE}", f"/{8 * SIZE}")
    assert (whole.seen().status, later.seen().status, later.seen().bytes) == (200, 206, SIZE)
    assert len({want.seen().sha256 for want in (whole, first, later)}) == 3


def test_films_are_sent() -> None:
    """Without a NIC a film, as a file, is refused in the direction in which nobody sends it."""
    card = find("connectx-6-dx")
    for load in ("video", "file"):
        assert "transmitted" in impossible("sw", "rx", load, card, "aes-gcm-128", "1.2")
        assert impossible("hw-zc", "tx", load, card, "aes-gcm-128", "1.2") == ""


def test_clients_that_say_nothing_are_an_error() -> None:
    """Without a NIC clients that die, or say what makes no sense, are one line."""
    for said in (b"", b"[[1]]", b'{"a": 1}'):
        process: Any = SimpleNamespace(
            stdin=lambda data: None,
            output=lambda said=said: (said, b""),
            running=lambda: False,
            kill=lambda: None,
        )
        host: Any = SimpleNamespace(name="peer", start=lambda argv, process=process: process)
        with pytest.raises(RigError, match="clients on peer said"):
            video.fetched(host, Shop("192.0.2.1", 1, True), [[Want(1)]], "ca")


@pytest.mark.skipif(not (shutil.which("nginx") and shutil.which("wrk")), reason="needs nginx and wrk")
def test_a_film_on_loopback(tmp_path: Path) -> None:
    """Without a NIC two clients at once get segment and ranges whole; every answer to wrk has one size."""
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
            argv = wrk.argv(f"{folder}/wrk.lua", shop.url(SIZE), 4, 1, 2, close=False)
            asked = wrk.parse(here.run(argv))
            assert asked.requests > 0 and SIZE < asked.bytes / asked.requests < SIZE + 600, asked
        assert video.fetched(here, shop, [[Want(SIZE)]], at.ca)[0] == [
            Seen(0, 0, "ConnectionRefusedError: [Errno 111] Connection refused")
        ]


def test_settings_of_a_film() -> None:
    """Without a NIC a film is asked for by several clients, in segments, unless told otherwise."""
    from argparse import ArgumentParser

    from offload.measure_plan import CLIENTS, FILMS, add_arguments, plan

    parser = ArgumentParser()
    add_arguments(parser)
    found = plan(parser.parse_args(["--workload", "video,stream"]), short=True).settings
    assert found == (
        Setting("stream", "tx", 1, None), *(Setting("video", "tx", CLIENTS, size) for size in FILMS)
    )  # fmt: skip


def test_a_lab_has_a_newer_nginx(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a NIC only the zero-copy arm of a lab runs a fetched nginx; without one, its own."""
    bed: Any = SimpleNamespace(emulated=True, dut=SimpleNamespace(host=None))
    load = Video(bed)
    monkeypatch.setattr(nginx, "missing", lambda host, zerocopy=False, program="": "OpenSSL 3.0" * zerocopy)
    monkeypatch.setattr(measure_programs.newer, "find", lambda say: "/cache/nginx")
    assert [load._program(arm) for arm in ("sw", "hw", "hw-zc")] == ["nginx", "nginx", "/cache/nginx"]

    def none(say: Any) -> str:
        raise RigError("no nginx of Debian 13")

    monkeypatch.setattr(measure_programs.newer, "find", none)
    assert load._program("hw-zc") == "nginx"
    bed.emulated = False
    monkeypatch.setattr(measure_programs.newer, "find", lambda say: "/cache/nginx")
    assert load._program("hw-zc") == "nginx", "a host of yours runs its own"
