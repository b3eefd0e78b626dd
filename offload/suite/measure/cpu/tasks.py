"""How long tasks ran: /proc/PID/task/*/schedstat -> Tasks; Tasks - Tasks = Ran, in nanoseconds on a CPU.

A task that is running at that moment is up to one tick (some ms) behind, because the kernel adds at ticks and
when tasks change: take snapshots while the tasks sleep where that matters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from offload.errors import RigError
from offload.host.base import Host
from offload.host.tools import tool

# One command for all, so that they are read at nearly one moment; -H: each line begins with its file;
# -a: a name is text whatever its bytes are.
SCRIPT = 'for p; do grep -asH "" /proc/$p/task/*/schedstat /proc/$p/task/*/stat; done; true'
LINE = re.compile(r"/proc/([0-9]{1,10})/task/([0-9]{1,10})/(schedstat|stat):(.*)")
SCHEDSTAT = re.compile(r"([0-9]{1,20}) [0-9]{1,20} [0-9]{1,20}")
STARTED = 19  # words after the name: field 22 of stat(5)
U64 = 2**64 - 1


@dataclass(frozen=True)
class Task:
    """A thread: `started` (ticks since boot) tells it from a later one of the same number."""

    pid: int
    tid: int
    started: int
    name: str

    def __str__(self) -> str:
        return f"{self.name} ({self.pid}/{self.tid})"


@dataclass(frozen=True)
class Tasks:
    """Nanoseconds on a CPU so far of every thread of some processes."""

    host: str
    pids: tuple[int, ...]
    ns: Mapping[Task, int]

    def __sub__(self, before: Tasks) -> Ran:
        return difference(before, self)


@dataclass(frozen=True)
class Ran:
    """Nanoseconds on a CPU between two snapshots; `gone`: threads that ended, so that theirs is unknown."""

    host: str
    ns: Mapping[Task, int]
    gone: tuple[Task, ...] = ()

    def total(self, pid: int | None = None) -> int:
        """Nanoseconds of all threads, or of one process. RigError if one of them ended meanwhile."""
        gone = [task for task in self.gone if pid in (None, task.pid)]
        if gone:
            names = ", ".join(str(task) for task in gone[:5])
            raise RigError(
                f"{self.host}: {len(gone)} threads ended between the snapshots: {names}",
                "take both snapshots while they live: how long they ran is no longer known",
            )
        return sum(ns for task, ns in self.ns.items() if pid in (None, task.pid))


def tasks(host: Host, pids: Iterable[int]) -> Tasks:
    """Read every thread of these processes; a kernel thread is a process too.

    RigError if one is gone, the kernel keeps no schedstat, or its text makes no sense.
    """
    asked = tuple(dict.fromkeys(pids))
    done = tool(host, ["/bin/sh", "-c", SCRIPT, "sh", *map(str, asked)]).checked()
    return Tasks(host.name, asked, parse(done.stdout, asked, host.name))


def parse(text: bytes, pids: Iterable[int], where: str) -> dict[Task, int]:
    """Nanoseconds per thread from the output of SCRIPT; see `tasks` for what is refused."""
    files: dict[tuple[int, int], dict[str, list[str]]] = {}
    for line in text.decode("latin-1").split("\n")[:-1]:  # a name may hold any byte but 0, also a newline
        found = LINE.fullmatch(line)
        if not found:
            raise RigError(f"schedstat ({where}): {line[:80]!r}, wanted /proc/PID/task/TID/schedstat: ...")
        files.setdefault((int(found[1]), int(found[2])), {}).setdefault(found[3], []).append(found[4])
    for pid in pids:
        of_pid = [kinds for key, kinds in files.items() if key[0] == pid]
        if not of_pid:
            raise RigError(f"process {pid} is gone ({where})", "measure while it lives")
        if not any("schedstat" in kinds for kinds in of_pid):
            raise RigError(f"this kernel keeps no /proc/{pid}/schedstat ({where})", "CONFIG_SCHED_INFO=y")
    both = {key: kinds for key, kinds in files.items() if kinds.keys() == {"schedstat", "stat"}}
    return dict(_one(*key, "\n".join(k["schedstat"]), "\n".join(k["stat"]), where) for key, k in both.items())


def _one(pid: int, tid: int, schedstat: str, stat: str, where: str) -> tuple[Task, int]:
    """A thread and its nanoseconds."""
    place = f"/proc/{pid}/task/{tid}"
    ran = SCHEDSTAT.fullmatch(schedstat)
    if not ran or int(ran[1]) > U64:
        raise RigError(f"{place}/schedstat ({where}): {schedstat[:80]!r}, wanted three counters below 2^64")
    head, bracket, rest = stat.rpartition(")")
    words, name = rest.split(), head.partition("(")[2]
    if not bracket or len(words) <= STARTED or not re.fullmatch("[0-9]{1,20}", words[STARTED]):
        raise RigError(f"{place}/stat ({where}): {stat[:80]!r}, wanted fields as in stat(5)")
    shown = "".join(c if c.isascii() and c.isprintable() else "?" for c in name)
    return Task(pid, tid, int(words[STARTED]), shown), int(ran[1])


def difference(before: Tasks, after: Tasks) -> Ran:
    """Return what every thread ran between two snapshots; one that is new counts whole.

    RigError for snapshots of other processes, or if a counter went back.
    """
    if (before.host, before.pids) != (after.host, after.pids):
        raise RigError(
            f"snapshots of other processes: {before.pids} ({before.host}), {after.pids} ({after.host})"
        )
    then = {_key(task): ns for task, ns in before.ns.items()}
    ran = {task: ns - then.get(_key(task), 0) for task, ns in after.ns.items()}
    for task, ns in ran.items():
        if ns < 0:
            raise RigError(f"schedstat of {task} went back by {-ns} ns ({after.host})")
    now = {_key(task) for task in after.ns}
    return Ran(after.host, ran, tuple(task for task in before.ns if _key(task) not in now))


def _key(task: Task) -> tuple[int, int, int]:
    """The part of the name that stays when a thread renames itself."""
    return task.pid, task.tid, task.started
