"""What a person reads: arms, ratios in words, the size from which offload pays; synthetic figures."""

from __future__ import annotations

from typing import Any

from offload.suite.measure.table import break_even, text, whole


def row(arm: str, cores: list[float], size: int | None = None, workload: str = "stream") -> dict[str, Any]:
    """A row of synthetic samples at 100 Gbit/s for one second."""
    samples = [{"cores": c, "bytes": 12_500_000_000, "seconds": 1.0} for c in cores]
    if workload == "nginx":
        samples = [{**sample, "requests": 1000} for sample in samples]
    tls = arm != "plain"
    return {
        "workload": workload,
        "arm": arm,
        "direction": "tx",
        "version": "1.2" if tls else "",
        "cipher": "aes_gcm_128" if tls else "",
        "streams": 8,
        "size": size,
        "segmentation": True,
        "samples": samples,
    }


def document(*rows: dict[str, Any], simulated: bool = False) -> dict[str, Any]:
    skipped = [{"arm": "hw-zc", "workload": "stream", "direction": "tx", "reason": "zero-copy needs more"}]
    return {
        "schema": "ktls-offload/measure/1",
        "method": "time",
        "simulated": simulated,
        "about": {},
        "rows": list(rows),
        "skipped": skipped,
        "warnings": ["governor is ondemand"],
    }


SW, HW = [10.0, 10.1, 9.9, 10.0, 10.05], [6.0, 6.05, 5.95, 6.0, 6.02]


def test_arms_and_saving() -> None:
    """The table has a line per arm, the ratio in words, saving and recovered overhead."""
    said = text(document(row("sw", SW), row("hw", HW), row("plain", [4.0, 4.0, 4.1, 3.9, 4.0])))
    assert "software kTLS" in said and "hw is 0.6" in said and "5 pairs): 40.0 % less" in said
    assert "hw saves 40 % of sw's cores per 100 Gbit/s, 67 % of what TLS costs over plain TCP" in said
    assert "skipped: stream hw-zc: zero-copy needs more" in said and "warning: governor is ondemand" in said


def test_too_few_pairs_save_nothing() -> None:
    """One pair or a wide interval is said to be inconclusive, and no saving is claimed."""
    one = text(document(row("sw", SW[:1]), row("hw", HW[:1])))
    assert "one pair: too few to conclude" in one and "saves" not in one
    wide = text(document(row("sw", SW), row("hw", [3.0, 9.0, 5.0, 7.0, 6.0])))
    assert "too wide to conclude" in wide and "saves" not in wide


def test_simulated_is_labelled() -> None:
    """A simulated bench gives its figures a label and no ratio."""
    said = text(document(row("sw", SW), row("hw", HW), simulated=True))
    assert said.startswith("SIMULATED") and "hw is" not in said and "saves" not in said


def test_break_even() -> None:
    """The break-even point is the smallest size from which every interval is below 1."""

    def found(below: set[int], sizes: tuple[int, ...] = (4096, 65536, 1 << 20)) -> list[str]:
        rows = [row("sw", SW, size, "nginx") for size in sizes]
        rows += [row("hw", HW if size in below else SW, size, "nginx") for size in sizes]
        return list(break_even(rows))

    assert found({65536, 1 << 20}) == ["nginx, 8 connections: offload pays from 64 KiB upward"]
    assert found({4096, 1 << 20}) == ["nginx, 8 connections: offload pays from 1 MiB upward"]
    assert found({4096}) == ["nginx, 8 connections: offload pays at no measured size"]
    assert found({4096}, (4096,)) == []


def test_cycles_stand_next_to_cores() -> None:
    """Cycles per byte are shown where every sample has them, else not at all."""
    rows = [row("sw", SW), row("hw", HW)]
    for sample in rows[0]["samples"]:
        sample["cycles"] = 31_250_000_000
    assert "cycles/byte" not in text(document(*rows))
    assert "cycles/byte" in (found := text(document(rows[0]))) and "2.5\n" in found


def test_samples_add_up() -> None:
    """A row's figures weigh each sample by its time."""
    two = row("sw", [1.0, 3.0])
    two["samples"][1]["seconds"] = 3.0
    assert whole(two).cores == 2.5 and whole(two).bytes == 25_000_000_000
    assert "1000" not in text(document(row("sw", SW))) and "1000" in text(
        document(row("sw", SW, 4096, "nginx"))
    )
