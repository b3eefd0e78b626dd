"""What the tools of a debug kernel report: which tool, what it saw, and in which function."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from offload.suite.bench.vm.console import STAMP, unlisted

# the first words of a report, by the tool; a stock kernel is built without all of them but refcount_t
TOOLS = (
    ("KASAN", r"BUG: KASAN: "),
    (
        "lockdep",
        r"WARNING: (?:possible|inconsistent lock state|bad unlock|.*lock(?:s)? (?:held|freed)|suspicious RCU|"
        r"nested lock|.*-safe|.*held lock|lock held)|BUG: Invalid wait context|\[ BUG: Invalid wait context",
    ),
    (
        "DEBUG_ATOMIC_SLEEP",
        r"BUG: sleeping function called from invalid context|BUG: scheduling while atomic",
    ),
    ("kmemleak", r"unreferenced object|kmemleak: \d+ new suspected"),
    ("DEBUG_OBJECTS", r"ODEBUG: "),
    ("refcount_t", r"refcount_t: "),
    ("ref_tracker", r"ref_tracker: "),
)
# the second line of a report, which is that of any WARN
OWN = re.compile(r"WARNING: .* at lib/(?:refcount|debugobjects|ref_tracker)\.c:")
# DEBUG_NET_WARN_ON_ONCE is a WARN like any other, but for its place; on a kernel that has the others
NET = re.compile(r"WARNING: .* at (?:\./)?(?:net|include/net|include/linux)/")
DEBUG_RELEASE = re.compile(r"-debug\b")
WHERE = re.compile(r"\b(\w+\+0x[0-9a-f]+/0x[0-9a-f]+ \[\w+\])")
NEAR = 60  # lines: a trace
KNOWN = tuple((name, re.compile(pattern)) for name, pattern in TOOLS)


def tool(line: str, release: str = "") -> str:
    """The tool that begins a report with this line, or an empty string. `release`: of the kernel."""
    found = next((name for name, pattern in KNOWN if pattern.search(line)), "")
    of_net = NET.search(line) and DEBUG_RELEASE.search(release)
    return found or ("DEBUG_NET" if of_net else "")


def reports(log: str, release: str = "") -> list[str]:
    """Each report in a kernel log: `KASAN: BUG: ... in f+0x1/0x2 [nicsim]`, with the module's function."""
    lines = [STAMP.sub("", line).strip() for line in log.splitlines()]
    found = []
    for number, line in enumerate(lines):
        if name := tool(line, release):
            inside = next((m[1] for near in lines[number : number + NEAR] if (m := WHERE.search(near))), "")
            found.append(f"{name}: {line}" + (f" ({inside})" if inside and inside not in line else ""))
    return found


def breaking(found: Sequence[str], warnings: Collection[str], release: str = "") -> list[str]:
    """Leave out what breaks no rig: the warnings that a profile lists, and the reports of debug tools.

    Such a tool says it before harm is done; the test of the kernel's log names it.
    """
    kept, inside = [], False
    for line in unlisted(found, warnings):
        named = bool(tool(line, release) or OWN.search(line))
        inside = named or (inside and "Call Trace" in line)
        kept += [] if inside else [line]
    return kept
