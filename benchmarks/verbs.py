"""How long does a person wait for ls, doctor, status and enable? Beside the start of python3 alone.

usage: python -m benchmarks.verbs [--kernel 6.1] [--sockets 10000] [--attach NAME] [--only here|lab]

ls lists --sockets connections under kernel TLS, half of them the peers of the others, of one process. In the
lab they are real. This machine's kernel may lack kernel TLS: here the connections are real TCP, asked of this
kernel, and the words of kernel TLS are added to its answer, so that all but those words is as on a bench.
enable and restore switch a card that is played here: its ip and ethtool are programs in Python, each of which
takes longer than the real one, so it is at least as quick with those.

The lab emulates its processor: the start of python3 alone takes it a third of a second, twenty times as long
as here. So a bar is held or missed here, at a machine's own speed, and the lab's rows say how many starts of
python3, and how many `ss -tien` of the same sockets, a command takes. Medians. The commands hardly wait for
anything but the processor: where they use less of it than a bar allows and others keep it busy, it is open.
The modules are compiled before, as installing the package does: else the lab compiles what was edited since
at each start.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from offload.cmd import wait_until
from offload.connections.sockets import READER
from offload.debian.kernels import fetch
from offload.errors import OffloadError, RigError
from offload.host.local import LocalHost
from offload.suite.bench.vm.lab import Lab, described
from tests.lib.rig.managers import TOOL, TOOLS
from tests.unit.switch.fake_bench import PLAYED

ROOT = Path(__file__).parents[1]
BARS = {"ls": 1.0, "ls --json": 1.0, "doctor": 1.0, "enable": 2.0}  # seconds, of issue 7
SAID = (0, 10, 11, 12)  # exit codes; 10 to 12 are the doctor's answers
START, SS = "python3 -c pass", "ss -tien"
SYSTEM = "/usr/bin/python3"
# Pairs on loopback, until standard input ends; `tls`: both ends encrypt, by the kernel.
HOLD = """
import resource, socket, struct, sys
pairs, tls, keys = int(sys.argv[1]), sys.argv[2] == "tls", struct.pack("=HH", 0x0303, 51) + bytes(36)
most = max(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 2 * pairs + 64)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
listener, kept = socket.create_server(("127.0.0.1", 0), backlog=64), []
for _ in range(pairs):
    ends = socket.create_connection(listener.getsockname()), listener.accept()[0]
    for end in ends if tls else ():
        end.setsockopt(6, 31, b"tls")
        end.setsockopt(282, 1, keys)
    kept.append(ends)
print("held", flush=True)
sys.stdin.read()
"""
# The reader, on a kernel without kernel TLS: INET_DIAG_ULP_INFO is added to each of its messages (TLS 1.2,
# AES-GCM-128, transmit sw), as tcp_diag_put_ulp() and get_info() of tls_main.c write it.
ADDED = """
truly = heard

def heard(sock, ask):
    if sock.proto != 4:  # a question about a route
        yield from truly(sock, ask)
        return
    words = ((VERSION, 0x303), (CIPHER, 51), (TXCONF, 2), (RXCONF, 1))
    words = b"".join(struct.pack("=HHHxx", 6, kind, value) for kind, value in words)
    words = IS_TLS + struct.pack("=HH", 4 + len(words), ULP_TLS | 0x8000) + words
    words = struct.pack("=HH", 4 + len(words), ULP | 0x8000) + words
    for data in truly(sock, ask):
        parts = []
        for kind, at, end in messages(data):
            body = data[at:end] + (words if kind == SOCK_DIAG_BY_FAMILY else b"")
            parts.append(struct.pack("=IHHII", HEAD + len(body), kind, 2, 1, 0) + body)
        yield b"".join(parts)

"""
AS_COMMAND = """
import pathlib, sys, offload.connections.sockets
offload.connections.sockets.READER = pathlib.Path(sys.argv.pop(1))
from offload.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
Run = Callable[[Sequence[str]], "Cost"]


class Cost(NamedTuple):
    """One run: seconds that a person waits, seconds of CPU, lines that it wrote."""

    wall: float
    cpu: float
    lines: int


def here(argv: Sequence[str]) -> Cost:
    """Run a command on this machine. RigError with its words if it fails."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(argv, capture_output=True, cwd=ROOT)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in SAID:
        raise RigError(f"{argv[0]} ends with {done.returncode}: {done.stderr.decode()[-300:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall, cpu, done.stdout.count(b"\n"))


def inside(lab: Lab, pid: int) -> Run:
    """As `here`, in the lab's DUT: CPU is what QEMU took of this machine.

    A guest counts as its own also the time for which its processor waited for one of ours.
    """
    ticks = os.sysconf("SC_CLK_TCK")

    def taken() -> float:
        return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])) / ticks

    def run(argv: Sequence[str]) -> Cost:
        words = ["sh", "-c", 'cd "$0" && "$@"', str(ROOT), *argv]
        before = taken()
        done = lab.dut.run(words, timeout=900, check=False, env={"KTLS_OFFLOAD_STATE": "/run/bench-operator"})
        if done.rc not in SAID:
            raise RigError(f"{' '.join(argv)} in the lab: {done.stderr.decode()[-300:]}")
        return Cost(done.seconds, taken() - before, done.stdout.count(b"\n"))

    return run


@contextmanager
def held(start: Callable[[list[str]], Any], count: int, kind: str) -> Iterator[None]:
    """So many connections of one process; `start` begins it and has stdin() and output(), as Host.start's."""
    job = start([SYSTEM, "-I", "-S", "-c", HOLD, str(count // 2), kind])
    try:
        wait_until(lambda: b"held" in job.output()[0] or not job.running(), 900, "the connections", every=1.0)
        if not job.running():
            raise RigError(f"the connections were not made: {job.output()[1].decode()[-300:]}")
        yield
    finally:
        job.kill()


def medians(run: Run, commands: Mapping[str, Sequence[str]], rounds: int) -> dict[str, Cost]:
    """The median of each command, in turns, after a first time that warms the caches."""
    found: dict[str, list[Cost]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, argv in commands.items():
            cost = run(argv)
            found[name] += [cost] if number else []
    return {name: Cost(*map(statistics.median, zip(*costs, strict=True))) for name, costs in found.items()}


def on_this_machine(count: int, rounds: int) -> dict[str, Cost]:
    """Every command on this machine, with the words of kernel TLS added."""
    with ExitStack() as undo:
        folder = Path(undo.enter_context(tempfile.TemporaryDirectory()))
        patched = folder / "reader.py"
        head, tail, main = READER.read_text().partition('if __name__ == "__main__":')
        patched.write_text(head + ADDED + tail + main)
        ls = [sys.executable, "-c", AS_COMMAND, str(patched), "ls", "--here"]
        ours = [sys.executable, "-m", "offload"]
        commands = {
            START: [SYSTEM, "-c", "pass"],
            SS: ["ss", "-Htien"],
            "ls": ls,
            "ls --json": [*ls, "--json"],
            "doctor": [*ours, "doctor", "lo"],
            "status": [*ours, "status", "lo"],
        }
        commands |= played(folder)
        undo.enter_context(held(LocalHost().start, count, "plain"))
        seen = here(ls).lines
        if seen < count:
            raise RigError(f"ls shows {seen} lines for {count} connections")
        return medians(here, commands, rounds)


def played(folder: Path) -> dict[str, list[str]]:
    """enable and restore of a card that is played, with a journal of their own."""
    state = folder / "state.json"
    state.write_text(json.dumps({"devices": {"sim0": PLAYED}, "modules": [], "depends": {}}))
    for name in ("ethtool", "ip"):
        tool = folder / name
        tool.write_text(TOOL.format(state=state, tools=TOOLS, name=name))
        tool.chmod(0o755)
    around = ["env", f"PATH={folder}:{os.environ['PATH']}", f"KTLS_OFFLOAD_STATE={folder}/journal"]
    ours = [*around, sys.executable, "-m", "offload"]
    return {verb: [*ours, verb, "sim0"] for verb in ("enable", "restore")}


def in_the_lab(lab: Lab, pid: int, count: int, rounds: int) -> dict[str, Cost]:
    """Every command in the lab; what `enable` switches is put back."""
    run, dev, ours = inside(lab, pid), lab.bench.dut.dev, [sys.executable, "-m", "offload"]
    look = {
        START: [SYSTEM, "-c", "pass"],
        SS: ["ss", "-Htien"],
        "ls": [*ours, "ls", "--here"],
        "ls --json": [*ours, "ls", "--here", "--json"],
    }
    ask = {"doctor": [*ours, "doctor", dev], "status": [*ours, "status", dev]}
    switch = {"enable": [*ours, "enable", dev], "restore": [*ours, "restore", dev]}
    switch = switch if lab.kind == "nicsim" else {}  # nothing there can be switched
    lab.dut.run(["modprobe", "tls"])
    with held(lab.dut.start, count, "tls"):
        if (seen := run(look["ls"]).lines) < count:
            raise RigError(f"ls shows {seen} lines for {count} connections")
        found = medians(run, look, rounds)
    return {**found, **medians(run, ask, rounds), **medians(run, switch, rounds)}


def table(found: Mapping[str, Cost], place: str) -> str:
    """The figures of a place: seconds, and CPU seconds in starts of python3 and in lists of ss; the bars."""
    lines = [f"{place:<18}{'wall s':>8}{'cpu s':>8}{'starts':>8}{'ss':>7}  bar"]
    for name, cost in found.items():
        verdict = f"{BARS[name]:g} s: {word(name, cost)}" if name in BARS else ""
        starts, lists = cost.cpu / found[START].cpu, cost.cpu / found[SS].cpu
        figures = f"{cost.wall:>8.2f}{cost.cpu:>8.2f}{starts:>8.1f}{lists:>7.1f}"
        lines.append(f"{name:<18}{figures}  {verdict}".rstrip())
    return "\n".join(lines)


def word(name: str, cost: Cost) -> str:
    """Held, missed, or open: the processor was somebody else's for most of the time."""
    if cost.wall <= BARS[name]:
        return "held"
    return "missed" if cost.cpu > BARS[name] else "open"


def main() -> int:
    """Measure both places; exit 1 if a bar is missed on this machine."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--kernel", default="6.1")
    parser.add_argument("--sockets", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--attach", metavar="NAME", help="a lab with the simulated card that is running")
    parser.add_argument("--only", choices=("here", "lab"))
    ask = parser.parse_args()
    compileall.compile_dir(ROOT / "offload", quiet=1)  # as packaging/postinst does
    try:
        over = False
        if ask.only != "lab":
            found = on_this_machine(ask.sockets, ask.rounds)
            print(table(found, f"here, {ask.sockets}"), flush=True)
            over = any(word(name, cost) == "missed" for name, cost in found.items() if name in BARS)
        if ask.only != "here":
            lab = Lab.attach(ask.attach) if ask.attach else Lab.boot(fetch(ask.kernel, say=print))
            with lab:
                pid = lab.pid or int(described(lab.name)["pid"])
                found = in_the_lab(lab, pid, ask.sockets, max(1, ask.rounds // 2))
                print(table(found, f"lab, {ask.sockets}"))
        return int(over)
    except OffloadError as exc:
        print(f"operator: {exc}", file=sys.stderr)
        return exc.exit_code


if __name__ == "__main__":
    sys.exit(main())
