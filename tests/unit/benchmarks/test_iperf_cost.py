"""The plain iperf3-tls beside the stock one, counted in a VM: what a boot said, the word beside each bar."""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

import pytest

from benchmarks import iperf_cost
from benchmarks.iperf_cost import COUNTED, NAMES, calls, parsed, read, script, turns
from offload.errors import RigError

MIB = 1 << 20


def said(program: str, seconds: float = 0.5, share: float = 50.0, moved: int = 8 * MIB) -> str:
    """A test's line: 8 MiB in half a second, each end on the processor for half of it."""
    used = {"host_total": share, "remote_total": share}
    end = {"sum_sent": {"bytes": moved, "seconds": seconds}, "cpu_utilization_percent": used}
    return f"IPERF {program} {json.dumps({'start': {}, 'end': end})}"


def counted(program: str, reads: int = 60) -> str:
    """A test's system calls, as the kernel's histogram has them."""
    row = "{ common_pid: %s [ 77], id: %s [ 0] } hitcount: %9d"
    rows = [row % (program, "sys_read", reads), row % (program, "sys_write", 64)]
    return f"CALLS {program} {';'.join([*rows, row % (program, 'sys_mmap', 5)])}"


def console(rounds: int = 5, end: str = "COST-DONE 0", slower: float = 1.0) -> str:
    """A boot: pairs that are not quite alike, ours `slower` than the stock program."""
    lines = [counted(name) for name in turns(COUNTED)]
    for at, name in enumerate(turns(rounds)):
        lines.append(said(name, (0.5 + at / 10000) * (slower if name == NAMES[1] else 1.0)))
    return "\n".join([*lines, end, ""])


def test_figures() -> None:
    """A test's bytes, seconds and share of the processor become instructions per byte."""
    run = parsed(said("iperf3"))
    assert (run.program, run.bytes, run.rate) == ("iperf3", 8 * MIB, 16 * MIB)
    assert run.client == run.server == pytest.approx(0.25 * 1e9 / 2 / (8 * MIB))


def test_pairs_that_count() -> None:
    """Programs take turns, and the first pair of each sort is dropped."""
    assert turns(2) == [NAMES[1], NAMES[0], NAMES[0], NAMES[1], NAMES[1], NAMES[0]]
    found, made = read(console(), 5, 8), calls(console())
    assert [len(found[name]) for name in NAMES] == [5, 5]
    assert made == {name: [124.0] * COUNTED for name in NAMES}, "mmap moves no data"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (console(end=""), "failed"),
        (console(end="COST-DONE 1"), "failed"),
        (console() + "[    3.1] WARNING: CPU: 0 PID: 1 at net/ipv4\n", "kernel log"),
        (console(4), "6 tests of each program were wanted: .5, 5."),
        (said("iperf3", moved=MIB) + "\nCOST-DONE 0\n", "moved 1048576 bytes, 8 MiB were wanted"),
        ('IPERF iperf3 {"error": "unable to connect"}\nCOST-DONE 0\n', "iperf3: unable to connect"),
        (said("iperf3", moved=0) + "\nCOST-DONE 0\n", "iperf3 said"),
        (said("iperf2") + "\nCOST-DONE 0\n", "the VM ran 'iperf2', wanted iperf3 and iperf3-tls"),
        ("IPERF iperf3 \nCOST-DONE 0\n", "iperf3 said"),
        ("IPERF \nCOST-DONE 0\n", "said"),
        ("IPERF iperf3 []\nCOST-DONE 0\n", "iperf3 said"),
    ],
)
def test_what_is_no_result_is_refused(text: str, why: str) -> None:
    """A boot that failed, said less or nonsense, or moved too little, gives no figure."""
    with pytest.raises(RigError, match=why):
        read(text, 5, 8)


def test_no_calls_counted_is_no_figure() -> None:
    """A kernel that counts no system calls gives no ratio of them."""
    with pytest.raises(RigError, match="6 tests of each program"):
        calls("COST-DONE 0\n")


@pytest.mark.parametrize(("slower", "word"), [(1.0, "held"), (1.03, "MISSED"), (1 / 1.03, "MISSED")])
def test_word_next_to_the_bar(slower: float, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A plain test that 3 % are missing from, or that have 3 % too many, misses the bar."""
    args = argparse.Namespace(rounds=5, mib=8)
    assert iperf_cost.arm("reverse", console(slower=slower), args) == (word == "held")
    rows = [line.split("|") for line in capsys.readouterr().out.splitlines()]
    assert [row[1].strip() for row in rows][0] == "reverse: throughput" and rows[0][5].strip() == word
    assert rows[-1][1].strip() == "reverse: reads, writes and sendfiles" and rows[-1][5].strip() == ""


def test_wide_interval_is_open(capsys: pytest.CaptureFixture[str]) -> None:
    """Pairs that differ by more than the bar neither hold it nor miss it."""
    assert iperf_cost.line("x", [1.0] * 5, [0.9, 1.1, 1.0, 0.95, 1.05])
    assert "| open" in capsys.readouterr().out


def test_init_is_a_shell_script() -> None:
    """The guest's init is understood by the guest's shell, and each test is in it."""
    text = script("-P 4", 2, 8)
    assert subprocess.run(["busybox", "sh", "-n"], input=text.encode(), capture_output=True).returncode == 0
    assert text.splitlines().count("timed iperf3-tls 8 -P 4") == 3
    assert text.splitlines().count("counted iperf3 2 -P 4") == COUNTED + 1


def test_two_libiperfs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs over two libraries are no pair: what differs would be the library."""
    used = {"iperf3": "/usr/lib/libiperf.so.0", "iperf3-tls": "/opt/libiperf.so.0"}
    monkeypatch.setattr(iperf_cost, "libraries", lambda path: [Path(used[path.name])])
    with pytest.raises(RigError, match=r"one libiperf .*/opt/libiperf.so.0, /usr/lib/libiperf.so.0"):
        iperf_cost.image({name: Path(name) for name in NAMES}, "")
