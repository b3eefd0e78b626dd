"""Input made to break the verifier: a sentence and an exit code, no crash, no endless memory."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from offload.cli.main import main
from tests.lib.wiregen import any_case  # noqa: F401  (enters every kind of damage)
from tests.lib.wiregen.good import good_case
from tests.lib.wiregen.hostile import BAD, HUGE, INCONCLUSIVE, USAGE, Bad, files_of

ROOT = Path(__file__).parents[4]
ENGINES = ("python", "core")
ROOM = 2 << 30  # bytes of address space: Python, its libraries, and the capture mapped
PATIENCE = 300  # seconds
MOST = 384 << 20  # bytes in use at a time


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", BAD)
def test_bad_input_gives_a_sentence(
    name: str, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Hostile input ends with its exit code and a sentence that names what is wrong."""
    bad = BAD[name]()
    with patience():
        code = main(["wire", "verify", *files_of(bad, tmp_path), "--engine", engine])
    out, err = capsys.readouterr()
    assert code == bad.code, err or out
    assert bad.word in (err if code == USAGE else out)
    assert "Traceback" not in err and (out == "") == (code == USAGE)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HUGE)
def test_memory_has_a_bound(name: str, engine: str, tmp_path: Path) -> None:
    """A capture made to fill memory is answered in little of it."""
    make, word = HUGE[name]
    bad = Bad(replace(good_case(3), capture=make(), payload=None, reply=None, port=None), INCONCLUSIVE, word)
    args = [sys.executable, "-m", "offload", "wire", "verify", *files_of(bad, tmp_path), "--engine", engine]
    with (tmp_path / "out").open("w+") as out:
        child = subprocess.Popen(
            args, stdout=out, stderr=out, preexec_fn=bounded, cwd=Path(__file__).parents[4]
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        said = out.read()
    assert child.returncode == INCONCLUSIVE and word in said, said[-2000:]
    assert used.ru_maxrss << 10 < MOST, f"{used.ru_maxrss >> 10} MiB"


@contextmanager
def patience() -> Iterator[None]:
    """Interrupt what waits for ever."""

    def enough(*_: object) -> None:
        raise TimeoutError(f"no answer in {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, enough)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def bounded() -> None:
    """In the child: no more address space than ROOM."""
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
