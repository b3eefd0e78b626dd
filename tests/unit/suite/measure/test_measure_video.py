"""A film's clients see what they ask for, and wrk asks for segments and ranges of one size."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from offload.card.profile import find
from offload.errors import RigError
from offload.suite.measure import programs
from offload.suite.measure.arms import impossible
from offload.suite.measure.plan import Setting
from offload.suite.measure.video import Video
from offload.suite.traffic import nginx, video
from offload.suite.traffic.nginx import Shop
from offload.suite.traffic.video import Want

SIZE = 20_000


def test_what_has_to_arrive() -> None:
    """A range is part of the film, and not what stands at its beginning."""
    whole, first, later = (Want(SIZE), Want(SIZE, 8 * SIZE), Want(SIZE, 8 * SIZE, SIZE + 1))
    assert (whole.span, later.span, later.path) == ("", f"{SIZE + 1}-{2 * SIZE}", f"/{8 * SIZE}")
    assert (whole.seen().status, later.seen().status, later.seen().bytes) == (200, 206, SIZE)
    assert len({want.seen().sha256 for want in (whole, first, later)}) == 3


def test_films_are_sent() -> None:
    """A film, as a file, is refused in the direction in which nobody sends it."""
    card = find("connectx-6-dx")
    for load in ("video", "file"):
        assert "goes out" in impossible("sw", "rx", load, card, "aes-gcm-128", "1.2")
        assert impossible("hw-zc", "tx", load, card, "aes-gcm-128", "1.2") == ""


def test_clients_that_say_nothing_are_an_error() -> None:
    """Clients that die, or say what makes no sense, are one line."""
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


def test_settings_of_a_film() -> None:
    """A film is asked for by several clients, in segments, unless told otherwise."""
    from argparse import ArgumentParser

    from offload.suite.measure.plan import CLIENTS, FILMS, add_arguments, plan

    parser = ArgumentParser()
    add_arguments(parser, parser.add_argument_group("more options"))
    found = plan(parser.parse_args(["--workload", "video,stream"]), short=True).settings
    assert found == (
        Setting("stream", "tx", 1, None),
        *(Setting("video", "tx", CLIENTS, size) for size in FILMS),
    )


def test_a_lab_has_a_newer_nginx(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the zero-copy arm of a lab runs a fetched nginx; without one, its own."""
    testbed: Any = SimpleNamespace(emulated=True, dut=SimpleNamespace(host=None))
    load = Video(testbed)
    monkeypatch.setattr(nginx, "missing", lambda host, zerocopy=False, program="": "OpenSSL 3.0" * zerocopy)
    monkeypatch.setattr(programs.unpacked, "find", lambda say: "/cache/nginx")
    assert [load._program(arm) for arm in ("sw", "hw", "hw-zc")] == ["nginx", "nginx", "/cache/nginx"]

    def none(say: Any) -> str:
        raise RigError("no nginx of Debian 13")

    monkeypatch.setattr(programs.unpacked, "find", none)
    assert load._program("hw-zc") == "nginx"
    testbed.emulated = False
    monkeypatch.setattr(programs.unpacked, "find", lambda say: "/cache/nginx")
    assert load._program("hw-zc") == "nginx", "a host of yours runs its own"
