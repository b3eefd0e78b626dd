"""The simulated ConnectX's own count of TLS packets, held against its driver's counters after each test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from offload.cmd import settles
from offload.errors import OffloadError
from offload.suite.bench.cards.silicon import Silicon
from offload.suite.bench.vm import cards
from tests.lib.rig.rig import Rig

DUT = 0  # the card's number
# what the driver counts as it hands packets over and takes them back, and the card as they pass through it
SAME = {
    "tx_tls_encrypted_packets": "tx_tls_frames",
    "tx_tls_encrypted_bytes": "tx_tls_bytes",
    "rx_tls_decrypted_packets": "rx_tls_frames",
    "rx_tls_decrypted_bytes": "rx_tls_bytes",
}
TROUBLE = ("dumps", "rx_no_buffer")  # what the card counts, and a failed test tells


class Witness:
    """Two counts of the same packets, of two programs that do not know of each other."""

    def __init__(self, rig: Rig) -> None:
        self._rig, self._kept = rig, vars(rig)
        self._card = Silicon(Path(rig.lab.folder) / cards.CONTROL)

    def begin(self) -> None:
        """Note both counts; what the last test ended with is that, if it passed."""
        if "witness" not in self._kept:
            self._kept["witness"] = self._apart()

    def check(self) -> None:
        """Assert that both counted the same since then; what is under way may take a moment."""
        before, now = self._kept.pop("witness"), dict[str, int]()

        def same() -> bool:
            now.clear()
            now.update(self._apart())
            return now == before

        assert settles(same, 15), "the driver's counters and the card's own count differ: " + ", ".join(
            f"{name} by {now[name] - before[name]:+d}" for name in SAME if now[name] != before[name]
        )
        self._kept["witness"] = before

    def forget(self) -> None:
        """The test failed: what it left says nothing of the next one."""
        self._kept.pop("witness", None)

    def add_to(self, failure: BaseException) -> None:
        """Add to a failed test what went wrong below it: packets out of order, frames without a buffer."""
        if "witness" not in self._kept or not isinstance(failure, AssertionError):
            return
        was = self._kept["trouble"]
        try:
            self._apart()
        except OffloadError:
            return  # the failure is reported, not what else broke
        first, *rest = str(failure).splitlines() or [""]
        words = _trouble(self._kept["trouble"] - was)
        failure.args = ("\n".join(["; ".join([first, *words]), *rest]),)

    def _apart(self) -> dict[str, int]:
        """How far the driver's counters are ahead of the card's."""
        shown, truth = self._rig.counters().values(), self._card.truth(DUT)
        self._kept["trouble"] = Counter(ooo=shown.get("tx_tls_ooo", 0), **{n: truth[n] for n in TROUBLE})
        return {name: shown.get(name, 0) - truth[own] for name, own in SAME.items()}


def _trouble(moved: Counter[str]) -> Iterator[str]:
    """Say it in words, if there was any."""
    if moved["ooo"]:
        yield (
            f"{moved['ooo']} packets were out of order (tx_tls_ooo), and the card got {moved['dumps']} DUMPs"
        )
    if moved["rx_no_buffer"]:
        yield f"the card dropped {moved['rx_no_buffer']} frames, because it had no receive buffer"
