"""What a finished connection must show: every byte, and who did the TLS: the card or software."""

from __future__ import annotations

from typing import Any

from offload.card.profile import Cell
from offload.suite.traffic.drive import Report, Sending
from tests.lib.flow.flow import Flow

# Bytes that may arrive before the card knows where the records begin: what was sent before the receiver
# installed TLS_RX, and what one natural resync takes: two records if nothing else runs; at worst a window.
RX_START = 256 * 1024


def intact(seen: Report, plan: Sending) -> None:
    """Every byte arrived, and nothing else; the receiver decides."""
    assert seen.error == "", (
        f"the receiver ended with {seen.error} after {seen.taken.bytes} of {plan.total} bytes"
    )
    assert seen.taken.bytes == plan.total, f"{seen.taken.bytes} of {plan.total} bytes arrived"
    assert seen.taken.sha256 == plan.sha256(), f"{plan.total} bytes arrived, and their SHA-256 differs"


def count(flow: Flow, name: str) -> int:
    """How far a counter of the DUT moved; a promised counter that is not there is a failure of the card."""
    moved = flow.moved.get(name)
    assert moved is not None, f"counter {name} is missing or went backwards"
    return moved


def exactly(flow: Flow, **wanted: int) -> None:
    """These counters of the DUT moved by exactly this much."""
    found = {name: count(flow, name) for name in wanted}
    assert found == wanted, f"counted {found}, wanted {wanted}"


def handed_over(flow: Flow, cell: Cell) -> None:
    """The kernel took the connection, with the wanted version and cipher."""
    line = flow.line
    assert line.ok, f"ktls-handoff: {line.cause}: {line.message}"
    given, wanted = (line.via, line.version, line.kernel_cipher), ("ktls", cell.version, cell.cipher)
    assert given == wanted, f"the kernel was given {given}, wanted {wanted}"


def sent_by_card(flow: Flow, plan: Sending) -> None:
    """The card encrypted all of it: the socket, the kernel's and the card's own counters agree."""
    assert flow.line.tx == "hw", f"inet_diag shows transmit as {flow.line.tx}"
    exactly(flow, TlsTxDevice=1, TlsTxSw=0, tx_tls_ctx=1)
    done = count(flow, "tx_tls_encrypted_bytes")
    assert done >= plan.total, f"the card encrypted less than was sent: {done} of {plan.total} bytes"
    assert count(flow, "tx_tls_encrypted_packets") > 0, "the card encrypted bytes, and no packet"
    exactly(flow, tx_tls_drop_no_sync_data=0)


def encrypted(flow: Flow, total: int) -> None:
    """The card encrypted all of it, by the kernel's and the card's own counters."""
    assert (count(flow, "TlsTxDevice"), count(flow, "TlsTxSw")) == (1, 0)
    assert count(flow, "tx_tls_encrypted_bytes") >= total, "the card encrypted less than was sent"
    assert count(flow, "tx_tls_drop_no_sync_data") == 0


def received_by_card(flow: Flow, plan: Sending) -> None:
    """The card decrypted all of it but for the start of the stream: one natural resync is allowed."""
    assert flow.line.rx == "hw", f"inet_diag shows receive as {flow.line.rx}"
    exactly(flow, TlsRxDevice=1, TlsRxSw=0, rx_tls_ctx=1)
    done, asked = count(flow, "rx_tls_decrypted_bytes"), count(flow, "TlsRxDeviceResync")
    assert done >= plan.total - RX_START, f"the card decrypted too little: {done} of {plan.total} bytes"
    assert asked <= 1, f"nothing was lost, and TlsRxDeviceResync counted {asked}, wanted at most 1"
    exactly(flow, TlsDecryptError=0, rx_tls_err=0)


def not_by_card(flow: Flow, direction: str) -> None:
    """The card did nothing in this direction: its counters did not move at all."""
    names = {
        "tx": (
            "TlsTxDevice",
            "tx_tls_encrypted_packets",
            "tx_tls_encrypted_bytes",
            "tx_tls_ctx",
            "tx_tls_ooo",
        ),
        "rx": ("TlsRxDevice", "rx_tls_decrypted_packets", "rx_tls_decrypted_bytes", "rx_tls_ctx"),
    }[direction]
    moved = {name: n for name in names if (n := flow.moved.get(name, 0)) != 0}
    assert not moved, f"{direction} offload is off, or not for this cell, and the card counted {moved}"


def done_by_software(flow: Flow, direction: str) -> None:
    """Kernel software did this direction, and shows it: in inet_diag and in tls_stat."""
    shown, name = (flow.line.tx, "TlsTxSw") if direction == "tx" else (flow.line.rx, "TlsRxSw")
    assert shown == "sw", f"inet_diag shows {direction} as {shown}"
    exactly(flow, **{name: 1})
    not_by_card(flow, direction)


def note(evidence: dict[str, Any], flow: Flow, plan: Sending, by: str) -> None:
    """Keep what the report shows of a connection."""
    evidence.update(offload=by, bytes=plan.total, counters=flow.tls(), sha256=plan.sha256())
