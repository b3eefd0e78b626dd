"""Connections that a test holds in its hand at both ends, and what the card holds once they have ended."""

from __future__ import annotations

import itertools
import json
import secrets
import statistics
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offload.card.counters import Snapshot
from offload.card.profile import DIRECTIONS
from offload.cmd import settles, wait_until
from offload.errors import RigError
from offload.host.base import Side
from offload.host.vm import talk
from offload.suite.traffic.drive import PYTHON, Ended, sending
from tests.lib.life.many_connections import key
from tests.lib.rig.rig import Rig

PROGRAM = Path(__file__).with_name("many_connections.py")
KIB = 1024
CLOSE_NOTIFY = "0100"  # level, description: RFC 5246 section 7.2
CIPHER = "aes-gcm-128"
LOOK = 1.0  # seconds that one look for an answer waits on the host


class ManyConnections:
    """One many_connections.py on a host: it answers commands in order."""

    def __init__(self, side: Side, path: str) -> None:
        self.side, self._process = side, talk(side.host, [*PYTHON, path])
        self._answers: list[dict[str, Any]] = []
        self._asked, self._seen = 0, 0
        self.pid = int(self.answer(0)["ready"])

    def begin(self, do: str, **fields: Any) -> int:
        """Tell it something; the number to ask for the answer by."""
        return self.begin_all([{"do": do, **fields}])[0]

    def begin_all(self, asks: Sequence[Mapping[str, Any]]) -> list[int]:
        """Tell it several things at once, which is one way to the host: the numbers to ask by.

        The answers come together, once the last thing is done.
        """
        self._process.stdin(json.dumps([*asks]).encode() + b"\n")
        self._asked += len(asks)
        return list(range(self._asked - len(asks) + 1, self._asked + 1))

    def answer(self, number: int, timeout: float = 180) -> dict[str, Any]:
        """Wait for an answer. RigError if the program died or says nothing."""

        where = f"many_connections.py on {self.side.host.name}"

        def there() -> bool:
            out = self._process.news(min(LOOK, timeout))[0]
            if self._takes(out, number) or self._process.running():
                return len(self._answers) > number
            out, said = self._process.output()
            if not self._takes(out, number):
                raise RigError(f"{where} died:\n{said.decode('utf-8', 'replace')[-2000:]}")
            return True

        if len(self._answers) <= number:
            wait_until(there, timeout, f"answer {number} of {where}", every=0.01)
        return self._answers[number]

    def answered(self, number: int) -> bool:
        """Say whether an answer has come."""
        return self._takes(self._process.news(0)[0], number)

    def _takes(self, out: bytes, number: int) -> bool:
        """Take in the whole lines of its output so far; whether this answer is among them."""
        end = out.rfind(b"\n") + 1
        if end > self._seen:
            lines = out[self._seen : end].splitlines()
            self._answers += [answer for line in lines for answer in json.loads(line)]
            self._seen = end
        return len(self._answers) > number

    def end(self, number: int, timeout: float = 180) -> dict[str, Any]:
        """Wait for an answer that is no error; Ended, which may be the card's doing, if it is one."""
        found = self.answer(number, timeout)
        if found.get("error"):
            raise Ended(f"command {number} on {self.side.host.name}: {found['error']}")
        return found

    def call(self, do: str, **fields: Any) -> dict[str, Any]:
        """Tell it something and wait for the answer."""
        return self.end(self.begin(do, **fields))

    def stop(self) -> None:
        """End it, and so every connection that it has."""
        self._process.stdin(b"", eof=True)
        self._process.kill()


@dataclass(frozen=True)
class End:
    """One end of a connection."""

    connections: ManyConnections
    at: int

    def begin(self, do: str, **fields: Any) -> int:
        """Tell this end something."""
        return self.connections.begin(do, at=self.at, **fields)

    def call(self, do: str, **fields: Any) -> dict[str, Any]:
        """Tell this end something and wait for the answer."""
        return self.connections.call(do, at=self.at, **fields)

    def take(self, size: int = -1) -> dict[str, Any]:
        """Receive this many bytes, or all to the end: `bytes`, `sha256`, `closed`, `error`."""
        return self.connections.answer(self.begin("take", size=size))

    def takes(self, name: str, size: int) -> None:
        """Receive, and assert that it is exactly this payload."""
        wanted = sending(name, size).sha256()
        number = self.begin("take", size=size, seed=name, wanted=wanted)
        arrived(self.connections.answer(number), name, size)

    def alert(self, content: str = CLOSE_NOTIFY) -> None:
        """Send an alert."""
        self.call("record", type=21, content=content)

    def close(self, *, reset: bool = False) -> None:
        self.connections.call("close", at=[self.at], reset=reset)


@dataclass(frozen=True)
class Pair:
    """Both ends of a connection; the DUT's is the client, with this port."""

    near: End
    far: End
    port: int

    def moves(self, name: str, size: int = 64 * KIB) -> None:
        """Assert that a payload arrives whole in each direction."""
        self.sends(f"{name} out", size)
        self.sends(f"{name} back", size, back=True)

    def sends(self, name: str, size: int = 64 * KIB, *, back: bool = False) -> None:
        """Assert that a payload arrives whole at the peer, or (`back`) at the DUT."""
        source, sink = (self.far, self.near) if back else (self.near, self.far)
        sent = source.begin("send", seed=name, size=size)
        sink.takes(name, size)
        source.connections.end(sent)

    def close(self) -> None:
        """End it in the ordinary way: close_notify from both ends, then closed."""
        for end in (self.near, self.far):
            end.alert()
            end.call("shut")
        for end in (self.near, self.far):
            seen = end.take()
            assert seen["closed"] == "close_notify", f"the stream ended with {seen}"
            end.close()


def arrived(seen: Mapping[str, Any], name: str, size: int) -> None:
    """Assert that exactly this payload was taken."""
    assert not seen["error"], f"{name}: {seen['error']} after {seen['bytes']} of {size} bytes"
    assert seen["bytes"] == size, f"{name}: {seen['bytes']} of {size} bytes arrived ({seen['closed']})"
    differs = f"{name}: {size} bytes, and their SHA-256 differs: {seen.get('unlike', 'nothing was kept')}"
    assert seen["sha256"] == sending(name, size).sha256(), differs


class Life:
    """What opens connections between DUT and peer whose keys are random and known to both ends only."""

    def __init__(self, rig: Rig) -> None:
        self.rig, self._secret, self._undo = rig, secrets.token_hex(16), ExitStack()
        self.near, self.far = (self._many(side) for side in (rig.bench.dut, rig.bench.peer))

    def _many(self, side: Side) -> ManyConnections:
        folder = f"/run/ktls-offload-{uuid.uuid4().hex[:8]}"
        self._undo.callback(side.host.run, ["rm", "-rf", folder], check=False)
        side.host.write(f"{folder}/many_connections.py", PROGRAM.read_bytes(), 0o644)
        connections = ManyConnections(side, f"{folder}/many_connections.py")
        self._undo.callback(connections.stop)
        return connections

    def plain(
        self,
        count: int = 1,
        *,
        host: str = "",
        far: ManyConnections | None = None,
        options: Sequence[tuple[int, int, str]] = (),
    ) -> list[Pair]:
        """Open plain TCP connections from the DUT to the peer (or to `far` at `host`).

        `options`: of the listener: level, name, value in hex.
        """
        far = far or self.far
        host = host or self.rig.bench.peer.v4
        port = far.call("listen", host=host, options=options)["port"]
        near = self.near.call("connect", host=host, port=port, count=count)
        there = far.call("accept", count=count)
        assert near["ports"] == there["ports"], "the connections came in another order"
        rows = zip(itertools.count(near["from"]), itertools.count(there["from"]), near["ports"], strict=False)
        return [Pair(End(self.near, a), End(far, b), p) for a, b, p in itertools.islice(rows, count)]

    def secure(
        self, pairs: list[Pair], *, tls: str = "1.2", far: list[Pair] | None = None, cipher: str = CIPHER
    ) -> dict[str, list[float]]:
        """Give both ends (`far`: the peer's of these only) their keys: microseconds of the DUT's calls."""
        asked = []
        for client in (False, True):
            ends = [pair.near for pair in pairs] if client else [pair.far for pair in far or pairs]
            ask = {"at": [end.at for end in ends], "client": client, "secret": self._secret, "tls": tls}
            ask |= {"cipher": cipher}
            asked.append((ends[0].connections, ends[0].connections.begin("secure", **ask)))
        took: dict[str, list[float]] = [connections.end(number)["micros"] for connections, number in asked][1]
        return took

    def rekey(self, end: End, only: str, cipher: str = CIPHER) -> None:
        """Give one direction (tx, rx) of an end its next key; Ended if the kernel does not take it."""
        end.connections.call(**self.next_key(end, only, cipher))

    def next_key(self, end: End, only: str, cipher: str = CIPHER) -> dict[str, Any]:
        """Return what to tell an end for that."""
        ask = {"do": "secure", "at": [end.at], "client": end.connections is self.near}
        return ask | {"secret": self._secret, "tls": "1.3", "turn": 1, "only": only, "cipher": cipher}

    def keys(self, pair: Pair, side: str, cipher: str) -> bytes:
        """Return what the kernel got for one way (up: from the DUT): first, and at the KeyUpdate."""
        return b"".join(key(self._secret, pair.port, side, "1.3", turn, cipher) for turn in (0, 1))

    def open(
        self, count: int = 1, *, host: str = "", far: ManyConnections | None = None, tls: str = "1.2"
    ) -> list[Pair]:
        """Open connections under kernel TLS."""
        pairs = self.plain(count, host=host, far=far)
        self.secure(pairs, tls=tls)
        return pairs

    def close(self, pairs: Iterable[Pair], *, reset: bool = False) -> None:
        """Close many at once, the peer's ends first."""
        kept, asked = list(pairs), []
        for ends in ([p.far for p in kept], [p.near for p in kept]) if kept else ():
            at = [end.at for end in ends]
            asked.append((ends[0].connections, ends[0].connections.begin("close", at=at, reset=reset)))
        for connections, number in asked:
            connections.end(number)

    def stop(self) -> None:
        """End both programs."""
        self._undo.close()


def churn(life: Life, count: int, batch: int) -> dict[str, float]:
    """Open, use and close connections, a batch at a time: set-ups per second, microseconds of each call.

    A set-up is the DUT's three calls: TCP_ULP, TLS_TX, TLS_RX.
    """
    took: dict[str, list[float]] = {}
    for number in range(count // batch):
        pairs = life.plain(batch)
        used = pairs[number % batch]
        for name, micros in life.secure(pairs, far=[used]).items():
            took.setdefault(name, []).extend(micros)
        used.moves(f"churn {number}", 16 * KIB)
        life.close(pairs)
    busy = sum(sum(micros) for micros in took.values())
    found = {"connections": float(count), "setups_per_second": round(count / busy * 1e6, 1)}
    for name, micros in took.items():
        marks = statistics.quantiles(micros, n=100)
        found |= {f"{name}_p50_us": round(marks[49], 1), f"{name}_p99_us": round(marks[98], 1)}
    return found


def life_of(rig: Rig) -> Life:
    """The one of this rig, made when first asked for: starting Python costs a second in an emulated guest."""
    kept = vars(rig)
    if "life" not in kept:
        kept["life"] = Life(rig)
        rig.undo.callback(kept["life"].stop)
    life: Life = kept["life"]
    return life


class Contexts:
    """What the DUT's card has been given and not given back, from the start of a test to its end."""

    def __init__(self, rig: Rig) -> None:
        self._rig, self._kept = rig, vars(rig)

    def begin(self) -> None:
        """Note what there is; what the last test left is that, if it passed."""
        if "contexts" not in self._kept:
            self._kept["contexts"] = held(self._rig)

    def check(self) -> None:
        """Assert that there is no more than at the start, soon after the test's connections have ended."""
        before, kept = self._kept.pop("contexts"), {}

        def given_back() -> bool:
            now = held(self._rig)
            kept.clear()
            kept.update({name: n - before.get(name, 0) for name, n in now.items() if n > before.get(name, 0)})
            return not kept

        assert settles(given_back, 15), f"contexts were not released after this test: {kept}"
        self._kept["contexts"] = before

    def forget(self) -> None:
        """The test failed: what it left says nothing of the next one."""
        self._kept.pop("contexts", None)


def held(rig: Rig, at: Snapshot | None = None) -> dict[str, int]:
    """How many contexts there are, now or `at` a moment: in the kernel's words, and in the card's where it
    counts both ways.

    What stands in for a counter is the kernel's word again: a link that goes down takes the card's contexts
    back, and the kernel's only when their connections end.
    """
    now = (at or rig.counters()).values()
    found = {name: now.get(name, 0) for name in ("TlsCurrTxDevice", "TlsCurrRxDevice")}
    for d in DIRECTIONS:
        taken, given = f"{d}_tls_ctx", f"{d}_tls_del"
        if taken in now and given in now and not {taken, given} & set(rig.profile.counters.absent(d)):
            found[f"{taken} - {given}"] = now[taken] - now[given]
    return found
