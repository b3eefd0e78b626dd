"""Memory traffic: which source is asked, what it says of a folder that plays /sys, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from offload.errors import RigError
from offload.host.local import LocalHost
from offload.suite.measure.cpu import memory_reader as reader
from offload.suite.measure.cpu.memory import Traffic, counting, difference
from offload.suite.measure.window import Window
from tests.unit.suite.measure.cpu.test_cpu_cycles import FakeHost, FakeReader
from tests.unit.suite.measure.test_measure_run import cpu

PMU = "bus/event_source/devices/uncore_imc_0"
L3 = "fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes"


def put(root: Path, **files: str) -> str:
    """Write these files below a folder that plays /sys; its path."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + "\n")
    return str(root)


def imc(kind: str = "1") -> dict[str, str]:
    """A memory controller; of type 1 (software) this kernel really counts: ns of a CPU's clock, event 0."""
    return {
        f"{PMU}/type": kind,
        f"{PMU}/cpumask": "0",
        f"{PMU}/format/event": "config:0-7",
        f"{PMU}/format/umask": "config:8-15",
        f"{PMU}/events/cas_count_read": "event=0x00",
        f"{PMU}/events/cas_count_read.scale": "6.103515625e-5",
        f"{PMU}/events/cas_count_read.unit": "MiB",
    }


def test_events_are_encoded_as_the_kernel_says(tmp_path: Path) -> None:
    """An event's words become the number that the PMU's format files make of them."""
    root = put(tmp_path, **imc("21") | {f"{PMU}/events/cas_count_write": "event=0x04,umask=0x0c"})
    found = reader.controllers(root)
    assert found[0] == ("uncore_imc_0 cas_count_read cpu0", 21, 0, 0, 64.0), "a count is a line of 64 bytes"
    assert found[1][2] == 0x0C04 and found[1][4] == 64.0
    with pytest.raises(ValueError, match="no place for odd"):
        reader.config(f"{root}/{PMU}", "odd=1")


def test_resctrl_adds_up_groups(tmp_path: Path) -> None:
    """resctrl's domains and groups are added up; a monitoring group's are in its group's."""
    more = {
        L3: "1000",
        L3.replace("L3_00", "L3_01"): "20",
        "fs/resctrl/web/mon_data/mon_L3_00/mbm_total_bytes": "300",
        "fs/resctrl/mon_groups/m/mon_data/mon_L3_00/mbm_total_bytes": "999",
    }
    with counting(LocalHost(), put(tmp_path, **more)) as memory:
        assert memory.absent == "" and memory.say().startswith("counted by resctrl")
        before = memory.snapshot()
        put(tmp_path, **{L3: "1500", "fs/resctrl/web/mon_data/mon_L3_00/mbm_total_bytes": "301"})
        after = memory.snapshot()
    assert sum(before.bytes.values()) == 1320 and after - before == 501


@pytest.mark.parametrize(
    "files, words",
    [
        ({}, "no resctrl"),
        ({"fs/resctrl/.": ""}, "not mounted"),
        ({"fs/resctrl/schemata": "L3:0=ff"}, "does not count memory traffic"),
        ({L3: "Unavailable"}, "resctrl says Unavailable of mon_data/mon_L3_00"),
        ({L3: "Error"}, "resctrl says Error"),
        (imc("999999"), "cannot be opened"),
        (imc("x"), "invalid literal"),
    ],
)
def test_why_not(tmp_path: Path, files: dict[str, str], words: str) -> None:
    """A host that cannot tell says why, in one phrase, and gives no figure."""
    (tmp_path / "fs/resctrl").mkdir(parents=True) if "fs/resctrl/." in files else None
    root = put(tmp_path, **{name: text for name, text in files.items() if not name.endswith(".")})
    with counting(LocalHost(), root) as memory:
        assert words in memory.absent and memory.say().startswith("not measurable here: ")
        with pytest.raises(RigError, match="no memory traffic"):
            memory.snapshot()


def test_a_controller_is_counted(tmp_path: Path) -> None:
    """A counter that the kernel gives is read, in bytes, and goes on."""
    with counting(LocalHost(), put(tmp_path, **imc())) as memory:
        if memory.absent:  # a kernel that lets nobody count
            assert "cannot be opened" in memory.absent
            return
        assert memory.words == "memory controllers, 1 counters"
        before, after = memory.snapshot(), memory.snapshot()
        assert after - before > 0 and list(after.bytes) == ["uncore_imc_0 cas_count_read cpu0"]


@pytest.mark.parametrize("line", [b"7\n", b"{}\n", b'{"a": -1}\n', b'{"a": "1"}\n', b'{"a": true}\n'])
def test_nonsense_is_refused(line: bytes) -> None:
    """What is no count is an error that says so."""
    with counting(FakeHost(FakeReader(b'{"source": "x"}\n', line, b""))) as memory:
        with pytest.raises(RigError, match="memory traffic on dut said"):
            memory.snapshot()


def test_other_counters_and_back() -> None:
    """Counters that went back, came or left are an error, and never a figure."""
    first = Traffic("dut", {"a": 5, "b": 9})
    assert difference(first, Traffic("dut", {"a": 6, "b": 9})) == 1
    for other in (Traffic("peer", first.bytes), Traffic("dut", {"a": 5})):
        with pytest.raises(RigError, match="other counters"):
            difference(first, other)
    with pytest.raises(RigError, match="traffic of b went back"):
        difference(first, Traffic("dut", {"a": 6, "b": 8}))


def test_a_host_without_python() -> None:
    """A host on which nothing can ask says that."""
    with counting(FakeHost(None)) as memory:
        assert "cannot run /usr/bin/python3" in memory.absent


def test_a_counter_that_stops_costs_its_own_figure_only(tmp_path: Path) -> None:
    """A window keeps its cores where the memory's counter ended in the middle."""
    ticks = iter((cpu(1.0, 0, 0), cpu(2.0, 50, 50)))
    meter = type("Meter", (), {"snapshot": lambda self: next(ticks)})()
    with counting(LocalHost(), put(tmp_path, **{L3: "1000"})) as memory:
        window = Window(meter, memory=memory)
        window.begin()
        put(tmp_path, **{L3: "Unavailable"})
        window.end()
    assert window.cores == 0.5
    with pytest.raises(RigError, match="ended: resctrl says Unavailable"):
        assert window.memory
