"""The reader of drivers' tables: what it finds in a made-up driver; it sees each kind of drift."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from offload.card.profile import Profile, find
from offload.card.profile_ids import undescribed
from tests.lib.catalogue.driver_tables import DRIVERS, Tables, drift, files, read, unlisted

SOURCE = {
    "funeth_main.c": "{ PCI_VDEVICE(FUNGIBLE, 0x0101) },\n{ PCI_VDEVICE(FUNGIBLE, 0x0181) },\n",
    "funeth_ethtool.c": "".join(
        f'\t"{name}",\n'
        for name in (
            "tx_tls_encrypted_packets",
            "tx_tls_encrypted_bytes  ",
            "tx_tls_ctx",
            "tx_tls_del",
            "tx_tls_ooo",
            "tx_tls_drop_no_sync_data",
            "tx_tls_resync",
            "tx_pkts",
        )
    ),
    "funeth_ktls.c": "case TLS_CIPHER_AES_GCM_128: {\nnetdev->hw_features |= NETIF_F_HW_TLS_TX;\n"
    "netdev->features |= NETIF_F_HW_TLS_TX;\n",
    "Kconfig": "config FUN_ETH\n",
    "Makefile": "funeth-$(CONFIG_TLS_DEVICE) += funeth_ktls.o\n",
}
COMMON = {
    "net/tls/Kconfig": "config TLS\n\tdepends on INET\nconfig TLS_DEVICE\n",
    "include/linux/pci_ids.h": "#define PCI_VENDOR_ID_FUNGIBLE\t\t0x1dad\n#define PCI_VENDOR_ID_X 0x1\n",
}


def tables(tmp_path: Path, name: str = "", old: str = "", new: str = "") -> Tables:
    """What is read of the made-up driver, with one text changed."""
    driver = DRIVERS["funeth"]
    for path in (*files(), *COMMON):
        text = COMMON.get(path, SOURCE.get(Path(path).name, "") if "funeth/" in path else "")
        assert Path(path).name != name or "funeth/" not in path or old in text
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text.replace(old, new) if Path(path).name == name else text)
    return read(tmp_path, driver)


def test_a_driver_that_is_as_its_profile_says_has_no_drift(tmp_path: Path) -> None:
    """All that the profile says is found, padded names and numbers included."""
    found = tables(tmp_path)
    assert drift(find("funeth"), found) == []
    assert found.ids == {(0x1DAD, 0x0101), (0x1DAD, 0x0181)} and "tx_tls_encrypted_bytes" in found.counters


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("funeth_main.c", "0x0181", "0x0182", "1dad:0181 (Fungible Ethernet, virtual function) is not in"),
        ("funeth_ethtool.c", "tx_tls_ctx", "tx_tls_add", "the driver has no counter tx_tls_ctx"),
        ("funeth_ethtool.c", "tx_pkts", "tx_tls_new", "counter tx_tls_new is in no list"),
        (
            "funeth_ktls.c",
            "GCM_128: {",
            "GCM_128:\ncase TLS_CIPHER_AES_GCM_256:",
            "the driver takes ['aes-gcm-128',",
        ),
        (
            "funeth_ktls.c",
            "->hw_features |= NETIF_F_HW_TLS_TX",
            "->hw_features |= NETIF_F_HW_TLS_RX",
            "the driver offers ['rx'], and promised are ('tx',)",
        ),
        ("funeth_ktls.c", "->features |=", "->vlan_features |=", "the driver starts with [] on"),
        ("Kconfig", "FUN_ETH", "FUNETH", "no Kconfig file has CONFIG_FUN_ETH"),
        ("Makefile", "TLS_DEVICE", "FUN_TLS", "the TLS part no longer depends on CONFIG_TLS_DEVICE alone"),
    ],
)
def test_each_kind_of_drift_is_reported(tmp_path: Path, name: str, old: str, new: str, said: str) -> None:
    """A table that differs from the profile in one thing gives one sentence about it."""
    wrong = drift(find("funeth"), tables(tmp_path, name, old, new))
    assert any(line.startswith(said) for line in wrong), wrong


def test_an_absent_counter_that_is_there_is_drift(tmp_path: Path) -> None:
    """A profile must not call absent what the driver counts."""
    profile: Profile = find("funeth")
    lacking = replace(profile.counters.tx, absent=("tx_tls_del",))
    changed = replace(profile, counters=replace(profile.counters, tx=lacking))
    assert drift(changed, tables(tmp_path)) == ["tx_tls_del is said to be absent"]


def test_a_new_card_of_a_driver_is_reported(tmp_path: Path) -> None:
    """An id that neither a profile nor the list of other cards has is named."""
    found = tables(tmp_path, "funeth_main.c", "0x0181) }", "0x0181) }, { PCI_VENDOR_ID_X, 0x0201 }")
    assert unlisted("funeth", found, [find("funeth")], undescribed()) == ["0001:0201"]
