"""Parallel labs never collide, and a killed one is swept away by the next."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from offload.cmd import wait_until
from offload.debian.cache import write_json
from offload.errors import ConfigError, RigError
from offload.suite.bench.vm import rundir

HOLD = """\
import sys
from offload.suite.bench.vm.rundir import create
create(sys.argv[1])
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def runtime(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run directories of this test only; a short name, because the path of a socket has at most 107 bytes."""
    folder = tmp_path_factory.mktemp("r")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


def test_names_are_unique_or_refused() -> None:
    """Two labs without a name differ; two of one name cannot be."""
    first, second, named = rundir.create(None), rundir.create(None), rundir.create("mine")
    assert first.path != second.path and rundir.names() == sorted([first.name, second.name, "mine"])
    with pytest.raises(RigError, match="a lab named mine is running"):
        rundir.create("mine")
    for made in (first, second, named):
        made.release()
    assert rundir.names() == [] and not named.path.exists()


@pytest.mark.parametrize("name", ["", "a/b", "..", "-x", "A", "x" * 33, "a b", "$(x)"])
def test_bad_names_are_usage_errors(name: str) -> None:
    """A name that could leave the folder is refused."""
    with pytest.raises(ConfigError, match="lab name"):
        rundir.create(name)
    assert rundir.alive(name) is None


def test_killed_runner_is_swept(runtime: Path) -> None:
    """A lab lives as long as its process; kill -9 leaves nothing after the next start."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, "doomed"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout and child.stdin
    child.stdout.readline()
    assert rundir.sweep() == [] and rundir.names() == ["doomed"]
    child.kill()
    child.wait()
    child.stdout.close()
    child.stdin.close()
    other = rundir.create("next")
    assert rundir.names() == ["next"] and not (rundir.base() / "doomed").exists()
    other.release()


def test_end_kills_only_its_own_process() -> None:
    """A stale process id in a run directory never hits a stranger."""
    made = rundir.create("mine")
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    write_json(made.path / "pid.json", {"pid": str(stranger.pid)})
    assert rundir.end("mine") and stranger.poll() is None
    stranger.kill()
    stranger.wait()
    made.release()
    assert not rundir.end("mine")


def test_end_kills_the_lab() -> None:
    """`lab down` ends the process that names the lab's folder."""
    made = rundir.create("mine")
    qemu = subprocess.Popen(  # `; :` keeps the shell, and with it the folder's name, from exec'ing sleep
        ["sh", "-c", "sleep 60; :", str(made.path)], start_new_session=True, pass_fds=[made.lock]
    )
    command = Path(f"/proc/{qemu.pid}/cmdline")  # empty for a moment: exec sets it after Popen has returned
    wait_until(lambda: os.fsencode(made.path) in command.read_bytes(), 60, "the command line")
    write_json(made.path / "pid.json", {"pid": str(qemu.pid)})
    os.close(made.lock)
    assert rundir.end("mine")
    assert qemu.wait(60) == -9 and not made.path.exists()


def test_folder_of_somebody_else_is_refused(runtime: Path) -> None:
    """A planted link in the temporary folder is not followed."""
    (runtime / f"ktls-offload-{os.getuid()}").symlink_to(runtime)
    with pytest.raises(RigError, match="another user"):
        rundir.base()


def test_too_long_folder_is_reported(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run directory too long for a socket is an error before anything starts."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime / ("x" * 90)))
    with pytest.raises(RigError, match="too long for a socket"):
        rundir.create("mine")
