"""Counters: what is read, what is refused, and what a difference says."""

from __future__ import annotations

import pytest

from offload.card.counters import Delta, MissingCounter, Snapshot, driver_stats, parse, snapshot, tls_stat
from offload.card.profile import find
from offload.host.base import Completed

TLS_STAT = "TlsCurrTxSw                     \t0\nTlsTxDevice                     \t3\n"


class FakeHost:
    """Answers `cat /proc/net/tls_stat` and `ethtool -S`."""

    name = "fake"

    def __init__(self, tls: str | None, driver: str) -> None:
        self.answers = {"cat": tls, "ethtool": driver}

    def run(self, argv, **_):  # type: ignore[no-untyped-def]
        """A canned answer; exit 1 if there is none."""
        text = self.answers[argv[0]]
        return Completed(tuple(argv), 0 if text is not None else 1, (text or "").encode(), b"", 0.0)


def shot(at: float = 0.0, tls: dict[str, int] | None = None, **driver: int) -> Snapshot:
    return Snapshot("eth0", at, tls, driver)


def test_names_are_stripped_of_the_blanks_that_ch_ktls_pads_them_with() -> None:
    """`tx_tls_ctx   : 4` is tx_tls_ctx."""
    found, problems = parse("NIC statistics:\n     tx_tls_ctx                : 4\n     tx_tls_ooo: 0\n")
    assert found == {"tx_tls_ctx": 4, "tx_tls_ooo": 0} and problems == []


def test_rings_are_left_out() -> None:
    """Per-ring counters are not read, or a sum would count twice."""
    rings = (
        "rx0_tls_decrypted_packets tx12_packets qos_tx3_tls_ooo ch1_events rx_queue_0_drops rvec_2_tx_pkts"
    )
    text = "".join(f"  {name}: 5\n" for name in rings.split()) + "  rx_tls_err: 1\n  tx64_bytes_phy_x: 1\n"
    assert parse(text)[0].keys() == {"rx_tls_err"}


@pytest.mark.parametrize(
    "line",
    [
        "tx_tls_ctx: -1",
        f"tx_tls_ctx: {2**64}",
        "tx_tls_ctx: 0x10",
        "tx_tls_ctx: 1 2",
        "tx\x1b[2J: 1",
        "x" * 90 + ": 1",
        "tx_tls_ctx: \uff14",
    ],
)
def test_a_line_that_makes_no_sense_is_a_problem_not_a_value(line: str) -> None:
    """Hostile counter lines are named and not read."""
    found, problems = parse(f"NIC statistics:\n  ok: 1\n  {line}\n")
    assert found == {"ok": 1} and len(problems) == 1 and "\x1b" not in problems[0]


def test_the_largest_value_is_read_and_a_second_of_the_name_is_not() -> None:
    """2^64-1 is a value; a name given twice keeps the first and is told."""
    found, problems = parse(f"a: {2**64 - 1}\na: 5\n")
    assert found == {"a": 2**64 - 1} and "twice" in problems[0]


def test_a_flood_of_lines_is_cut() -> None:
    """A driver that shows a million counters does not fill the memory."""
    found, problems = parse("".join(f"c{i}: 1\n" for i in range(30_000)))
    assert len(found) <= 20_000 and "only the first" in problems[-1]


def test_tls_stat_is_read_by_name() -> None:
    """Position and number of counters do not matter (12 in 6.1, 17 in 7.2)."""
    assert tls_stat(FakeHost(TLS_STAT, "")) == ({"TlsCurrTxSw": 0, "TlsTxDevice": 3}, [])


def test_no_tls_module_is_not_zero() -> None:
    """An absent file is None, and asking for its counter is an error."""
    found = snapshot(FakeHost(None, "NIC statistics:\n  tx_tls_ctx: 1\n"), "eth0")
    assert found.tls is None and found["tx_tls_ctx"] == 1
    with pytest.raises(MissingCounter):
        found["TlsTxDevice"]


def test_a_driver_without_counters_is_empty() -> None:
    """`ethtool -S` that fails (`no stats available`) gives no counters and no error."""
    host = FakeHost(None, "")
    host.answers["ethtool"] = None
    assert driver_stats(host, "lo") == ({}, [])


def test_a_difference_counts_what_is_in_both() -> None:
    """A counter in only one snapshot is named, not taken for 0."""
    moved = shot(3.0, {"TlsTxDevice": 5}, a=7, new=1) - shot(1.0, {"TlsTxDevice": 3}, a=7, old=1)
    assert moved["TlsTxDevice"] == 2 and moved["a"] == 0 and moved.seconds == 2.0
    assert (moved.appeared, moved.vanished) == (("new",), ("old",))
    with pytest.raises(MissingCounter, match="no counter new in both"):
        moved["new"]
    assert moved.get("new") is None and moved.nonzero() == {"TlsTxDevice": 2}


def test_kernel_tls_loaded_in_between_started_at_zero() -> None:
    """The first snapshot may be older than the tls module."""
    assert (shot(1.0, {"TlsTxSw": 4}) - shot(0.0, None))["TlsTxSw"] == 4


def test_a_counter_that_goes_backwards_is_reported() -> None:
    """A counter that was reset, or lies, is an error to use; a gauge may fall."""
    moved = shot(1.0, {"TlsCurrTxSw": 0}, a=1) - shot(0.0, {"TlsCurrTxSw": 2}, a=9)
    assert moved.backwards == ("a",) and moved["TlsCurrTxSw"] == -2
    assert (moved.get("a"), moved.get("a", 7)) == (None, 7)
    with pytest.raises(MissingCounter, match="went backwards"):
        moved["a"]


def test_a_missing_counter_names_the_nearest() -> None:
    with pytest.raises(MissingCounter, match=r"did you mean tx_tls_ctx\?"):
        shot(tx_tls_ctx=1)["tx_tls_ctxx"]


def test_the_profile_maps_names() -> None:
    """The kernel document's name finds the driver's counter, as the profile says."""
    found = snapshot(FakeHost(None, "tx_tls_ctx: 2\n"), "eth0", find("connectx-6-dx"))
    assert found["tx_tls_ctx"] == 2
    renamed = Snapshot("x", 0.0, None, {"own": 3}, {"tx_tls_ctx": "own"})
    assert renamed["tx_tls_ctx"] == 3 and renamed["own"] == 3
    assert isinstance(renamed - renamed, Delta)
