"""The one door to a capture for a test: whatever it looks for, each frame that was captured is explained.

PYTEST_DONT_REWRITE: there is no assert here, and rig.py imports this before conftest names it as a plug-in.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from offload.errors import OffloadError, RigError
from offload.host.base import Host
from offload.suite.report.captured import UNEXPLAINED, Captured, denial
from offload.suite.report.record.testinfo import EVIDENCE
from offload.suite.traffic.tap import Tap, capturing
from tests.lib.wire.explain import demand, explain, together

HOST, OTHER = "host", "other"  # above the card, and on another device: a card leaks on its own wire


class Taken:
    """Captures that run; `files` ends them, with nothing lost, and brings them here: files by place."""

    def __init__(self, taps: Mapping[str, Tap], folder: Path) -> None:
        self._taps, self._folder = taps, folder
        self._files: dict[str, Path] = {}

    def files(self) -> dict[str, Path]:
        """End the captures and fetch them, once."""
        if not self._files:
            for tap in self._taps.values():
                tap.end()  # all at once: each listens for a moment longer
            for tap in self._taps.values():
                tap.stop()
            for place, tap in self._taps.items():
                self._files[place] = self._folder / f"{place}.pcapng"
                tap.fetch(self._files[place])
        return self._files


class Captures:
    """What the captures of the test that runs hold; a rig has one."""

    def __init__(self) -> None:
        self._parts: list[Captured] = []

    def begin(self) -> None:
        """Forget those of the test before."""
        self._parts = []

    def evidence(self) -> Captured | None:
        """Return what all of this test's captures hold; None if it made none."""
        return together(self._parts) if self._parts else None

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Keep the captures of the block out of the evidence: the card has no part in them."""
        before = len(self._parts)
        try:
            yield
        finally:
            del self._parts[before:]

    @contextmanager
    def first(self) -> Iterator[None]:
        """Put frames that nothing explains before whatever else fails in the block: they say more."""
        before = len(self._parts)
        try:
            yield
        except AssertionError as exc:
            said = denial({"evidence": {"captured": together(self._parts[before:]).evidence()}})
            if said and UNEXPLAINED not in str(exc):
                raise AssertionError(f"{said}; {exc}") from exc
            raise

    @contextmanager
    def taking(
        self,
        places: Mapping[str, tuple[Host, str]],
        folder: Path,
        keys: Callable[[], bytes] = bytes,
        also: Collection[int] = (),
        heads: int = 0,
    ) -> Iterator[Taken]:
        """Capture at some places while the block runs, into `folder`, and explain each frame beyond the card.

        `also`: protocols of IP that the test has there. `heads`: bytes that are kept of a frame above the
        card; 0: all. AssertionError if a frame is left over; a block
        that fails is judged as well. RigError for a rig that broke, whose captures say nothing.
        """
        number = uuid.uuid4().hex[:8]
        with ExitStack() as undo:
            taps = {
                place: undo.enter_context(
                    capturing(
                        host,
                        dev,
                        f"/run/ktls-offload-{number}-{place}.pcapng",
                        heads if place == HOST else 0,
                    )
                )
                for place, (host, dev) in places.items()
            }
            taken = Taken(taps, folder)
            try:
                yield taken
            except RigError:
                raise
            except BaseException:
                with suppress(OffloadError, OSError, KeyError):
                    self._judge(taken, keys, also)
                raise
            found = self._judge(taken, keys, also)
            demand(found)

    def _judge(self, taken: Taken, keys: Callable[[], bytes], also: Collection[int]) -> Captured:
        wires = [file for place, file in taken.files().items() if place not in (HOST, OTHER)]
        found = together([explain(file, keys(), also) for file in wires])
        self._parts.append(found)
        return found


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Put what the captures of a test hold into its evidence, whatever becomes of the test."""
    captures = getattr(pyfuncitem.funcargs.get("rig"), "captures", None)
    if captures is None:
        return (yield)
    captures.begin()
    try:
        result = yield
    finally:
        found = captures.evidence()
        if found is not None:
            pyfuncitem.stash.setdefault(EVIDENCE, {})["captured"] = found.evidence()
    if found is not None:
        demand(found)
    return result
