"""The TLS features of one side for the length of a test: set by ethtool, put back as they were found."""

from __future__ import annotations

from offload.card.nic import Feature, features
from offload.card.profile import FEATURES
from offload.host.base import Side


class Switch:
    """Sets features. A card that does not follow is a failure of the card: AssertionError.

    `begin` and `restore` run inside the test's body (conftest.py calls them), so that such a failure is
    never mistaken for a broken rig.
    """

    def __init__(self, side: Side, **wanted: bool) -> None:
        self._side, self._wanted = side, wanted
        self._found: dict[str, Feature] = {}
        self._now: dict[str, bool] = {}

    def begin(self) -> None:
        """Note what is there, and set what was wanted from the start."""
        self._found = features(self._side.host, self._side.dev)
        self._now = {d: self._found[name].active for d, name in FEATURES.items() if name in self._found}
        self.set(**self._wanted)

    def set(self, **wanted: bool) -> None:
        """Make tx and rx what is wanted."""
        change = {d: on for d, on in wanted.items() if self._now.get(d, False) != on}
        if change:
            self._apply(change)

    def _apply(self, change: dict[str, bool]) -> None:
        words = [word for d, on in change.items() for word in (FEATURES[d], "on" if on else "off")]
        done = self._side.host.run(["ethtool", "-K", self._side.dev, *words], check=False)
        shown = features(self._side.host, self._side.dev)
        self._now = {d: shown[name].active for d, name in FEATURES.items() if name in shown}
        said = done.stderr.decode(errors="replace").strip()
        for direction, on in change.items():
            feature = shown[FEATURES[direction]]
            word = "on" if on else "off"
            assert feature.active == on, f"{feature.name} is {feature}, asked for {word}: {said}"

    def restore(self) -> None:
        """Make everything what it was, whoever changed it."""
        shown = features(self._side.host, self._side.dev)
        change = {
            d: self._found[name].active
            for d, name in FEATURES.items()
            if name in self._found and shown[name].active != self._found[name].active
        }
        if change:
            self._apply(change)
