"""The end: nothing that was on the wire before it is lost, and nothing keeps it from coming."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rig import Rig, frame, pair, read, send, sender


def wait_until(condition: Callable[[], bool]) -> None:
    """Return as soon as the condition holds; AssertionError after two minutes."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def larger(path: Path, size: int) -> bool:
    """Say whether a file has grown beyond a size."""
    return path.stat().st_size > size


def check_nothing_is_lost_at_the_end(rig: Rig) -> None:
    """Frames sent right before the stop are all there, every time, by each way to stop."""
    with pair():
        for turn in range(24):
            path = rig.path()
            running = rig.start("vb", path)
            send("va", *map(frame, range(500)))
            how = (0, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[turn % 4]
            rc, counts, _ = running.stop(how)
            assert (rc, counts["frames"], counts["dropped"]) == (0, 500, 0), (turn, how, rc, counts)
            assert read(path).numbers() == list(range(500))


def check_what_waits_in_the_queue_is_taken(rig: Rig) -> None:
    """Frames that the program has not yet read when it is told to stop (more than a buffer) are there."""
    path = rig.path()
    with pair():
        running = rig.start("vb", path)
        os.kill(running.child.pid, signal.SIGSTOP)
        send("va", *(frame(number, 1514) for number in range(10_000)))
        running.child.send_signal(signal.SIGTERM)
        os.kill(running.child.pid, signal.SIGCONT)
        rc, counts, _ = running.stop()
    assert (rc, counts["dropped"]) == (0, 0) and read(path).numbers() == list(range(10_000))


def check_lost_frames_are_counted(rig: Rig) -> None:
    """Frames that did not fit into the kernel's queue are in `dropped`, here and in the file."""
    path, burst = rig.path(), 20_000
    with pair():
        running = rig.start("vb", path, "--buffer", "16")
        for _ in range(2):  # the kernel forgets its counter when it is read, which is after each 8 MiB
            os.kill(running.child.pid, signal.SIGSTOP)
            send("va", *(frame(number, 1514) for number in range(burst)))
            enough = path.stat().st_size + (8 << 20)
            os.kill(running.child.pid, signal.SIGCONT)
            wait_until(partial(larger, path, enough))
            time.sleep(0.5)
        rc, counts, said = running.stop()
    capture = read(path)
    assert (rc, said) == (0, "") and counts["dropped"] > burst / 2
    assert counts["frames"] + counts["dropped"] == 2 * burst
    assert capture.statistics == {4: 2 * burst, 5: counts["dropped"]}


def check_busy_interface_does_not_keep_it(rig: Rig) -> None:
    """A stop is heard while frames come without a pause."""
    path, over = rig.path(), threading.Event()

    def flood() -> None:
        with sender("va") as sock:
            data = frame(7, 1514)
            while not over.is_set():
                sock.send(data)

    with pair():
        running = rig.start("vb", path)
        threads = [threading.Thread(target=flood) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            wait_until(partial(larger, path, 20_000))
            rc, counts, _ = running.stop()
        finally:
            over.set()
            for thread in threads:
                thread.join()
    assert rc == 0 and counts["frames"] > 100, (rc, counts)
    assert len(read(path).frames) == counts["frames"]


def check_quiet_capture_is_written(rig: Rig) -> None:
    """What was captured is in the file soon, so that a killed program leaves it."""
    path = rig.path()
    with pair():
        running = rig.start("vb", path)
        send("va", frame(1))
        wait_until(lambda: bool(read(path).frames))
        running.stop(signal.SIGKILL)
    assert read(path).numbers() == [1]
