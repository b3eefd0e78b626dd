"""The lock step of proof C keeps writes apart, and its programs are told what they must be."""

from __future__ import annotations

import socket
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from offload.errors import RigError
from offload.host.local import LocalHost
from offload.suite.traffic import drive, handoff, lockstep, stunnel
from offload.suite.traffic.certs import Placed
from offload.suite.traffic.drive import Sending, send, take

AT = Placed("/f", "/f/ca.pem", "/f/cert.pem", "/f/key.pem")


@pytest.fixture(scope="module")
def pump() -> Iterator[drive.Pump]:
    folder = f"/dev/shm/ktls-unit-{uuid.uuid4().hex}"
    with drive.running(LocalHost(), folder) as found:
        yield found
    LocalHost().run(["rm", "-rf", folder])


def meet(pump: drive.Pump, plan: Sending) -> tuple[drive.Transfer, socket.socket, socket.socket]:
    """A sender in lock step, its connection, and the one on which it hears what was taken."""
    number, port = pump.listen()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        near = pump.connect("127.0.0.1", listener.getsockname()[1], send(plan, number))
        data = listener.accept()[0]
    data.settimeout(20)
    return near, data, socket.create_connection(("127.0.0.1", port), 20)


@pytest.mark.parametrize("how", ["write", "sendfile"])
def test_a_write_waits_until_the_one_before_was_taken(pump: drive.Pump, how: str) -> None:
    """No byte of the next write is sent before the taker has said that it has all before it."""
    plan, taken = Sending("steps", (3, 700, 1, 16384), how), 0
    near, data, pace = meet(pump, plan)
    with data, pace:
        for size in plan.sizes:
            data.settimeout(20)
            assert len(data.recv(size, socket.MSG_WAITALL)) == size
            if size > 1:
                pace.sendall((taken + 1).to_bytes(8, "big"))
            data.settimeout(0.1)
            with pytest.raises(TimeoutError):
                data.recv(1)
            taken += size
            pace.sendall(taken.to_bytes(8, "big"))
    assert near.report().sent == drive.Part(plan.total, plan.sha256())


def test_a_taker_that_leaves_ends_the_sender(pump: drive.Pump) -> None:
    """A sender whose taker goes away says so, and does not send on."""
    near, data, pace = meet(pump, Sending("left", (10, 10)))
    with data:
        data.recv(10)
        pace.close()
        report = near.report()
    assert report.sent.bytes == 10 and "the receiver closed before it had 10 bytes" in report.error


def test_a_taker_says_how_much_it_has(pump: drive.Pump) -> None:
    """The taker's count comes after each read, and the payload is not touched by it."""
    number, port = pump.listen()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        far = pump.accept(number, take(pace=listener.getsockname()))
        with socket.create_connection(("127.0.0.1", port)) as data:
            data.sendall(b"a" * 500)
            pace = listener.accept()[0]
            pace.settimeout(20)
            counts = [int.from_bytes(pace.recv(8, socket.MSG_WAITALL), "big")]
            data.sendall(b"b")
            counts.append(int.from_bytes(pace.recv(8, socket.MSG_WAITALL), "big"))
        pace.close()
    assert counts == [500, 501] and far.report().taken.bytes == 501


def test_no_write_is_more_than_a_record() -> None:
    """The payload has every size around a record's edges, and none that would be cut in two."""
    plan = lockstep.payload("sizes")
    assert max(plan.sizes) == 16384 and {1, 16383, 16384} <= set(plan.sizes)
    assert 100_000 < plan.total < 200_000


def test_the_environment_names_the_provider_and_the_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seed is in one program's environment only; without a provider the rig is broken."""
    monkeypatch.setattr(lockstep, "PROVIDER", tmp_path / "none.so")
    with pytest.raises(RigError, match=r"none.so is not built"):
        lockstep.environment(LocalHost(), str(tmp_path), "client")
    (tmp_path / "none.so").touch()
    env = lockstep.environment(LocalHost(), str(tmp_path), "client")
    assert env == {"OPENSSL_CONF": f"{tmp_path}/detrand.cnf", "KTLS_OFFLOAD_TEST_RANDOM": "client"}
    written = Path(env["OPENSSL_CONF"])
    assert f"module = {tmp_path}/none.so\n" in written.read_text() and "client" not in written.read_text()
    assert stat.S_IMODE(written.stat().st_mode) == 0o644


def test_stunnel_without_sessions_and_with_a_name() -> None:
    """A service sends no tickets and names the server only if asked to."""
    plain = stunnel.Service("a", "1", "2").text(AT)
    assert "sessionResume" not in plain and "sni" not in plain
    assert "sessionResume = no\n" in stunnel.Service("a", "1", "2", resume=False).text(AT)
    assert "sni = peer.test\n" in stunnel.Service("a", "1", "2", client=True, sni="peer.test").text(AT)


def test_sslwrite_takes_the_options_of_the_helper() -> None:
    """The client that keeps its connection is called as the helper is."""
    argv = lockstep.sslwrite(["/x/ktls-handoff", "connect", "192.0.2.2", "4433"])
    assert argv == [str(lockstep.SSLWRITE), "connect", "192.0.2.2", "4433"]


def test_a_staple_is_asked_for_only_on_request() -> None:
    """The helper's hello is that of stunnel before 5.71, or from then on."""
    plain = handoff.connect("192.0.2.2", 4433, "/f/ca.pem")
    asking = handoff.connect("192.0.2.2", 4433, "/f/ca.pem", staple=True)
    assert "--staple" not in plain and [word for word in asking if word != "--staple"] == plain
