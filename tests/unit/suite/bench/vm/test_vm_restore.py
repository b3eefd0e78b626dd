"""A snapshot that does not work costs a boot and no run: said in one line, and removed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from offload.errors import RigError
from offload.suite.bench.vm import boot, lab, made, rundir, snapshot
from offload.suite.bench.vm.lab import Booting

# a QEMU that ends at once if the state that it is to begin at is damaged; else its agent answers
QEMU = """
import json, pathlib, socket, sys
folder, state = pathlib.Path(sys.argv[1]), sys.argv[2:]
(folder / "console.log").open("a").write("[    1.0] hello\\n")
if state and pathlib.Path(state[1].removeprefix("file:")).read_bytes() != b"good":
    sys.exit("qemu: load of migration failed: Invalid argument")
port = socket.socket(socket.AF_UNIX)
(folder / "port0").unlink(missing_ok=True)
port.bind(str(folder / "port0"))
port.listen()
with port.accept()[0] as line, line.makefile("rwb") as talk:
    for words in talk:
        if words.strip():
            asked = json.loads(words)
            talk.write(json.dumps({"id": asked["id"], "nonce": asked.get("nonce")}).encode() + b"\\n")
            talk.flush()
"""


@pytest.fixture
def booting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Booting]:
    """A lab that is on its way up from a snapshot whose file is damaged."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    for name in ("enter_root", "settle"):
        monkeypatch.setattr(lab, name, lambda *args: None)
    monkeypatch.setattr(lab, "build_bench", lambda _, *args: (tmp_path / "built").write_text(f"{args}"))
    monkeypatch.setattr(made, "seen", lambda *args: None)
    monkeypatch.setattr(snapshot, "save", lambda name, *rest: (tmp_path / "kept").write_text(name))
    kept = snapshot.folder_of("k")
    kept.mkdir(parents=True)
    (kept / "state").write_bytes(b"damaged")
    (kept / "console.log").write_text("[    0.5] of the snapshot\n")
    run_dir, said = rundir.create(None), list[str]()

    def start() -> boot.Started:
        begin = snapshot.begin("k", run_dir.path / "console.log")
        argv = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-c", QEMU, str(run_dir.path), *begin]
        with (run_dir.path / "qemu.log").open("wb") as log:
            return boot.Started(subprocess.Popen(argv, stderr=log, start_new_session=True), "k", bool(begin))

    state = {
        "name": run_dir.name,
        "kind": "nicsim",
        "personality": "a,b",
        "kernel": "6.1.0",
        "rig:accelerator": "tcg",
    }
    plan: Any = SimpleNamespace(pair="a,b", cpus=3)
    first = start()
    found = Booting(
        {**state, "pid": str(first.child.pid)}, plan, {}, {}, run_dir, first, start, (), said.append
    )
    yield found
    found.stop()


def test_damaged_snapshot_is_removed_and_the_lab_boots(booting: Booting, tmp_path: Path) -> None:
    """The lab comes up by a boot; the VM outlives the thread that noticed, and is kept anew."""
    damaged = booting.started.child
    with ThreadPoolExecutor(1) as pool:
        up = pool.submit(booting.ready).result()
    said: list[str] = booting.say.__self__  # type: ignore[attr-defined]
    (line,) = [text for text in said if "snapshot" in text]
    assert line.startswith(f"lab {up.name}: its snapshot does not work and was removed; booting (")
    assert "QEMU ended with 1" in line and "\n" not in line and damaged.poll() == 1
    assert not snapshot.folder_of("k").exists() and (tmp_path / "kept").read_text() == "k"
    assert (tmp_path / "built").read_text() == "('nicsim', 'a,b', 3)", "its cards, and its CPUs"
    assert up.pid == up.vm_pid != damaged.pid and up.client.call("hello")
    assert up.console_text() == "[    1.0] hello\n", "nothing of the snapshot's"
    up.stop()
    assert not up.folder.exists()


def test_good_snapshot_is_used(booting: Booting) -> None:
    """A snapshot that works is no reason to boot."""
    booting.stop()
    (snapshot.folder_of("k") / "state").write_bytes(b"good")
    booting.run_dir.path.mkdir(exist_ok=True)
    booting.stopped, booting.started = False, booting.start()
    notes = booting.run_dir.path / lab.STATE
    there: list[bool] = []
    booting.say = lambda text: there.append(notes.exists())
    up = booting.ready()
    assert there == [False, True], "who reads that the bench is up can attach"
    assert booting.started.restored and snapshot.folder_of("k").exists()
    assert up.pid == booting.started.child.pid
    up.stop()


def test_lab_that_was_given_up_does_not_boot_again(booting: Booting) -> None:
    """A Ctrl-C that meets a damaged snapshot leaves no VM behind."""
    booting.stopped = True
    with pytest.raises(RigError, match="abandoned"):
        booting.ready()
    assert booting.started.child.returncode is not None and not booting.run_dir.path.exists()
