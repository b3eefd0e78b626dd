"""Key schedules and the AEAD: vectors of the RFCs and of the TLS working group."""

from __future__ import annotations

from offload.suite.wire.keylog import Keylog
from offload.suite.wire.keys import AES128, AES256, Schedule, prf, schedules12, schedules13, traffic_epoch
from tests.unit.suite.wire.oracle.wire_hand import label

# RFC 8448 §3
CLIENT_HANDSHAKE = "b3eddb126e067f35a780b3abf45e2d8f3b1a950738f52e9600746a0e27a55a21"
SERVER_HANDSHAKE = "b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38"
CLIENT_TRAFFIC = "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5"
SERVER_TRAFFIC = "a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643"
CLIENT_DATA = (
    "a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a20441e2b6297"
    "4e1f5a6292a2977014bd1e3deae63aeebb21694915e4"
)


def keylog(random: bytes) -> Keylog:
    """The secrets of RFC 8448 as a key log has them."""
    values = {
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET": CLIENT_HANDSHAKE,
        "SERVER_HANDSHAKE_TRAFFIC_SECRET": SERVER_HANDSHAKE,
        "CLIENT_TRAFFIC_SECRET_0": CLIENT_TRAFFIC,
        "SERVER_TRAFFIC_SECRET_0": SERVER_TRAFFIC,
    }
    return Keylog({(name, random): bytes.fromhex(value) for name, value in values.items()}, 4)


def test_the_client_data_of_rfc_8448_opens() -> None:
    """The record of application data in RFC 8448 §3 decrypts to its 50 bytes."""
    found = schedules13(AES128, keylog(b"r"), b"r")
    assert found is not None
    epoch = found[0].get(1)
    assert epoch.open(23, 0, bytes.fromhex(CLIENT_DATA)) == bytes(range(50)) + b"\x17"
    assert epoch.seal(23, 0, b"", bytes(range(50)) + b"\x17").hex() == CLIENT_DATA
    assert epoch.open(23, 1, bytes.fromhex(CLIENT_DATA)) is None


def test_the_ivs_of_rfc_8448_are_derived() -> None:
    """The four traffic secrets of RFC 8448 §3 give its IVs."""
    ivs = [
        traffic_epoch(AES128, bytes.fromhex(s)).iv.hex()
        for s in (CLIENT_HANDSHAKE, SERVER_HANDSHAKE, CLIENT_TRAFFIC, SERVER_TRAFFIC)
    ]
    assert ivs == [
        "5bd3c71b836e0b76bb73265f",
        "5d313eb2671276ee13000b30",
        "5b78923dee08579033e523d9",
        "cf782b88dd83549aadf1e984",
    ]


def test_a_secret_that_is_missing_or_has_the_wrong_length_gives_no_keys() -> None:
    """TLS 1.3 needs all four secrets, as long as its hash."""
    log = keylog(b"r")
    assert schedules13(AES256, log, b"r") is None
    del log.secrets["SERVER_TRAFFIC_SECRET_0", b"r"]
    assert schedules13(AES128, log, b"r") is None


def test_the_next_epoch_comes_from_the_one_before() -> None:
    """A KeyUpdate derives `traffic upd` (RFC 8446 §7.2), checked with another HKDF."""
    secret = bytes.fromhex(CLIENT_TRAFFIC)
    schedule = Schedule([traffic_epoch(AES128, secret)], secret)
    again = label(label(secret, b"traffic upd", 32, "sha256"), b"traffic upd", 32, "sha256")
    schedule.get(1)
    assert schedule.get(2).iv == label(again, b"iv", 12, "sha256")
    assert len(schedule.epochs) == 3


def test_the_prf_of_tls_12_with_sha_256() -> None:
    """P_SHA256 gives the vector of the TLS working group (mail archive, 2009)."""
    out = prf(
        bytes.fromhex("9bbe436ba940f017b17652849a71db35"),
        b"test label",
        bytes.fromhex("a0ba9f936cda311827a6f796ffd5198c"),
        100,
        "sha256",
    )
    assert out.hex() == (
        "e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a6b301791e90d35c9c9a46b4e14baf9af"
        "0fa022f7077def17abfd3797c0564bab4fbc91666e9def9b97fce34f796789baa48082d122ee42c5a72e5a5110fff701"
        "87347b66"
    )


def test_the_prf_of_tls_12_with_sha_384() -> None:
    """P_SHA384 gives the vector of the TLS working group (mail archive, 2009)."""
    out = prf(
        bytes.fromhex("b80b733d6ceefcdc71566ea48e5567df"),
        b"test label",
        bytes.fromhex("cd665cf6a8447dd6ff8b27555edb7465"),
        148,
        "sha384",
    )
    assert out.hex().startswith(
        "7b0c18e9ced410ed1804f2cfa34a336a1c14dffb4900bb5fd7942107e81c83cde9ca0faa60be9fe3"
    )
    assert out.hex().endswith("8f3a26854308d5eaa3be85e0990703d73e56f")


def test_client_and_server_have_their_own_keys() -> None:
    """The key block of TLS 1.2 is dealt out in the order of RFC 5246 §6.3."""
    client, server = schedules12(AES128, b"m" * 48, b"c" * 32, b"s" * 32)
    block = prf(b"m" * 48, b"key expansion", b"s" * 32 + b"c" * 32, 40, "sha256")
    assert (client.epochs[0].iv, server.epochs[0].iv) == (block[32:36], block[36:40])
    sealed = client.epochs[0].seal(23, 7, bytes(8), b"text")
    assert client.epochs[0].open(23, 7, bytes(8) + sealed) == b"text"
    assert server.epochs[0].open(23, 7, bytes(8) + sealed) is None
