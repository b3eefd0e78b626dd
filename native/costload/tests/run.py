"""The load by itself (`run.py PROGRAM`): rows over a cable of two namespaces, what it refuses; as root."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

NAMES = (f"costload-{os.getpid()}-a", f"costload-{os.getpid()}-b")
ADDRESSES = ("192.0.2.1", "192.0.2.2")
WRONG = (
    [], ["sw"], ["sw/up"], ["sw/tx/3"], ["sw/tx/9"], ["sw/tx/44"], ["sw/rx/file"], ["sw/tx/file/4"],
    ["sw/tx/4/"],
    ["plain/tx/1"], ["s/tx"], ["/tx"], ["--bytes", "1", "plain/tx"], ["--bytes", "-1", "x"],
    ["--bytes", "99999999999", "x"], ["--dut", "nowhere", "plain/tx"], ["--what"],
)  # fmt: skip


@contextmanager
def bench() -> Iterator[list[str]]:
    """Two namespaces and a cable; yields the words that tell the program of them."""
    lines = [f"netns add {name}" for name in NAMES]
    lines.append(f"link add v0 netns {NAMES[0]} type veth peer name v1 netns {NAMES[1]}")
    try:
        subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True, check=True)
        for at, name in enumerate(NAMES):
            inside = f"address add {ADDRESSES[at]}/24 dev v{at}\nlink set v{at} up\n"
            subprocess.run(["ip", "-n", name, "-batch", "-"], input=inside, text=True, check=True)
        yield ["--dut", f"{NAMES[0]},{ADDRESSES[0]}", "--peer", f"{NAMES[1]},{ADDRESSES[1]}"]
    finally:
        for name in NAMES:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)


def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=120)


def moves(program: str, words: list[str]) -> Iterator[str]:
    """What is wrong with rows that need no kernel TLS."""
    size = ["--warm", "16384", "--bytes", "65536"]
    asked = ["plain/tx", "user/rx", "plain/both", "user/tx/4", "plain/tx/file", "user/tx/2/file"]
    done = run(program, *words, *size, *asked)
    if done.returncode:
        yield str(done)
        return
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    if [row["row"] for row in rows] != asked:
        yield f"rows {done.stdout}"
    ends = [{"dut-send", "peer-receive"}, {"dut-receive", "peer-send"}]
    more = [ends[0] | {f"{name}-{n}" for name in ends[0] for n in range(2, most + 1)} for most in (4, 1, 2)]
    for row, wanted in zip(rows, (*ends, ends[0] | ends[1], *more), strict=True):
        ran = {name for name, ns in row["tasks"] if ns > 0}
        if (
            set(row["ends"]) != wanted
            or not wanted <= ran
            or row["bytes"] != 65536 // (len(wanted) // (4 if "both" in row["row"] else 2))
        ):
            yield f"row {row}"


def refusals(program: str, words: list[str]) -> Iterator[str]:
    """What is wrong with its answers to wrong words."""
    for wrong in WRONG:
        done = run(program, *words, *wrong)
        if (done.returncode, done.stdout, done.stderr.count("\n")) != (2, "", 1):
            yield f"{wrong}: {done}"
    done = run(program, "--dut", "no-such-namespace,192.0.2.1", "plain/tx")
    if done.returncode != 1 or done.stdout or "receive" not in done.stderr:
        yield str(done)


def main() -> int:
    """Every check; the exit code."""
    program = os.path.abspath(sys.argv[1])  # noqa: PTH100
    with bench() as words:
        wrong = [*moves(program, words), *refusals(program, words)]
    for line in wrong:
        print(f"FAIL {line}")
    print("costload: " + (f"{len(wrong)} failed" if wrong else "all passed"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
