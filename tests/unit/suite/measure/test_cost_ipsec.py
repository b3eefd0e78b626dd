"""Cost mode in ESP says what the guest has to do, and believes only a boot that did it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any

import pytest

from offload.errors import ConfigError, RigError
from offload.suite.measure.cost import image
from offload.suite.measure.cost.boot import parsed
from offload.suite.measure.cost.ipsec import (
    ARMS,
    PARTS,
    Cell,
    choose,
    impossible,
    made,
    read,
    script,
    seen,
    text,
)
from offload.suite.measure.cost.plan import Plan

MIB = 1 << 20
NONE = {"tx": "none", "rx": "none"}
QUIET = ("LOST dut XfrmInError 2", "LOST peer XfrmInError 0")
PLAN = Plan((), warm=MIB // 2, bytes=MIB)


def said(**more: Any) -> str:
    """costload's line of a row of plain TCP, both ways."""
    ends = {f"{side}-{does}": NONE for side in ("dut", "peer") for does in ("send", "receive")}
    tasks = [
        ["dut-send", 2 * MIB],
        ["dut-receive", 4 * MIB],
        ["napi/nicsim0-8193", 2 * MIB],
        ["nicsim-hw0", MIB],
        ["ksoftirqd/0", 8 * MIB],
    ]
    row = {"row": "plain/both", "bytes": MIB, "ends": ends, "encrypted": 0, "decrypted": 0, "tasks": tasks}
    return json.dumps(row | more)


def console(*lines: str) -> str:
    """A console's text."""
    return "\n".join([*lines, "COST-DONE 0", ""])


def in_esp(*carried: int, after: Sequence[str] = QUIET) -> str:
    """The console of one cell in ESP, with the bytes that its states carried."""
    return console("CELL esp-128 on", *QUIET, said(), *(f"ESP {n}" for n in carried), *after)


def test_cells() -> None:
    """Plain TCP stands first of each part, and a word that there is not is named."""
    cells = choose(["esp-128", "sw"], ["on", "gro"])
    assert [(cell.part, cell.arm) for cell in cells] == [
        (part, arm) for part in ("on", "gro") for arm in ("plain", "esp-128", "sw")
    ]
    for arms, parts, words in ((["user"], ["on"], "'user'"), (["sw"], ["half"], "'half'")):
        with pytest.raises(ConfigError, match=words):
            choose(arms, parts)


def test_what_the_card_cannot() -> None:
    """An arm of the card's is left out with the reason."""
    assert "no ESP crypto offload" in impossible("esp-256-hw", ("tx", "rx"))
    assert "no rx offload" in impossible("hw", ("tx",))
    assert not impossible("esp-128", ()) and not impossible("hw", ("tx", "rx"))


def test_script_is_one_and_has_no_key_in_it() -> None:
    """The guest's shell takes the script; keys are made in the guest, and given on stdin."""
    steps = script(PLAN, choose(list(ARMS), list(PARTS)))
    shell = image.INIT % {"done": "X", "load": "a b", "steps": "\n".join(steps)}
    assert subprocess.run(["busybox", "sh", "-n"], input=shell.encode(), capture_output=True).returncode == 0
    assert shell.count("/costload ") == len(ARMS) * len(PARTS)
    assert shell.count("/dev/urandom") == 2 * 2 * len(PARTS), "two ciphers, two directions, each part"
    keyed = [line for line in steps if "$key" in line]
    assert keyed and all(line.startswith("xfrm state add") for line in keyed)


def test_parts_are_switched() -> None:
    """Each part leaves on what it names."""
    lines = script(PLAN, [Cell("plain", part) for part in PARTS])
    found = [line for line in lines if "nicsim0 tso" in line]
    assert ["tso on gso on gro on" in line for line in found] == [part == "on" for part in PARTS]
    assert sum("tso off gso off gro on" in line for line in found) == 1
    assert sum("tso off gso on gro off" in line for line in found) == 1


def test_a_boot_is_read() -> None:
    """A row in ESP counts if both states carried its payload."""
    (moved,) = read(in_esp(2 * MIB, 2 * MIB), PLAN, [Cell("esp-128", "on")])
    assert moved.bytes == MIB


@pytest.mark.parametrize(
    "output, words",
    [
        (in_esp(2 * MIB, 5000), "bytes were in ESP"),
        (in_esp(2 * MIB), "bytes were in ESP"),
        (
            in_esp(2 * MIB, 2 * MIB, after=("LOST dut XfrmInError 3", QUIET[1])),
            "lost packets: .*Error 3",
        ),
        (console("CELL esp-128 on", said(), "ESP 9999999", "ESP 9999999"), "bytes were in ESP"),
        (console("CELL esp-256 on", *QUIET, said(), *QUIET), "requested was CELL esp-128 on"),
        (console(), "0 of 1 cells"),
    ],
)
def test_what_is_no_figure(output: str, words: str) -> None:
    """A cell that lost packets, went another way, or is not there ends the run."""
    with pytest.raises(RigError, match=words):
        read(output, PLAN, [Cell("esp-128", "on")])


def test_table() -> None:
    """The DUT's cost is its host and half of what nobody's task did beyond plain TCP."""
    heavy = said(tasks=[*json.loads(said())["tasks"][:4], ["ksoftirqd/0", 16 * MIB]])
    rows = [made(Cell("plain", "gro"), [parsed(said())]), made(Cell("esp-128", "gro"), [parsed(heavy)])]
    about = {"kernel": "k", "nic": "n", "wire": "w"}
    found = text({"about": about, "rows": rows, "skipped": [], "warnings": []})
    # host: (2 + 4 + 2) MiB of ns are 4 MiB of instructions over 2 MiB; shared: 2 and 4, half of 2 more
    assert found.splitlines()[-1].split() == [
        "gro",
        "esp-128",
        *["1.000", "2.000", "2.000", "4.000", "3.000", "1.500"],
    ]
    assert rows[0]["only"] == "gro" and not rows[0]["segmentation"]


def test_what_the_report_sees() -> None:
    """The report gets one figure by boot: the DUT's, and no half of what it does not know."""
    heavy = said(tasks=[*json.loads(said())["tasks"][:4], ["ksoftirqd/0", 16 * MIB]])
    boots = {"plain": [parsed(said())] * 2, "esp-128": [parsed(heavy), parsed(said())]}
    rows = [made(Cell(arm, part), boot) for part in ("on", "gso") for arm, boot in boots.items()]
    found = seen({"rows": rows, "skipped": []})["rows"]
    assert [[(c["boot"], c["side"], c["per_byte"]) for c in row["cost"]] for row in found] == [
        [(1, "dut", 2.0), (2, "dut", 2.0)],
        [(1, "dut", 3.0), (2, "dut", 2.0)],
    ] * 2
