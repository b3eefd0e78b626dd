"""ESP as arms to compare with kernel TLS: plain TCP in transport mode, by software or by the card's own
crypto."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from offload.host.base import Side
from offload.suite.measure.arms import SHARE, Moved, NoFigure
from offload.suite.measure.plan import ESP_ARMS as ARMS
from offload.suite.measure.testbed import Testbed
from offload.suite.traffic.ipsec import Esp, errors, missing, protected, without_card

GRACE = 900  # seconds that the kernel keeps what nobody took away beyond a turn


def under(arm: str) -> str:
    """The arm that a workload runs: ESP is below the socket, which is one of plain TCP."""
    return "plain" if arm in ARMS else arm


def cipher(arm: str) -> str:
    """The cipher of an arm as offload.suite.traffic.ipsec names it."""
    word = arm.split("-")[1]
    return word if word == "null" else f"gcm-{word}"


def by_card(arm: str) -> bool:
    """Whether the card encrypts ESP in this arm."""
    return arm in ARMS and arm.endswith("-hw")


def impossible_esp(testbed: Testbed, arm: str) -> str:
    """Why an arm cannot be here, or ''."""
    if arm not in ARMS:
        return ""
    if testbed.peer is None:
        return "IPsec configures both ends: name the peer as netns:NAME"
    why = missing(testbed.dut.host) or missing(testbed.peer.host)
    return why or (without_card(testbed.dut.host, testbed.dut.dev) if by_card(arm) else "")


@dataclass
class Turn:
    """A turn of an arm: what the workload must run, and the proof that its bytes were in ESP."""

    arm: str
    runs: str
    esp: Esp | None = None
    sides: tuple[Side, ...] = ()
    before: list[dict[str, int]] = field(default_factory=list)

    def check(self, moved: Moved) -> None:
        """Hold it against its name, before the states go. NoFigure with what was counted."""
        if self.esp is None:
            return
        for side, one in (("tx", self.esp.out), ("rx", self.esp.into)):
            if by_card(self.arm) and not self.esp.by_card(one):
                raise NoFigure(f"arm {self.arm}: the driver silently rejected the state ({side})")
            for end in self.sides:
                counted = self.esp.counted(end, one)
                if counted.bytes < moved.of(side) * SHARE:
                    raise NoFigure(
                        f"arm {self.arm}: {moved.of(side)} bytes of payload ({side}), {counted.bytes} in ESP"
                    )
        for end, before in zip(self.sides, self.before, strict=True):
            wrong = {name: n - before.get(name, 0) for name, n in errors(end.host).items()}
            if any(wrong.values()):
                words = ", ".join(f"{name} {n}" for name, n in wrong.items() if n)
                raise NoFigure(f"arm {self.arm}: IPsec refused or lost packets on {end.host.name}: {words}")


@contextmanager
def carried(testbed: Testbed, arm: str, seconds: float) -> Iterator[Turn]:
    """Put the traffic of a turn into ESP if that is its arm; what was set up is gone after."""
    if arm not in ARMS or testbed.peer is None:
        yield Turn(arm, arm)
        return
    sides, life = (testbed.dut, testbed.peer), int(seconds) + GRACE
    with protected(*sides, cipher(arm), card=by_card(arm), life=life) as esp:
        yield Turn(arm, under(arm), esp, sides, [errors(side.host) for side in sides])
