"""Makes the fuzzers' seeds, byte for byte the same each time: `python -m tests.lib.wiregen.seeds [FOLDER]`.

The keys are those that offload/suite/wire/core/tests/fuzz_capture.c knows. A capture's first byte chooses the
question.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from tests.lib.wiregen import any_case, frames, hello, strays  # noqa: F401  (any_case enters every kind)
from tests.lib.wiregen.damage.kinds import KINDS, done, suites
from tests.lib.wiregen.frames import Link, Net
from tests.lib.wiregen.scene import Conn, Scene
from tests.lib.wiregen.session import ALERT, CCS, CLIENT, DATA, HANDSHAKE, SERVER, Session
from tests.lib.wiregen.suites import SUITES, Suite, keys12, keys13, next_secret
from tests.lib.wiregen.tcp import Style

FOLDER = Path(__file__).parents[3] / "offload" / "suite" / "wire" / "core" / "tests" / "corpus"
WITH_PAYLOAD, WITH_REPLY, WITH_PORT, WITH_CHECKSUMS, BELIEVE, WITH_THREADS = 1, 2, 4, 8, 16, 128
PAYLOAD = bytes((i * 0x9E3779B1 % 2**32) >> 24 for i in range(300))
RECORDS = (64, 80, 80, 76)
LABELS = (
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "CLIENT_TRAFFIC_SECRET_0",
    "SERVER_TRAFFIC_SECRET_0",
    "CLIENT_EARLY_TRAFFIC_SECRET",
)
LARGEST = 4096  # the fuzzer cuts what is longer


def secret(number: int, random: int, size: int) -> bytes:
    """The secret of a label: fuzz_capture.c makes the same."""
    return bytes((53 * number + 7 * i + random) & 255 for i in range(size))


def shake12(session: Session, rng: Random, explicit: int) -> None:
    """The shortest TLS 1.2 handshake."""
    keys = keys12(session.suite, secret(0, 0x12, 48), session.client_random, session.server_random)
    body = b"\3\3" + session.client_random + b"\0\0\2" + session.suite.code.to_bytes(2, "big") + b"\1\0"
    session.clear(CLIENT, HANDSHAKE, hello.message(1, body))
    answer = hello.server_hello(rng, session.server_random, b"", session.suite.code, False)
    session.clear(SERVER, HANDSHAKE, answer + hello.message(14, b""))
    session.clear(CLIENT, HANDSHAKE, hello.stand_in(rng, 16, 8, 8))
    for direction in (CLIENT, SERVER):
        session.clear(direction, CCS, b"\1")
        session.rekey(direction, keys[direction], explicit=explicit)
        session.say(direction, HANDSHAKE, hello.stand_in(rng, 20, 12, 12))


def shake13(session: Session, rng: Random, random: int, retry: bool, early: int) -> None:
    """The shortest TLS 1.3 handshake, with a HelloRetryRequest or early data if asked for."""
    suite, size = session.suite, 48 if session.suite.digest == "sha384" else 32
    secrets = [secret(i + 1, random, size) for i in range(5)]
    body = b"\3\3" + session.client_random + b"\0\0\2" + suite.code.to_bytes(2, "big") + b"\1\0"
    session.clear(CLIENT, HANDSHAKE, hello.message(1, body))
    if early:
        session.rekey(CLIENT, keys13(suite, secrets[4]))
        session.say(CLIENT, DATA, rng.randbytes(early))
    if retry:
        session.clear(SERVER, HANDSHAKE, hello.server_hello(rng, hello.RETRY, b"", suite.code, True))
        session.clear(CLIENT, CCS, b"\1")
        session.clear(CLIENT, HANDSHAKE, hello.message(1, body))
    session.clear(SERVER, HANDSHAKE, hello.server_hello(rng, session.server_random, b"", suite.code, True))
    for direction in (SERVER, CLIENT):
        session.rekey(direction, keys13(suite, secrets[direction]))
        session.say(direction, HANDSHAKE, hello.stand_in(rng, 20, 8, 8))
        session.rekey(direction, keys13(suite, secrets[2 + direction]), secrets[2 + direction])


def session_of(
    suite: Suite, retry: bool = False, early: int = 0, explicit: int = 7, update: int = 0
) -> Session:
    """A connection whose client sends PAYLOAD, and whose server sends the same."""
    rng = Random(f"seed {suite.code} {retry} {early} {explicit}")
    random = 0x12 if not suite.tls13 else 0x15 if early else 0x14 if suite.digest == "sha384" else 0x13
    session = Session(suite, bytes([random]) * 32, rng.randbytes(32))
    if suite.tls13:
        shake13(session, rng, random, retry, early)
    else:
        shake12(session, rng, explicit)
    at = 0
    for size in RECORDS:
        if update and at == RECORDS[0]:
            session.say(CLIENT, HANDSHAKE, b"\x18\0\0\1\0", update - 1)
            following = next_secret(suite, session.sides[CLIENT].secret)
            session.rekey(CLIENT, keys13(suite, following), following)
        session.say(CLIENT, DATA, PAYLOAD[at : at + size], update)
        at += size
    session.say(SERVER, DATA, PAYLOAD[:64])
    for direction in (CLIENT, SERVER):
        session.say(direction, ALERT, b"\1\0")
    return session


def net_of(v6: bool = False, port: int = 443, **more: object) -> Net:
    """Addresses and ports, sequence numbers about to wrap."""
    size = 16 if v6 else 4
    addr = (bytes([9]) * size, bytes([8]) * size)
    ids = Random(port)
    return Net(v6, addr, (40000, port), (2**32 - 200, 5), stamps=False, ids=ids, **more)  # type: ignore[arg-type]


def scene_of(name: str, suite: Suite, net: Net | None = None, link: Link | None = None) -> Scene:
    """A capture of one connection in big segments; everything random follows from the name."""
    conn = Conn(net or net_of(), Style(size="jumbo"), session_of(suite))
    return Scene(Random(name), [conn], [link or Link()], payload=PAYLOAD)


def laid(scene: Scene, question: int) -> bytes:
    """The seed of a scene."""
    scene.cut()
    scene.lay()
    return bytes([question]) + scene.case().capture


def damaged(name: str) -> bytes:
    """A seed with this damage; none if it does not fit, or makes the capture too large."""
    kind = KINDS[name]
    fit = suites(kind.needs)
    scene = scene_of(name, fit[len(name) % len(fit)])
    if kind.needs == "update":
        scene.main.session = session_of(fit[0], update=1)
    scene.form = "pcapng" if len(name) % 3 == 0 else "pcap"
    case, wants = done(scene, [kind])
    question = WITH_PAYLOAD | (WITH_THREADS if len(name) % 8 == 0 else 0)
    return bytes([question]) + case.capture if wants and len(case.capture) < LARGEST else b""


def links() -> Iterator[tuple[str, bytes]]:
    """Each link type, VLAN depth, IP version and oddity of headers."""
    for kind in frames.LINKS:
        v6 = kind in (frames.IPV6, frames.LOOP, frames.COOKED2)
        scene = scene_of(f"link {kind}", SUITES[kind % 12], net_of(v6), Link(kind, snap=0))
        yield f"link-{kind}", laid(scene, WITH_PAYLOAD | WITH_CHECKSUMS)
    for depth in (1, 4, 5):
        scene = scene_of(f"vlan {depth}", SUITES[9], None, Link(tags=frames.VLANS[:1] * depth))
        yield f"vlan-{depth}", laid(scene, WITH_PAYLOAD)
    nets = {
        "options": net_of(options=8, trailer=20),
        "extensions": net_of(True, extensions=(0, 43, 60)),
        "big": net_of(big=True),
        "big6": net_of(True, big=True),
    }
    for name, net in nets.items():
        yield f"net-{name}", laid(scene_of(name, SUITES[1], net), WITH_PAYLOAD | WITH_PORT)


def mixtures() -> Iterator[tuple[str, bytes]]:
    """Several connections, disorder, retransmissions, strays, sections."""
    two = scene_of("two", SUITES[4])
    two.conns.append(Conn(net_of(True, 8443), Style(size="jumbo"), session_of(SUITES[9])))
    yield "two", laid(two, WITH_PAYLOAD | WITH_REPLY | WITH_THREADS)
    others = {"other": WITH_PAYLOAD, "other-port": WITH_PAYLOAD | WITH_PORT | WITH_CHECKSUMS}
    for name, question in others.items():
        other = scene_of(name, SUITES[10])
        talk = [(CLIENT, b"GET / HTTP/1.1\r\n\r\n"), (SERVER, PAYLOAD[16:90])]
        other.conns.append(Conn(net_of(False, 80), Style(), None, talk))
        other.strays = 3
        yield name, laid(other, question)
    loose = scene_of("loose", SUITES[11])
    loose.main.style = Style(size="small", again=0.3, late=0.4, keepalive=0.3, data_on_fin=True, end="reset")
    yield "loose", laid(loose, WITH_PAYLOAD | WITH_REPLY)
    abort = scene_of("abort", SUITES[6])
    abort.main.style = Style(size="small", fast_open=True, end="abort", first=1)
    yield "abort", laid(abort, WITH_PAYLOAD)


def sessions() -> Iterator[tuple[str, bytes]]:
    """Each suite; HelloRetryRequest, early data, KeyUpdates, a nonce that wraps; pcap and pcapng in turn."""
    for i, suite in enumerate(SUITES):
        scene = scene_of(f"suite {suite.code}", suite)
        scene.form = ("pcap", "pcapng")[i % 2]
        yield f"suite-{suite.code:04x}", laid(scene, (WITH_PAYLOAD, BELIEVE | WITH_PAYLOAD)[i % 2])
    special: dict[str, Callable[[], Session]] = {
        "retry": lambda: session_of(SUITES[9], retry=True),
        "early": lambda: session_of(SUITES[11], early=20),
        "update": lambda: session_of(SUITES[10], update=1),
        "padded": lambda: session_of(SUITES[11], update=30),
        "nonce-wraps": lambda: session_of(SUITES[4], explicit=2**64 - 2),
    }
    for name, make in special.items():
        scene = scene_of(name, SUITES[9])
        scene.main.session = make()
        yield name, laid(scene, WITH_PAYLOAD | BELIEVE)


def keylogs() -> Iterator[tuple[str, bytes]]:
    """Good lines of every label, other labels, and lines that are nearly good."""
    random = bytes(range(32)).hex()
    for i, label in enumerate(("CLIENT_RANDOM", *LABELS)):
        size = 48 if i in (0, 2) else 32
        yield f"label-{i}", f"{label} {random} {secret(i, 7, size).hex()}\n".encode()
    good = f"CLIENT_RANDOM {random} {secret(0, 7, 48).hex()}"
    many = [f"{LABELS[i % 5]} {bytes([i] * 32).hex()} {secret(i, 1, 32).hex()}" for i in range(20)]
    lines = {
        "empty": "",
        "comment": f"# made by hand\n\n \t\n{good}",
        "other": f"EXPORTER_SECRET {random} 00\nSERVER_RANDOM 1\n{good}\n",
        "windows": f"{good}\r\n{good.upper()}\r\n",
        "spaces": "\t" + good.replace(" ", " \v\f ") + "  \n",
        "twice": f"{good}\n{good[:-1]}0\n",
        "bad": f"{good} more\n{good[:-1]}\n{good[:-2]}\n{good[:-1]}g\nCLIENT_RANDOM\nlower {random}\nALONE\n",
        "many": "\n".join(many),
        "no-end": good,
    }
    yield from ((name, text.encode()) for name, text in lines.items())
    yield "noise", good.encode() + b"\0\n" + Random(1).randbytes(200)


def captures() -> Iterator[tuple[str, bytes]]:
    yield from sessions()
    yield from links()
    yield from mixtures()
    yield from ((name, seed) for name in KINDS if (seed := damaged(name)))
    unknown = bytes.fromhex("d4c3b2a1020004000000000000000000ffff0000dc000000")
    yield "link-unknown", b"\0" + unknown + bytes(40)


def main() -> None:
    """Write both folders."""
    folder = Path(sys.argv[1]) if sys.argv[1:] else FOLDER
    for kind, seeds in (("capture", captures()), ("keylog", keylogs())):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for name, data in seeds:
            (folder / kind / name).write_bytes(data)


if __name__ == "__main__":
    main()
