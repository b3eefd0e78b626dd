"""What client and server say to each other: handshakes, data in turns, KeyUpdates, tickets, closing."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.lib.wiregen import hello
from tests.lib.wiregen.session import ALERT, CCS, CLIENT, DATA, HANDSHAKE, SERVER, Session
from tests.lib.wiregen.suites import SUITES, Suite, keys12, keys13, next_secret

NOTIFY = b"\1\0"  # alert close_notify
STYLES = ("random", "random", "random", "text", "period", "zeros", "few")


@dataclass
class Plan:
    """What a connection is to look like. `turns`: (way, bytes) per application record."""

    suite: Suite
    turns: list[tuple[int, int]]
    style: tuple[str, str] = ("random", "random")
    notify: tuple[bool, bool] = (True, True)
    retry: bool = False
    resumed: bool = False
    early: int = 0
    asides: float = 0.0  # chance of a KeyUpdate, ticket, HelloRequest or warning after a record
    padding: float = 0.0


def any_plan(rng: Random) -> Plan:
    """A small connection of any shape."""
    top = rng.choice((40, 300, 300, 1500, 1500, 4000))
    sizes = [
        rng.choice((0, 1, 2, rng.randint(0, top), rng.randint(0, top), top)) for _ in range(rng.randint(0, 9))
    ]
    if rng.random() < 0.06:
        sizes.insert(rng.randint(0, len(sizes)), rng.choice((16384, 16384, 16383, 12345)))
    return Plan(
        suite=rng.choice(SUITES),
        turns=[(rng.choice((CLIENT, CLIENT, SERVER)), size) for size in sizes],
        style=(rng.choice(STYLES), rng.choice(STYLES)),
        notify=(rng.random() < 0.8, rng.random() < 0.8),
        retry=rng.random() < 0.15,
        resumed=rng.random() < 0.2,
        asides=rng.choice((0.0, 0.0, 0.1, 0.4)),
        padding=rng.choice((0.0, 0.0, 0.5)),
    )


def payload(rng: Random, style: str, size: int) -> bytes:
    """Application data of this style."""
    if style == "text":
        start = rng.randint(0, 10**6)
        return b"".join(b"line %09d of the file\n" % (start + i) for i in range(size // 27 + 1))[:size]
    if style == "period":
        unit = rng.randbytes(rng.randint(1, 70))
        return (unit * (size // len(unit) + 1))[:size]
    if style == "few":
        return bytes(rng.choices(rng.randbytes(rng.randint(4, 8)), k=size))
    return bytes(size) if style == "zeros" else rng.randbytes(size)


def talk(rng: Random, plan: Plan) -> Session:
    """A whole connection after this plan."""
    session = Session(plan.suite, rng.randbytes(32), rng.randbytes(32))
    if plan.suite.tls13:
        handshake13(rng, session, plan)
    else:
        handshake12(rng, session, plan)
    turns(rng, session, plan)
    for direction in rng.sample((CLIENT, SERVER), 2):
        if plan.notify[direction]:
            session.say(direction, ALERT, NOTIFY)
    return session


def handshake12(rng: Random, session: Session, plan: Plan) -> None:
    """A full or an abbreviated TLS 1.2 handshake."""
    master, sid = rng.randbytes(48), rng.randbytes(rng.choice((0, 32)))
    session.log.append(f"CLIENT_RANDOM {session.client_random.hex()} {master.hex()}")
    keys = keys12(plan.suite, master, session.client_random, session.server_random)
    first = hello.client_hello(rng, session.client_random, sid, plan.suite.code, False)
    session.clear(CLIENT, HANDSHAKE, first, rng.choice((1, 3)))
    flight = hello.server_hello(rng, session.server_random, sid, plan.suite.code, False)
    if not plan.resumed:
        for kind, size in ((11, rng.choice((60, 900, 2600))), (12, 300), (14, 0)):
            flight += hello.stand_in(rng, kind, min(size, 40), size)
    session.split(SERVER, rng, flight, False)
    for direction in (SERVER, CLIENT) if plan.resumed else (CLIENT, SERVER):
        if not plan.resumed and direction == CLIENT:
            session.split(CLIENT, rng, hello.key_exchange(rng, plan.suite.code), False)
        if direction == SERVER and rng.random() < 0.3:
            session.split(SERVER, rng, hello.stand_in(rng, 4, 160, 200), False)
        session.clear(direction, CCS, b"\1")
        session.rekey(direction, keys[direction], explicit=rng.choice((0, 2**64 - 2, rng.getrandbits(64))))
        session.say(direction, HANDSHAKE, hello.stand_in(rng, 20, 12, 12))


def handshake13(rng: Random, session: Session, plan: Plan) -> None:
    """A TLS 1.3 handshake, with HelloRetryRequest, early data and certificates as planned."""
    suite, sid = plan.suite, rng.randbytes(rng.choice((0, 32)))
    secrets = secrets13(rng, session)
    compatible = len(sid) > 0
    first = hello.client_hello(rng, session.client_random, sid, suite.code, True)
    session.clear(CLIENT, HANDSHAKE, first, rng.choice((1, 3)))
    if plan.early and not plan.retry:
        session.rekey(CLIENT, keys13(suite, secrets["CLIENT_EARLY_TRAFFIC_SECRET"]))
        for _ in range(plan.early):
            session.say(CLIENT, DATA, rng.randbytes(rng.randint(0, 300)))
    if plan.retry:
        session.split(SERVER, rng, hello.server_hello(rng, hello.RETRY, sid, suite.code, True), False)
        if compatible:
            session.clear(SERVER, CCS, b"\1")
            session.clear(CLIENT, CCS, b"\1")
        session.split(
            CLIENT, rng, hello.client_hello(rng, session.client_random, sid, suite.code, True), False
        )
    session.split(SERVER, rng, hello.server_hello(rng, session.server_random, sid, suite.code, True), False)
    if compatible and not plan.retry:
        session.clear(SERVER, CCS, b"\1")
    finish13(rng, session, plan, secrets, compatible and not plan.retry)


def secrets13(rng: Random, session: Session) -> dict[str, bytes]:
    """Traffic secrets of every label, with their keylog lines; the early one is only sometimes there."""
    labels = [
        f"{side}_{kind}"
        for side in ("CLIENT", "SERVER")
        for kind in ("HANDSHAKE_TRAFFIC_SECRET", "TRAFFIC_SECRET_0")
    ]
    size = 48 if session.suite.digest == "sha384" else 32
    secrets = {
        label: rng.randbytes(size) for label in [*labels, "CLIENT_EARLY_TRAFFIC_SECRET", "EXPORTER_SECRET"]
    }
    shown = [label for label in secrets if label in labels or rng.random() < 0.4]
    session.log += [f"{label} {session.client_random.hex()} {secrets[label].hex()}" for label in shown]
    return secrets


def finish13(rng: Random, session: Session, plan: Plan, secrets: dict[str, bytes], ccs: bool) -> None:
    """The encrypted half of a TLS 1.3 handshake."""
    finished = 48 if plan.suite.digest == "sha384" else 32
    for direction, side in ((SERVER, "SERVER"), (CLIENT, "CLIENT")):
        if direction == CLIENT and ccs:
            session.clear(CLIENT, CCS, b"\1")
        secret = secrets[f"{side}_HANDSHAKE_TRAFFIC_SECRET"]
        session.rekey(direction, keys13(plan.suite, secret))
        flight = b"" if direction == CLIENT else hello.stand_in(rng, 8, 2, 40)
        if not plan.resumed and (direction == SERVER or rng.random() < 0.2):
            flight += hello.stand_in(rng, 11, 40, rng.choice((100, 1800))) + hello.stand_in(rng, 15, 70, 260)
        session.split(direction, rng, flight + hello.stand_in(rng, 20, finished, finished), True)
        secret = secrets[f"{side}_TRAFFIC_SECRET_0"]
        session.rekey(direction, keys13(plan.suite, secret), secret)


def turns(rng: Random, session: Session, plan: Plan) -> None:
    """The application data, in records of the planned sizes, with asides between them."""
    sizes = [sum(size for side, size in plan.turns if side == direction) for direction in (CLIENT, SERVER)]
    data = [payload(rng, plan.style[direction], sizes[direction]) for direction in (CLIENT, SERVER)]
    for direction, size in plan.turns:
        pad = rng.choice((1, 16, rng.randint(0, 300))) if rng.random() < plan.padding else 0
        session.say(direction, DATA, data[direction][:size], min(pad, 16384 - size))
        data[direction] = data[direction][size:]
        if rng.random() < plan.asides:
            aside(rng, session, rng.choice((CLIENT, SERVER)))


def aside(rng: Random, session: Session, direction: int) -> None:
    """Something that is no application data: KeyUpdate, ticket, warning, empty record."""
    if rng.random() < 0.2:
        session.say(direction, DATA, b"")
    elif session.suite.tls13 and rng.random() < 0.6:
        key_update(rng, session, direction)
    elif direction == SERVER:
        kind = 4 if session.suite.tls13 else 0
        session.say(SERVER, HANDSHAKE, hello.stand_in(rng, kind, 0, 200 * bool(kind)))
    else:
        session.say(direction, ALERT, b"\1\x5a")  # user_canceled, a warning


def key_update(rng: Random, session: Session, direction: int) -> None:
    """A KeyUpdate and the epoch that it begins."""
    session.say(direction, HANDSHAKE, b"\x18\0\0\1" + bytes([rng.randint(0, 1)]), rng.choice((0, 9)))
    secret = next_secret(session.suite, session.sides[direction].secret)
    session.rekey(direction, keys13(session.suite, secret), secret)
