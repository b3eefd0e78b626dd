"""A warm lab is used again only while it is what would boot now, as it was booted."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from offload.debian.cache import write_json
from offload.errors import RigError
from offload.suite.bench.vm import made, rundir, warm
from offload.suite.bench.vm.recipe import Recipe

NAME, PARTS = "try-6.1-veth", {"the kernel": "a", "QEMU": "b"}


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run directories of this test only."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@pytest.fixture
def up() -> Iterator[Path]:
    """The folder of a lab that is up."""
    held = rundir.create(NAME)
    write_json(held.path / warm.STATE, {"name": NAME})
    made.note(held.path, PARTS)
    yield held.path
    held.release()


def test_lab_of_the_same_parts_is_used_again(up: Path) -> None:
    """Nothing is said against a lab whose parts and log are as they were."""
    (up / "console.log").write_text("[    1.0] all is well\n")
    assert warm.stale(NAME, dict(PARTS)) == ""


@pytest.mark.parametrize(
    "now, words",
    [
        ({**PARTS, "the kernel": "x"}, "the kernel changed"),
        ({"the kernel": "x", "QEMU": "y"}, "the kernel and QEMU changed"),
        ({**PARTS, "the cards": "n"}, "the cards changed"),
        ({"the kernel": "a"}, "QEMU changed"),
    ],
)
def test_changed_part_is_named(up: Path, now: dict[str, str], words: str) -> None:
    """A part that is new, gone or another one keeps the lab from being used."""
    assert warm.stale(NAME, now) == words


def test_dirty_kernel_log_is_quoted(up: Path) -> None:
    """A lab whose kernel warned is not used."""
    (up / "console.log").write_text("[    1.0] fine\n[    2.0] WARNING: CPU: 0 PID: 1 at net/tls\n")
    assert warm.stale(NAME, dict(PARTS)) == "its kernel log has: WARNING: CPU: 0 PID: 1 at net/tls"


def test_half_made_and_absent_labs_are_distinguished(up: Path) -> None:
    """A lab whose boot was killed is no lab, nor is one that is not there."""
    (up / warm.STATE).unlink()
    assert warm.stale(NAME, dict(PARTS)) == "the program that booted it did not finish"
    assert warm.stale("try-none", dict(PARTS)) == "none was up"


def test_lab_without_a_note_of_its_parts_is_not_used(up: Path) -> None:
    """A lab of a version that noted nothing counts as another one."""
    (up / made.MADE).unlink()
    assert "changed" in warm.stale(NAME, dict(PARTS))


class Stub:
    """A lab that says what it is told to."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.text, self.detached = folder, "link 1 mtu 1500 state UP", False
        self.root = SimpleNamespace(run=self._run)
        side = SimpleNamespace(host=SimpleNamespace(run=self._run, name="dut"), dev="d0")
        self.bench = SimpleNamespace(dut=side, peer=side)

    def _run(self, argv: list[str], check: bool = True) -> Any:
        if not self.text:
            raise RigError("gone")
        return SimpleNamespace(text=self.text)

    def detach(self) -> None:
        """Note it."""
        self.detached = True


@pytest.fixture
def use(up: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[Any, Stub]]:
    """What opens the warm lab over a stub; a lab that would be booted is said, and is the stub again."""
    stub = Stub(up)
    booted: list[str] = []

    def boot(name: str, why: str, wanted: object, say: object) -> Stub:
        booted.append(why)
        write_json(up / warm.STATE_FOUND, {"state": warm._state(stub)})  # type: ignore[arg-type]
        return stub

    recipe = SimpleNamespace(made=lambda: dict(PARTS))
    monkeypatch.setattr(warm, "fetch", lambda series, say: None)
    monkeypatch.setattr(warm, "choose", lambda *_: recipe)
    monkeypatch.setattr(warm, "_boot", boot)
    monkeypatch.setattr(warm.Lab, "attach", lambda name, project: stub)
    boot(NAME, "", None, None)
    booted.clear()
    stub.booted = booted  # type: ignore[attr-defined]
    return lambda: (warm.lab("6.1", "veth", "connectx-6-dx", lambda line: None), stub)


def test_second_use_is_the_same_lab(use: Callable[[], tuple[Any, Any]]) -> None:
    """What was left as it was found is used again, and let go of each time."""
    for _ in range(2):
        opened, stub = use()
        with opened:
            pass
        assert stub.booted == [] and stub.detached


@pytest.mark.parametrize(
    "left, words",
    [
        ("link 1 mtu 9000 state UP", "a test changed its state: dut link 1 mtu 9000"),
        ("", "it did not answer at the end of the previous run"),
    ],
)
def test_lab_left_otherwise_is_replaced(use: Callable[[], tuple[Any, Any]], left: str, words: str) -> None:
    """A lab that a test changed for good, or broke, serves no other test."""
    opened, stub = use()
    with opened:
        stub.text = left
    stub.text = "link 1 mtu 1500 state UP"
    opened, stub = use()
    with opened:
        assert len(stub.booted) == 1 and stub.booted[0].startswith(words)


def test_killed_run_leaves_its_lab_unused(use: Callable[[], tuple[Any, Any]]) -> None:
    """A run that could not put anything back is known by what it did not say."""
    (rundir.base() / f".use-{NAME}").write_text(warm.KILLED)
    opened, stub = use()
    with opened:
        assert stub.booted == [warm.KILLED]


def test_carrier_of_a_young_lab_is_no_change() -> None:
    """A link that came up after the first look is the same link."""
    young, old = "2: a: <UP> mtu 1500 state UNKNOWN", "2: a: <UP,LOWER_UP> mtu 1500 state UP"
    assert warm.CARRIER.sub("", young) == warm.CARRIER.sub("", old)


def test_two_users_wait_for_each_other(tmp_path: Path) -> None:
    """A lab has one user at a time, and the second one says that it waits."""
    code = (
        "import sys; from offload.suite.bench.vm.warm import _Use\n"
        f"with _Use({NAME!r}, lambda words: print(words, flush=True)): print(1)"
    )
    with warm._Use(NAME, print):
        second = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert second.stdout and "another run uses it" in second.stdout.readline()
    assert second.communicate()[0] == "1\n" and second.returncode == 0


def test_names_hold_kernel_and_card() -> None:
    assert warm.name_of("6.1", "nicsim", "chelsio-t6,connectx-6-dx") == "try-6.1-chelsio-t6"
    assert warm.name_of("7.2", "veth", "chelsio-t6,connectx-6-dx") == "try-7.2-veth"


def test_module_is_a_part(tmp_path: Path) -> None:
    """Another build of the simulated NIC is another lab, and so is another agent."""
    kernel = SimpleNamespace(release="6.1", version="1", modules=tmp_path)
    qemu = SimpleNamespace(program="q", version="10", options=())
    module = tmp_path / "nicsim.ko"
    recipe = Recipe(kernel, "nicsim", "a,b", 1, qemu, "tcg", "", module)  # type: ignore[arg-type]
    module.write_bytes(b"one")
    made.note(tmp_path, recipe.made())
    assert made.changed(tmp_path, recipe.made()) == []
    module.write_bytes(b"two")
    assert made.changed(tmp_path, recipe.made()) == ["the simulated NIC"]


def test_every_part_of_the_code_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edit of the agent or of the boot is noticed, by what is in the file."""
    agent = tmp_path / "agent.py"
    agent.write_text("a = 1\n")
    monkeypatch.setattr(made, "GUEST", tmp_path)
    before = made.code()
    assert made.code() == before
    agent.write_text("a = 2\n")
    after = made.code()
    assert [name for name in before if before[name] != after[name]] == ["the guest's agent"]


def test_touched_file_of_the_host_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guest looks again at files that changed, even with their old size and time."""
    file = tmp_path / "build" / "helper"
    file.parent.mkdir()
    file.write_text("1")
    monkeypatch.setattr(made, "ROOT", tmp_path)
    monkeypatch.setattr(made, "SYSTEM", ())
    before, times = made.host_files(), file.stat()
    assert made.host_files() == before
    file.write_text("2")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert made.host_files()["checkout"] != before["checkout"]
    folder = tmp_path / "results"
    folder.mkdir()
    made.seen(folder, before)
    assert made.seen_before(folder, before) and not made.seen_before(folder, made.host_files())
