"""Proof C: connections with the same random numbers, captured beyond the card, against one of stunnel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offload.card.profile import Cell
from offload.suite.traffic import handoff, lockstep, stunnel
from offload.suite.traffic.certs import NAME
from offload.suite.traffic.drive import Sending, Transfer, send, take
from offload.suite.wire.compare import compare, record, verdict
from offload.suite.wire.streams import load
from tests.lib.flow import proof
from tests.lib.flow.flow import Flow
from tests.lib.rig.rig import End, Rig

# who sends from the DUT: stunnel's own code, stunnel with kernel TLS, or kernel TLS by three other ways
STUNNEL, FD = ("stunnel", "stunnel-ktls"), ("write", "sendfile")
CLIENT, SERVER = "client", "server"  # seeds of the random numbers
STAPLE = bytes.fromhex("000500050100000000")  # status_request in a ClientHello (RFC 6066 section 8)
SERVICES = 10  # of a server: each is used once, because the blinding of an RSA key goes on from the first use


@dataclass(frozen=True)
class Run:
    """A connection that was made: what both ends saw, what was counted, what was on the wire."""

    cell: Cell
    arm: str
    plan: Sending
    flow: Flow
    capture: Path
    port: int


class Streams:
    """Connections from the DUT to unmodified stunnels, which live as long as this does."""

    def __init__(self, rig: Callable[[], Rig], folder: Path) -> None:
        self._rig, self._folder, self._undo = rig, folder, ExitStack()
        self._servers: list[int] = []  # ports of services that nobody has used
        self._clients: dict[tuple[Cell, str, str], tuple[int, int]] = {}  # entry, and server's port
        self._references: dict[Cell, Run] = {}
        self._plain: tuple[int, int] | None = None  # listener behind every server: its number and port
        self._runs = 0

    @property
    def rig(self) -> Rig:
        """Return what it all stands on."""
        return self._rig()

    def close(self) -> None:
        """End every stunnel."""
        self._undo.close()

    def reference(self, cell: Cell) -> Run:
        """Return stunnel to stunnel in user space: made once, checked, then the same for all."""
        if cell not in self._references:
            run = self.run(cell, "stunnel")
            proof.intact(run.flow.far, run.plan)
            done_by(run, "user")
            self._references[cell] = run
        return self._references[cell]

    def run(self, cell: Cell, arm: str, client: str = CLIENT) -> Run:
        """Make one connection by this arm; `client`: the seed of the client's random numbers."""
        dut, peer = self.rig.end("dut"), self.rig.end("peer")
        plan = lockstep.payload("proof C", "sendfile" if arm == "sendfile" else "write")
        entry, port = self._client(cell, arm, client) if arm in STUNNEL else (0, self._server())
        pace = dut.pump.listen(host=dut.side.v4)
        with self._captured() as capture:
            before = self.rig.counters()
            assert self._plain is not None
            far = peer.pump.accept(self._plain[0], take(pace=(dut.side.v4, pace[1])))
            near = self._begin(cell, arm, client, entry or port, send(plan, pace[0]))
            flow = Flow(near.report(), _end(far, near), self.rig.counters() - before)
        dut.pump.close(pace[0])
        return Run(cell, arm, plan, flow, capture, port)

    @contextmanager
    def _captured(self) -> Iterator[Path]:
        """Capture between the card and everything else; the file is here when the block ends."""
        self._runs += 1
        bench, folder = self.rig.bench, self._folder / str(self._runs)
        folder.mkdir()
        assert bench.wire is not None
        with self.rig.captures.taking({"wire": (bench.wire, bench.wire_ports[0])}, folder):
            yield folder / "wire.pcapng"

    def _begin(self, cell: Cell, arm: str, client: str, port: int, step: Mapping[str, Any]) -> Transfer:
        """Begin to send on the DUT."""
        dut = self.rig.end("dut")
        if arm in STUNNEL:
            return dut.pump.connect("127.0.0.1", port, step)
        env = lockstep.environment(dut.side.host, dut.at.folder, client)
        argv = handoff.connect(
            self.rig.bench.peer.v4,
            port,
            dut.at.ca,
            version=cell.version,
            cipher=cell.cipher,
            staple=self._staples(cell),
        )
        if arm in FD:
            return dut.pump.handoff(argv, step, env=env)
        return dut.pump.spawn(lockstep.sslwrite(argv), step, env=env)

    def _staples(self, cell: Cell) -> bool:
        """Say whether the stunnel of this rig asks for a stapled OCSP answer: 5.68 does not, 5.74 does."""
        first = _streams(self.reference(cell))[0]
        return STAPLE in first[:512]

    def _server(self) -> int:
        """Return the port of a service that nobody has used: its state is that of a stunnel just started."""
        if not self._servers:
            peer = self.rig.end("peer")
            self._plain = self._plain or peer.pump.listen()
            ports = [self.rig.next_port() for _ in range(SERVICES)]
            plain = f"127.0.0.1:{self._plain[1]}"
            self._stunnel(
                peer, SERVER, [stunnel.Service(f"s{p}", f":::{p}", plain, resume=False) for p in ports]
            )
            self._servers = ports
        return self._servers.pop(0)

    def _client(self, cell: Cell, arm: str, seed: str) -> tuple[int, int]:
        """Return entry and server of a client service that nobody has used: no session to resume."""
        if (cell, arm, seed) not in self._clients:
            services, peer = [], self.rig.bench.peer.v4
            for each in STUNNEL:
                entry, port = self.rig.next_port(), self._server()
                self._clients[cell, each, seed] = (entry, port)
                services.append(
                    stunnel.Service(
                        f"c{entry}",
                        f"127.0.0.1:{entry}",
                        f"{peer}:{port}",
                        client=True,
                        sni=NAME,
                        ktls=each != "stunnel",
                        version=cell.version,
                        ciphers=handoff.CIPHERS[cell.version, cell.cipher],
                    )
                )
            self._stunnel(self.rig.end("dut"), seed, services)
        return self._clients.pop((cell, arm, seed))

    def _stunnel(self, end: End, seed: str, services: list[stunnel.Service]) -> None:
        """Start an unmodified stunnel whose random numbers follow from the seed."""
        env = lockstep.environment(end.side.host, end.at.folder, seed)
        name = f"stream-{services[0].name}"
        self._undo.enter_context(stunnel.running(end.side.host, services, end.at, name=name, env=env))


def _end(far: Transfer, near: Transfer) -> Any:
    """Return the far end's report; it never comes if the near end failed before it connected."""
    if near.report().error:
        far.give_up()
    return far.report()


def done_by(run: Run, by: str) -> None:
    """Who encrypted: the card (hw), the kernel (sw) or the program (user); the counters say so."""
    flow = run.flow
    wanted = {"hw": (1, 0), "sw": (0, 1), "user": (0, 0)}[by]
    shown = proof.count(flow, "TlsTxDevice"), proof.count(flow, "TlsTxSw")
    assert shown == wanted, f"{run.arm}: TlsTxDevice and TlsTxSw moved by {shown}, not by {wanted}"
    if run.arm in FD:
        proof.handed_over(flow, run.cell)
        assert flow.line.tx == by, f"inet_diag shows transmit as {flow.line.tx}"
    if by != "hw":
        proof.not_by_card(flow, "tx")
        return
    encrypted = proof.count(flow, "tx_tls_encrypted_bytes")
    assert encrypted >= run.plan.total, f"the card encrypted {encrypted} of {run.plan.total} bytes"


def compared(run: Run, reference: Run, evidence: dict[str, Any]) -> dict[str, Any]:
    """Compare both directions of both connections; what was found is evidence too."""
    document = compare(reference.capture, run.capture, reference.port, run.port)
    directions = [
        c[f"from_{direction}"] for c in document["connections"] for direction in ("client", "server")
    ]
    evidence["wire"] = {
        "proof": "C",
        "outcome": document["outcome"],
        "records": records(run),
        "bytes": sum(direction["equal"] for direction in directions),
        "difference": "" if document["outcome"] == "equal" else verdict(document),
    }
    return document


def records(run: Run) -> int:
    """Return how many TLS records were captured, both directions."""
    last = [record(data, len(data) - 1) for data in _streams(run) if data]
    return sum(one["number"] + 1 for one in last if one is not None)


def _streams(run: Run) -> list[bytes]:
    found = load(run.capture, port=run.port).connections
    return [stream.data for c in found for stream in (c.from_client, c.from_server)]


def same(run: Run, reference: Run, evidence: dict[str, Any]) -> None:
    """The two connections are the same to the last byte, both ways, and they carried the payload."""
    document = compared(run, reference, evidence)
    assert document["outcome"] == "equal", f"{verdict(document)} ({reference.capture} {run.capture})"
    found = evidence["wire"]
    assert found["bytes"] > run.plan.total and found["records"] > len(run.plan.sizes), f"too little: {found}"
