"""The MTU of the path under scenarios: it stays for the next one that wants it, as a change takes long."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack

from tests.lib.impair.shapes_path import nothing_to_forget, path_mtu
from tests.lib.rig.rig import Rig
from tests.lib.scenario.space import Scenario

FOUND = "1500"  # the condition that leaves each port as it was found


class Mtu:
    """Of the path between DUT and peer: as found until a scenario wants another, and again at the end."""

    def __init__(self, rig: Rig) -> None:
        self._rig, self._mtu, self._undo = rig, FOUND, ExitStack()
        self._forget: Callable[[], None] = nothing_to_forget

    @property
    def found(self) -> bool:
        """Whether each port has the MTU that it was found with."""
        return self._mtu == FOUND

    def at(self, mtu: str) -> None:
        """Give each port this MTU. Errors as `path_mtu`, and then the path is as it was found.

        What an old connection of the scenario before taught the kernels is forgotten first: a path MTU that
        a kernel knows may keep new connections from the card.
        """
        if mtu == self._mtu:
            self._forget()
            return
        self.as_found()
        if mtu != FOUND:
            self._forget = self._undo.enter_context(path_mtu(self._rig.bench, int(mtu)))
            self._mtu = mtu

    def as_found(self) -> None:
        """Put back what was there."""
        self._mtu, self._forget = FOUND, nothing_to_forget
        self._undo.close()


def in_turn(scenarios: Iterable[Scenario]) -> tuple[Scenario, ...]:
    """Scenarios in an order in which a lab seldom changes its path: those on the path as found come first."""
    return tuple(sorted(scenarios, key=lambda one: (one["mtu"] != FOUND, one["mtu"])))
