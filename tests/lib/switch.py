"""The TLS features of one side for the length of a test: set by ethtool, put back as they were found."""

from __future__ import annotations

from types import TracebackType

from offload.host.base import Side
from offload.nic import Feature, features
from offload.profile import FEATURES


class Switch:
    """Sets features; on leaving, everything that was changed is what it was, or the test fails."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._found: dict[str, Feature] = {}

    def __enter__(self) -> Switch:
        self._found = features(self._side.host, self._side.dev)
        self._now = {d: self._found[name].active for d, name in FEATURES.items() if name in self._found}
        return self

    def set(self, **wanted: bool) -> None:
        """Make tx and rx what is wanted; AssertionError if the card does not follow."""
        change = {d: on for d, on in wanted.items() if self._now.get(d, False) != on}
        if not change:
            return
        words = [word for d, on in change.items() for word in (FEATURES[d], "on" if on else "off")]
        done = self._side.host.run(["ethtool", "-K", self._side.dev, *words], check=False)
        shown = features(self._side.host, self._side.dev)
        for direction, on in change.items():
            feature = shown[FEATURES[direction]]
            assert feature.active == on, (
                f"{feature.name} of {self._side.dev} is {feature}, asked for {'on' if on else 'off'}:"
                f" {done.stderr.decode(errors='replace').strip()}"
            )
            self._now[direction] = on

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        changed = [d for d, on in self._now.items() if self._found[FEATURES[d]].active != on]
        if changed:
            self.set(**{d: self._found[FEATURES[d]].active for d in changed})
