"""A capture on a host starts, stops without loss, comes here, and says what went wrong."""

from __future__ import annotations

import os
import socket
import stat
import struct
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from offload.errors import RigError
from offload.host.local import LocalHost
from offload.suite.traffic import tap
from offload.suite.traffic.tap import capturing

CAN = os.geteuid() == 0 and Path(tap.PROGRAM).exists()
GOOD = '{"frames":2,"bytes":120,"dropped":0,"truncated":0}'


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder, and in place of wiretap what a test writes into its `script`."""
    script = tmp_path / "wiretap"
    monkeypatch.setattr(tap, "PROGRAM", str(script))
    yield tmp_path


def program(folder: Path, *lines: str) -> None:
    """Make the program that is called with an interface ($1) and a file ($2)."""
    script = folder / "wiretap"
    script.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    script.chmod(0o755)


def acting(folder: Path, last: str, rc: int = 0) -> None:
    """Capture 9 MiB of nothing in particular, say `last` at the end and exit with `rc`."""
    ready = """echo '{"ready":true}'"""
    program(
        folder, 'head -c 9437185 /dev/urandom >"$2"', ready, "cat >/dev/null", f"echo '{last}'", f"exit {rc}"
    )


def test_a_capture_comes_here_and_is_gone_there(play: Path) -> None:
    """Every byte of a capture of several pieces comes here, private, and none stays there."""
    acting(play, GOOD)
    there, here = play / "there", play / "here"
    with capturing(LocalHost(), "eth9", str(there)) as caught:
        assert caught.counts is None
        content = there.read_bytes()
        caught.end()
        caught.end()  # harmless again
    assert caught.counts == tap.Counts(2, 120, 0)
    assert caught.fetch(here) == len(content) == 9437185
    assert here.read_bytes() == content and not there.exists()
    assert stat.S_IMODE(here.stat().st_mode) == 0o600


def test_a_file_that_is_here_is_not_replaced(play: Path) -> None:
    """A capture does not replace a file, and a transfer that breaks leaves none."""
    acting(play, GOOD)
    with capturing(LocalHost(), "eth9", str(play / "there")) as caught:
        pass
    (play / "here").write_text("mine")
    with pytest.raises(FileExistsError):
        caught.fetch(play / "here")
    assert (play / "here").read_text() == "mine"
    program(play, "true")
    (play / "dd").symlink_to("/bin/true")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{play}:{os.environ['PATH']}")
        with pytest.raises(RigError, match="0 of 9437185 bytes of the capture came back"):
            caught.fetch(play / "other")
    assert not (play / "other").exists()


@pytest.mark.parametrize(
    ("last", "rc", "words"),
    [
        (GOOD.replace('"dropped":0', '"dropped":3'), 0, "lost 3 of 5 frames"),
        (GOOD, 5, "ended with 5"),
        ("", 0, "did not report what it captured"),
        ("[]", 0, "did not report what it captured"),
    ],
)
def test_a_capture_with_a_hole_is_no_capture(play: Path, last: str, rc: int, words: str) -> None:
    """Dropped frames or a bad end are the rig's error, and the file goes."""
    acting(play, last, rc)
    there = play / "there"
    with pytest.raises(RigError, match=rf"the tap on eth9 \(here\).*{words}"):
        with capturing(LocalHost(), "eth9", str(there)):
            pass
    assert not there.exists()


def test_a_start_that_fails_is_reported_in_its_words(play: Path) -> None:
    """A tap that cannot start says why, and a file of somebody else stays."""
    program(play, "echo 'wiretap: no such interface' >&2", "exit 2")
    (play / "theirs").write_text("theirs")
    with pytest.raises(RigError, match="ended with 2: wiretap: no such interface"):
        with capturing(LocalHost(), "eth9", str(play / "theirs")):
            pytest.fail("it began")
    assert (play / "theirs").read_text() == "theirs"
    (play / "wiretap").unlink()
    with pytest.raises(RigError, match="(?s)cannot run .*make build"):
        with capturing(LocalHost(), "eth9", str(play / "none")):
            pytest.fail("it began")


def test_a_block_that_fails_leaves_nothing(play: Path) -> None:
    """An error in the block is what is seen; program and file are gone."""
    program(play, 'echo $$ >"$2"', """echo '{"ready":true}'""", "exec sleep 1000")
    there = play / "there"
    with pytest.raises(ZeroDivisionError):
        with capturing(LocalHost(), "eth9", str(there)):
            pid = int(there.read_text())
            raise ZeroDivisionError
    assert not there.exists() and not Path(f"/proc/{pid}").exists()


@pytest.mark.skipif(not CAN, reason="needs root and build/wiretap")
def test_the_last_datagram_is_there(tmp_path: Path) -> None:
    """The real program captures what was sent right before the stop."""
    here, mark = tmp_path / "here.pcapng", uuid.uuid4().bytes
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        with capturing(LocalHost(), "lo", str(tmp_path / "there")) as caught:
            for number in range(300):
                sock.sendto(mark + struct.pack("!I", number), sock.getsockname())
    caught.fetch(here)
    data = here.read_bytes()
    assert all(data.count(mark + struct.pack("!I", number)) == 1 for number in range(300))
