"""Labs that take turns: so many work at once, whoever is silent lets another one work, and a dead one too."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import uuid
from contextlib import ExitStack

import pytest

from offload.paths import ROOT
from tests.lib.labs import turns
from tests.lib.labs.turns import Turns

HOLDER = """
import sys, time
from tests.lib.labs.turns import Turns
with Turns(sys.argv[1], 1).turn():
    print("mine", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def name() -> str:
    """The name of a run that no other has."""
    return uuid.uuid4().hex


def asks(name: str) -> threading.Event:
    """Somebody else begins to wait for the only turn: set once it is there, and given back at once."""
    there = threading.Event()

    def ask() -> None:
        with Turns(name, 1).turn():
            there.set()

    threading.Thread(target=ask, daemon=True).start()
    return there


def test_one_more_than_there_are_turns_waits(name: str) -> None:
    """Until another one is done."""
    with Turns(name, 1).turn():
        other = asks(name)
        assert not other.wait(5 * turns.EVERY)
    assert other.wait(60)


def test_who_is_silent_lets_another_one_work(name: str) -> None:
    """And works on once it has a turn again."""
    mine = Turns(name, 1)
    with mine.turn():
        with mine.silent():
            assert asks(name).wait(60)
        assert mine._held is not None, "it has no turn again"


def test_who_was_silent_looks_more_often_than_who_begins(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that has begun waits least for its turn: its connections grow old meanwhile."""
    naps: list[float] = []
    found = iter([None, object(), None, object()])
    mine = Turns(name, 1)
    with monkeypatch.context() as patched:
        patched.setattr(turns, "_bound", lambda _: next(found))
        patched.setattr(turns.time, "sleep", naps.append)
        patched.setattr(mine, "_leave", lambda: setattr(mine, "_held", None))
        with mine.turn(), mine.silent():
            naps.append(0)
    assert naps == [turns.EVERY, 0, turns.AGAIN] and turns.AGAIN < turns.EVERY / 5


def test_as_many_turns_as_were_asked_for(name: str) -> None:
    """Each is another one's; a run of another name has its own."""
    with ExitStack() as all_:
        for _ in range(3):
            all_.enter_context(Turns(name, 3).turn())
        all_.enter_context(Turns(f"{name} of another run", 1).turn())
        assert [turns._bound(one) for one in Turns(name, 3)._names] == [None] * 3


def test_a_worker_that_is_killed_leaves_its_turn(name: str) -> None:
    """The kernel takes it back."""
    argv = [sys.executable, "-c", HOLDER, name]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE) as child:
        assert child.stdout and child.stdout.readline() == b"mine\n"
        other = asks(name)
        assert not other.wait(5 * turns.EVERY)
        child.send_signal(signal.SIGKILL)
    assert other.wait(60)


def test_without_turns_nobody_waits(name: str) -> None:
    """A run with one lab has none, and who is silent outside a turn does not take one."""
    alone, outside = Turns(name, 0), Turns(name, 1)
    with alone.turn(), alone.silent(), alone.silent():
        assert alone._held is None
    with outside.silent():
        assert outside._held is None
    assert outside._held is None
