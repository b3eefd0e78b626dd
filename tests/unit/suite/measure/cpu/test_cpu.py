"""The CPU meter: what is read, what is refused, and what a difference says."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from offload.errors import RigError
from offload.host.base import Completed
from offload.host.local import LocalHost
from offload.suite.measure.cpu.meter import COLUMNS, Meter, Snapshot, difference, parse

# user nice system idle iowait irq softirq steal guest guest_nice
STAT = b"""cpu  300 20 100 1600 60 10 40 20 50 4
cpu0 100 20 100 800 60 10 40 20 50 4
cpu1 200 0 0 800 0 0 0 0 0 0
intr 5 0
ctxt 9
"""


class FakeHost:
    """Answers getconf, and files that may change from one reading to the next."""

    name = "dut"

    def __init__(self, hz: str = "100", **files: bytes | list[bytes]) -> None:
        self.hz, self.files = hz, files

    def run(self, argv, **_):  # type: ignore[no-untyped-def]
        """The ticks per second."""
        return Completed(tuple(argv), 0, self.hz.encode(), b"", 0.0, self.name)

    def read(self, path: str) -> bytes:
        """The next text of a file; the last one stays."""
        texts = self.files[Path(path).name]
        if isinstance(texts, bytes):
            return texts
        return texts.pop(0) if len(texts) > 1 else texts[0]


def shot(at: float, *cpus: dict[str, int], host: str = "dut", hz: int = 100, skew: float = 0.0) -> Snapshot:
    full = {number: {**dict.fromkeys(COLUMNS, 0), **cpu} for number, cpu in enumerate(cpus)}
    return Snapshot(host, at, skew, hz, full)


def test_every_column_of_every_cpu_is_read_and_guests_are_not_counted_twice() -> None:
    """The eight columns are read by CPU; guest time, which is in user, is left out."""
    found = parse(STAT, "here")
    assert found[0] == dict(zip(COLUMNS, (100, 20, 100, 800, 60, 10, 40, 20), strict=True))
    assert found[1]["user"] == 200 and found.keys() == {0, 1}


def test_active_cores_are_the_sum_of_busy_fractions() -> None:
    """64 CPUs that are busy half the time are 32 active cores (Netdev 0x14, 12:05)."""
    before = shot(0, *[{}] * 64)
    after = shot(10, *[{"user": 300, "system": 100, "softirq": 100, "idle": 400, "iowait": 100}] * 64)
    use = after - before
    assert use.cores == pytest.approx(32) and use.steal == 0
    assert use.parts() == pytest.approx(
        {"user": 19.2, "nice": 0, "system": 6.4, "irq": 0, "softirq": 6.4, "unseen": 0}
    )


def test_interrupts_count_and_stolen_time_stands_apart() -> None:
    """irq and softirq are busy, steal is neither busy nor idle."""
    use = shot(10, {"irq": 100, "softirq": 200, "steal": 300, "idle": 400}) - shot(0, {})
    core = use.cpus[0]
    assert core.busy == pytest.approx(3) and core.steal == pytest.approx(3)
    assert "0.30 stolen" in use.say() and use.say().startswith("0.30 of 1 cores active, +-0.00")


@pytest.mark.parametrize(("idle", "good"), [(-2, True), (-3, False)])
def test_idle_time_goes_back_by_rounding_only(idle: int, good: bool) -> None:
    """Two ticks are rounding, three are a CPU that was offline."""
    before = shot(0, {"idle": 100})
    after = shot(10, {"idle": 100 + idle, "user": 1000})
    if good:
        assert (after - before).cores == pytest.approx(1)
        return
    with pytest.raises(RigError, match="idle went back"):
        after - before  # noqa: B018


@pytest.mark.parametrize(
    ("cpu", "why"),
    [
        ({"idle": 1003}, ""),
        ({"idle": 1004}, "idle for 10.04 s of 10.00 s"),
        ({"user": 497}, ""),
        ({"user": 496}, "accounts for 4.96 s of 10.00 s"),
    ],
)
def test_a_cpu_is_busy_and_idle_as_long_as_the_clock_says(cpu: dict[str, int], why: str) -> None:
    """Within the clock's rounding and two ticks: 0.03 s. Busy is never negative."""
    if not why:
        assert (shot(10, cpu) - shot(0, {})).cpus[0].busy >= 0
        return
    with pytest.raises(RigError, match=why):
        shot(10, cpu) - shot(0, {})  # noqa: B018


def test_the_margin_has_skew_clock_and_tick() -> None:
    """Each can be wrong by so much, on each CPU."""
    busy = {"user": 1000}
    use = shot(10, busy, busy, skew=0.03) - shot(0, {}, {}, skew=0.02)
    assert use.margin == pytest.approx(2 * (0.05 + 0.01 + 0.01) / 10)
    assert "stolen" not in (shot(10, busy | {"steal": 4}) - shot(0, {})).say()


def test_work_between_two_ticks_is_busy_though_no_column_has_it() -> None:
    """Busy is what is not idle: work that the ticks did not see is told apart."""
    core = (shot(10, {"user": 50, "idle": 800}) - shot(0, {})).cpus[0]
    assert core.busy == pytest.approx(2) and core.unseen == pytest.approx(1.5)


@pytest.mark.parametrize("hz", [100, 250, 1000, 1024])
def test_ticks_are_those_of_the_host(hz: int) -> None:
    """A kernel that counts in other ticks gives the same cores."""
    use = shot(4, {"user": hz, "idle": 3 * hz}, hz=hz) - shot(0, {}, hz=hz)
    assert use.cores == use.parts()["user"] == pytest.approx(0.25)
    assert Meter(FakeHost(f"{hz}\n")).hz == hz  # type: ignore[arg-type]


@pytest.mark.parametrize("said", ["", "0", "-100", "100 Hz", "1e2", "\uff11\uff10"])
def test_ticks_that_are_none_are_refused(said: str) -> None:
    """getconf is believed only if it says a number."""
    with pytest.raises(RigError, match=r"getconf CLK_TCK \(dut\): .*, wanted ticks per second"):
        Meter(FakeHost(said))  # type: ignore[arg-type]


def test_iowait_may_go_back_while_idle_catches_up() -> None:
    """An iowait counter that goes back is no error: it and idle are one."""
    use = shot(10, {"idle": 1000, "user": 100}) - shot(0, {"iowait": 100})
    assert use.cores == pytest.approx(0.1)
    assert (shot(1, {"idle": 0, "user": 100}) - shot(0, {"idle": 2})).cores == pytest.approx(1)  # rounding


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ({"user": 500}, {"user": 400, "idle": 900}, r"cpu0 \(dut\): user went back: was it offline"),
        ({"steal": 5}, {"idle": 900}, r"cpu0 \(dut\): steal went back"),
        ({"idle": 9000}, {"user": 900}, r"cpu0 \(dut\): idle went back: was it offline"),
        ({}, {"idle": 1100}, r"cpu0 \(dut\): idle for 11.00 s of 10.00 s"),
        (
            {},
            {"idle": 100, "user": 100},
            r"cpu0 \(dut\): accounts for 2.00 s of 10.00 s: was the CPU offline",
        ),
    ],
)
def test_a_cpu_that_was_plugged_in_between_is_refused(
    before: dict[str, int], after: dict[str, int], why: str
) -> None:
    """Counters that went back, or say too little or too much, are no figure."""
    with pytest.raises(RigError, match=why):
        difference(shot(0, before), shot(10, after))


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (shot(0, {}, {}), shot(9, {}), "dut: cpu1 came or went"),
        (shot(0, {}), shot(9, {}, {}, {}), "dut: cpu1, cpu2 came or went"),
        (shot(5, {}), shot(5, {}), "dut: 0.00 s between two snapshots: the time must be positive"),
        (
            shot(5, {}, skew=0.2),
            shot(5.3, {}, skew=0.2),
            "0.30 s between two snapshots: the time must be positive",
        ),
        (shot(50, {}), shot(5, {}), "clock went back by 45.00 s: was it booted"),
        (shot(0, {}), shot(5, {}, host="peer"), "two machines: dut and peer"),
    ],
)
def test_snapshots_that_do_not_go_together_are_refused(before: Snapshot, after: Snapshot, why: str) -> None:
    """CPUs that came or went, no time, or another machine are no figure."""
    with pytest.raises(RigError, match=why):
        difference(before, after)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"cpu1 200 0 0", b"cpu1 200 -1 0", r"place:3: 'cpu1 200 -1 0.*', wanted cpuN and 8 or more"),
        (b"cpu1 200 0 0 800 0 0 0 0 0 0", b"cpu1 200 0 0 800", r"place:3: 'cpu1 200 0 0 800', wanted"),
        (b"cpu1 200", b"cpu1 18446744073709551616", r"place:3: .*below 2\^64"),
        (b"cpu1 200", b"cpu1 0x5", "place:3: "),
        (b"cpu1 200", b"cpu1  200", "place:3: "),
        (b"cpu1 200", b"cpux 200", "place:3: "),
        (b"cpu1 200", b"cpu1 200\x00", "place:3: "),
        (b"cpu1 200", b"cpu1\x1b[2J 200", r"place:3: 'cpu1\\x1b\[2J"),
        (b"cpu1 200", "cpu1 \u0665".encode(), "place:3: "),
        (b"cpu1 200", b"cpu0 200", "place:3: cpu0 appears twice"),
        (b"cpu1 200", b"cpu00 200", "place:3: cpu0 appears twice"),
        (b"intr 5 0\nctxt 9\n", b"", "place: cut short: no line `intr` after 2 CPUs"),
        (STAT, b"", "place: no line of a CPU in 0 bytes"),
        (STAT, b"cpu  1 2 3 4 5 6 7 8\nintr 1\n", "place: no line of a CPU"),
    ],
)
def test_text_that_makes_no_sense_is_named_and_refused(old: bytes, new: bytes, why: str) -> None:
    """Hostile /proc/stat is refused with place, line and text; nothing of it acts."""
    with pytest.raises(RigError, match=why) as caught:
        parse(STAT.replace(old, new), "place")
    assert "\x1b" not in str(caught.value)


def test_2_to_the_64_minus_1_is_a_value() -> None:
    """The largest counter is read."""
    assert parse(STAT.replace(b"cpu1 200", f"cpu1 {2**64 - 1}".encode()), "here")[1]["user"] == 2**64 - 1


def test_the_closest_of_several_readings_counts() -> None:
    """A slow way to the host costs precision, which is told, and is tried again."""
    slow = [b"1.00 1.00\n", b"1.50 1.00\n", b"2.00 1.00\n", b"2.01 1.00\n"]
    found = Meter(FakeHost(uptime=slow, stat=STAT)).snapshot()  # type: ignore[arg-type]
    assert found.at == pytest.approx(2.005) and found.skew == pytest.approx(0.005)
    always = [f"{n}.00 1.00\n".encode() for n in range(20)]
    assert Meter(FakeHost(uptime=always, stat=STAT)).snapshot().skew == pytest.approx(0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", [b"", b"5", b"-5.00 1.00\n", b"5.00 1.00\n5.00 1.00\n", b"nan 1.00\n", b"5.0"]
)
def test_a_clock_that_makes_no_sense_is_refused(text: bytes) -> None:
    """Hostile /proc/uptime is refused with its text."""
    with pytest.raises(RigError, match=r"/proc/uptime \(dut\): .*, wanted two numbers"):
        Meter(FakeHost(uptime=text, stat=STAT)).snapshot()  # type: ignore[arg-type]


def test_this_machine_can_be_measured() -> None:
    """The meter reads a real kernel: some, at most all, of its CPUs were active."""
    meter = Meter(LocalHost())
    before = meter.snapshot()
    began, spent = time.monotonic(), 0
    while time.monotonic() - began < 0.3:
        spent += 1
    use = meter.snapshot() - before
    assert spent and 0 < use.cores <= len(use.cpus) + use.margin
    assert sum(use.parts().values()) == pytest.approx(use.cores)
