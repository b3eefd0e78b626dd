"""What others published of real cards, each row with its source: reference marks, and a check of ours."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from offload.paths import PACKAGE
from offload.suite.measure.cpu.figures import Sample

FILE = PACKAGE / "suite/measure/cpu/published.toml"
ARMS = ("software", "offload", "zerocopy", "plain")


@dataclass(frozen=True)
class Source:
    """Who published it, of what, and where it can be read."""

    id: str
    cite: str
    where: str


@dataclass(frozen=True)
class Nginx:
    """nginx and wrk, files of `file_kib` KiB: throughput and active cores by arm (see ARMS)."""

    source: str
    file_kib: int
    workers: int
    arms: Mapping[str, Sample]


@dataclass(frozen=True)
class Loss:
    """Receive at `percent` of random loss: bit/s by arm; records fully, partly, not decrypted by the card."""

    source: str
    percent: float
    plain: int
    software: int
    offload: int
    records: tuple[int, int, int]


@dataclass(frozen=True)
class Crypto:
    """Records of this many bytes: (cycles per second of software crypto, Gbit/s) each way, on one core."""

    source: str
    record: int
    tx: tuple[int, float]
    rx: tuple[int, float]


@dataclass(frozen=True)
class Row:
    """One published comparison: a value per arm; `figure` and `published` where one was given, as printed.

    `note` where it does not follow from the values by rounding.
    """

    id: str
    source: str
    what: str
    unit: str
    values: Mapping[str, float]
    figure: str = ""
    published: str = ""
    note: str = ""


@dataclass(frozen=True)
class Published:
    """All that the file holds; sources by id."""

    sources: Mapping[str, Source]
    nginx: tuple[Nginx, ...]
    loss: tuple[Loss, ...]
    crypto: tuple[Crypto, ...]
    rows: Mapping[str, Row]


@cache
def published() -> Published:
    """The package's table; it is ours, so its errors are found by tests."""
    said = tomllib.loads(FILE.read_text("utf-8"))
    nginx = [
        Nginx(row["source"], row["file_kib"], row["workers"], {arm: Sample.at(*row[arm]) for arm in ARMS})
        for row in said["nginx"]
    ]
    loss = [Loss(**{**row, "records": tuple(row["records"])}) for row in said["loss"]]
    crypto = [
        Crypto(row["source"], row["record"], tuple(row["tx"]), tuple(row["rx"])) for row in said["crypto"]
    ]
    sources = {row["id"]: Source(**row) for row in said["source"]}
    rows = {row["id"]: Row(**row) for row in said["row"]}
    return Published(sources, tuple(nginx), tuple(loss), tuple(crypto), rows)
