"""The one way to run a command: outputs, exit codes, time limits, and no process left behind."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import pytest

from offload.cmd import KEEP_OPEN, environment, kill_group, run, wait_until
from offload.errors import RigError
from offload.host.local import LocalHost


def test_output_exit_code_and_input() -> None:
    """Both outputs, the exit code and the time come back; input goes in."""
    rc, out, err, seconds = run(["sh", "-c", "cat; echo e >&2; exit 3"], input=b"in")
    assert (rc, out, err) == (3, b"in", b"e\n") and seconds > 0


def test_a_missing_program_is_127() -> None:
    """A program that is not there is 127, as in a shell."""
    rc, _, err, _ = run(["no-such-program-at-all"])
    assert rc == 127 and b"No such file" in err


def test_a_signal_is_negative() -> None:
    """A killed program gives minus the signal."""
    assert run(["sh", "-c", "kill -9 $$"])[0] == -9


def test_the_language_is_fixed_and_the_environment_added() -> None:
    """Outputs can be parsed whatever the person's language is."""
    assert run(["sh", "-c", "echo $LC_ALL $ADDED"], env={"ADDED": "x"})[1] == b"C x\n"


def test_a_path_without_sbin_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ethtool is found by a user whose search path lacks sbin, after all that the path has."""
    for folder in ("bin", "sbin"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "which-one").write_text(f"#!/bin/sh\necho {folder}\n")
        (tmp_path / folder / "which-one").chmod(0o755)
    monkeypatch.setattr("offload.cmd.SBIN", (str(tmp_path / "sbin"), "/bin"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert run(["which-one"])[1] == b"sbin\n"
    assert LocalHost().start(["which-one"]).wait(10).stdout == b"sbin\n"
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    assert run(["which-one"])[1] == b"bin\n"
    assert environment()["PATH"] == f"{tmp_path / 'bin'}:/usr/bin:/bin:{tmp_path / 'sbin'}"


def test_too_long_is_an_error_and_leaves_no_process(tmp_path: Path) -> None:
    """A command that does not end is killed with its children."""
    note = tmp_path / "pid"
    for limit in (0.5, 5, 50):  # a busy machine may need longer to begin
        with pytest.raises(RigError, match=f"timed out after {limit} s"):
            run(["sh", "-c", f"sleep 100 & echo $! > {note}; wait"], timeout=limit)
        if note.exists() and note.read_text():
            break
    pid = int(note.read_text())
    wait_until(lambda: _gone(pid), 60, "the child's end")


def _gone(pid: int) -> bool:
    """Say whether a process has ended (or waits to be reaped by somebody else)."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


def test_kept_descriptors_reach_the_child(tmp_path: Path) -> None:
    """Only descriptors that are meant for children stay open in them."""
    with (tmp_path / "f").open("w") as file:
        probe = ["sh", "-c", f"test -e /proc/self/fd/{file.fileno()}"]
        assert run(probe)[0] == 1
        KEEP_OPEN.add(file.fileno())
        try:
            assert run(probe)[0] == 0
        finally:
            KEEP_OPEN.discard(file.fileno())


def test_a_descriptor_for_one_child(tmp_path: Path) -> None:
    """A secret can go to one command by a descriptor, and its output into another."""
    with (tmp_path / "secret").open("w+") as secret, (tmp_path / "out").open("w+") as out:
        secret.write("word")
        secret.flush()
        fd = secret.fileno()
        argv = ["cat", f"/proc/self/fd/{fd}"]
        assert run(argv)[0] == 1
        assert run(argv, pass_fds=[fd], stdout=out.fileno())[:3] == (0, b"", b"")
    assert (tmp_path / "out").read_text() == "word"


def test_waiting_ends_when_the_condition_holds() -> None:
    """wait_until returns at once, and names what it waited for when it gives up."""
    began = time.monotonic()
    wait_until(lambda: True, 600, "nothing")
    assert time.monotonic() - began < 300
    with pytest.raises(RigError, match=r"gave up after 0\.1 s waiting for the moon"):
        wait_until(lambda: False, 0.1, "the moon")


def test_killing_what_has_gone_is_harmless() -> None:
    """A group that ended is no error."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    kill_group(pid)
