"""What a test says of active cores, read as hostile: the evidence `cpu`, schema ktls-offload/measure/1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeGuard

from offload.suite.measure.cpu.figures import Sample

SCHEMA = "ktls-offload/measure/1"
ARMS = {
    "user": "user-space TLS",
    "sw": "software kTLS",
    "hw": "offload",
    "hw-zc": "offload + zero-copy",
    "plain": "plain TCP",
    "esp-null": "ESP, no cipher",
    "esp-128": "ESP, AES-128",
    "esp-256": "ESP, AES-256",
    "esp-128-hw": "ESP-128, card",
    "esp-256-hw": "ESP-256, card",
}
ESP = tuple(arm for arm in ARMS if arm.startswith("esp-"))
NO_TLS = ("plain", *ESP)  # of no TLS cipher: shown with each
SIDES = {
    "sender": "sender",
    "receiver": "receiver",
    "host": "whole host",
    "dut": "the DUT with its kernel threads",
    "card": "the card's engine",
}
PARTS = ("", "soft", "gso", "gro")  # of segmentation, where neither all nor nothing is on
WORKLOADS = ("stream", "file", "iperf3", "nginx", "video")
DIRECTIONS = ("tx", "rx", "both")
METHODS = ("time", "icount")
PAIRS = (("sw", "hw"), ("sw", "hw-zc"), ("user", "hw"), ("sw", "esp-128"))  # what is compared with what
MOST_ROWS, MOST_SAMPLES, MOST_NOTES = 600, 64, 40  # more are counted, not read
LONGEST = 240  # characters of a text
REAL = 1e-12, 1e12  # no count of cores, seconds or instructions per byte lies beyond


@dataclass(frozen=True)
class Setting:
    """What was measured with every arm; `size` in bytes, None for a stream; plain TCP and ESP have no cipher.

    `close`: a connection per request. `only`: the segmentation offloads that stayed, one of PARTS.
    """

    workload: str
    direction: str
    version: str
    cipher: str
    streams: int
    size: int | None
    segmentation: bool
    close: bool
    only: str = ""


@dataclass(frozen=True)
class Row:
    """One arm in one setting: samples over time, or instructions per byte of payload by side and boot.

    `memory`: bytes to and from memory per byte of payload, where every sample counted them.
    """

    setting: Setting
    arm: str
    samples: tuple[Sample, ...]
    requests: tuple[float, ...]  # per second; empty unless every sample counted them
    cost: Mapping[str, Mapping[int, float]]
    memory: float | None = None


@dataclass(frozen=True)
class Source:
    """The evidence of one test; `problem`: why it gives no figure, `lost`: rows that have no form."""

    test: str
    outcome: str
    method: str
    simulated: bool
    about: Mapping[str, str]
    skipped: tuple[Mapping[str, str], ...]
    warnings: tuple[str, ...]
    rows: tuple[Row, ...]
    lost: int
    problem: str


def sources(tests: Sequence[Mapping[str, Any]], simulated: bool) -> list[Source]:
    """Return the tests that say something of active cores. Never raises, whatever they say.

    Only passed tests have rows: where a test failed, what moved the bytes is not known.
    A document is of a simulated card if it or the run (`simulated`) says so, or it does not say.
    """
    return [_source(test, simulated) for test in tests if "cpu" in test["evidence"]]


def _source(test: Mapping[str, Any], simulated: bool) -> Source:
    found = test["evidence"]["cpu"]
    found = found if isinstance(found, Mapping) else {}
    problem = _problem(test, found)
    rows, lost = ((), 0) if problem else _rows(found["rows"], str(found["method"]))
    return Source(
        str(test["id"]),
        str(test["outcome"]),
        found["method"] if found.get("method") in METHODS else "",
        simulated or found.get("simulated") is not False,
        dict(islice(_about(found.get("about")), 2 * MOST_NOTES)),
        tuple(_skips(found.get("skipped"))),
        tuple(text(line) for line in _list(found.get("warnings"))[:MOST_NOTES] if text(line)),
        rows,
        lost,
        problem or ("" if rows else "it holds no figure"),
    )


def _problem(test: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """Say why the evidence of a test gives no figure; empty if it may."""
    if test["outcome"] != "pass":
        return (
            f"not shown: the test ended with {test['outcome']}: {text(test['reason']) or 'no reason given'}"
        )
    known = found.get("schema") == SCHEMA and isinstance(found.get("rows"), list)
    if not known or not isinstance(found.get("method"), str) or found["method"] not in METHODS:
        return f"its evidence does not have the form that the report reads ({SCHEMA})"
    return ""


def _rows(found: Sequence[Any], method: str) -> tuple[tuple[Row, ...], int]:
    """Return the rows that have the form, and how many have not, come twice or were too many."""
    good: dict[tuple[Setting, str], Row] = {}
    for row in (_row(row, method) for row in found[:MOST_ROWS]):
        if row is not None:
            good.setdefault((row.setting, row.arm), row)
    return tuple(good.values()), len(found) - len(good)


def _row(found: Any, method: str) -> Row | None:
    if not isinstance(found, Mapping):
        return None
    setting, arm = _setting(found), found.get("arm")
    if setting is None or not isinstance(arm, str) or arm not in ARMS:
        return None
    if method == "icount":
        cost = _cost(found.get("cost"))
        return Row(setting, arm, (), (), cost) if cost else None
    rows = _list(found.get("samples"))[:MOST_SAMPLES]
    read = [_sample(one) for one in rows]
    samples = tuple(one for one, _ in filter(None, read))
    if not samples or len(samples) < len(read):
        return None
    requests = tuple(rate for one in read if one and (rate := one[1]) is not None)
    requests = requests if len(requests) == len(samples) else ()
    return Row(setting, arm, samples, requests, {}, _memory(rows, sum(sample.bytes for sample in samples)))


def _memory(found: Sequence[Mapping[str, Any]], payload: int) -> float | None:
    """Return bytes to and from memory per byte of payload; None unless every sample counted them."""
    counted = [row.get("memory_bytes") for row in found]
    whole = [value for value in counted if _whole(value)]
    return sum(whole) / payload if len(whole) == len(counted) else None


def _setting(found: Mapping[str, Any]) -> Setting | None:
    words = [found.get(key) for key in ("workload", "direction", "version", "cipher")]
    streams, size, segmentation = (found.get(key) for key in ("streams", "size", "segmentation"))
    close, only = found.get("close", False), found.get("only", "")
    if not all(isinstance(word, str) and len(word) <= 40 for word in words) or not _whole(streams):
        return None
    if words[0] not in WORKLOADS or words[1] not in DIRECTIONS or not isinstance(segmentation, bool):
        return None
    if only not in PARTS or not isinstance(only, str):
        return None
    if not isinstance(close, bool) or (size is not None and not _whole(size)):
        return None
    version, cipher = ("", "") if found.get("arm") in NO_TLS else (str(words[2]), str(words[3]))
    return Setting(str(words[0]), str(words[1]), version, cipher, streams, size, segmentation, close, only)


def _sample(found: Any) -> tuple[Sample, float | None] | None:
    """Return one sample and its requests per second; None if it is no number or nothing moved."""
    if not isinstance(found, Mapping):
        return None
    cores, moved, seconds = (found.get(key) for key in ("cores", "bytes", "seconds"))
    if not (_real(cores) and _whole(moved) and _real(seconds)):
        return None
    rate = found.get("requests")
    sample = Sample(float(cores), moved, float(seconds))
    return sample, rate / sample.seconds if _whole(rate) else None


def _cost(found: Any) -> dict[str, dict[int, float]]:
    """Return instructions per byte by side and boot; empty if an entry has no form or comes twice."""
    sides: dict[str, dict[int, float]] = {}
    for entry in _list(found)[:MOST_SAMPLES]:
        entry = entry if isinstance(entry, Mapping) else {}
        side, boot, value = (entry.get(key) for key in ("side", "boot", "per_byte"))
        if not isinstance(side, str) or side not in SIDES or not _whole(boot) or not _real(value):
            return {}
        if boot in sides.setdefault(side, {}):
            return {}
        sides[side][boot] = float(value)
    return sides


def _about(found: Any, below: bool = True) -> Iterator[tuple[str, str]]:
    """Yield what the figures were measured on, as text; one level below is joined: `tools openssl`."""
    for key, value in list(found.items())[:MOST_NOTES] if isinstance(found, Mapping) else ():
        if below and isinstance(value, Mapping):
            yield from ((f"{text(key)} {name}", inner) for name, inner in _about(value, below=False))
        elif isinstance(value, str | int | float):
            yield text(key), text(value)


def _skips(found: Any) -> Iterator[dict[str, str]]:
    for entry in _list(found)[:MOST_NOTES]:
        if isinstance(entry, Mapping):
            yield {key: text(entry.get(key, "")) for key in ("workload", "direction", "arm", "reason")}


def text(value: Any) -> str:
    """Return text or a number as text of a bounded length, anything else as nothing."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 64:
        return ""
    found = str(value) if isinstance(value, str | int | float) else ""
    return found if len(found) <= LONGEST else found[: LONGEST - 3] + "..."


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _whole(value: Any) -> TypeGuard[int]:
    """Say whether it is a whole number above 0 that a counter can hold."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 63


def _real(value: Any) -> TypeGuard[float]:
    """Say whether it is a number above 0 that can be true; NaN is not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and REAL[0] < value < REAL[1]


def rounded(value: float) -> float:
    """Return a figure with 6 digits that count: the same on every machine."""
    return float(f"{value:.6g}")
