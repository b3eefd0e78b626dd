"""The console's faults are found, and its everyday words are not taken for faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from offload.suite.bench.vm.console import Console, faults, unlisted


@pytest.mark.parametrize(
    "line",
    [
        "[   12.1] BUG: unable to handle page fault for address: ffff",
        "BUG: KASAN: slab-use-after-free in nicsim_rx",
        "[ 1.0] Oops: 0000 [#1] PREEMPT SMP NOPTI",
        "WARNING: CPU: 1 PID: 99 at net/tls/tls_device.c:370 tls_device_free_resources_tx",
        "Call Trace:",
        "Kernel panic - not syncing: Attempted to kill init!",
        "WARNING: possible circular locking dependency detected",
        "ref_tracker: nicsim0@00000 has 1/2 users at",
        "unreferenced object 0xffff888003 (size 64):",
        "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
        "protocol 0800 unencrypted skb with no associated socket - dropping",
        "unregister_netdevice: waiting for nicsim0 to become free. Usage count = 2",
        "general protection fault, probably for non-canonical address",
        "INFO: task kworker/0:1:9 blocked for more than 120 seconds.",
    ],
)
def test_fault_is_found(line: str) -> None:
    """Each kind of kernel complaint makes the rig suspect."""
    found = faults(f"nicsim: up\r\n[ 3.2] {line}\nbr0: port 1 entered forwarding state\n")
    assert len(found) == 1 and found[0] in line


@pytest.mark.parametrize(
    "line",
    [
        "nicsim: loading out-of-tree module taints kernel.",
        "nicsim: module verification failed: signature and/or required key missing - tainting kernel",
        "Spectre V2 : WARNING: Unprivileged eBPF is enabled with eIBRS on, data leaks possible!",
        "br0: port 1(nswire0) entered blocking state",
        "debugfs: Directory 'x' with parent '/' already present!",
        "TCP: request_sock_TCP: Possible SYN flooding on port 4433. Sending cookies.",
    ],
)
def test_everyday_words_are_not_faults(line: str) -> None:
    """Ordinary kernel lines void no run."""
    assert faults(line) == []


def test_faults_since_a_mark(tmp_path: Path) -> None:
    """A test answers only for what was said during it."""
    console = Console(tmp_path / "console.log")
    assert console.mark() == 0 and console.faults() == []
    console.path.write_text("[ 1.0] WARNING: early\n")
    mark = console.mark()
    assert console.faults(mark) == []
    with console.path.open("a") as file:
        file.write("[ 2.0] BUG: late\n")
    assert console.faults(mark) == ["BUG: late"]
    assert console.faults() == ["WARNING: early", "BUG: late"]


def test_a_panic_stands_before_the_last_lines(tmp_path: Path) -> None:
    """A trace longer than the tail does not hide the line that says why the kernel died."""
    console = Console(tmp_path / "console.log")
    panic, trace = (
        "[ 5.0] Kernel panic - not syncing: sysrq triggered crash",
        [f"[ 5.1] R{n}" for n in range(40)],
    )
    console.path.write_text("\n".join(["[ 1.0] up", panic, *trace]))
    assert console.tail(2) == f"  | {panic}\n  | {trace[-2]}\n  | {trace[-1]}"
    console.path.write_text("\n".join([*trace, panic]))
    assert console.tail(2) == f"  | {trace[-1]}\n  | {panic}"
    console.path.write_text("\n".join(["[ 2.0] Kernel panic - not syncing: an older one", panic, *trace]))
    assert console.tail(1) == f"  | {panic}\n  | {trace[-1]}"
    console.path.write_text("\n".join([panic, *trace, *trace, *trace]))
    assert console.tail(1) == f"  | {trace[-1]}", "what came long after a panic is not of its trace"


WARNED = "dut: WARNING: CPU: 0 PID: 306 at en_accel/ktls_tx.c:879 mlx5e_xmit_tls+0x170/0x180 [mlx5_core]"
NEWER = (
    "WARNING: drivers/net/en_accel/ktls_tx.c:899 at mlx5e_xmit_tls+0x1a0/0x1c0 [mlx5_core], CPU#1: python3/9"
)
PLAIN = "protocol 0800 unencrypted skb with no associated socket - dropping"


@pytest.mark.parametrize(
    ("found", "left"),
    [
        ([WARNED, "Call Trace:"], []),
        ([NEWER, "dut: Call Trace:", WARNED], []),
        ([WARNED, PLAIN, "Call Trace:"], [PLAIN, "Call Trace:"]),
        (["Call Trace:", WARNED], ["Call Trace:"]),
        (["BUG: in mlx5e_xmit_tls+0x170/0x180"], ["BUG: in mlx5e_xmit_tls+0x170/0x180"]),
        (
            ["WARNING: at f.c:1 mlx5e_xmit_tls_more+0x1/0x2"],
            ["WARNING: at f.c:1 mlx5e_xmit_tls_more+0x1/0x2"],
        ),
        (["WARNING: at mlx5e_xmit_tls.c:9 other+0x1/0x2"], ["WARNING: at mlx5e_xmit_tls.c:9 other+0x1/0x2"]),
    ],
)
def test_only_a_listed_warning_is_left_out(found: list[str], left: list[str]) -> None:
    """A warning of a listed function goes with its trace; plaintext, a bug and other functions stay."""
    assert unlisted(found, ["mlx5e_xmit_tls"]) == left
    assert unlisted(found, []) == found
