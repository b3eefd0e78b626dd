"""How much memory do a process and its descendants take now?

The sum of PSS: a page that several of them share counts once, whereas RSS would count a forked Python twice.
A cgroup's memory.peak would need root or a delegated group, and counts the page cache, which fetching kernels
fills. Spikes between two looks are missed; what outlives its parents (`lab up`) is not a descendant any more.
"""

from pathlib import Path

PROC = Path("/proc")


def parents(proc=PROC):
    """The parent of each process, by its number."""
    found = {}
    for stat in proc.glob("[0-9]*/stat"):
        try:
            text = stat.read_text(errors="replace")
        except OSError:  # it ended meanwhile
            continue
        found[int(stat.parent.name)] = int(text.rpartition(")")[2].split()[1])
    return found


def tree(top, known):
    """The process `top` and its descendants."""
    children = {}
    for pid, parent in known.items():
        children.setdefault(parent, []).append(pid)
    found, todo = [], [top]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children.get(pid, [])
    return found


def pss(pid, proc=PROC):
    """The memory of one process in bytes, shared pages divided by those who share them; 0 if it has ended."""
    try:
        lines = (proc / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def memory(top, known, proc=PROC):
    """The memory of a process and its descendants in bytes."""
    return sum(pss(pid, proc) for pid in tree(top, known))
