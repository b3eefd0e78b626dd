"""What were the hosts of a bench set to? On disk before a change; put back after the run, or by the next."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from offload.card.nic import look
from offload.card.profile import FEATURES
from offload.errors import SwitchFailed
from offload.host.base import Host, Side
from offload.paths import state
from offload.suite.bench.lab.changes import put_back as changes
from offload.suite.bench.lab.changes.noted import NotedHost
from offload.suite.bench.lab.model import LabFile, Target
from offload.switch.enable import identity
from offload.switch.journal import Entry, Journal
from offload.switch.restore import restore

Say = Callable[[str], None]


def journal_of(target: Target) -> Journal:
    """The journal of one port of a bench: on the machine that runs the tests, because a host can vanish."""
    base = os.environ.get("KTLS_OFFLOAD_STATE") or state()
    name = re.sub(r"[^A-Za-z0-9.@-]", "_", target.place)
    return Journal(Path(base) / "benches" / name)


@contextmanager
def claimed(file: LabFile) -> Iterator[None]:
    """Hold the ports of a bench for a run, or for an undo between two runs. Refused during another one."""
    with ExitStack() as held:
        for place in sorted({target.place for target in file.targets}):
            target = next(one for one in file.targets if one.place == place)
            held.enter_context(journal_of(target).claimed(f"{place} of {file.file}"))
        yield


def note(side: Side, target: Target) -> None:
    """Write down the TLS features of the port as they are now; those noted before stay as they were then."""
    journal = journal_of(target)
    nic = look(side.host, side.dev)
    boot, netns = identity(side.host)
    with journal.locked():
        for name in FEATURES.values():
            found = nic.features.get(name)
            if found is not None and not found.fixed:
                what = ("feature", name, nic.dev, nic.ifindex, nic.bus, nic.driver, netns, boot)
                journal.add(Entry(*what, active=found.active, requested=found.requested))


def noted(host: Host, target: Target) -> Host:
    """The host, with each change of another setting noted before it is made."""
    return NotedHost(host, journal_of(target))


def put_back(host: Host, target: Target, say: Say) -> int:
    """Put back what was noted, and forget it: how many settings that were. SwitchFailed if one stays."""
    journal = journal_of(target)
    count, stuck = changes.put_back(host, journal, say, target.netns)
    features = len(journal.entries())
    if features:
        restore(host, None, journal, say)
    if stuck:
        raise SwitchFailed("; ".join(stuck), "the journal keeps it until it is as found")
    return count + features
