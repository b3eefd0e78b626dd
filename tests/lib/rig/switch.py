"""The TLS features of one side for the length of a test: set by ethtool, put back as they were found."""

from __future__ import annotations

from collections.abc import Sequence

from offload.card.nic import Feature, features
from offload.card.profile import FEATURES
from offload.host.base import Side


class Switch:
    """Sets features. A card that does not follow is a failure of the card: AssertionError.

    A test's first line says what it needs: `offload.on()`. What was found comes back as soon as its body has
    ended (conftest.py): a card that does not follow then is never mistaken for a broken rig.
    """

    def __init__(self, side: Side, promised: Sequence[str] = ()) -> None:
        self._side, self._promised = side, promised
        self._found: dict[str, Feature] | None = None
        self._now: dict[str, bool] = {}

    def on(self) -> None:
        """Switch on each direction that the profile promises, and any other off."""
        self.set(**{direction: direction in self._promised for direction in FEATURES})

    def set(self, **wanted: bool) -> None:
        """Make tx and rx what is wanted; the first call notes what to put back."""
        if self._found is None:
            self._found = features(self._side.host, self._side.dev)
            self._now = {d: self._found[name].active for d, name in FEATURES.items() if name in self._found}
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
        """Make everything what it was, whoever changed it; nothing if nothing was ever set."""
        found, self._found = self._found or {}, None
        shown = features(self._side.host, self._side.dev) if found else {}
        change = {
            d: found[name].active
            for d, name in FEATURES.items()
            if name in found and shown[name].active != found[name].active
        }
        if change:
            self._apply(change)
