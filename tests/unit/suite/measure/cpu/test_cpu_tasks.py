"""Nanoseconds per thread: what is read, what is refused, and what is known of threads that came or went."""

from __future__ import annotations

import os
import threading
import time

import pytest

from offload.errors import RigError
from offload.host.local import LocalHost
from offload.suite.measure.cpu.tasks import Task, Tasks, difference, parse, tasks

MORE = " ".join(str(n) for n in range(4, 22))


def stat(name: str, started: int = 500) -> str:
    """The text of stat(5) of a thread."""
    return f"7 ({name}) S {MORE} {started} 9 9\n"


def text(tid: int, ns: int = 1000, name: str = "worker", started: int = 500, pid: int = 7) -> bytes:
    """What SCRIPT says of a thread."""
    place = f"/proc/{pid}/task/{tid}"
    lines = stat(name, started).rstrip("\n").split("\n")
    body = "".join(f"{place}/stat:{line}\n" for line in lines)
    return f"{place}/schedstat:{ns} 5 3\n{body}".encode("latin-1")


def seen(*of: bytes, pids: tuple[int, ...] = (7,), host: str = "dut") -> Tasks:
    """A snapshot by hand."""
    return Tasks(host, pids, parse(b"".join(of), pids, host))


def test_threads_are_read_with_name_and_start() -> None:
    found = parse(text(7) + text(8, 2000, "io"), [7], "dut")
    assert found == {Task(7, 7, 500, "worker"): 1000, Task(7, 8, 500, "io"): 2000}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a) S 1 (b", "a) S 1 (b"),
        ("a\n/proc/9/task/9/schedstat:1 1 1", "a?/proc/9/task/9/schedstat:1 1 1"),
        ("\x1b[2J\xff", "?[2J?"),
        ("", ""),
    ],
)
def test_a_name_may_hold_anything(name: str, shown: str) -> None:
    """A thread cannot pretend by its name to be another, nor write to the screen."""
    assert parse(text(7, name=name), [7], "dut") == {Task(7, 7, 500, shown): 1000}


def test_what_ran_is_the_difference_and_a_new_thread_counts_whole() -> None:
    """A thread that began between the snapshots counts from its start."""
    ran = seen(text(7, 1500), text(8, 300, started=900)) - seen(text(7, 1000))
    assert ran.total() == 800 and ran.total(7) == 800 and ran.total(9) == 0


def test_a_thread_that_renames_itself_stays_the_same() -> None:
    """The name is only for people."""
    assert (seen(text(7, 1500, "late")) - seen(text(7, 1000, "early"))).total() == 500


def test_a_thread_that_ended_makes_the_sum_unknown() -> None:
    """Time of a thread that is gone is not left out silently; other processes stay known."""
    both = (7, 9)
    before = seen(text(7), text(8, name="gone"), text(9, pid=9), pids=both)
    ran = difference(before, seen(text(7, 1200), text(9, 1700, pid=9), pids=both))
    assert ran.total(9) == 700
    with pytest.raises(RigError, match=r"dut: 1 threads ended between the snapshots: gone \(7/8\)"):
        ran.total()


def test_another_thread_of_the_same_number_is_another() -> None:
    """A number that is used again does not give a negative time."""
    ran = seen(text(7), text(8, 5, started=900)) - seen(text(7), text(8, 1000))
    assert [str(task) for task in ran.gone] == ["worker (7/8)"] and ran.ns[Task(7, 8, 900, "worker")] == 5


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"", r"process 7 is gone \(dut\)"),
        (b"/proc/7/task/7/stat:" + stat("x").encode(), "this kernel keeps no /proc/7/schedstat"),
        (text(7, -1), r"/proc/7/task/7/schedstat \(dut\): '-1 5 3', wanted three counters"),
        (text(7, 2**64), "wanted three counters below"),
        (text(7).replace(b":1000 5 3", b":1000"), "'1000', wanted three counters"),
        (text(7).replace(b":1000 5 3", b":0x1 5 3"), "wanted three counters"),
        (text(7).replace(b")", b""), r"/proc/7/task/7/stat \(dut\): .*, wanted fields as in stat"),
        (text(7).replace(b" 500 9 9", b""), "wanted fields as in stat"),
        (text(7).replace(b" 500 ", b" -5 "), "wanted fields as in stat"),
        (text(7) + b"grep: out of memory\n", "'grep: out of memory', wanted /proc/PID"),
        (text(7) + b"/proc/../task/7/stat:1\n", "wanted /proc/PID"),
    ],
)
def test_text_that_makes_no_sense_is_named_and_refused(said: bytes, why: str) -> None:
    with pytest.raises(RigError, match=why):
        parse(said, [7], "dut")


def test_snapshots_that_do_not_go_together_are_refused() -> None:
    """Other processes, another host or a counter that went back are no figure."""
    with pytest.raises(RigError, match="other processes"):
        difference(seen(text(7)), seen(text(7), text(9, pid=9), pids=(7, 9)))
    with pytest.raises(RigError, match="other processes"):
        difference(seen(text(7)), seen(text(7), host="peer"))
    with pytest.raises(RigError, match=r"schedstat of worker \(7/7\) went back by 400 ns"):
        difference(seen(text(7)), seen(text(7, 600)))


def test_a_thread_that_ended_while_it_was_read_is_left_out() -> None:
    """Half a thread is none: it counts as ended."""
    half = text(8).split(b"\n")[0] + b"\n"
    assert parse(text(7) + half, [7], "dut").keys() == {Task(7, 7, 500, "worker")}


def test_this_process_can_be_measured() -> None:
    """The meter reads a real kernel: a thread ran as long as its own clock says."""
    host, done, reported = LocalHost(), threading.Event(), []

    def work() -> None:
        while time.thread_time() < 0.2:
            pass
        reported.append(time.thread_time_ns())
        done.wait(600)

    thread = threading.Thread(target=work)
    before = tasks(host, [os.getpid()])
    thread.start()
    while not reported:
        time.sleep(0.02)
    ran = tasks(host, [os.getpid()]) - before
    done.set()
    thread.join()
    assert ran.ns[next(t for t in ran.ns if t.tid == thread.native_id)] == pytest.approx(
        reported[0], rel=0.02
    )


def test_a_process_that_is_gone_is_said() -> None:
    """A number that no process has is refused."""
    with pytest.raises(RigError, match="process 4194999 is gone"):
        tasks(LocalHost(), [4194999])
