"""Arms in turns at each setting: A/B/A/B, each turn proved to be what it is; the measuring document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from offload.errors import Refused, RigError
from offload.suite.measure.arms import Moved, check, features, impossible
from offload.suite.measure.cpu.figures import Sample
from offload.suite.measure.cpu.pairs import turns
from offload.suite.measure.ipsec import by_card, carried, impossible_esp, under
from offload.suite.measure.plan import CIPHER, VERSION, Plan, Setting
from offload.suite.measure.programs import Iperf3, Nginx
from offload.suite.measure.stream import File, Stream
from offload.suite.measure.testbed import Testbed, link_gbits
from offload.suite.measure.video import Video
from offload.suite.measure.window import Live, Window

SCHEMA = "ktls-offload/measure/1"
EMULATED = "not measurable here: an emulated machine has no memory controller"
FULL = 0.95  # of the link or of the cores: beyond that something else is the limit


class Workload(Protocol):
    """What makes traffic of one kind."""

    def missing(self, arm: str, setting: Setting) -> str:
        """Why an arm cannot run here, or ''."""
        ...

    def run(self, arm: str, setting: Setting, seconds: float, window: Window) -> Moved:
        """One turn of an arm, with the window around what counts."""
        ...


WORKLOADS: Mapping[str, Callable[[Testbed], Workload]] = {
    "stream": Stream,
    "file": File,
    "iperf3": Iperf3,
    "nginx": Nginx,
    "video": Video,
}


def document(testbed: Testbed, method: str = "time") -> dict[str, Any]:
    """A document without rows."""
    return {
        "schema": SCHEMA,
        "method": method,
        "simulated": testbed.simulated,
        "about": testbed.about,
        "rows": [],
        "skipped": [],
        "warnings": testbed.warnings,
    }


def measure(testbed: Testbed, plan: Plan, live: Live | None = None) -> dict[str, Any]:
    """Measure all of it. NoFigure if an arm is not what it should be; Refused if no arm can run at all."""
    if testbed.emulated:
        testbed.about.setdefault("memory traffic", EMULATED)
    found, loads = document(testbed), {name: make(testbed) for name, make in WORKLOADS.items()}
    for setting in plan.settings:
        load = loads[setting.workload]
        able = [arm for arm in plan.arms if not _skipped(testbed, load, arm, setting, found["skipped"])]
        found["rows"] += _setting(testbed, load, able, setting, plan, live)
    if live:
        live.clear()
    if not found["rows"]:
        reasons: dict[str, dict[str, None]] = {}
        for row in found["skipped"]:
            reasons.setdefault(row["reason"], {})[f"{row['workload']} {row['arm']}"] = None
        words = [f"{', '.join(arms)}: {reason}" for reason, arms in reasons.items()]
        raise Refused("could not measure anything: " + "; ".join(words))
    return found


def _skipped(
    testbed: Testbed, load: Workload, arm: str, setting: Setting, skipped: list[dict[str, str]]
) -> bool:
    """Whether an arm cannot run at a setting; the reason is noted, once."""
    why = impossible(arm, setting.direction, setting.workload, testbed.profile, CIPHER, VERSION)
    why = why or (testbed.without_ktls() if arm in ("sw", "hw", "hw-zc") else "")
    why = why or (testbed.unswitchable(setting.direction) if arm.startswith("hw") else "")
    why = why or impossible_esp(testbed, arm)
    if why := why or load.missing(under(arm), setting):
        row = {"arm": arm, "workload": setting.workload, "direction": setting.direction, "reason": why}
        skipped += [] if row in skipped else [row]
    return bool(why)


def _setting(
    testbed: Testbed, load: Workload, arms: list[str], setting: Setting, plan: Plan, live: Live | None
) -> list[dict[str, Any]]:
    """The rows of one setting."""
    rows = {arm: _row(arm, setting) for arm in arms}
    for turn in turns(arms, plan.rounds, plan.warm):
        if live:
            live.arm = turn.arm
            live.setting = f"({turn.round + 1}/{plan.warm + plan.rounds}: {setting.say()})"
        sample = once(testbed, load, turn.arm, setting, plan.seconds, live)
        if turn.counts:
            rows[turn.arm]["samples"].append(sample)
    return list(rows.values())


def _row(arm: str, setting: Setting) -> dict[str, Any]:
    """A row without samples."""
    tls = under(arm) != "plain"
    row = {
        "workload": setting.workload,
        "arm": arm,
        "direction": setting.direction,
        "version": VERSION if tls else "",
        "cipher": CIPHER.replace("-", "_") if tls else "",
        "streams": setting.streams,
        "size": setting.size,
        "segmentation": setting.segmentation,
        "samples": [],
    }
    row |= {"only": setting.only} if setting.only else {}
    return {**row, "close": True} if setting.close else row


def once(
    testbed: Testbed, load: Workload, arm: str, setting: Setting, seconds: float, live: Live | None = None
) -> dict[str, Any]:
    """One turn of one arm: switch, run, and hold what was counted against the arm's name."""
    tls = features(arm, setting.direction)
    testbed.switches.set(tls, setting.segmentation, only=setting.only, esp=by_card(arm))
    before, then = testbed.counters(), testbed.carried()
    window = Window(testbed.meter, live, testbed.counter, testbed.memory)
    with carried(testbed, arm, seconds) as turn:
        moved = load.run(turn.runs, setting, seconds, window)
        turn.check(moved)
    after, now = testbed.counters(), testbed.carried()
    rest = {side: now[side] - then[side] for side in now}
    check(arm, setting.direction, moved, after - before, rest, testbed.profile)
    seconds = moved.seconds or window.seconds
    longer = window.seconds / seconds if moved.whole else 1.0
    sample = Sample(window.cores * longer, moved.bytes, seconds)
    _limits(testbed, arm, setting, sample, window.cpus)
    row = {"cores": round(sample.cores, 5), "bytes": sample.bytes, "seconds": round(sample.seconds, 5)}
    row |= {} if moved.requests is None else {"requests": moved.requests}
    return row | _cycles(testbed, window)


def _cycles(testbed: Testbed, window: Window) -> dict[str, int]:
    """Return the other counters next to the cores; one that another program holds is a warning, and no
    figure."""
    found: dict[str, int] = {}
    for name, key in (("cycles", "cycles"), ("memory", "memory_bytes")):
        try:
            value = getattr(window, name)
        except RigError as exc:
            testbed.add(str(exc).partition("\n")[0])
            continue
        found |= {} if value is None else {key: value}
    return found


def _limits(testbed: Testbed, arm: str, setting: Setting, sample: Sample, cpus: int) -> None:
    """Warn if the link or the cores were the limit: throughput then says nothing of the arm."""
    if testbed.simulated:
        return
    speed = link_gbits(testbed.dut.host, testbed.dut.dev)
    each = sample.gbits / (2 if setting.direction == "both" else 1)
    if speed and each >= FULL * speed:
        testbed.add(
            f"arm {arm}: the link ({speed:g} Gbit/s) was saturated and limits throughput; cores stay valid"
        )
    if sample.cores >= FULL * cpus:
        testbed.add(
            f"arm {arm}: all {cpus} cores were busy and limit throughput; cores per 100 Gbit/s stay valid"
        )
