"""The cycle counter: where it counts, where it cannot and says why, and what it refuses."""

from __future__ import annotations

import errno
import json
import os
import struct

import pytest

from offload.errors import RigError
from offload.host.base import Completed
from offload.host.local import LocalHost
from offload.suite.measure.cpu import cycles_reader as reader
from offload.suite.measure.cpu.cycles import Cycles, counting, difference


class FakeReader:
    """Says one line at once, and the next of some lines whenever it is asked."""

    pid = 1

    def __init__(self, *lines: bytes, stderr: bytes = b"") -> None:
        self.said, self.lines, self.stderr = lines[0] if lines else b"", list(lines[1:]), stderr
        self.killed = False

    def running(self) -> bool:
        """It ends when it has no more to say."""
        return bool(self.lines)

    def stdin(self, data: bytes, *, eof: bool = False) -> None:
        """Asked."""
        self.said += self.lines.pop(0) if self.lines else b""

    def output(self) -> tuple[bytes, bytes]:
        """All so far."""
        return self.said, self.stderr

    def wait(self, timeout: float) -> Completed:
        """Not used."""
        raise NotImplementedError

    def kill(self, signal: int = 15) -> None:
        """Remember it."""
        self.killed = True


class FakeHost(LocalHost):
    """Starts the fake reader."""

    def __init__(self, process: FakeReader | None) -> None:
        super().__init__()
        self.name, self.process = "dut", process

    def start(self, argv, *, env=None):  # type: ignore[no-untyped-def]
        """The fake, or as if there was no python."""
        if self.process is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        return self.process


def shots(*lines: bytes) -> list[Cycles]:
    """Snapshots of a reader that says these lines."""
    with counting(FakeHost(FakeReader(b'{"cpus": 1}\n', *lines, b""))) as counter:
        assert not counter.absent
        return [counter.snapshot() for _ in lines]


def test_cycles_are_subtracted_and_a_shared_counter_is_scaled() -> None:
    """A counter that counted half the time gives twice what it saw."""
    before, after = shots(
        b'{"0": [10, 100, 100], "1": [0, 0, 0]}\n', b'{"0": [60, 200, 200], "1": [7, 100, 50]}\n'
    )
    assert after - before == {0: 50, 1: 14}


@pytest.mark.parametrize(
    ("process", "why"),
    [
        (None, "cannot run /usr/bin/python3: No such file"),
        (FakeReader(b'{"absent": "no permission"}\n'), "no permission"),
        (FakeReader(b"Traceback\n"), "the cycle counter on dut said b'Traceback', wanted a JSON object"),
        (FakeReader(b"[1]\n"), "wanted a JSON object"),
        (FakeReader(b"{}\n"), "the answer makes no sense"),
        (
            FakeReader(stderr=b"exec of python3 failed"),
            "the cycle counter on dut ended: exec of python3 failed",
        ),
    ],
)
def test_where_it_cannot_count_it_says_why(process: FakeReader | None, why: str) -> None:
    """A host without cycles is measured without them, and knows the reason."""
    with counting(FakeHost(process)) as counter:
        assert why in counter.absent
        with pytest.raises(RigError, match="no cycles on dut: "):
            counter.snapshot()
    assert process is None or process.killed


@pytest.mark.parametrize(
    "line",
    [
        b"5\n",
        b"{\n",
        b'{"0": 5}\n',
        b'{"0": [1, 2]}\n',
        b'{"0": [-1, 2, 3]}\n',
        b'{"0": [1.5, 2, 3]}\n',
        b'{"x": [1, 2, 3]}\n',
        b'{"0": [true, 2, 3]}\n',
        b'{"0": [18446744073709551616, 2, 3]}\n',
    ],
)
def test_an_answer_that_makes_no_sense_is_refused(line: bytes) -> None:
    """Hostile counts are refused with their text."""
    with pytest.raises(RigError, match="the cycle counter on dut said"):
        shots(line)


def test_a_reader_that_ended_is_said() -> None:
    """A counter that died is a broken rig, not a zero."""
    with counting(FakeHost(FakeReader(b'{"cpus": 1}\n', stderr=b"Killed"))) as counter:
        with pytest.raises(RigError, match="the cycle counter on dut ended: Killed"):
            counter.snapshot()


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ({0: (5, 9, 9)}, {1: (5, 9, 9)}, "cycles of other CPUs"),
        ({0: (5, 9, 9)}, {0: (4, 10, 10)}, r"cycles of cpu0 went back \(dut\)"),
        ({0: (5, 9, 9)}, {0: (5, 10, 11)}, "went back"),
        ({0: (5, 9, 9)}, {0: (5, 20, 9)}, "cycles of cpu0 were not counted"),
    ],
)
def test_counters_that_say_nothing_are_refused(
    before: dict[int, tuple[int, int, int]], after: dict[int, tuple[int, int, int]], why: str
) -> None:
    """A counter that went back or never counted is no figure."""
    with pytest.raises(RigError, match=why):
        difference(Cycles("dut", before), Cycles("dut", after))


def test_this_machine_counts_or_says_why_not() -> None:
    """The real reader either counts cycles of this machine or gives the kernel's reason."""
    with counting(LocalHost()) as counter:
        if counter.absent:
            assert counter.absent in [*reader.WHY.values()] or "perf_event_open" in counter.absent
        else:
            before = counter.snapshot()
            assert sum((counter.snapshot() - before).values()) > 0


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOENT, errno.EMFILE])
def test_the_reader_says_what_the_kernel_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    """Each refusal of the kernel becomes a sentence."""

    def refuse(_: int) -> int:
        raise OSError(number, "perf_event_open")

    monkeypatch.setattr(reader, "opened", refuse)
    reader.main()
    said = json.loads(capsys.readouterr().out)
    assert said.keys() == {"absent"}
    assert said["absent"] == reader.WHY.get(number) or "perf_event_open" in said["absent"]


def test_the_call_itself_is_right() -> None:
    """The reader's system call is taken by a real kernel: a software clock counts with it."""
    try:
        fd = reader.opened(
            reader.online()[0], kind=1, config=0
        )  # PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK
    except OSError as exc:
        assert exc.errno in (
            errno.EACCES,
            errno.EPERM,
            errno.ENOSYS,
        )  # a wrong call would give EINVAL or EFAULT
        return
    with os.fdopen(fd, "rb", buffering=0) as file:
        first, second = (struct.unpack("=QQQ", file.read(99)) for _ in range(2))
    assert all(0 < one < other for one, other in zip(first, second, strict=True))
