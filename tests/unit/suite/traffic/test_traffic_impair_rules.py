"""Rules of impairment: the words they become, and the values that make no sense."""

from __future__ import annotations

import math
from typing import Any

import pytest

from offload.errors import ConfigError, NoDevice, NoPermission, OffloadError, Refused, RigError
from offload.suite.traffic.impair import Chosen, Netem, RandomImpairment, netem
from tests.unit.suite.traffic.fake_wire import FakeWire, bench

TEXTS = {
    "a>b header 3 drop": Chosen("header", 3),
    "a>b tag +3 drop times 2": Chosen("tag", 3, data=True, times=2),
    "b>a port 443 inside 0 delay 7": Chosen("inside", 0, "delay", direction="to-dut", port=443, behind=7),
    "a>b first duplicate": Chosen("first", action="duplicate"),
    "a>b offset 7 mark": Chosen("offset", 7, "mark"),
    "a>b last flip bit 0 repaired": Chosen("last", action="flip"),
    "a>b offset 9 flip at -1 bit 7 noise": Chosen("offset", 9, "flip", at=-1, bit=7, repaired=False),
    "a>b frame 0 drop": Chosen("frame"),
    "impair both seed 1": RandomImpairment(),
    "impair a>b seed 7 loss 0.5000%": RandomImpairment(loss=0.5, seed=7, direction="to-peer"),
    "impair b>a port 80 seed 1 loss 100.0000% duplicate 0.0001%": RandomImpairment(
        loss=100, duplicate=0.0001, port=80, direction="to-dut"
    ),
    "impair both seed 1 reorder 1.0000% depth 5 corrupt 2.0000% repaired jitter 1500": RandomImpairment(
        reorder=1, depth=5, corrupt=2, repaired=True, jitter=1.5
    ),
    "impair both seed 1 corrupt 2.0000% noise": RandomImpairment(corrupt=2),
}
WRONG: list[tuple[type, dict[str, Any], str]] = [
    (Chosen, {"place": "heeder"}, "place 'heeder'"),
    (Chosen, {"place": "first", "number": 3}, "first is a single frame"),
    (Chosen, {"place": "offset", "data": True}, "offset does not count records"),
    (Chosen, {"place": "first", "data": True}, "first does not count records"),
    (Chosen, {"place": "tag", "number": -1}, "number is -1"),
    (Chosen, {"place": "tag", "action": "eat"}, "action 'eat'"),
    (Chosen, {"place": "tag", "direction": "both"}, "direction 'both'"),
    (Chosen, {"place": "tag", "behind": 0}, "behind is 0"),
    (Chosen, {"place": "tag", "bit": 8}, "bit is 8"),
    (Chosen, {"place": "tag", "times": 101}, "times is 101"),
    (Chosen, {"place": "tag", "at": 65536}, "at is 65536"),
    (Chosen, {"place": "tag", "port": 65536}, "port is 65536"),
    (RandomImpairment, {"loss": 101}, "loss of 101 %"),
    (RandomImpairment, {"loss": -1}, "loss of -1 %"),
    (RandomImpairment, {"loss": math.nan}, "loss of nan %"),
    (RandomImpairment, {"corrupt": 0.00001}, "corrupt of 1e-05 %"),
    (RandomImpairment, {"seed": -1}, "seed is -1"),
    (RandomImpairment, {"depth": 0}, "depth is 0"),
    (RandomImpairment, {"jitter": 1001}, "jitter in microseconds is 1001000"),
    (RandomImpairment, {"direction": "a>b"}, "direction 'a>b'"),
    (Netem, {}, "netem without a setting"),
    (Netem, {"reorder": 1}, "netem reorders only delayed packets"),
    (Netem, {"jitter": 1}, "netem's jitter varies its delay, so it needs a delay"),
    (Netem, {"loss": 100.1}, "loss of 100.1 %"),
    (Netem, {"delay": -1}, "delay is -1"),
]


@pytest.mark.parametrize("text", TEXTS)
def test_rules_become_words(text: str) -> None:
    """A rule is one line in wirebox's words."""
    assert TEXTS[text].text == text


@pytest.mark.parametrize(("kind", "values", "why"), WRONG, ids=lambda v: v if isinstance(v, str) else "")
def test_nonsense_is_named(kind: type, values: dict[str, Any], why: str) -> None:
    """A value that makes no sense is refused by its name and value."""
    with pytest.raises(ConfigError) as caught:
        kind(**values)
    assert why in str(caught.value)


def test_netem_is_put_on_and_taken_off() -> None:
    """netem gets its words, its limit is no loss, and the kernel's qdisc comes back."""
    wire = FakeWire()
    with netem(bench(wire), "w1", Netem(loss=1, delay=3, jitter=0.5, reorder=2, rate=100)) as working:
        argv = "tc qdisc add dev w1 root netem limit 100000 delay 3ms 0.5ms loss 1% reorder 2% rate 100mbit"
        assert wire.did[-1] == argv
        found = working.json()
    assert found == {
        **{"tool": "netem", "port": "w1", "loss": 1, "delay": 3, "jitter": 0.5, "reorder": 2, "rate": 100},
        **{"seed": None, "packets": 9, "bytes": 0, "drops": 0},
    }
    assert wire.did[-1] == "tc qdisc del dev w1 root" and wire.qdisc["kind"] == "fq_codel"


@pytest.mark.parametrize("known", [True, False])
def test_netem_says_whether_it_has_a_seed(known: bool) -> None:
    """A seed is used where tc and kernel know it, and else not claimed."""
    wire = FakeWire()
    wire.knows_seed = known
    with netem(bench(wire), "w0", Netem(loss=1, seed=9)) as working:
        assert working.seeded == known and working.json()["seed"] == (9 if known else None)


def test_netem_does_not_push_others_aside() -> None:
    """A qdisc of somebody, no netem, no rights, an end, no such port: refused."""
    taken, lacking, weak, end, down, gone, forbidden = (FakeWire() for _ in range(7))
    taken.qdisc = {"kind": "tbf", "handle": "1:", "root": True}
    lacking.qdisc["lacking"] = True
    weak.files["/proc/self/status"] = "CapEff:\t0"
    end.ports["w1"]["addr_info"] = [{"local": "192.0.2.7", "scope": "global"}]
    down.ports["w1"]["flags"], forbidden.forbids = [], True
    gone.ports.pop("w1")
    wrong: dict[str, tuple[FakeWire, type[OffloadError]]] = {
        "tbf 1:": (taken, Refused),
        "no netem": (lacking, Refused),
        "need CAP_NET_ADMIN": (weak, NoPermission),
        "192.0.2.7": (end, Refused),
        "w1 is down": (down, RigError),
        "the wire has no interface 'w1'": (gone, NoDevice),
        "not permitted: tc qdisc add": (forbidden, NoPermission),
    }
    for why, (wire, error) in wrong.items():
        with pytest.raises(error, match=why) as caught:
            with netem(bench(wire), "w1", Netem(loss=1)):
                pass
        assert "\n" not in str(caught.value).split("\n  hint")[0]
        assert wire.qdisc["handle"] in ("0:", "1:") and not any(" del " in line for line in wire.did)
        assert wire in (lacking, forbidden) or wire.changes() == []


def test_netem_comes_off_after_an_error() -> None:
    wire = FakeWire()
    with pytest.raises(KeyError), netem(bench(wire), "w1", Netem(loss=1)):
        raise KeyError
    assert wire.qdisc["handle"] == "0:"
