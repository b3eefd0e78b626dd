"""What measured cores mean: cores per 100 Gbit/s, saving, recovered overhead. No figure without traffic."""

from __future__ import annotations

import math
from dataclasses import dataclass

from offload.errors import RigError
from offload.suite.measure.cpu.meter import Use

MEASURE = "a figure needs traffic: check the program that should have sent it"


@dataclass(frozen=True)
class Sample:
    """One arm measured once: active cores while this many bytes of payload moved in this many seconds.

    RigError if nothing moved, no time went by, or the cores are no number above 0.
    """

    cores: float
    bytes: int
    seconds: float

    def __post_init__(self) -> None:
        if self.bytes <= 0:
            raise RigError(f"{self.bytes} bytes moved while CPU was measured", MEASURE)
        if not (math.isfinite(self.seconds) and self.seconds > 0):
            raise RigError(f"{self.bytes} bytes moved in {self.seconds:g} s")
        if not (math.isfinite(self.cores) and self.cores > 0):
            raise RigError(f"{self.bytes} bytes moved with {self.cores:g} active cores: the meter is wrong")

    @classmethod
    def at(cls, gbits: float, cores: float) -> Sample:
        """One second at this many Gbit/s (10^9 bits)."""
        return cls(cores, round(gbits * 1e9 / 8), 1.0)

    @property
    def gbits(self) -> float:
        """Payload in Gbit/s (10^9 bits)."""
        return self.bytes * 8 / self.seconds / 1e9

    @property
    def per_100g(self) -> float:
        """Active cores per 100 Gbit/s of payload: compares arms of different throughput."""
        return self.cores * 100 / self.gbits


def sample(use: Use, moved: int) -> Sample:
    """Return what the meter read while `moved` bytes of payload went over the wire. RigError as for
    Sample."""
    return Sample(use.cores, moved, use.seconds)


def saving(software: Sample, offload: Sample) -> float:
    """The part of software's cores per 100 Gbit/s that offload does not need; below 0 if it needs more."""
    return (software.per_100g - offload.per_100g) / software.per_100g


def recovered(software: Sample, offload: Sample, plain: Sample) -> float | None:
    """The part of TLS's cost, over that of plain TCP, that offload takes away.

    None if software TLS cost no more than plain TCP: then there is nothing to take away.
    """
    overhead = software.per_100g - plain.per_100g
    return (software.per_100g - offload.per_100g) / overhead if overhead > 0 else None


def speedup(software: Sample, offload: Sample) -> float:
    """Offload's throughput over software's."""
    return offload.gbits / software.gbits
