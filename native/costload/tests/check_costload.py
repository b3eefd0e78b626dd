"""Rows over a cable of two namespaces, and what the load refuses; as root."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator

import pytest

NAMES = (f"costload-{os.getpid()}-a", f"costload-{os.getpid()}-b")
ADDRESSES = ("192.0.2.1", "192.0.2.2")
WRONG = (
    [],
    ["sw"],
    ["sw/up"],
    ["sw/tx/3"],
    ["sw/tx/9"],
    ["sw/tx/44"],
    ["sw/rx/file"],
    ["sw/tx/file/4"],
    ["sw/tx/4/"],
    ["plain/tx/1"],
    ["s/tx"],
    ["/tx"],
    ["--bytes", "1", "plain/tx"],
    ["--bytes", "-1", "x"],
    ["--bytes", "99999999999", "x"],
    ["--dut", "nowhere", "plain/tx"],
    ["--what"],
    ["--poll", "file", "plain/tx"],
    ["--poll", "file=", "plain/tx"],
    ["--poll", "file=-1", "plain/tx"],
)


@pytest.fixture(scope="session")
def words() -> Iterator[list[str]]:
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


def check_rows(program: str, words: list[str]) -> None:
    """Rows that need no kernel TLS: each end ran, and its connections share the bytes."""
    size = ["--warm", "16384", "--bytes", "65536"]
    asked = ["plain/tx", "user/rx", "plain/both", "user/tx/4", "plain/tx/file", "user/tx/2/file"]
    done = run(program, *words, *size, *asked)
    assert done.returncode == 0, done
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["row"] for row in rows] == asked
    ends = [{"dut-send", "peer-receive"}, {"dut-receive", "peer-send"}]
    more = [ends[0] | {f"{name}-{n}" for name in ends[0] for n in range(2, most + 1)} for most in (4, 1, 2)]
    for row, wanted in zip(rows, (*ends, ends[0] | ends[1], *more), strict=True):
        assert set(row["ends"]) == wanted <= {name for name, ns in row["tasks"] if ns > 0}, row
        assert row["bytes"] == 65536 // (len(wanted) // (4 if "both" in row["row"] else 2)), row


@pytest.mark.parametrize("wrong", WRONG, ids=" ".join)
def check_wrong_words_are_refused(program: str, words: list[str], wrong: list[str]) -> None:
    """Exit 2 and one line."""
    done = run(program, *words, *wrong)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done


@pytest.mark.usefixtures("words")
def check_namespace_that_is_not_there(program: str) -> None:
    """Exit 1, and the end that could not start is named."""
    done = run(program, "--dut", "no-such-namespace,192.0.2.1", "plain/tx")
    assert done.returncode == 1 and not done.stdout and "receive" in done.stderr, done
