"""The proof that an arm was what its name says: each lie is met by the counter that gives it away."""

from __future__ import annotations

from dataclasses import replace

import pytest

from offload.card.counters import Delta
from offload.card.profile import find
from offload.suite.measure.arms import Moved, NoFigure, check, features, impossible

CARD, T6 = find("connectx-6-dx"), find("chelsio-t6")
MIB = 1 << 20
CARRIED = {"tx": 11 * MIB, "rx": 11 * MIB}
TRUE = {
    "sw": {"TlsTxSw": 2, "TlsRxSw": 2},
    "hw": {"TlsTxDevice": 2, "TlsRxSw": 2, "tx_tls_encrypted_bytes": 10 * MIB},
    "hw-zc": {"TlsTxDevice": 2, "TlsRxSw": 2, "tx_tls_encrypted_bytes": 10 * MIB},
    "user": {},
    "plain": {},
}
KINDS = {"sw": ("sw", "sw"), "hw": ("hw", "hw"), "hw-zc": ("hw", "kernel"), "user": (), "plain": ("none",)}
ZERO = dict.fromkeys(
    (
        "TlsTxSw",
        "TlsRxSw",
        "TlsTxDevice",
        "TlsRxDevice",
        "TlsDecryptError",
        "tx_tls_encrypted_bytes",
        "rx_tls_decrypted_bytes",
    ),
    0,
)


def judge(arm: str, moved: Moved, counted: dict[str, int], direction: str = "tx") -> None:
    """Hold counters against an arm's name."""
    check(arm, direction, moved, Delta("eth0", 1.0, {**ZERO, **counted}), CARRIED, CARD)


@pytest.mark.parametrize("arm", TRUE)
def test_true_arms_pass(arm: str) -> None:
    """An arm whose counters say what its name says has a figure."""
    judge(arm, Moved(10 * MIB, 0, 2, kinds=KINDS[arm]), TRUE[arm])


@pytest.mark.parametrize(
    ("arm", "counted", "why"),
    [
        ("hw", TRUE["sw"], "TlsTxDevice 0, TlsTxSw 2: it ran as another arm"),
        ("hw", {**TRUE["hw"], "TlsTxSw": 1}, "TlsTxSw 1"),
        ("hw", {**TRUE["hw"], "tx_tls_encrypted_bytes": 8 * MIB}, "the card counted tx_tls_encrypted_bytes"),
        ("hw", {**TRUE["hw"], "TlsDecryptError": 1}, "records did not decrypt"),
        ("sw", TRUE["hw"], "TlsTxDevice 2"),
        ("sw", {**TRUE["sw"], "tx_tls_encrypted_bytes": 1}, "wanted 0"),
        ("user", TRUE["sw"], "it ran as another arm"),
        ("plain", {"tx_tls_encrypted_bytes": 5}, "wanted 0"),
        ("sw", {}, "TlsTxSw 0: it ran as another arm"),
    ],
)
def test_lies_are_met(arm: str, counted: dict[str, int], why: str) -> None:
    """An arm that ran as another one gives no figure, but a failure that names the counter."""
    with pytest.raises(NoFigure, match=why):
        judge(arm, Moved(10 * MIB, 0, 2), counted)


def test_esp_by_the_card_is_counted_by_it() -> None:
    """An arm of ESP by the card is in the driver's counter, one by software is not.

    A driver that does not count ESP is not held to it: its states are asked instead (test_measure_ipsec).
    """
    moved = Moved(10 * MIB, 0, 1)
    judge("esp-128-hw", moved, {"ipsec_tx_bytes": 10 * MIB})
    judge("esp-128", moved, {"ipsec_tx_bytes": 0})
    judge("esp-128-hw", moved, {})
    with pytest.raises(NoFigure, match="the card counted ipsec_tx_bytes 0, wanted"):
        judge("esp-128-hw", moved, {"ipsec_tx_bytes": 0})
    with pytest.raises(NoFigure, match="ipsec_tx_bytes 1500, wanted 0"):
        judge("esp-128", moved, {"ipsec_tx_bytes": 1500})


def test_no_traffic_no_figure() -> None:
    """Nothing moved, or moved on another way, or sockets of another kind: no figure."""
    with pytest.raises(NoFigure, match="no payload moved"):
        judge("plain", Moved(0, 0, 1), {})
    with pytest.raises(NoFigure, match="the traffic took another path"):
        judge("plain", Moved(100 * MIB, 0, 1), {})
    with pytest.raises(NoFigure, match="sockets say sw, wanted hw"):
        judge("hw", Moved(10 * MIB, 0, 2, kinds=("hw", "sw")), TRUE["hw"])
    with pytest.raises(NoFigure, match=r"no payload moved \(rx\)"):
        judge("plain", Moved(MIB, 0, 2), {}, "both")


def test_receive_starts_in_software() -> None:
    """A receiving card may miss the start of each stream, and no more."""
    counted = {"TlsRxDevice": 2, "TlsTxSw": 2, "rx_tls_decrypted_bytes": 9 * MIB - MIB // 2}
    judge("hw", Moved(0, 10 * MIB, 2), counted, "rx")
    with pytest.raises(NoFigure, match="rx_tls_decrypted_bytes"):
        judge("hw", Moved(0, 10 * MIB, 2), {**counted, "rx_tls_decrypted_bytes": 8 * MIB}, "rx")


def test_a_card_that_counts_packets_only() -> None:
    """A profile without a byte counter is judged by packets."""
    tx = replace(CARD.counters.tx, required=("tx_tls_encrypted_packets",))
    profile = replace(CARD, counters=replace(CARD.counters, tx=tx))
    delta = Delta("eth0", 1.0, {**ZERO, "TlsTxDevice": 1, "tx_tls_encrypted_packets": 9})
    check("hw", "tx", Moved(10 * MIB, 0, 1), delta, CARRIED, profile)
    with pytest.raises(NoFigure, match="tx_tls_encrypted_packets"):
        check("hw", "tx", Moved(10 * MIB, 0, 1), Delta("eth0", 1.0, {"TlsTxDevice": 1}), CARRIED, profile)


def test_what_cannot_be() -> None:
    """An arm that cannot be is named with its reason, before anything runs."""
    assert impossible("hw", "tx", "stream", CARD, "aes-gcm-128", "1.2") == ""
    assert "serves" in impossible("sw", "rx", "nginx", CARD, "aes-gcm-128", "1.2")
    assert "transmit" in impossible("hw-zc", "rx", "stream", CARD, "aes-gcm-128", "1.2")
    assert "no profile" in impossible("hw", "tx", "stream", None, "aes-gcm-128", "1.2")
    assert "T6" in impossible("hw", "both", "stream", T6, "aes-gcm-128", "1.2")
    assert features("hw", "rx") == {"tx": False, "rx": True} and features("sw", "both") == {
        "tx": False,
        "rx": False,
    }
