"""Is random impairment what its seed says: the same for the same frames, and as much as was requested?"""

from __future__ import annotations

import signal

from rig import Rig, Tcp

M = (1 << 64) - 1
FLOW = Tcp()
FRAMES = [FLOW.frame(i * 100, i.to_bytes(4, "big") + bytes(96)) for i in range(1, 2001)]
WHAT = {"loss": 0, "corrupt": 1, "place": 2, "duplicate": 3, "reorder": 4, "jitter": 5}


def mix(x: int) -> int:
    """splitmix64's finalizer, written again."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & M
    x = (x ^ x >> 27) * 0x94D049BB133111EB & M
    return x ^ x >> 31


def happens(seed: int, direction: int, number: int, what: str, share: float) -> bool:
    """Whether impairment with this seed hits frame `number` (from 1) of a direction."""
    x = mix(mix(seed + 0x9E3779B97F4A7C15 & M) ^ (number << 1 | direction))
    roll = mix(x + 0x9E3779B97F4A7C15 * (WHAT[what] + 1) & M)
    return (roll >> 32) * 1_000_000 >> 32 < round(share * 10_000)


def run(rig: Rig, rule: str, back: bool = False) -> tuple[list[bytes], list[dict]]:
    """What arrives of FRAMES, and what was done."""
    with rig.box(rule) as box:
        got: list[bytes] = []
        for at in range(0, len(FRAMES), 250):
            got += rig.through(FRAMES[at : at + 250], back)
        box.end()
        return got, box.actions()


def check_loss_is_what_the_seed_says(rig: Rig) -> None:
    """Exactly the frames that an independent reckoning names are lost, in both directions."""
    for back in (False, True):
        got, actions = run(rig, "impair both seed 7 loss 5%", back)
        lost = [n for n in range(1, 2001) if happens(7, int(back), n, "loss", 5)]
        assert got == [f for n, f in enumerate(FRAMES, 1) if n not in lost]
        assert [a["number"] for a in actions] == lost and 60 < len(lost) < 140
        assert all(a["action"] == "drop" and a["rule"] == 1 for a in actions)


def check_same_seed_same_frames(rig: Rig) -> None:
    """All kinds of impairment at once are the same in every run with this seed, and differ with another."""
    kinds = "loss 1% duplicate 2% reorder 3% depth 4 corrupt 2% repaired"
    first, again, other = (run(rig, f"impair a>b seed {s} {kinds}") for s in (3, 3, 4))
    assert first == again and first[1] != other[1]
    by = {name: sum(a["action"] == name for a in first[1]) for name in ("drop", "duplicate", "delay", "flip")}
    want = {"drop": 20, "duplicate": 40, "delay": 60, "flip": 40}
    assert all(n / 2 < by[name] < n * 2 for name, n in want.items()), by


def check_seed_of_the_command_line(rig: Rig) -> None:
    """--seed is that of a rule that names none; without it the seed is 1."""

    def lost(args: tuple[str, ...], seed: str) -> list[int]:
        with rig.box(f"impair a>b loss 5%{seed}", args=args) as box:
            rig.through(FRAMES[:300])
            box.end()
            return [a["number"] for a in box.actions()]

    assert lost(("--seed", "9"), "") == lost((), " seed 9") != lost((), "")
    assert lost((), "") == lost((), " seed 1")


def check_reorder_depth(rig: Rig) -> None:
    """A reordered frame comes behind exactly so many others, whatever else is late."""
    want: list[int] = []
    held: list[int] = []
    for n in range(1, 401):
        (held if happens(5, 0, n, "reorder", 4) else want).append(n)
        want += [late for late in held if late + 5 <= n]
        held = [late for late in held if late + 5 > n]
    with rig.box("impair a>b reorder 4% depth 5 seed 5") as box:
        got = rig.through(FRAMES[:400])
        assert box.end()["a>b"]["delayed"] == sum(happens(5, 0, n, "reorder", 4) for n in range(1, 401))
    assert [int.from_bytes(f[54:58], "big") for f in got] == want != sorted(want)


def check_corrupt(rig: Rig) -> None:
    """Noise leaves the checksum wrong, an attacker makes it right; one bit each, and none without payload."""
    for word, right in (("noise", False), ("repaired", True)):
        got, actions = run(rig, f"impair a>b corrupt 5% {word} seed 2")
        assert len(got) == 2000 and len(actions) > 50
        hit = {a["number"]: a for a in actions}
        for n, (frame, was) in enumerate(zip(got, FRAMES, strict=True), 1):
            bits = sum((x ^ y).bit_count() for x, y in zip(frame[54:], was[54:], strict=True))
            assert bits == (n in hit) and FLOW.right(frame) == (n not in hit or right)
            if n in hit:
                a = hit[n]
                assert frame[54 + a["at"]] ^ was[54 + a["at"]] == 1 << a["bit"]
    with rig.box("impair a>b corrupt 100% noise"):
        acks = [FLOW.frame(i, b"") for i in range(50)]
        assert rig.through(acks) == acks


def check_jitter(rig: Rig) -> None:
    """Jitter delays each frame by a time of its own: all arrive, not all in order, none much too late."""
    with rig.box("impair a>b jitter 20000 seed 1") as box:
        rig.a.send(FRAMES[:300])
        got = [rig.b.one() for _ in range(300)]
        assert sorted(got) == FRAMES[:300] and got != FRAMES[:300]
        summary = box.end()
        assert summary["a>b"]["jittered"] == 300 and summary["a>b"]["late"] == 0


def check_only_its_port_and_direction(rig: Rig) -> None:
    """Impairment of a port leaves other connections alone; that of one direction the other one."""
    with rig.box("impair a>b port 4434 loss 100%"):
        assert rig.through(FRAMES[:50]) == FRAMES[:50]
    with rig.box("impair a>b port 4433 loss 100%") as box:
        assert rig.through(FRAMES[:50]) == []
        assert rig.through(FRAMES[:50], back=True) == FRAMES[:50]
        box.tell("clear")
        box.read("added")
        assert rig.through(FRAMES[:50]) == FRAMES[:50]


def check_a_later_rule_replaces(rig: Rig) -> None:
    """A later rule replaces that of its directions and counts frames from the start."""
    with rig.box("impair both loss 100%", "impair a>b loss 5% seed 7") as box:
        got = rig.through(FRAMES[:300])
        assert got == [f for n, f in enumerate(FRAMES[:300], 1) if not happens(7, 0, n, "loss", 5)]
        assert rig.through(FRAMES[:9], back=True) == []
        box.end()


def check_chosen_rules_come_first(rig: Rig) -> None:
    """Random impairment leaves alone a frame on which a chosen rule acts."""
    with rig.box("a>b frame 1 duplicate", "impair a>b loss 100%"):
        frames = [FLOW.frame(0, b"a" * 10), FLOW.frame(10, b"b" * 10), FLOW.frame(20, b"c" * 10)]
        assert rig.through([FLOW.syn()]) == []
    with rig.box("impair a>b loss 0%", "a>b frame 1 duplicate") as box:
        assert rig.through([FLOW.syn(), *frames]) == [FLOW.syn(), *frames[:2], *frames[1:]]
        box.end()
        assert [a["rule"] for a in box.actions()] == [2]


def check_too_much_to_hold(rig: Rig) -> None:
    """What cannot be held any more goes on at once and is counted: memory is bounded, no frame is lost."""
    for _ in range(5):  # it holds fewer if it is kept from running in the middle
        with rig.box("impair a>b jitter 1000000 seed 1") as box:
            box.child.send_signal(signal.SIGSTOP)  # so that it finds them all at once, however slow we are
            rig.a.send(FRAMES[:1500])
            mark = rig.a.mark()
            box.child.send_signal(signal.SIGCONT)
            rig.b.until(mark)
            moved = box.end()["a>b"]
        assert moved["not_held"] <= 1500 - 1024 and moved["sent"] == 1501, moved
        if moved["not_held"]:
            return
    raise AssertionError(moved)


def check_lines_are_bounded(rig: Rig) -> None:
    """More actions than LINES_MAX (2000 in this build) are only counted in the summary."""
    with rig.box("impair a>b duplicate 100%") as box:
        for at in range(0, 3000, 250):
            rig.through(FRAMES[at % 2000 : at % 2000 + 250])
            box.listen()
        assert box.end()["actions"] == 3000 and len(box.actions()) == 2000
