"""What stands in for the counters that a driver does not have."""

from __future__ import annotations

from typing import Any

from offload.card.counters import Snapshot
from offload.card.profile import find
from tests.lib.flow.stand_ins import HEADERS, StandIns

TLS = {"TlsTxDevice": 3, "TlsCurrTxDevice": 1, "TlsRxDevice": 2, "TlsCurrRxDevice": 0, "TlsDecryptError": 4}


class Host:
    """A host of which only the MTU is asked."""

    def __init__(self) -> None:
        self.mtu = 1500

    def read(self, path: str) -> bytes:
        """The MTU."""
        assert path == "/sys/class/net/nicsim0/mtu"
        return f"{self.mtu}\n".encode()


def seen(tx: int, rx: int) -> Snapshot:
    """Counters of an nfp."""
    driver = {"tx_tls_encrypted_packets": tx, "rx_tls_decrypted_packets": rx}
    return Snapshot("nicsim0", 0.0, TLS, driver)


def test_bytes_are_packets_as_full_as_the_mtu_allows() -> None:
    """Bytes follow packets; where the MTU changed meanwhile, the larger one counts."""
    host: Any = Host()
    ins = StandIns(find("agilio-nfp"))
    first = ins.add(host, seen(10, 0))
    host.mtu = 9000
    moved = ins.add(host, seen(12, 1)) - first
    assert moved["tx_tls_encrypted_bytes"] == 2 * (9000 - HEADERS)
    host.mtu = 1500
    again = ins.add(host, seen(13, 1)) - first
    assert again["tx_tls_encrypted_bytes"] == 3 * (9000 - HEADERS) and again["rx_tls_decrypted_bytes"] == 8948


def test_contexts_and_errors_are_those_of_the_kernel() -> None:
    """tls_stat tells contexts taken and given back, and refused records."""
    host: Any = Host()
    values = StandIns(find("agilio-nfp")).add(host, seen(0, 0)).values()
    assert (values["tx_tls_ctx"], values["tx_tls_del"]) == (3, 2)
    assert (values["rx_tls_ctx"], values["rx_tls_del"], values["rx_tls_err"]) == (2, 2, 4)


def test_nothing_stands_in_where_the_profile_says_that_it_counts() -> None:
    """A promised counter that is not there stays missing, so that its proof fails."""
    shown = seen(5, 5)
    assert StandIns(find("connectx-7")).add(None, shown) is shown  # type: ignore[arg-type]
