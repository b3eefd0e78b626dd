"""enable --persist killed at every step, and several calls at once: all or nothing, one after the other."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from offload.card.profile import load_all
from offload.switch import plan
from offload.switch.enable import Wish
from offload.switch.journal import Journal
from offload.switch.persist import each
from offload.switch.persist_files import MANAGERS, path_of
from offload.switch.restore import restore
from tests.unit.switch.disk_host import DiskHost

UNIT = "/etc/systemd/system/ktls-offload-eth0.service"
WANTS = "/etc/systemd/system/sys-subsystem-net-devices-eth0.device.wants/ktls-offload-eth0.service"
HALF = "/etc/systemd/system/.ktls-offload-eth0.service.new"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskHost:
    """Two cards. The profiles are read once, and no disk is waited for: the steps are many."""
    known = load_all()
    monkeypatch.setattr(plan, "load_all", lambda: known)
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    return DiskHost.make(tmp_path / "disk", "eth0", "eth1")


def journal(machine: DiskHost) -> Journal:
    return Journal(machine.root / "journal")


def call(machine: DiskHost, how: str | None, *devs: str, on: bool = True, **more: Any) -> None:
    """`enable DEV... --persist HOW`."""
    wishes = [Wish(dev, on, **more) for dev in devs or ("eth0",)]
    each(machine, wishes, how, journal(machine), lambda line: None)


def forked(act: Callable[[], None]) -> int:
    """A child that does it."""
    pid = os.fork()
    if pid:
        return pid
    try:
        act()
        os._exit(0)
    finally:
        os._exit(99)


def ended(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def killed_at(machine: DiskHost, step: int, act: Callable[[], None]) -> bool:
    """Do it in a child whose Nth step is its last; False if it ended before that."""
    left = [step]

    def count() -> None:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    def child() -> None:
        machine.step, os.fsync = count, lambda fd: count()
        act()

    code = ended(forked(child))
    assert code in (0, -signal.SIGKILL), f"step {step}: exit {code}"
    return code != 0


def kept_copy(machine: DiskHost) -> Callable[[], None]:
    """What puts the machine back, journal and all, as it is now."""
    copy = machine.root.with_name("copy")
    shutil.copytree(machine.root, copy, symlinks=True)

    def back() -> None:
        shutil.rmtree(machine.root)
        shutil.copytree(copy, machine.root, symlinks=True)

    return back


def unit(machine: DiskHost) -> str | None:
    """The unit's text, if there is one."""
    return machine.files().get(UNIT)


def after_each_kill(machine: DiskHost, act: Callable[[], None], look: Callable[[int], None]) -> int:
    """Kill at one step after the other, looking after each; how many steps there were."""
    for step in range(1, 500):
        if not killed_at(machine, step, act):
            return step - 1
        look(step)
    raise AssertionError("no end")


def test_enable_killed_at_every_step(machine: DiskHost) -> None:
    """A kill -9 leaves the old file or the new one whole; restore and `none` undo the rest."""
    nics, seen = machine.nics(), []
    call(machine, "systemd")
    wanted = machine.files()
    restore(machine, None, journal(machine), lambda line: None)
    call(machine, "none")
    assert (machine.nics(), machine.files()) == (nics, {})

    def look(step: int) -> None:
        found = machine.files()
        seen.append((unit(machine), WANTS in found, HALF in found, machine.nics() != nics))
        assert found.keys() <= {UNIT, WANTS, HALF}, step
        assert unit(machine) in (None, wanted[UNIT]), step
        assert WANTS not in found or UNIT in found, f"step {step}: enabled, and there is nothing"
        restore(machine, None, journal(machine), lambda line: None)
        call(machine, "none")
        assert (machine.nics(), machine.files()) == (nics, {}), step

    steps = after_each_kill(machine, lambda: call(machine, "systemd"), look)
    assert machine.files() == wanted, "the call that nobody killed"
    assert steps > 25 and len(set(seen)) == 5, f"what do {steps} steps prove? {set(seen)}"


def test_change_killed_at_every_step(machine: DiskHost) -> None:
    """A kill -9 while a file is replaced leaves the old or the new; the same call ends it."""
    call(machine, "systemd", directions=("tx",))
    old, again = machine.files(), kept_copy(machine)
    call(machine, "systemd")
    new = machine.files()
    assert old[UNIT] != new[UNIT]

    def look(step: int) -> None:
        assert unit(machine) in (old[UNIT], new[UNIT]), step
        call(machine, "systemd")
        assert machine.files() == new, f"step {step}: the same call again does not end it"
        again()

    again()
    assert after_each_kill(machine, lambda: call(machine, "systemd"), look) > 25


@pytest.mark.parametrize("manager", ["systemd", "ifupdown"])
def test_none_killed_at_every_step(machine: DiskHost, manager: str) -> None:
    """A kill -9 while a file is removed leaves it whole or gone, and `none` again ends it."""
    call(machine, manager)
    kept, nics, again = machine.files(), machine.nics(), kept_copy(machine)
    whole = [text for path, text in kept.items() if path != WANTS]

    def look(step: int) -> None:
        left = {path: text for path, text in machine.files().items() if path != WANTS}
        assert list(left.values()) in ([], whole), step
        assert machine.nics() == nics, "removing a file switches nothing"
        call(machine, "none")
        assert not machine.files(), step
        again()

    assert after_each_kill(machine, lambda: call(machine, "none"), look) > 6
    assert not machine.files()


def test_twice_is_once(machine: DiskHost) -> None:
    """A second call of the same kind changes nothing, in the journal neither."""
    call(machine, "systemd", "eth0", "eth1")
    before = machine.files(), machine.nics(), journal(machine).entries()
    call(machine, "systemd", "eth0", "eth1")
    assert (machine.files(), machine.nics(), journal(machine).entries()) == before


@pytest.mark.parametrize("others", [(True, True), (True, False)], ids=["enable-enable", "enable-disable"])
def test_calls_at_once_come_one_after_the_other(machine: DiskHost, others: tuple[bool, bool]) -> None:
    """Calls at the same time end as if one came after the other; restore knows the start."""
    nics, endings = machine.nics(), []
    for number in range(1, 120, 12):
        overtaken(machine, number, *others)
        endings.append(whole(machine))
        restore(machine, None, journal(machine), lambda line: None)
        assert machine.nics() == nics, "restore gives what was there before the first of both"
    assert set(endings) == set(others), "both orders were to be met"


@pytest.mark.parametrize("how", MANAGERS)
def test_kept_is_on_disk(machine: DiskHost, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Power that fails after `kept by` was said finds file and links on disk."""
    said: list[Sequence[str]] = []
    run = machine.run
    monkeypatch.setattr(machine, "run", lambda argv, **more: said.append(argv) or run(argv, **more))
    call(machine, how)
    half, folder = f"{path_of(how, 'eth0').rpartition('/')[0]}/.", path_of(how, "eth0").rpartition("/")[0]
    words = [argv[0] for argv in said]
    written, named = [argv for argv in said if argv[0] == "sync"]
    assert written[1].startswith(half) and said.index(written) < words.index("mv")
    links = {str(Path(path).parent) for path, text in machine.files().items() if text.startswith("-> ")}
    assert {folder, *links} <= set(named), "a name that is not on disk"
    assert {"systemctl", "mv"}.isdisjoint(words[said.index(named) :]), "changed after it was on disk"


def overtaken(machine: DiskHost, number: int, first: bool, second: bool) -> None:
    """Two calls: the first pauses at its Nth step until the other has ended, or waits for its lock."""
    left, paused, go = [number], os.pipe(), os.pipe()

    def step() -> None:
        left[0] -= 1
        if not left[0]:
            os.write(paused[1], b".")
            os.read(go[0], 1)

    def one() -> None:
        machine.step = step
        call(machine, "systemd", "eth0", "eth1", on=first)
        os.write(paused[1], b".")

    def other() -> None:
        tells_of_waiting(told[1])
        call(machine, "systemd", "eth0", "eth1", on=second)
        os.write(told[1], b".")

    pids = [forked(one)]
    os.read(paused[0], 1)
    told = os.pipe()
    pids.append(forked(other))
    os.close(told[1])  # a child that dies without a word ends the read
    os.read(told[0], 1)
    os.write(go[1], b".")
    assert [ended(pid) for pid in pids] == [0, 0]
    for fd in (*paused, *go, told[0]):
        os.close(fd)


def tells_of_waiting(fd: int) -> None:
    """From now on this process writes to `fd` when a lock is another's."""
    flock = fcntl.flock

    def told(lock: int, how: int) -> None:
        try:
            flock(lock, how)
        except BlockingIOError:
            os.write(fd, b".")
            raise

    fcntl.flock = told


def whole(machine: DiskHost) -> bool:
    """Whether both cards are on and kept on, or both off and kept off; anything else is a mixture."""
    states = {
        nic["features"][f]["active"]
        for nic in machine.nics().values()
        for f in ("tls-hw-tx-offload", "tls-hw-rx-offload")
    }
    units = [
        text for path, text in machine.files().items() if path.endswith(".service") and "-> " not in text
    ]
    kept = {"offload on" in text for text in units}
    assert len(units) == 2 and states == kept and len(states) == 1, f"switched {states}, kept {kept}"
    return states == {True}
