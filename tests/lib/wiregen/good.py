"""Random good captures: a correct sender, everything seen, so that the only right verdict is equal."""

from __future__ import annotations

from random import Random

from tests.lib.wiregen import frames
from tests.lib.wiregen.frames import ETHERNET, IPV4, IPV6, Link, Net, any_net
from tests.lib.wiregen.scene import Case, Conn, Scene
from tests.lib.wiregen.session import CLIENT, SERVER
from tests.lib.wiregen.suites import SUITES
from tests.lib.wiregen.talk import Plan, any_plan, talk
from tests.lib.wiregen.tcp import ACK, Seg, Style, any_style


def any_links(rng: Random, families: set[bool], form: str) -> list[Link]:
    """Interfaces on which these IP versions can be seen; several only in pcapng."""
    wrong = {IPV4} if families == {True} else {IPV6} if families == {False} else {IPV4, IPV6}
    fit = [kind for kind in frames.LINKS if kind not in wrong]
    links = []
    for _ in range(1 if form == "pcap" else rng.choice((1, 1, 2, 3))):
        tags = tuple(rng.choices(frames.VLANS, k=rng.choice((0, 0, 0, 1, 2, 4))))
        kind = rng.choice((ETHERNET, ETHERNET, rng.choice(fit)))
        links.append(Link(kind, tags, rng.choice((0, 0, 262144)), rng.choice("<>")))
    return links


def tls_conn(rng: Random, port: int = 443) -> Conn:
    """A TLS connection of any shape."""
    plan = any_plan(rng)
    session = talk(rng, plan)
    total = sum(len(rec.wire) for rec in session.flow)
    return Conn(any_net(rng, rng.random() < 0.4, port), any_style(rng, total), session)


def other_conn(rng: Random) -> Conn:
    """A connection that is not TLS, or that says nothing."""
    size = rng.randint(0, 900) if rng.random() < 0.99 else 2_000_000
    bursts = [
        (CLIENT, b"GET / HTTP/1.1\r\n\r\n" + rng.randbytes(rng.randint(0, 60))),
        (SERVER, b"HTTP/1.1 200 OK\r\n\r\n" + rng.randbytes(size)),
    ]
    bursts = rng.choice((bursts, bursts[:1], []))
    return Conn(any_net(rng, rng.random() < 0.4, 80), any_style(rng, 5000), None, bursts)


def again(rng: Random, before: Conn, conn: Conn) -> Conn:
    """Let a connection use the addresses and ports of another one that has ended."""
    net = before.net
    isn = ((net.isn[0] + rng.randint(1, 2**31)) % 2**32, rng.getrandbits(32))
    conn.net = Net(**{**net.__dict__, "isn": isn})
    conn.after = before
    return conn


def bulk_conn(rng: Random) -> Conn:
    """A TLS connection with up to some MiB of full records: beyond every window of a verifier."""
    total = rng.choice((200_000, 300_000, 1_200_000, 2_400_000))
    turns = [(CLIENT, 16384)] * (total // 16384) + [
        (rng.choice((0, 1)), rng.randint(0, 9000)) for _ in range(9)
    ]
    if rng.random() < 0.5:
        rng.shuffle(turns)
    plan = Plan(rng.choice(SUITES), turns, style=(rng.choice(("random", "text", "period")), "random"))
    plan.asides = rng.choice((0.0, 0.02))
    size = rng.choice(("gso", "gso", "jumbo", "mtu"))
    style = Style(size=size, again=rng.choice((0.0, 0.05)), late=rng.choice((0.0, 0.05)))
    return Conn(any_net(rng, rng.random() < 0.4, 443), style, talk(rng, plan))


def good_scene(rng: Random, bulk: float = 0.01) -> Scene:
    """Everything about a good capture but the segments. `bulk`: the chance of a long one."""
    conns = [bulk_conn(rng) if rng.random() < bulk else tls_conn(rng)]
    if rng.random() < 0.3:
        conns.append(tls_conn(rng, rng.choice((443, 8443))))
    conns += [other_conn(rng) for _ in range(rng.choice((0, 0, 0, 1, 2)))]
    if rng.random() < 0.1:
        conns.append(again(rng, conns[0], rng.choice((tls_conn, other_conn))(rng)))
    form = rng.choice(("pcap", "pcapng"))
    links = any_links(rng, {conn.net.v6 for conn in conns}, form)
    scene = Scene(
        rng, conns, links, form=form, strays=rng.choice((0, 0, 1, 4)), threads=rng.choice((1, 1, 2))
    )
    ask(rng, scene)
    return scene


def ask(rng: Random, scene: Scene) -> None:
    """Choose the question: payload and reply where one connection is asked about, port, checksums."""
    tls = [conn for conn in scene.conns if conn.session]
    port = scene.main.net.port[1]
    if rng.random() < 0.3 or len([c for c in tls if port in c.net.port]) < len(tls):
        scene.port = port if rng.random() < 0.7 else None
    alone = [c for c in tls if scene.port is None or scene.port in c.net.port] == [scene.main]
    if alone and rng.random() < 0.85:
        scene.payload = scene.session.sent(CLIENT)
        if rng.random() < 0.15:
            scene.main.style.end = "abort"
    if alone and rng.random() < 0.5:
        scene.reply = scene.session.sent(SERVER)
    scene.checksums = rng.random() < 0.3


def trouble(rng: Random, scene: Scene) -> None:
    """What a good capture may have as well: copies that a receiver drops, and a keep-alive of any byte."""
    for conn in scene.conns:
        indexes = [i for i, seg in enumerate(conn.segs) if seg.data and not seg.flags & 7]
        for i in sorted(rng.sample(indexes, min(len(indexes), rng.choice((0, 0, 1, 3)))), reverse=True):
            seg = conn.segs[i]
            if scene.checksums and rng.random() < 0.7:
                conn.segs.insert(i, spoil(rng, seg))
            elif not scene.checksums and seg.off >= 0:
                conn.segs[i + 1 : i + 1] = keep_alive(rng, conn, i)


def keep_alive(rng: Random, conn: Conn, at: int) -> list[Seg]:
    """The other side has all that this one sent so far, and is asked whether it is still there."""
    direction = conn.segs[at].direction
    sent = [seg for seg in conn.segs[: at + 1] if seg.direction == direction and seg.data and seg.off >= 0]
    end = max(seg.off + len(seg.data) for seg in sent)
    late = any(seg.data and seg.off < end for seg in conn.segs[at + 1 :] if seg.direction == direction)
    more = any(seg.ack > end for seg in conn.segs[:at] if seg.direction != direction and seg.flags & ACK)
    if late or more:
        return []  # it cannot be acknowledged yet, or more than it is
    return [Seg(1 - direction, 0, ACK, ack=end), Seg(direction, end - 1, ACK, rng.randbytes(1))]


def spoil(rng: Random, seg: Seg) -> Seg:
    """A copy with a wrong checksum and, mostly, a wrong byte."""
    at = rng.randint(0, len(seg.data) - 1)
    data = seg.data[:at] + rng.randbytes(1) + seg.data[at + 1 :]
    return seg.copy(data=data, spoiled=True)


def good_case(seed: int) -> Case:
    """The good capture of this seed."""
    rng = Random(f"good {seed}")
    scene = good_scene(rng)
    scene.cut()
    trouble(rng, scene)
    scene.log()
    scene.lay()
    return scene.case()
