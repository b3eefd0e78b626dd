"""What the kernels of a bench say is followed at a small price, and what was lost is known."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from offload.errors import RigError
from offload.host.base import Host
from offload.host.local import LocalHost
from offload.suite.bench.lab import kmsg, log
from offload.suite.bench.lab.log import Logs

Follow = Callable[[Mapping[str, Host]], Logs]
PLAYED = f"""\
import sys
print({kmsg.READY!r}, flush=True)
for number, line in enumerate(sys.stdin):
    if number == 2: sys.exit("no more")
    print(f"[    1.000000] WARNING: {{number}}\\n" + {kmsg.END!r}, flush=True)
"""


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A kernel that says a line whenever it is asked, and is not followed any more at the third time."""
    (tmp_path / "kmsg.py").write_text(PLAYED)
    monkeypatch.setattr(log, "SOURCE", tmp_path / "kmsg.py")
    yield


@pytest.fixture
def followed() -> Iterator[Follow]:
    """Logs that are left at the end."""
    with ExitStack() as undo:

        def begin(hosts: Mapping[str, Host]) -> Logs:
            logs = Logs(hosts)
            undo.callback(logs.close)
            return logs

        yield begin


class Elsewhere(LocalHost):
    """This machine, playing one that runs another kernel."""

    def read(self, path: str) -> bytes:
        """Another boot."""
        return b"another\n" if path == log.BOOT else super().read(path)


@pytest.mark.parametrize(
    "record, lines",
    [
        ("6,1,1234567,-;nicsim0: up\n SUBSYSTEM=net\n", ["[    1.234567] nicsim0: up"]),
        ("4,2,9,-;one\\x0atwo; three\n", ["[    0.000009] one", "[    0.000009] two; three"]),
        ("12,3,100000000000,c,caller=T1;\n", ["[100000.000000] "]),
    ],
)
def test_a_record_as_dmesg_has_it(record: str, lines: list[str]) -> None:
    """A record is shown with its time, without what belongs to a device, line by line."""
    assert kmsg.shown(record) == lines


def test_what_the_kernel_dropped_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A log that ran over is a fault of its own, and what came after it is still read."""
    answers: list[object] = [b"6,1,0,-;first\n", BrokenPipeError(), b"6,9,0,-;last\n", BlockingIOError()]

    def read(fd: int, size: int) -> bytes:
        answer = answers.pop(0)
        if isinstance(answer, bytes):
            return answer
        assert isinstance(answer, OSError)
        raise answer

    monkeypatch.setattr(os, "read", read)
    kmsg.pass_on(7)
    said = capsys.readouterr().out
    assert said.splitlines() == [f"[    0.000000] {line}" for line in ("first", kmsg.LOST, "last")]
    assert log.faults(said) == [kmsg.LOST]


def test_one_log_for_one_kernel(played: None, followed: Follow) -> None:
    """Two namespaces of a machine share a log; another machine has its own."""
    logs = followed({"dut": LocalHost(), "peer": LocalHost(), "wire": Elsewhere()})
    mark = logs.mark()
    assert logs.faults(mark) == ["dut: WARNING: 1", "wire: WARNING: 1"] and not logs.silent
    with pytest.raises(RigError, match="the kernel log of dut is no longer followed: no more"):
        logs.mark()


def test_a_line_right_behind_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, followed: Follow
) -> None:
    """A kernel that speaks right after an answer neither holds up the test nor loses a line."""
    more = f"{kmsg.END}\n[    2.000000] after"
    (tmp_path / "kmsg.py").write_text(PLAYED.replace(repr(kmsg.END), repr(more)))
    monkeypatch.setattr(log, "SOURCE", tmp_path / "kmsg.py")
    monkeypatch.setattr(log, "SLOW", 10.0)
    logs = followed({"dut": LocalHost()})
    mark = logs.mark()
    assert logs.since(mark)["dut"] == "[    2.000000] after\n[    1.000000] WARNING: 1\n"


def test_a_log_that_nobody_may_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, followed: Follow
) -> None:
    """A machine that keeps its log to itself is named, and no test fails of it."""
    (tmp_path / "kmsg.py").write_text('open("/no such log")\n')
    monkeypatch.setattr(log, "SOURCE", tmp_path / "kmsg.py")
    logs = followed({"dut": LocalHost(), "wire": Elsewhere()})
    assert logs.silent == ("dut", "wire") and logs.faults(logs.mark()) == []


def test_the_real_kernel(followed: Follow) -> None:
    """What was said before a mark is not read, what came after is, however much it is."""
    logs = followed({"dut": LocalHost()})
    if logs.silent or not os.access("/dev/kmsg", os.W_OK):
        pytest.skip("the kernel log cannot be read and written here")
    say, boot = ["tee", "/dev/kmsg"], LocalHost().run(["dmesg"]).text.splitlines()[0]
    LocalHost().run(say, input=b"<6>ktls-offload: a test says WARNING: before\n")
    mark = logs.mark()
    assert "before" in logs.since(0)["dut"] and boot not in logs.since(0)["dut"]
    LocalHost().run(say, input=b"<6>ktls-offload: a test says WARNING: one\n")
    assert "dut: ktls-offload: a test says WARNING: one" in logs.faults(mark)
    assert not [line for line in logs.faults(mark) if "before" in line]
    assert logs.since(mark)["dut"].count("WARNING: one") == 1
