"""probe --try: what the card took is promised, what it left is not, and what cannot be tried says why.

The answers are made up: tests/nicsim and a lab show the program itself at work.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from offload.card.nic import Feature, Match, Nic
from offload.errors import NoPermission, OffloadError, Refused, RigError
from offload.host.base import Completed
from offload.host.local import LocalHost
from offload.probe.draft import draft
from offload.probe.look import Seen, Trial
from offload.probe.trial import offered
from offload.probe.verbs import valid

TX, RX = "tls-hw-tx-offload", "tls-hw-rx-offload"
KINDS = [f"{v} {c}" for v in ("1.2", "1.3") for c in ("aes-gcm-128", "aes-gcm-256", "chacha20-poly1305")]
SHOWN = ("tx_tls_encrypted_packets", "tx_tls_ctx", "rx_tls_decrypted_packets")


def nic(tx: bool = True, rx: bool = True, up: bool = True) -> Nic:
    """A card whose directions are on or off."""
    rows = {TX: Feature(TX, tx, False, tx), RX: Feature(RX, rx, False, rx)}
    return Nic("ac0", 9, up, "up", "", (), "acme", "1", "7", "", "", "", rows)


class FakeHost(LocalHost):
    """Answers `ethtool -S` with counters that grow, and the program with what the card took."""

    def __init__(self, answer: Mapping[str, Any] | str) -> None:
        super().__init__()
        self.answer = answer if isinstance(answer, str) else json.dumps(answer)
        self.looks = 0

    def run(self, argv: Any, **how: Any) -> Completed:
        """One of the two."""
        text = self.answer
        if argv[0] == "ethtool":
            self.looks += 1
            text = f"NIC statistics:\n tx_tls_ctx: {self.looks}\n tx_tls_ooo: 0\n rx_bytes: {self.looks}\n"
        return Completed(tuple(argv), 0, text.encode(), b"broken", 0.1)


def answer(*hw: str) -> dict[str, dict[str, str]]:
    """What the program prints of a card that takes these: `tx 1.2 aes-gcm-128`."""
    return {kind: {d: "hw" if f"{d} {kind}" in hw else "sw" for d in ("tx", "rx")} for kind in KINDS}


def drafted(card: Nic, trial: Trial) -> str:
    """The draft of a card after a trial, checked by the schema."""
    text = draft(Seen(card, Match(None), "6.1", ("", ""), "", "none", SHOWN, (), "", (), trial), "ac")
    valid(text, "ac")
    return text


def test_what_it_took_is_promised() -> None:
    """The promises are the kinds that the card took, and are no guess any more."""
    host = FakeHost(answer("tx 1.2 aes-gcm-128", "tx 1.2 aes-gcm-256", "rx 1.2 aes-gcm-128"))
    trial = offered(host, nic())
    text = drafted(nic(), trial)
    assert '  tx: {"1.2": [aes-gcm-128, aes-gcm-256]}  # seen: offered to the card' in text
    assert '  rx: {"1.2": [aes-gcm-128]}  # seen: offered to the card' in text
    assert 'cipher: aes-gcm-256, reason: "the card did not accept it"}  # seen: ' in text
    assert trial.moved == ("tx_tls_ctx",) and "# moved during --try: tx_tls_ctx" in text


def test_tls_13_is_promised_where_it_is_taken() -> None:
    """A card and kernel that take TLS 1.3 are believed, whatever kernels did before."""
    trial = offered(FakeHost(answer("tx 1.3 aes-gcm-128")), nic(rx=False))
    found = valid(drafted(nic(rx=False), trial), "ac")
    assert found.promised("tx", "1.3", "aes-gcm-128") and not found.promised("tx", "1.2", "aes-gcm-128")


def test_what_is_off_stays_a_guess() -> None:
    """A direction that is off was not tried, and the draft says how to switch it on."""
    trial = offered(FakeHost(answer("tx 1.2 aes-gcm-128")), nic(rx=False))
    text = drafted(nic(rx=False), trial)
    assert "# GUESS: aes-gcm-128 is what every driver of Linux 7.2 takes; off, so not tested" in text
    assert f"ethtool -K ac0 {RX} on" in text


def test_a_card_that_takes_nothing_promises_nothing() -> None:
    found = valid(drafted(nic(), offered(FakeHost(answer()), nic())), "ac")
    assert found.promises == frozenset() and "accepted none" in found.why_no_direction("tx")


@pytest.mark.parametrize(
    ("card", "said", "kind", "words"),
    [
        (nic(up=False), {}, Refused, "ip link set ac0 up"),
        (nic(False, False), {}, Refused, f"ethtool -K ac0 {TX} on; ethtool -K ac0 {RX} on"),
        (nic(), {"error": "Operation not permitted"}, NoPermission, "run it as root"),
        (nic(), {"error": "No such file or directory: 'ss'"}, RigError, "omit --try"),
        (nic(), "no json", RigError, "no answer from ac0: broken"),
        (nic(), "[1]", RigError, "no answer from ac0"),
    ],
)
def test_why_nothing_was_tried(card: Nic, said: Any, kind: type[OffloadError], words: str) -> None:
    """What stands in the way is told with the command that removes it."""
    with pytest.raises(kind) as caught:
        offered(FakeHost(said), card)
    assert words in str(caught.value)
