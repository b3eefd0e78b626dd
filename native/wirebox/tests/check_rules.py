"""Does a chosen rule act on exactly the frame that it names, and on no other?"""

from __future__ import annotations

import struct

from rig import ACK, FIN, Rig, Tcp, checksum, record, session

# records 0 to 3: handshake; 4, 5 and 6 (application data 0, 1 and 2): 3005 bytes each; 7: alert
DATA = session(3000, 3000, 3000, alert=True)
HELLO = len(session())
START = {n: HELLO + (n - 4) * 3005 for n in (4, 5, 6, 7)}
FLOW = Tcp()
FRAMES = FLOW.cut(DATA)
ALL = [FLOW.syn(), *FRAMES, FLOW.frame(len(DATA), b"", FIN | ACK)]


def index(offset: int) -> int:
    """The place in ALL of the frame that holds this byte."""
    return 1 + offset // 1000


def without(*gone: int) -> list[bytes]:
    return [frame for i, frame in enumerate(ALL) if i not in gone]


def acted(rig: Rig, rule: str, frames: list[bytes] = ALL) -> tuple[list[bytes], list[dict]]:
    """What arrives of these frames under a rule, and what was done."""
    with rig.box(rule) as box:
        got = rig.through(frames)
        box.end()
        return got, box.actions()


def check_every_place(rig: Rig) -> None:
    """Each place is one frame: of a header, inside, of a tag, the first, the last, an offset, a number."""
    places = {
        "header 0": 0,
        "header 3": HELLO - 45,
        "header 5": START[5],
        "header +1": START[5],
        "inside 5": 4000,
        "inside +2": 7000,
        "tag 4": START[5] - 1,
        "tag +2": START[7] - 1,
        "first": START[4],
        "last": START[7],
        "offset 0": 0,
        "offset 8999": 8999,
        "frame 0": 0,
        "frame 7": 7000,
    }
    for place, offset in places.items():
        got, actions = acted(rig, f"a>b {place} drop")
        assert got == without(index(offset)), place
        (action,) = actions
        start = offset // 1000 * 1000
        assert (action["action"], action["offset"], action["direction"]) == ("drop", start, "a>b"), action
        assert action["flow"] == "192.0.2.1:40000>192.0.2.2:4433"
        assert (action["frame"], action["rule"], action["time"]) == (index(offset) + 1, 1, 1)
        assert (action["target"], action["length"]) == (offset, min(1000, len(DATA) - start))


def check_record_numbers(rig: Rig) -> None:
    """The action names the record that the rule is about, numbered from the first of the direction."""
    for place, number in {
        "header +0": 4,
        "tag +1": 5,
        "inside 6": 6,
        "first": 4,
        "last": 7,
        "tag 2": 2,
    }.items():
        (action,) = acted(rig, f"a>b {place} drop")[1]
        assert action["record"] == number, (place, action)


def check_never_there(rig: Rig) -> None:
    """A record that does not come, none after it that has an inside, another direction or port: no action."""
    for rule in (
        "a>b header 9",
        "a>b tag +3",
        "a>b inside 7",
        "b>a first",
        "a>b port 4434 first",
        "a>b frame 99",
    ):
        got, actions = acted(rig, f"{rule} drop")
        assert (got, actions) == (ALL, []), rule
    assert acted(rig, "a>b port 40000 first drop")[0] == without(index(START[4]))


def check_inside_of_the_next(rig: Rig) -> None:
    """A record too short for a frame inside: the next one that has one, of data where that is asked."""
    hello = session()[:HELLO]
    data = hello + record(23, 40) + record(21, 900) + record(23, 900) + record(23, 900)
    frames = [FLOW.syn(), *FLOW.cut(data, 100)]
    for rule, number in (("inside +0", 6), ("inside 4", 5)):
        (action,) = acted(rig, f"a>b {rule} drop", frames)[1]
        assert action["record"] == number, (rule, action)


def check_inside_edges(rig: Rig) -> None:
    """Inside is inside: no byte of the header, and none of the tag."""
    data = session(1000, 10)
    for low, high, fits in ((5, 989, True), (4, 989, False), (5, 990, False), (500, 501, True)):
        edges = [0, HELLO, HELLO + low, HELLO + high, len(data)]
        frames = [FLOW.syn(), *(FLOW.frame(a, data[a:b]) for a, b in zip(edges, edges[1:], strict=False))]
        got = acted(rig, "a>b inside +0 drop", frames)[0]
        assert got == (frames[:3] + frames[4:] if fits else frames), (low, high)


def check_tls_13(rig: Rig) -> None:
    """With TLS 1.3 a client's Finished looks like data; `first` and `+N` leave it out."""
    hello = record(22, 500) + record(20, 1) + record(23, 52)
    data = hello + record(23, 2000) + record(23, 2000)
    frames = [FLOW.syn(), *FLOW.cut(data, 500)]
    for rule, byte in (("first", len(hello)), ("header +0", len(hello)), ("tag +1", len(data) - 1)):
        gone = 1 + byte // 500
        assert acted(rig, f"a>b {rule} drop", frames)[0] == frames[:gone] + frames[gone + 1 :], rule


def check_fin(rig: Rig) -> None:
    """Without an alert the last frame is that with FIN, with data or bare."""
    data = session(3000)
    bare = [FLOW.syn(), *FLOW.cut(data), FLOW.frame(len(data), b"", FIN | ACK)]
    got, (action,) = acted(rig, "a>b last drop", bare)
    assert got == bare[:-1] and (action["offset"], action["length"]) == (len(data), 0)
    full = [FLOW.syn(), *FLOW.cut(data)[:-1], FLOW.frame(3000, data[3000:], FIN | ACK)]
    got, (action,) = acted(rig, "a>b last drop", full)
    assert got == full[:-1] and action["offset"] == 3000


def check_times(rig: Rig) -> None:
    """`times` acts on the retransmissions too, however they are cut; once is the default."""
    again = [FLOW.frame(3000, DATA[3000:4000])] * 3 + [FLOW.frame(2900, DATA[2900:4100])] * 2
    got, actions = acted(rig, "a>b header 5 drop", ALL + again)
    assert got == without(4) + again and len(actions) == 1
    got, actions = acted(rig, "a>b header 5 drop times 5", ALL + again)
    assert got == without(4) + again[4:] and [a["time"] for a in actions] == [1, 2, 3, 4, 5]
    assert [a["offset"] for a in actions] == [3000] * 4 + [2900] and {a["record"] for a in actions} == {5}


def check_sequence_wrap(rig: Rig) -> None:
    """Offsets are counted from the SYN, through the end of the 32-bit sequence numbers."""
    for isn in (0xFFFFFFFF, 0xFFFFF000, 0x7FFFFFFF):
        flow = Tcp(isn=isn)
        frames = [flow.syn(), *flow.cut(DATA)]
        got, (action,) = acted(rig, "a>b tag 6 drop", frames)
        assert got == frames[: index(START[7] - 1)] + frames[index(START[7] - 1) + 1 :]
        assert action["offset"] == (START[7] - 1) // 1000 * 1000


def check_split_header(rig: Rig) -> None:
    """A header that lies in two frames: the one with its first byte counts, and later records are found."""
    for split in range(1, 5):
        edges = [0, 300, START[5] + split, START[6] + 1, START[6] + 2, len(DATA)]
        ranges = [
            (at, min(at + 1000, b))
            for a, b in zip(edges, edges[1:], strict=False)
            for at in range(a, b, 1000)
        ]
        frames = [FLOW.syn(), *(FLOW.frame(a, DATA[a:b]) for a, b in ranges)]
        for rule, byte in (("header 5", START[5]), ("tag 6", START[7] - 1)):
            gone = 1 + next(i for i, (a, b) in enumerate(ranges) if a <= byte < b)
            assert acted(rig, f"a>b {rule} drop", frames)[0] == frames[:gone] + frames[gone + 1 :]


def check_reordered_before(rig: Rig) -> None:
    """A gap before the box hides headers until it is filled; what is known is acted on, gaps are counted."""
    swapped = [FLOW.syn(), FRAMES[1], FRAMES[0], *FRAMES[1:]]
    with rig.box("a>b header 5 drop") as box:
        assert rig.through(swapped) == [f for f in swapped if f is not FRAMES[3]]
        said = box.end()
        assert (said["gaps"], said["a>b"]["gaps"], said["b>a"]["gaps"]) == (1, 1, 0)


def check_many_flows(rig: Rig) -> None:
    """A rule acts once in each flow; a port that is used again begins a new flow; IPv6 and VLAN as well."""
    flows = [Tcp(sport=40000 + i) for i in range(50)]
    flows += [Tcp(isn=5_000_000), Tcp("fd00::1", "fd00::2"), Tcp(vlan=5)]
    with rig.box("a>b tag +0 drop") as box:
        for flow in flows:
            frames = [flow.syn(), *flow.cut(DATA)]
            assert rig.through(frames) == frames[:4] + frames[5:], flow
        assert box.end()["flows"] == len(flows)
        actions = box.actions()
        assert len(actions) == len(flows) and actions[-2]["flow"] == "[fd00::1]:40000>[fd00::2]:4433"


def check_syn_again(rig: Rig) -> None:
    """A SYN that is sent again begins nothing anew."""
    frames = [FLOW.syn(), FLOW.syn(), *FRAMES, FLOW.syn(), *FRAMES]
    got, actions = acted(rig, "a>b header 0 drop", frames)
    assert len(actions) == 1 and len(got) == len(frames) - 1


def check_flow_begun_before(rig: Rig) -> None:
    """A flow whose SYN was not seen is carried and never acted on by offset."""
    with rig.box("a>b offset 0 drop", "a>b first drop", "a>b last drop") as box:
        assert rig.through(ALL[1:]) == ALL[1:]
        assert box.end()["unknown"] == len(ALL) - 1


def check_flow_joined(rig: Rig) -> None:
    """With --join its first frame is byte 0, each direction by itself; a SYN still begins a flow anew."""
    late = FRAMES[index(START[5]) - 1 :]  # the first begins inside record 4: what it holds is no header
    with rig.box(
        "a>b offset 0 drop", "a>b offset 2500 delay 1", "b>a offset 0 drop", args=("--join",)
    ) as box:
        assert rig.through(late) == [late[1], late[3], late[2], *late[4:]]
        reply = Tcp("192.0.2.2", "192.0.2.1", 4433, 40000, isn=77).cut(session(2000))
        assert rig.through(reply, back=True) == reply[1:]
        assert (said := box.end())["flows"] == 1 and said["unknown"] == 0
    with rig.box("a>b header 5 drop", args=("--join",)) as box:
        assert rig.through(ALL) == without(index(START[5]))


def check_both_directions(rig: Rig) -> None:
    """Each direction has its own stream: the reply's record is not the request's."""
    reply = Tcp("192.0.2.2", "192.0.2.1", 4433, 40000, isn=77)
    back = [reply.syn(18), *reply.cut(session(2000, 2000))]
    with rig.box("b>a header +1 drop", "a>b header +1 drop") as box:
        assert rig.through(ALL[:1]) == ALL[:1]
        at = 1 + (HELLO + 2005) // 1000
        assert rig.through(back, back=True) == back[:at] + back[at + 1 :]
        assert rig.through(ALL[1:]) == without(0, 4)
        box.end()
        assert [(a["rule"], a["direction"]) for a in box.actions()] == [(1, "b>a"), (2, "a>b")]


def check_duplicate(rig: Rig) -> None:
    """A duplicate follows its original at once."""
    assert acted(rig, "a>b tag 5 duplicate")[0] == ALL[:8] + ALL[7:]


def with_ecn(frame: bytes, ecn: int) -> bytes:
    """The frame with these two bits behind its traffic class."""
    if frame[12:14] == b"\x86\xdd":
        return frame[:15] + bytes([frame[15] & 0xCF | ecn << 4]) + frame[16:]
    head = frame[14:15] + bytes([frame[15] & 0xFC | ecn]) + frame[16:24] + b"\0\0" + frame[26:34]
    return frame[:14] + head[:10] + struct.pack("!H", checksum(head)) + head[12:] + frame[34:]


def check_mark(rig: Rig) -> None:
    """CE under a right checksum of the IP header, where ECT says that the sender listens; else nothing."""
    for flow in (FLOW, Tcp("fd00::1", "fd00::2")):
        frames = [flow.syn(), *(with_ecn(frame, 2) for frame in flow.cut(DATA))]
        got, (action,) = acted(rig, "a>b header 5 mark", frames)
        assert got == [*frames[:4], with_ecn(frames[4], 3), *frames[5:]] and action["action"] == "mark"
    got, (action,) = acted(rig, "a>b header 5 mark")
    assert got == ALL and action["action"] == "none"


def check_delay(rig: Rig) -> None:
    """A delayed frame comes right after the next N of its direction."""
    got, (action,) = acted(rig, "a>b header 5 delay 3")
    assert got == [*ALL[:4], *ALL[5:8], ALL[4], *ALL[8:]]
    assert action["behind"] == 3 and action["action"] == "delay"


def check_delay_without_followers(rig: Rig) -> None:
    """A frame whose followers do not come goes on by the clock (10 s in this build), and that is said."""
    with rig.box("a>b last delay 5") as box:
        assert rig.through(ALL[:-1]) == ALL[:-2]
        assert rig.b.one() == ALL[-2]
        assert box.read("late") == {"late": 1, "frame": len(ALL) - 1, "direction": "a>b"}
        assert box.end()["a>b"]["late"] == 1


def check_held_at_the_end(rig: Rig) -> None:
    """What is held is sent before the program ends."""
    with rig.box("a>b header 5 delay 900") as box:
        assert rig.through(ALL) == without(4)
        box.end()
        assert rig.b.one() == ALL[4]


def check_flip(rig: Rig) -> None:
    """One bit differs: where the rule aims, or the byte it names; the checksum is repaired, or not."""
    cases = {
        "header 5 flip repaired": (START[5], 0, True),
        "tag 5 flip bit 7 noise": (START[6] - 1, 7, False),
        "header 5 flip at 0 bit 3 repaired": (3000, 3, True),
        "header 5 flip at -1 noise": (3999, 0, False),
    }
    for rule, (offset, bit, repaired) in cases.items():
        got, (action,) = acted(rig, f"a>b {rule}")
        at = index(offset)
        frame, was = got[at], ALL[at]
        changed = [i for i in range(len(was)) if frame[i] != was[i] and i not in (50, 51)]
        assert changed == [54 + offset % 1000] and frame[changed[0]] ^ was[changed[0]] == 1 << bit, rule
        assert FLOW.right(frame) == repaired and len(frame) == len(was)
        assert got[:at] + got[at + 1 :] == without(at)
        assert (action["at"], action["bit"], action["repaired"]) == (offset % 1000, bit, repaired)


def check_flip_of_a_byte_that_is_not_there(rig: Rig) -> None:
    """A byte beyond the frame's payload: nothing is flipped, and the action says so."""
    got, (action,) = acted(rig, "a>b header 5 flip at 1000 repaired")
    assert got == ALL and action["action"] == "none"
    got, (action,) = acted(rig, "a>b last flip at -5000 noise")
    assert got == ALL and action["action"] == "none"


def check_first_rule_wins(rig: Rig) -> None:
    """Of two rules on one frame the first acts; the other acts when the frame comes again."""
    with rig.box("a>b header 5 duplicate", "a>b header 5 drop") as box:
        assert rig.through([*ALL, ALL[4]]) == ALL[:5] + ALL[4:]
        box.end()
        assert [(a["rule"], a["action"]) for a in box.actions()] == [(1, "duplicate"), (2, "drop")]


def check_rule_while_running(rig: Rig) -> None:
    """A rule that is added in the middle of a flow acts on what comes after."""
    with rig.box() as box:
        assert rig.through(ALL[:5]) == ALL[:5]
        box.add("a>b tag 6 drop")
        box.add("a>b header 4 drop")
        gone = index(START[7] - 1)
        assert rig.through(ALL[5:]) == ALL[5:gone] + ALL[gone + 1 :]
        box.tell("clear")
        box.read("added")
        box.add("a>b offset 0 drop")
        assert rig.through([ALL[1], ALL[1]]) == [ALL[1]]
        box.end()


def check_not_tls(rig: Rig) -> None:
    """A stream that is no TLS has no records; offsets and frame numbers work on it."""
    plain = [FLOW.syn(), *FLOW.cut(b"GET / HTTP/1.1\r\n" * 300)]
    assert acted(rig, "a>b header 0 duplicate", plain)[0] == [*plain[:2], *plain[1:]]
    assert acted(rig, "a>b header 1 drop", plain) == (plain, [])
    got, (action,) = acted(rig, "a>b frame 3 drop", plain)
    assert got == plain[:4] + plain[5:] and action["record"] is None


def check_small_records(rig: Rig) -> None:
    """Many records in one frame: each is found, empty ones as well."""
    data = session(*[20 + i % 5 for i in range(500)]) + record(23, 0) * 30 + record(23, 1000)
    frames = [FLOW.syn(), *FLOW.cut(data)]
    at = HELLO
    for i in range(500):
        if i % 71 == 0:
            gone = 1 + at // 1000
            assert acted(rig, f"a>b header +{i} drop", frames)[0] == frames[:gone] + frames[gone + 1 :], i
        at += 25 + i % 5
    gone = 1 + (len(data) - 1) // 1000
    assert acted(rig, "a>b tag +530 drop", frames)[0] == frames[:gone] + frames[gone + 1 :]
