"""doctor: what the kernel and the processor lack, and only that, is named."""

from __future__ import annotations

import pytest

from offload.card.profile import DIRECTIONS, load_all
from offload.doctor.apps.run import ask
from offload.doctor.examine import Doctor
from tests.unit.doctor.fake_apps import STORAGE, AppHost
from tests.unit.doctor.fake_doctor import STAT, TRIAL, FakeHost
from tests.unit.doctor.test_doctor import codes, cpu_of, seen, table

NEWER = STAT + "TlsCurrTxRekey \t0\n"  # of a kernel that hands TLS 1.3 to cards


def test_a_library_is_not_blamed_for_its_kernel() -> None:
    """OpenSSL that gives nothing to a kernel that takes nothing is not the reason."""
    host = FakeHost()
    refused = {cell: {"ulp": 2} for cell in TRIAL["cells"]}
    host.trial(cells=refused, openssl={"asked": {}, "plain": {}})
    assert not codes(seen(host, "eth0")) & {"D501", "D502"}


def test_bugs_of_this_kernel_only() -> None:
    """Fixed bugs, other drivers' and those of the other direction are not named."""
    host = FakeHost()
    ids = {line.partition(":")[0] for f in seen(host, "eth0").devices[0].findings for line in f.detail}
    assert {"sendfile-beyond-end", "mlx5-get-psv"} <= ids
    assert not ids & {"tls-append-frag", "ch-ktls-tid-list", "bond-failover-encrypts-twice", "shown-as-hw"}
    tx = seen(host, "eth0", directions=("tx",)).devices[0]
    assert "mlx5-get-psv" not in str(tx.findings), "that is a matter of receive"


@pytest.mark.parametrize(
    ("driver", "flags", "reported"),
    [
        ("generic-gcm-aesni", "aes", ""),
        ("generic-gcm-vaes-avx10-256", "aes vaes vpclmulqdq", ""),
        ("gcm_base(ctr(aes-generic),ghash-generic)", "", ""),
        ("generic-gcm-aesni", "aes vaes", ""),
        ("gcm_base(ctr(aes-generic),ghash-generic)", "aes vaes vpclmulqdq", "D113"),
    ],
)
def test_instructions_of_the_processor(driver: str, flags: str, reported: str) -> None:
    """Only AES-GCM that the processor could do faster is named, by the driver that the kernel takes."""
    host = FakeHost()
    cpu_of(driver, flags)(host)
    assert codes(seen(host, "eth0")) & {"D113", "D114"} == ({reported} if reported else set())


def test_truth_table_of_a_kernel_that_hands_over_tls13() -> None:
    """A counter of the kernel says so; then TLS 1.3 with AES-GCM is the card's, and other ciphers are not."""
    host = FakeHost()
    host.answers["cat", "/proc/net/tls_stat"] = (0, NEWER, "")
    found = table(seen(host, "eth0"))
    assert found["tx 1.3 aes-gcm-128"] == found["rx 1.3 aes-gcm-256"] == found["tx 1.2 aes-gcm-128"] == "hw"
    assert found["tx 1.3 chacha20-poly1305"] == "sw"


def test_programs_on_a_kernel_that_hands_over_tls13() -> None:
    """Nobody is told to stop at TLS 1.2 there, and storage is the card's."""
    host = FakeHost()
    host.configured(
        "nginx",
        "/etc/nginx/nginx.conf:3: listen 443 ssl;",
        "/etc/nginx/nginx.conf:4: ssl_conf_command Options KTLS;",
    )
    host.answers["nginx", "-V"] = (0, "", "nginx version: nginx/1.23.4")
    assert "D602" in codes(seen(host, "eth0"))
    host.answers["cat", "/proc/net/tls_stat"] = (0, NEWER, "")
    assert "D602" not in codes(seen(host, "eth0"))
    storage = AppHost()
    storage.files["/proc/mounts"] = STORAGE["nfs"].encode()
    storage.answers["cat", "/proc/net/tls_stat"] = (0, NEWER, "")
    found = ask(storage, "nfs", "", diagnosis=Doctor(storage, DIRECTIONS, load_all()).diagnose(["eth0"]))
    card = {" ".join(w.cell) for w in found.rulings[0].cells if w.who == "hw"}
    assert found.state() == "ready" and "tx 1.3 aes-gcm-256" in card
