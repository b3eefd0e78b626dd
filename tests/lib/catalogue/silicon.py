"""Bad cards below the real driver: the rows of silicon.yaml, played by cx6sim and driven by mlx5_core."""

from __future__ import annotations

import re
from pathlib import Path

from offload.cmd import settles
from offload.debian.kernels import fetch
from offload.errors import ConfigError, RigError
from offload.suite.bench.cards.silicon import Silicon
from offload.suite.bench.vm import cards
from offload.suite.bench.vm.lab import Lab
from tests.lib.catalogue import rows
from tests.lib.catalogue.run import Shown, Stand

FILE = Path(__file__).parents[2] / "nicsim" / "drivers" / "silicon.yaml"
KERNEL = "6.1"  # of the table on the page
MARK = "<!-- made by certify-the-certifier CARD=mlx5: begin -->"
WORD = re.compile(r"([01])/([a-z][a-z-]*)=(\d+)")
ENDS = (0, 1)  # the numbers of the DUT's card and the peer's
HELD = re.compile(r"^TlsCurr[TR]xDevice\s+(\d+)$", re.M)
BACK = 20.0  # seconds: the driver looks for a queue that hangs after 15


def knobs(text: str) -> list[tuple[int, str, int]]:
    """Card, fault and how often, of `0/tx-leak=1 1/rx-drop=20`. ConfigError for anything else."""
    found = [WORD.fullmatch(word) for word in text.split()]
    if not found or not all(found):
        raise ConfigError(f"{text!r} are not knobs of cx6sim", "0/tx-leak=1 is one")
    return [(int(match[1]), match[2], int(match[3])) for match in found if match]


def load(path: Path = FILE) -> tuple[rows.Row, ...]:
    """The rows, in the order of the file. ConfigError with every problem as `file:line: key: ...`."""
    return rows.load(path, knobs)


def shown() -> list[rows.Row]:
    """The rows of the table on the page."""
    return [row for row in load() if KERNEL in row.kernels]


def silicon(lab: Lab) -> Silicon:
    """What speaks with the cards of a lab."""
    return Silicon(Path(lab.folder) / cards.CONTROL)


class SiliconStand(Stand):
    """A lab with the real driver, whose cards are made bad and good again."""

    def _open(self, card: str) -> Lab:
        if self._attach:
            return Lab.attach(self._attach)
        return Lab.boot(fetch(self._kernel, say=self._say), kind=cards.KIND, say=self._say)

    def _turn(self, lab: Lab, words: str) -> None:
        for card, fault, every in knobs(words) if words else ():
            silicon(lab).turn(card, fault, every)

    def _reset(self, lab: Lab) -> None:
        for card in ENDS:
            silicon(lab).turn(card, "all", 0)

    def _contexts(self, lab: Lab) -> list[int]:
        """By the kernel's count: the driver keeps its transmit contexts for the next connection."""
        said = [host.run(["cat", "/proc/net/tls_stat"], check=False).text for host in (lab.dut, lab.peer)]
        return [sum(int(number) for number in HELD.findall(text)) for text in said]

    def _fired(self, lab: Lab) -> int:
        """How often the DUT's card was bad."""
        try:
            truth = silicon(lab).truth(ENDS[0])
        except RigError:
            return 0
        return sum(count for name, count in truth.items() if "-" in name or name == "health")

    def _left(self, lab: Lab, before: tuple[Shown, list[int]], mark: int) -> str:
        """The same, and whether the driver is still at work: another row would say nothing if not."""
        found = super()._left(lab, before, mark)
        if found or settles(lambda: answers(lab), BACK):
            return found
        return "the ends no longer reach each other"


def answers(lab: Lab) -> bool:
    """Whether the peer answers the DUT through both cards, at once."""
    argv = ["busybox", "ping", "-c", "1", "-W", "1", lab.bench.peer.v4]
    return lab.dut.run(argv, check=False, timeout=30).rc == 0
