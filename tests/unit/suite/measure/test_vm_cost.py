"""Cost mode asks for what makes sense, and believes only a boot that says what it did."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from offload.debian.kernels import Kernel
from offload.errors import ConfigError, RigError
from offload.suite.bench.vm.qemu import Qemu
from offload.suite.measure.cost import boot, figures, image, run
from offload.suite.measure.cost.plan import ARMS, DIRECTIONS, Plan, Row, choose

HW = {"tx": "hw", "rx": "sw"}
SW = {"tx": "sw", "rx": "sw"}
NONE = {"tx": "none", "rx": "none"}
MIB = 1 << 20


def said(row: str, **more: Any) -> str:
    """A line of costload for a row that sends."""
    found = {
        "row": row,
        "bytes": MIB,
        "ends": {"peer-receive": SW, "dut-send": SW},
        "encrypted": 0,
        "decrypted": 0,
        "tasks": [
            ["dut-send", 2 * MIB],
            ["napi/nicsim0-8193", MIB],
            ["nicsim-hw0", 8 * MIB],
            ["ksoftirqd/0", 5],
        ],
    }
    return json.dumps(found | more)


def console(*lines: str, end: str = "COST-DONE 0") -> str:
    """A console's text."""
    return "\n".join(["[    2.0] nicsim: loading out-of-tree module taints kernel.", *lines, end, ""])


def moved(row: str, **more: Any) -> boot.Moved:
    return boot.parsed(said(row, **more))


def test_every_row_but_one() -> None:
    """Every arm runs in every direction, but for zero-copy sendfile that receives."""
    rows, skipped = choose()
    assert len(rows) == len(ARMS) * len(DIRECTIONS) - 1
    assert [(s["arm"], s["reason"]) for s in skipped] == [
        ("hw-zc", "rx: zero-copy sendfile affects transmit only")
    ]


def test_card_that_only_sends() -> None:
    """A card without receive offload has the other rows, and the reasons beside them."""
    rows, skipped = choose(("sw", "hw"), DIRECTIONS, ("tx",))
    assert [row.name for row in rows] == ["sw/tx", "sw/rx", "sw/both", "hw/tx"]
    assert [s["reason"].split(":")[0] for s in skipped] == ["rx", "both"]
    assert all("no rx offload" in s["reason"] for s in skipped)


def test_names_of_rows() -> None:
    """A row's name says its arm, direction, channels and load, and is read back as that row."""
    rows, _ = choose(ARMS, DIRECTIONS, channels=(1, 2, 4, 8), loads=("stream", "file"))
    assert [Row.named(row.name) for row in rows] == list(rows) and len({row.name for row in rows}) == len(
        rows
    )
    assert Row("sw", "both", 4).name == "sw/both/4" and Row("sw", "both", 4).streams == 8
    assert Row.named("hw-zc/tx/2/file") == Row("hw-zc", "tx", 2, True)
    assert {row.direction for row in rows if row.file} == {"tx"}, "a file is sent, never received"
    for wrong in ("sw", "sw/tx/x", "sw/tx/4/x", "sw/tx/4/file/2"):
        with pytest.raises(ValueError):
            Row.named(wrong)


def test_channels_are_counted_together() -> None:
    """The cost of channels is that of all of them per byte of all of them."""
    tasks = [[f"dut-send{n}", MIB] for n in ("", "-2", "-3", "-4")] + [
        ["napi/nicsim0-1", 0],
        ["nicsim-hw0", 8],
    ]
    found = moved("sw/tx/4", bytes=MIB // 2, tasks=tasks)
    assert run.sides(found)["sender"] == 1.0 and run.made([found])["streams"] == 4
    hw = {"ends": {"dut-send": HW, "dut-send-2": HW, "peer-receive": SW}}
    run.check(moved("hw/tx/2", bytes=MIB, encrypted=2 * MIB, **hw))
    with pytest.raises(RigError, match=f"encrypted {MIB} of {2 * MIB}"):
        run.check(moved("hw/tx/2", bytes=MIB, encrypted=MIB, **hw))
    hw["ends"]["dut-send-2"] = SW
    with pytest.raises(RigError, match="tx of dut-send-2 is 'sw'"):
        run.check(moved("hw/tx/2", bytes=MIB, encrypted=2 * MIB, **hw))


@pytest.mark.parametrize(
    "given, words",
    [
        ({"boots": 0}, "0 boots"),
        ({"boots": 21}, "21 boots"),
        ({"arms": ["hw", "warp"]}, "no arm 'warp'"),
        ({"directions": ["up"]}, "no direction 'up'"),
        ({"channels": [3]}, "no number of channels '3'"),
        ({"loads": ["film"]}, "no load 'film'"),
        ({"arms": ["hw"], "offers": ()}, "nothing to measure"),
        ({"personality": "x; reboot"}, "personality"),
    ],
)
def test_nonsense_is_refused_before_anything_starts(given: dict[str, Any], words: str) -> None:
    """What makes no sense is one line, before a kernel is fetched."""
    with pytest.raises(ConfigError, match=words):
        run.measure(**given)


def test_switches_follow_the_row() -> None:
    """Only what a row measures is offloaded, and rows of the same switches run in one go."""
    assert image.switched(Row("hw", "tx")) == ["tls-hw-tx-offload", "on", "tls-hw-rx-offload", "off"]
    assert "on" not in image.switched(Row("sw", "both"))
    rows, _ = choose(("plain", "sw", "hw"), ("tx", "both"))
    assert [[row.name for row in group] for group in image.groups(rows)] == [
        ["plain/tx", "plain/both", "sw/tx", "sw/both"],
        ["hw/tx"],
        ["hw/both"],
    ]


def test_init_is_a_shell_script() -> None:
    """The guest's init is understood by the guest's shell, and ends with its mark."""
    steps = "\n".join(image.steps(Plan(choose()[0])))
    text = image.INIT % {"done": image.DONE, "load": "a b", "steps": steps}
    assert subprocess.run(["busybox", "sh", "-n"], input=text.encode(), capture_output=True).returncode == 0
    assert text.count("/costload ") == 6, "runs between switches"


def test_the_real_driver_has_its_own_ports() -> None:
    """With the cards of cx6sim, init loads the driver, names its ports, and all that follows uses these."""
    plan = Plan((Row("hw", "both"),), kind="mlx5")
    text = image.INIT % {"done": image.DONE, "load": image.load(plan), "steps": "\n".join(image.steps(plan))}
    assert subprocess.run(["busybox", "sh", "-n"], input=text.encode(), capture_output=True).returncode == 0
    assert "insmod /driver.ko\nset -- cx0 cx1 cxw0 cxw1" in text and "personality" not in text
    assert "ethtool -K cx0 tls-hw-tx-offload on tls-hw-rx-offload on" in text and "nicsim" not in text
    lines = text.splitlines()
    up = next(n for n, line in enumerate(lines) if line.endswith("link set cx0 up"))
    late = next(n for n, line in enumerate(lines) if "/cx0/threaded" in line)
    assert up < late, "mlx5_core has no NAPI before its port is up"
    assert "personality=funeth" in image.load(Plan((), "funeth"))


def test_libraries_are_found() -> None:
    """A program comes with its loader and libraries, and one that does not run is named."""
    names = [path.name for path in image.libraries(image.program("ip"))]
    assert "libc.so.6" in names and any(name.startswith("ld-linux") for name in names)
    with pytest.raises(RigError, match="does not run here"):
        image.libraries(Path("/etc/passwd"))


def test_rows_are_read() -> None:
    """A row's tasks, counters and ends are what the guest said."""
    (found,) = boot.read(console(said("sw/tx")), [Row("sw", "tx")])
    assert (found.bytes, found.tasks["dut-send"], found.ends["dut-send"]) == (MIB, 2 * MIB, SW)


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "failed"),
        (console(said("sw/tx"), end="COST-DONE 1"), "failed"),
        (console(said("sw/tx"), end=""), "failed"),
        (console(), "requested rows.*none"),
        (console(said("hw/tx")), "requested rows.*hw/tx"),
        (console(said("sw/tx"), said("sw/tx")), "requested rows"),
        (console('{"row": 3}'), "costload said"),
        (console('{"row": "sw/tx", "tasks": [1]}'), "costload said"),
        (console('{"row": '), "costload said"),
        (console(said("sw/tx"), "[    3.1] WARNING: CPU: 0 PID: 1 at net/tls"), "kernel log"),
    ],
)
def test_what_is_no_result_is_refused(text: str, words: str) -> None:
    """A boot that failed, said less, more or nonsense, or warned, gives no figure."""
    with pytest.raises(RigError, match=words):
        boot.read(text, [Row("sw", "tx")])


@pytest.mark.parametrize(
    "row, more, words",
    [
        ("hw/tx", {}, "tx of dut-send is 'sw'"),
        ("sw/tx", {"ends": {"dut-send": HW, "peer-receive": SW}}, "tx of dut-send is 'hw'"),
        ("sw/tx", {"ends": {"dut-send": SW, "peer-receive": NONE}}, "peer-receive is 'none'"),
        ("hw/tx", {"ends": {"dut-send": HW, "peer-receive": HW}}, "tx of peer-receive is 'hw'"),
        ("plain/tx", {}, "is 'sw'"),
        ("sw/tx", {"ends": {"dut-send": {}, "peer-receive": SW}}, "is None"),
        ("hw/tx", {"ends": {"dut-send": HW, "peer-receive": SW}, "encrypted": MIB // 2}, "encrypted"),
        ("sw/tx", {"encrypted": 1}, "encrypted 1"),
        ("sw/tx", {"decrypted": 1}, "decrypted 1"),
    ],
)
def test_an_arm_is_what_its_name_says(row: str, more: dict[str, Any], words: str) -> None:
    """An arm that ran otherwise, by the kernel's word or the card's counters, is no figure."""
    with pytest.raises(RigError, match=words):
        run.check(moved(row, **more))


def test_sides() -> None:
    """Nanoseconds become instructions per byte: of the process, of the host, of the card."""
    assert run.sides(moved("sw/tx")) == {"sender": 1.0, "host": 1.5, "card": 4.0}
    tasks = [["dut-send", 2 * MIB], ["dut-receive", 4 * MIB], ["napi/nicsim0-1", 2 * MIB], ["nicsim-hw0", 4]]
    both = run.sides(moved("sw/both", tasks=tasks))
    assert (both["sender"], both["receiver"], both["host"]) == (1.0, 2.0, 2.0), "host: per byte either way"
    with pytest.raises(RigError, match="did not run"):
        run.sides(moved("sw/tx", tasks=[["dut-send", 0]]))
    with pytest.raises(RigError, match="moved no byte"):
        run.sides(moved("sw/tx", bytes=0))


def document(*boots: float) -> dict[str, Any]:
    """A document with software at 4 and offload at each boot's figure."""
    rows = [run.made([moved("sw/tx") for _ in boots]), run.made([moved("hw/tx") for _ in boots])]
    for row, values in zip(rows, ([4.0] * len(boots), boots), strict=True):
        row["cost"] = [{"boot": n, "side": "sender", "per_byte": v} for n, v in enumerate(values, 1)]
    about = {"kernel": "6.1", "nic": "nicsim", "wire": "slow"}
    return {"about": about, "rows": rows, "skipped": [], "warnings": []}


def test_figures() -> None:
    """The saving is that of the means, and boots are as far apart as the widest row."""
    found = document(1.0, 1.001, 1.0)
    assert figures.saving(found, "tx", "sender") == pytest.approx(0.74992, abs=1e-5)
    assert figures.spread(found) == pytest.approx(0.001, rel=1e-3)
    with pytest.raises(RigError, match="no receiver"):
        figures.saving(found, "tx", "receiver")
    for row in (moved("sw/tx/4"), moved("hw/tx/4", tasks=[["dut-send", MIB], ["nicsim-hw0", 8]])):
        found["rows"].append(run.made([row]))
    assert figures.saving(found, "tx", "sender", channels=4) == 0.5
    assert "tx x4: hw saves 50 % of its sender's" in figures.text(found)
    reported = figures.text(found)
    assert (
        "SIMULATED" in reported
        and "75 % of its sender's" in reported
        and "3 boots agree within 0.100 %" in reported
    )


@pytest.mark.parametrize(
    "body, words",
    [
        ("exit 3", "QEMU ended with 3"),
        ("echo no such machine >&2; exit 1", "no such machine"),
        ("true", "failed"),
        ("sleep 60 & wait", "did not end within 0.5 s"),
    ],
)
def test_broken_boot_is_the_rigs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, words: str
) -> None:
    """A VM that dies, hangs or says nothing is one error with its reason."""
    program = tmp_path / "qemu"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setattr(boot, "LIMIT", 0.5)
    kernel = Kernel("6.1", "6.1.0-1-amd64", "6.1.1-1", *[tmp_path / "none"] * 4)
    with pytest.raises(RigError, match=words):
        boot.boot(Qemu(str(program), "0"), kernel, b"", [Row("sw", "tx")])


def test_no_program_says_how_to_make_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A load that was not built is told with the command that builds it."""
    monkeypatch.setattr(image, "LOAD", tmp_path / "costload")
    kernel = Kernel("6.1", "6.1.0-1-amd64", "6.1.1-1", *[tmp_path / "none"] * 4)
    with pytest.raises(RigError, match="make build"):
        image.image(kernel, tmp_path / "nicsim.ko", Plan(()))
