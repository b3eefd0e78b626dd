"""A signal ends a verb wherever it comes: no interrupt is lost, no undo is cut in two, no process is left."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from offload import cmd
from offload.cmd import ended, interrupts_wait, run, shielded, signals_interrupt, wait_until
from offload.host.local import LocalHost

LONG = 60  # seconds that nobody waits: the interrupt comes before


class Signals:
    """Its destructor meets the signal, as any destructor may."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGTERM)
        time.sleep(0)


def in_a_destructor() -> None:
    """Python drops what a destructor raises."""
    Signals()


def in_a_callback() -> None:
    """Nor does anybody see what the callback of a weak reference raises."""
    gone = threading.Event()
    note = weakref.ref(gone, lambda _: signal.raise_signal(signal.SIGTERM))
    del gone
    assert note() is None


@pytest.mark.parametrize("where", [in_a_destructor, in_a_callback])
def test_an_interrupt_that_python_drops_comes_again(where: Callable[[], None]) -> None:
    """A verb that polls would go on for ever."""
    with pytest.raises(KeyboardInterrupt), signals_interrupt():
        where()
        wait_until(lambda: False, LONG, "the interrupt")


@pytest.mark.parametrize("first", [KeyboardInterrupt, ValueError])
def test_an_interrupt_while_python_tells_of_a_drop_comes_again(
    first: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hits the hook that hears of the first, where Python would drop it, too: a slow machine does that."""
    slow, again = [3 * cmd.AGAIN], cmd._again
    monkeypatch.setattr(cmd, "_again", lambda: (again(), slow and time.sleep(slow.pop())))
    monkeypatch.setattr("sys.unraisablehook", lambda trouble: signal.raise_signal(signal.SIGTERM))

    class Broken:
        def __del__(self) -> None:
            raise first

    with pytest.raises(KeyboardInterrupt), signals_interrupt():
        Broken()
        wait_until(lambda: False, LONG, "the interrupt")


def test_other_trouble_in_a_destructor_is_shown_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only interrupts are ours."""
    seen: list[type[BaseException]] = []
    monkeypatch.setattr("sys.unraisablehook", lambda trouble: seen.append(trouble.exc_type))

    class Broken:
        def __del__(self) -> None:
            raise ValueError

    with signals_interrupt():
        Broken()
    assert seen == [ValueError]


@pytest.fixture
def born(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The children of commands whose start meets a signal, before anybody knows of them."""
    pids: list[int] = []

    class Met(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            pids.append(self.pid)
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("subprocess.Popen", Met)
    return pids


def gone(pid: int) -> bool:
    """Say whether there is no such process."""
    return not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("start", [run, LocalHost().start])
def test_a_signal_at_the_start_of_a_command_leaves_no_process(
    start: Callable[[list[str]], object], born: list[int]
) -> None:
    """The child is known before the interrupt comes, and ends."""
    with pytest.raises(KeyboardInterrupt) as caught, signals_interrupt():
        start(["sleep", "1000"])
    del caught  # holds the frames, and so the object that stands for the child
    wait_until(lambda: gone(born[0]), LONG, "the child to end")


def test_a_command_ends_with_the_object_that_stands_for_it() -> None:
    """An interrupt between the start and the note of its undo leaves no process."""
    process = LocalHost().start(["sleep", "1000"])
    pid = process.pid
    assert process.running()
    del process
    wait_until(lambda: gone(pid), LONG, "the child to end")


def test_an_interrupt_waits_for_the_outermost_block() -> None:
    """Blocks may lie within each other; the code in them runs to its end."""
    done = []
    with pytest.raises(KeyboardInterrupt), signals_interrupt():
        with interrupts_wait():
            with interrupts_wait():
                signal.raise_signal(signal.SIGHUP)
            done.append("inner")
        done.append("outer")
    assert done == ["inner"]


def test_an_error_does_not_keep_an_interrupt_for_later() -> None:
    """What fails in the block is the context of the interrupt, which comes at its end."""
    with pytest.raises(KeyboardInterrupt) as caught, signals_interrupt(), interrupts_wait():
        signal.raise_signal(signal.SIGINT)
        raise ValueError
    assert isinstance(caught.value.__context__, ValueError)


def test_a_thread_is_not_interrupted_for_the_main_one() -> None:
    """A block in a thread neither holds the main thread's interrupt back nor takes it."""
    inside, leave, trouble = threading.Event(), threading.Event(), []

    def work() -> None:
        try:
            with interrupts_wait():
                inside.set()
                leave.wait(LONG)
        except BaseException as exc:
            trouble.append(exc)

    thread = threading.Thread(target=work)
    with pytest.raises(KeyboardInterrupt), signals_interrupt():
        thread.start()
        inside.wait(LONG)
        signal.raise_signal(signal.SIGTERM)
        time.sleep(LONG)
    leave.set()
    thread.join()
    assert not trouble


def test_an_ordinary_undo_is_whole_and_the_interrupt_follows() -> None:
    """A person who presses Ctrl-C while a measurement changes the switch wants it to end."""
    done = []
    with pytest.raises(KeyboardInterrupt), signals_interrupt():
        with shielded():
            signal.raise_signal(signal.SIGINT)
            done.append(run(["sh", "-c", "kill -INT $$; echo whole"])[1])  # Ctrl-C reaches the command, too
        time.sleep(LONG)
    assert done == [b"whole\n"]


def test_an_undo_after_an_error_drops_what_came_meanwhile() -> None:
    """The error is on its way already: a second Ctrl-C changes nothing."""
    done = []
    with pytest.raises(ValueError), signals_interrupt():
        try:
            raise ValueError
        finally:
            with shielded():
                signal.raise_signal(signal.SIGINT)
                done.append("undone")
            time.sleep(0)
    assert done == ["undone"]


def test_ignored_signals_stay_ignored() -> None:
    """A shell starts a job in the background with SIGINT ignored: Ctrl-C is for the one in front."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with signals_interrupt():
            signal.raise_signal(signal.SIGINT)
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


class Heard(Exception):
    """The signal of a test was heard."""


def test_a_signal_that_interrupts_no_call_ends_a_wait() -> None:
    """A signal that comes just before the system call is heard while the program still runs.

    Here another thread takes it: that interrupts no system call of ours, either.
    """

    def hear(*_: object) -> None:
        raise Heard

    before = signal.signal(signal.SIGUSR1, hear)
    child = subprocess.Popen(["sleep", "60"])
    other = threading.Timer(0.5, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGUSR1))
    try:
        other.start()
        with pytest.raises(Heard):
            ended(child)
        assert child.poll() is None
    finally:
        other.join()
        signal.signal(signal.SIGUSR1, before)
        child.kill()
        child.wait()


def test_a_wait_for_a_program_ends_with_it() -> None:
    """However many slices it takes: its exit code."""
    with subprocess.Popen(["sh", "-c", f"sleep {cmd.SLICE * 1.5}; exit 3"]) as child:
        assert ended(child) == 3
