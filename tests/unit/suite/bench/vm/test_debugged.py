"""The reports of a debug kernel's tools are named, and do not pass for a broken rig."""

from __future__ import annotations

import pytest

from offload.suite.bench.vm.console import faults
from offload.suite.bench.vm.debugged import breaking, reports, tool

KASAN = """\
[   31.1] ==================================================================
[   31.1] BUG: KASAN: use-after-free in nicsim_fault_bug_free+0x91/0xb0 [nicsim]
[   31.1] Read of size 4 at addr ffff88800b1c1058 by task kworker/0:2/31
[   31.1] Call Trace:
[   31.1]  dump_stack_lvl+0x4b/0x60
"""
LOCKDEP = """\
[   40.0] WARNING: possible circular locking dependency detected
[   40.0] 6.1.192-debug #1 Tainted: G           O
[   40.0] kworker/0:1/9 is trying to acquire lock:
[   40.0] ffffffffc0001010 (nicsim_table_lock){+.+.}-{2:2}, at: nicsim_fault_bug_del+0x61/0x90 [nicsim]
[   40.0] Call Trace:
"""
SLEEP = "[ 5.0] BUG: sleeping function called from invalid context at include/linux/sched/mm.h:274\n"
LEAK = """\
unreferenced object 0xffff88800a5f6000 (size 2048):
  comm "pump", pid 201, jiffies 4294906021 (age 21.2s)
  backtrace:
    [<00000000a1b2c3d4>] kmalloc_trace+0x25/0x90
    [<00000000a1b2c3d5>] nicsim_fault_bug_add+0x11/0x20 [nicsim]
"""
OBJECTS = """\
[ 6.0] ODEBUG: free active (active state 0) object type: timer_list hint: nicsim_tick+0x0/0x30 [nicsim]
[ 6.0] WARNING: CPU: 0 PID: 7 at lib/debugobjects.c:505 debug_print_object+0xa1/0xc0
[ 6.0] Call Trace:
"""
REFCOUNT = """\
[ 7.0] refcount_t: underflow; use-after-free.
[ 7.0] WARNING: CPU: 0 PID: 8 at lib/refcount.c:28 refcount_warn_saturate+0x7d/0xe0
[ 7.0] Call Trace:
"""
NET = "[ 8.0] WARNING: CPU: 0 PID: 9 at net/core/dev.c:3100 netif_napi_add+0x1/0x2\n[ 8.0] Call Trace:\n"
RELEASE = "6.1.192-debug"


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (KASAN, "KASAN: BUG: KASAN: use-after-free in nicsim_fault_bug_free+0x91/0xb0 [nicsim]"),
        (
            LOCKDEP,
            "lockdep: WARNING: possible circular locking dependency detected"
            " (nicsim_fault_bug_del+0x61/0x90 [nicsim])",
        ),
        (
            SLEEP,
            "DEBUG_ATOMIC_SLEEP: BUG: sleeping function called from invalid context at"
            " include/linux/sched/mm.h:274",
        ),
        (
            LEAK,
            "kmemleak: unreferenced object 0xffff88800a5f6000 (size 2048):"
            " (nicsim_fault_bug_add+0x11/0x20 [nicsim])",
        ),
        (
            OBJECTS,
            "DEBUG_OBJECTS: ODEBUG: free active (active state 0) object type: timer_list"
            " hint: nicsim_tick+0x0/0x30 [nicsim]",
        ),
        (REFCOUNT, "refcount_t: refcount_t: underflow; use-after-free."),
        (NET, "DEBUG_NET: WARNING: CPU: 0 PID: 9 at net/core/dev.c:3100 netif_napi_add+0x1/0x2"),
    ],
)
def test_each_report_is_named_once_and_breaks_no_rig(log: str, said: str) -> None:
    """The tool, its words, and the module's function; the test of the log says it, no run is void by it."""
    assert reports(f"[ 1.0] nicsim: up\n{log}[ 9.0] later\n", RELEASE) == [said]
    assert breaking(faults(log), (), RELEASE) == []


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: bad unlock balance detected!",
        "WARNING: held lock freed!",
        "WARNING: inconsistent lock state",
        "WARNING: possible irq lock inversion dependency detected",
        "WARNING: possible recursive locking detected",
        "WARNING: suspicious RCU usage",
        "WARNING: SOFTIRQ-safe -> SOFTIRQ-unsafe lock order detected",
        "[ BUG: Invalid wait context ]",
        "WARNING: lock held when returning to user space!",
    ],
)
def test_lockdep_says_many_things(line: str) -> None:
    """Each of its headings is of lockdep (kernel/locking/lockdep.c)."""
    assert tool(line) == "lockdep" and faults(line) == [line]


def test_what_broke_the_rig_is_kept() -> None:
    """An oops or a driver's own warning still voids; so does a net warning of a stock kernel."""
    oops = "[ 9.0] BUG: kernel NULL pointer dereference, address: 0000000000000008\n[ 9.0] Call Trace:\n"
    own = "[ 9.5] WARNING: CPU: 0 PID: 9 at drivers/x.c:1 mine+0x1/0x2 [x]\n"
    want = [
        "BUG: kernel NULL pointer dereference, address: 0000000000000008",
        "Call Trace:",
        "WARNING: CPU: 0 PID: 9 at drivers/x.c:1 mine+0x1/0x2 [x]",
    ]
    assert breaking(faults(KASAN + oops + LOCKDEP + own), (), RELEASE) == want
    assert breaking(faults(oops + own), ("mine",), RELEASE) == want[:2]
    assert len(breaking(faults(NET), (), "6.1.0-56-amd64")) == 2 and reports(NET, "6.1.0-56-amd64") == []
