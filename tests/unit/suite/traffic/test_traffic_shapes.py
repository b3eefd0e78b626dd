"""Every way to write gives the same bytes, and keys and sequence numbers are checked first."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from offload.errors import ConfigError
from offload.host.local import LocalHost
from offload.suite.traffic import drive, handoff, pump_methods, rawkeys
from offload.suite.traffic.drive import Sending, send, take

SIZES = (1, 5000, 16385, 70_001)


@pytest.fixture(scope="module")
def pump() -> Iterator[drive.Pump]:
    folder = f"/dev/shm/ktls-unit-{uuid.uuid4().hex}"
    with drive.running(LocalHost(), folder) as found:
        yield found
    LocalHost().run(["rm", "-rf", folder])


def carried(pump: drive.Pump, plan: Sending) -> tuple[drive.Transfer, drive.Transfer]:
    """Both ends of a plain connection that carries a plan."""
    listener, port = pump.listen()
    return pump.connect("127.0.0.1", port, send(plan)), pump.accept(listener, take())


@pytest.mark.parametrize("how", sorted(set(pump_methods.METHODS) - {"zerocopy"}))
def test_every_method_gives_the_same_bytes(pump: drive.Pump, how: str) -> None:
    """What arrives is the payload of the plan, whatever way it was written."""
    plan = Sending(f"way {how}", SIZES, how, offset=4095)
    near, far = carried(pump, plan)
    assert near.report().error == "" and far.report().took(plan)


def test_zerocopy_is_for_kernel_tls(pump: drive.Pump) -> None:
    """The option of kernel TLS is refused on a plain socket, and the report says so."""
    near, far = carried(pump, Sending("zerocopy", SIZES, "zerocopy"))
    assert near.report().error.startswith("ENOPROTOOPT") and far.report().taken.bytes == 0


def test_a_file_is_changed_on_request(pump: drive.Pump) -> None:
    """The file is as it was until the gate opens, and the pump says when it has changed it."""
    plan = Sending("alter", (5000,), "sendfile", alter=(0, 5000))
    near, far = carried(pump, plan)
    near.at_gate()
    near.go()
    near.altered()
    assert near.report().sent.bytes == 5000 and far.report().taken.bytes == 5000


def test_keys_are_random_and_numbered() -> None:
    """Keys have the kernel's layout, differ each time, and hold the number asked for."""
    one, other = (rawkeys.info("aes-gcm-128", (1 << 48) - 3) for _ in range(2))
    assert len(one) == 40 and one[:4] == other[:4] and one[4:32] != other[4:32]
    assert one[-8:] == b"\x00\x00\xff\xff\xff\xff\xff\xfd" and len(rawkeys.info("aes-gcm-256", 0)) == 56


@pytest.mark.parametrize(("cipher", "number"), [("aes", 0), ("aes-gcm-128", -1), ("aes-gcm-128", 1 << 64)])
def test_no_keys_for_nonsense(cipher: str, number: int) -> None:
    """A cipher or number that is none is refused, with what is possible."""
    with pytest.raises(ConfigError, match="aes-gcm-256|2\\^64"):
        rawkeys.info(cipher, number)


def test_keys_are_in_two_files_and_then_gone() -> None:
    """What one end sends with is what the other receives with; 0600, and wiped after."""
    host, folder = LocalHost(), f"/dev/shm/ktls-unit-{uuid.uuid4().hex}"
    with rawkeys.placed(((host, folder), (host, folder)), "aes-gcm-128", 7, 9) as (near, far):
        ours, theirs = host.read(near), host.read(far)
        assert ours == theirs[40:] + theirs[:40] and (ours[39], theirs[39]) == (7, 9)
        assert {host.run(["stat", "-c", "%a", path]).text.strip() for path in (near, far)} == {"600"}
    assert host.run(["ls", folder]).text == ""
    host.run(["rmdir", folder])


@pytest.mark.parametrize("number", [0, -1, 1 << 32])
def test_no_such_sequence_number(number: int) -> None:
    """A sequence number that TCP does not have, or the kernel would not keep, is refused."""
    with pytest.raises(ConfigError, match="1 to 4294967295"):
        handoff.begin_at(number)
