"""The traffic room moves payload between two network namespaces, in user space."""

from __future__ import annotations

import os
import re
import socket
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from types import SimpleNamespace

import pytest

from offload.cmd import wait_until
from offload.errors import OffloadError, RigError
from offload.host.local import LocalHost
from offload.suite.traffic import certs, drive, handoff, openssl, stunnel
from offload.suite.traffic.drive import send, take
from offload.suite.traffic.pump_channel import Channel
from offload.suite.traffic.stunnel_resident import Resident

CAN = os.geteuid() == 0 and LocalHost().run(["ip", "netns", "add", "ktls-probe"], check=False).rc == 0
if CAN:
    LocalHost().run(["ip", "netns", "del", "ktls-probe"])
pytestmark = pytest.mark.skipif(not CAN, reason="needs root and network namespaces")
DUT, PEER = "192.0.2.1", "192.0.2.2"


def ip(*argv: str) -> None:
    """One change of the network."""
    LocalHost().run(["ip", *argv])


@pytest.fixture(scope="module")
def bench() -> Iterator[SimpleNamespace]:
    """Two namespaces joined by a veth pair, a pump in each, certificates placed for both."""
    tag = uuid.uuid4().hex[:6]
    names = [f"kt-a{tag}", f"kt-b{tag}"]
    with ExitStack() as undo:
        for name in names:
            ip("netns", "add", name)
            undo.callback(ip, "netns", "del", name)
        ip("-n", names[0], "link", "add", "v0", "type", "veth", "peer", "name", "v0", "netns", names[1])
        for name, address in zip(names, (DUT, PEER), strict=True):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", "v0")
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", "v0", "up")
        dut, peer = (LocalHost(name) for name in names)
        folder = f"/run/ktls-offload-unit-{tag}"
        undo.callback(LocalHost().run, ["rm", "-rf", folder])
        at = undo.enter_context(certs.placed(certs.make([DUT, PEER]), peer, folder))
        pumps = [undo.enter_context(drive.running(host, folder)) for host in (dut, peer)]
        yield SimpleNamespace(dut=dut, peer=peer, at=at, a=pumps[0], b=pumps[1])


def test_a_sink_behind_stunnel_sees_every_byte(bench: SimpleNamespace) -> None:
    """A user-space client's payload reaches the sink behind an unmodified stunnel."""
    listener, port = bench.b.listen()
    plan = drive.sending("stunnel", 200_001, 16_385)
    with stunnel.running(bench.peer, [stunnel.Service("sink", ":::4433", f"127.0.0.1:{port}")], bench.at):
        sink = bench.b.accept(listener, take())
        argv = openssl.client(PEER, 4433, bench.at)
        bench.a.spawn(argv, send(plan), env=openssl.environment(bench.dut, bench.at, ktls=False)).report()
        seen = sink.report()
    assert seen.took(plan) and seen.error == ""


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_s_client_to_s_server(bench: SimpleNamespace, version: str) -> None:
    """The two openssl programs are ends of their own."""
    plan = drive.sending(f"openssl {version}", 100_000)
    env = openssl.environment(bench.peer, bench.at, ktls=False)
    sink = bench.b.spawn(openssl.server(4434, bench.at, version=version), take(), env=env, port=4434)
    sink.listening()
    bench.a.spawn(openssl.client(PEER, 4434, bench.at, version=version), send(plan), env=env).report()
    seen = sink.report()
    assert seen.took(plan) and seen.error == ""


def sunk(bench: SimpleNamespace, resident: Resident, port: int, seed: str) -> tuple[int, str]:
    """Send a payload to a sink behind the resident: its process id, and what it said."""
    listener, plain = bench.b.listen()
    plan = drive.sending(seed, 50_001)
    with resident.serving([stunnel.Service(seed, f":::{port}", f"127.0.0.1:{plain}")]) as said:
        sink = bench.b.accept(listener, take())
        env = openssl.environment(bench.dut, bench.at, ktls=False)
        bench.a.spawn(openssl.client(PEER, port, bench.at), send(plan), env=env).report()
        assert sink.report().took(plan)
        return resident.pid, said()


def test_a_resident_stunnel_serves_one_configuration_after_another(bench: SimpleNamespace) -> None:
    """One process serves what was asked for last, and shows each use its log."""
    resident = Resident(bench.peer, bench.at)
    try:
        uses = [sunk(bench, resident, 4450 + number, f"use{number}") for number in range(3)]
        assert len({pid for pid, _ in uses}) == 1
        for number, (_, said) in enumerate(uses):
            assert re.findall(r"Service \[(\w+)\] accepted", said) == [f"use{number}"], said
        open_ports = bench.peer.run(["ss", "-Hltn"]).text
        assert ":4452 " in open_ports and ":4450 " not in open_ports and ":4451 " not in open_ports
    finally:
        resident.stop()
    assert ":4452 " not in bench.peer.run(["ss", "-Hltn"]).text


def test_nothing_of_a_resident_stunnel_reaches_the_next_use(bench: SimpleNamespace) -> None:
    """A failed block, an open connection and a wrong configuration each end the process."""
    resident = Resident(bench.peer, bench.at)
    listener, plain = bench.b.listen()
    service = stunnel.Service("left", ":::4460", f"127.0.0.1:{plain}")
    try:
        pids = [sunk(bench, resident, 4461, "first")[0]]
        with pytest.raises(ZeroDivisionError), resident.serving([service]):
            assert resident.pid == pids[0]
            raise ZeroDivisionError
        assert resident.pid == 0
        pids.append(sunk(bench, resident, 4462, "second")[0])
        with resident.serving([service]) as said:
            bench.b.accept(listener, take())
            kept = bench.a.connect(PEER, 4460, take())
            wait_until(lambda: "accepted connection" in said(), 30, "the connection")
        assert resident.pid == 0
        kept.give_up()
        pids.append(sunk(bench, resident, 4463, "third")[0])
        with pytest.raises(RigError, match="stunnel ended at once"):
            with resident.serving([stunnel.Service("wrong", "no-such-address:x", "127.0.0.1:1")]):
                pass
        pids.append(sunk(bench, resident, 4464, "fourth")[0])
        assert len(set(pids)) == 4
    finally:
        resident.stop()


def test_stunnel_client_brings_a_source_to_us(bench: SimpleNamespace) -> None:
    """stunnel as a client carries a source's payload to a server of ours, sendfile included."""
    plan = drive.sending("source", 70_000, 1000, how="sendfile")
    env = openssl.environment(bench.dut, bench.at, ktls=False)
    sink = bench.a.spawn(openssl.server(4435, bench.at), take(), env=env, port=4435)
    sink.listening()
    service = stunnel.Service("source", "127.0.0.1:4436", f"{DUT}:4435", client=True)
    with stunnel.running(bench.peer, [service], bench.at):
        assert bench.b.connect("127.0.0.1", 4436, send(plan)).report().error == ""
        seen = sink.report()
    assert seen.took(plan)


def test_a_gate_stops_a_transfer_until_it_is_opened(bench: SimpleNamespace) -> None:
    """A transfer stands at its gate, and then goes on to the end."""
    listener, port = bench.a.listen()
    sink = bench.a.accept(listener, take())
    source = bench.a.connect("127.0.0.1", port, send(drive.sending("gate", 5000, 1000, gate=2)))
    source.at_gate()
    source.go()
    assert sink.report().taken.bytes == source.report().sent.bytes == 5000


def test_a_receive_buffer_of_a_size_stays_so(bench: SimpleNamespace) -> None:
    """The kernel doubles what is asked for (socket(7)), and lets it grow no more."""
    plan = drive.sending("buffer", 3_000_000, gate=20)
    listener, port = bench.b.listen()
    far = bench.b.accept(listener, take(buffer=65536))
    near = bench.b.connect("127.0.0.1", port, send(plan))
    near.at_gate()
    rows = bench.peer.run(["ss", "-HtnmO", f"sport = :{port}"]).text.splitlines()
    near.go()
    assert near.report().error == "" and far.report().took(plan)
    assert len(rows) == 1 and ",rb131072," in rows[0], rows


def test_one_connection_carries_payload_in_both_directions(bench: SimpleNamespace) -> None:
    """An end that takes a known length and then sends gives two parts, each with its hash."""
    listener, port = bench.a.listen()
    there, back = drive.sending("there", 30_000, 7000), drive.sending("back", 20_000)
    far = bench.a.accept(listener, send(there), take())
    near = bench.a.connect("127.0.0.1", port, take(there.total), send(back)).report()
    assert near.took(there) and far.report().took(back)


def test_fallback_carries_the_payload(bench: SimpleNamespace) -> None:
    """ktls-handoff hands over a socket, stunnel's plain side where this kernel has no kTLS."""
    listener, port = bench.b.listen()
    plan = drive.sending("fallback", 100_000)
    with stunnel.running(bench.peer, [stunnel.Service("sink", ":::4437", f"127.0.0.1:{port}")], bench.at):
        sink = bench.b.accept(listener, take())
        argv = handoff.connect(PEER, 4437, bench.at.ca, fallback="/usr/bin/stunnel4")
        sent, seen = bench.a.handoff(argv, send(plan)).report(), sink.report()
    assert sent.handoff is not None and sent.handoff.via in ("stunnel", "ktls")
    assert seen.took(plan)


def test_a_refused_handoff_is_reported_with_its_cause(bench: SimpleNamespace) -> None:
    """A helper that cannot connect gives its cause."""
    transfer = bench.a.handoff(handoff.connect(PEER, 9, bench.at.ca))
    with pytest.raises(OffloadError, match="no connection on kt-a"):
        transfer.opened()
    assert transfer.report().handoff is not None


def test_stunnel_that_does_not_start_shows_its_log(bench: SimpleNamespace) -> None:
    """A wrong service is a broken rig, and stunnel's own words are shown."""
    wrong = stunnel.Service("sink", ":::4438", "127.0.0.1:1", ciphers="NO-SUCH-CIPHER")
    with pytest.raises(RigError, match="NO-SUCH-CIPHER|cipher"):
        with stunnel.running(bench.peer, [wrong], bench.at, name="wrong"):
            pass


def test_a_lost_byte_is_seen(bench: SimpleNamespace) -> None:
    """A sink that got one byte less, or another byte, does not compare equal."""
    listener, port = bench.a.listen()
    sink = bench.a.accept(listener, take())
    bench.a.connect("127.0.0.1", port, send(drive.sending("lost", 999))).report()
    seen = sink.report()
    assert seen.took(drive.sending("lost", 999))
    assert not seen.took(drive.sending("lost", 1000)) and not seen.took(drive.sending("last", 999))


@pytest.mark.parametrize("ended", ["", "close_notify"])
def test_an_end_that_has_been_seen_may_be_gone(ended: str) -> None:
    """Nobody minds a peer that closed after its end was read; one that left before is told."""
    ours, theirs = socket.socketpair()
    channel = Channel(ours, 5)
    channel.ktls, channel.closed = True, ended
    theirs.close()
    with nullcontext() if ended else pytest.raises(BrokenPipeError):
        channel.finish()
    assert channel.closed == ended
    channel.close()


def test_keys_lie_in_memory_and_are_wiped() -> None:
    """A placed key is 0600 on tmpfs while it is used, and gone after."""
    host, folder = LocalHost(), f"/dev/shm/ktls-unit-{uuid.uuid4().hex}"
    with certs.placed(certs.make(["192.0.2.9"]), host, folder) as at:
        assert host.run(["stat", "-c", "%a %A", at.key]).text.split()[0] == "600"
        assert host.run(["stat", "-f", "-c", "%T", folder]).text.strip() == "tmpfs"
    assert host.run(["ls", folder]).text == ""
    host.run(["rmdir", folder])
