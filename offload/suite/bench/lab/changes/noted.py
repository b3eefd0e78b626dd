"""A host on which no setting is changed before the value found is on the runner's disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace

from offload.host.base import Completed, Host, Process
from offload.suite.bench.lab.changes import notes
from offload.suite.bench.lab.changes.asked import asked
from offload.suite.bench.lab.changes.notes import Change, Notes
from offload.suite.bench.lab.changes.values import look, lost_with
from offload.switch.enable import identity
from offload.switch.journal import Journal

OUR_OWN = ("device", "netns", "qdisc")  # of these nothing is changed that was there before
DISTURBS = ("mtu", "link", "master", "home")  # a port can lose addresses and routes by it


class NotedHost:
    """A host of a bench; see Host for what it does. Its commands go through here, and are all that changes
    it."""

    def __init__(self, inner: Host, journal: Journal) -> None:
        self.name, self._inner, self._journal = inner.name, inner, journal
        self.read, self.write = inner.read, inner.write

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes = b"",
        timeout: float = 60.0,
        check: bool = True,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run to the end; see Host.run."""
        wanted = asked(argv)
        # a command that outlives us holds the lock (cmd.KEEP_OPEN): nothing is put back before it has ended
        with self._journal.locked() if wanted else nullcontext():
            self._note(wanted)
            return self._inner.run(argv, input=input, timeout=timeout, check=check, env=env)

    def start(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> Process:
        """Start in the background; see Host.start."""
        self._note(asked(argv))
        return self._inner.start(argv, env=env)

    def _note(self, wanted: Sequence[Change]) -> None:
        """Note the values found of these settings, and the ones that they get; on disk when this returns."""
        if not wanted:
            return
        with self._journal.locked():
            before = notes.read(self._journal)
            known = {one.key: one for one in before.changes}
            for one in wanted:
                self._take(one, known)
            if (after := tuple(known.values())) != before.changes:
                boot, netns = (before.boot, before.netns) if before.boot else identity(self._inner)
                notes.write(self._journal, Notes(boot, netns, after))

    def _take(self, one: Change, known: dict[tuple[str, str, str], Change]) -> None:
        """Take in a setting that is about to change. A device of a test goes as a whole."""
        old = known.get(one.key)
        if old:
            new = [value for value in one.ours if value != old.found and value not in old.ours]
            known[one.key] = replace(old, ours=(*old.ours, *new))
        elif one.kind == "device" or ("device", one.dev, "") not in known:
            for fresh in self._found(one):
                known.setdefault(fresh.key, fresh)

    def _found(self, one: Change) -> list[Change]:
        """The setting with the value found, after what goes with it; nothing if it will not change."""
        found = look(self._inner, one)
        if found is None or found in one.ours or (found and one.kind in OUR_OWN):
            return []
        lost = lost_with(self._inner, one) if one.kind in DISTURBS else []
        return [*lost, replace(one, found=found)]
