"""A lab begins at a snapshot only if every byte is the same; one that fails costs no lab."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from offload import paths
from offload.suite.bench.vm import initramfs, snapshot, userland
from offload.suite.bench.vm.boot import interpreter
from offload.suite.bench.vm.qemu import Qemu

QEMU = Qemu("true", "10.0.2")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("LAB_SNAPSHOT", raising=False)
    return tmp_path


def key(folder: Path, **other: object) -> str:
    """The key of a VM that is otherwise as given."""
    vmlinux = Path(__file__)
    known = {"qemu": QEMU, "words": ["-m", "1024M"], "initrd": b"one", "pair": "a,b", **other}
    argv = ["qemu", "-name", folder.name, "-append", f"x tsc_early_khz={len(folder.name)}1", *known["words"]]  # type: ignore[misc]
    argv += ["-serial", f"file:{folder}/console.log"]
    return snapshot.key(known["qemu"], argv, folder, vmlinux, known["initrd"], known["pair"])  # type: ignore[arg-type]


def test_same_vm_in_another_folder_has_the_same_key(tmp_path: Path) -> None:
    """Neither a lab's name nor its measured clock makes it another one."""
    assert key(tmp_path / "lab-1") == key(tmp_path / "lab-22")


@pytest.mark.parametrize(
    "other",
    [
        {"initrd": b"two"},
        {"pair": "b,a"},
        {"words": ["-m", "2048M"]},
        {"qemu": Qemu("true", "10.0.3")},
        {"qemu": Qemu("false", "10.0.2")},
    ],
    ids=["initramfs", "cards", "options", "version", "program"],
)
def test_any_other_byte_is_another_key(tmp_path: Path, other: dict[str, object]) -> None:
    """Another module, agent, card, memory or QEMU never meets a snapshot of this one."""
    assert key(tmp_path) != key(tmp_path, **other)


def test_other_bench_or_host_boot_is_another_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edit of what builds the bench makes every snapshot useless."""
    before = key(tmp_path)
    monkeypatch.setattr(snapshot, "BENCH", ("topology.py",))
    assert key(tmp_path) != before


@pytest.mark.parametrize(
    "qemu, accel, off, word",
    [
        ("10.0.2", "tcg", "", True),
        ("7.2.22", "tcg", "", False),
        ("10.0.2", "kvm", "", False),
        ("10.0.2", "tcg", "off", False),
    ],
)
def test_where_there_are_snapshots(
    monkeypatch: pytest.MonkeyPatch, qemu: str, accel: str, off: str, word: bool
) -> None:
    """An old QEMU, KVM and LAB_SNAPSHOT=off boot as ever."""
    monkeypatch.setenv("LAB_SNAPSHOT", off)
    assert snapshot.possible(Qemu("qemu", qemu), accel) is word


class Monitor:
    """A QEMU that takes these commands, and says how its migration ended."""

    def __init__(self, path: Path, ends: str) -> None:
        self.path, self.ends, self.asked = path, ends, list[str]()
        self._sock = socket.socket(socket.AF_UNIX)
        self._sock.bind(str(path))
        self._sock.listen()
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self) -> None:
        line, _ = self._sock.accept()
        with line, line.makefile("rwb") as talk:
            talk.write(b'{"QMP": {}}\n')
            talk.flush()
            for words in talk:
                ask = json.loads(words)
                self.asked.append(ask["execute"])
                if ask["execute"] == "migrate":
                    Path(ask["arguments"]["uri"].removeprefix("file:")).write_bytes(b"state")
                status = {"status": self.ends} if ask["execute"] == "query-migrate" else {}
                talk.write(b'{"event": "STOP"}\n' + json.dumps({"return": status}).encode() + b"\n")
                talk.flush()
        self._sock.close()


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Path]:
    """The console of the VM that is kept."""
    path = tmp_path / "console.log"
    path.write_text("[    1.0] hello\n")
    yield path


def test_kept_vm_goes_on_and_is_found(tmp_path: Path, console: Path) -> None:
    """A snapshot has the state and the console so far, and the VM that it is of runs on."""
    monitor = Monitor(tmp_path / "monitor", "completed")
    said: list[str] = []
    snapshot.save("k", monitor.path, console, said.append)
    monitor.thread.join(20)
    assert said == [] and monitor.asked[-1] == "cont" and "stop" not in monitor.asked
    target = tmp_path / "other.log"
    assert snapshot.begin("k", target) == ["-incoming", f"file:{snapshot.folder_of('k')}/state"]
    assert target.read_text() == console.read_text()
    snapshot.forget("k")
    assert snapshot.begin("k", target) == []


def test_vm_that_cannot_be_kept_goes_on(tmp_path: Path, console: Path) -> None:
    """A snapshot that failed is said, leaves nothing, and the VM runs on."""
    monitor = Monitor(tmp_path / "monitor", "failed")
    said: list[str] = []
    snapshot.save("k", monitor.path, console, said.append)
    monitor.thread.join(20)
    assert said == ["no snapshot of this lab: QEMU: the snapshot is failed"] and monitor.asked[-1] == "cont"
    assert not list(snapshot.folder_of("k").parent.glob("[!.]*")) and not list(tmp_path.glob("**/.new-*"))


def test_last_used_snapshots_stay(tmp_path: Path, console: Path) -> None:
    """The cache holds a few, and the one that was used longest ago goes."""
    names = [f"k{number}" for number in range(snapshot.KEPT)]
    for age, name in enumerate(names):
        snapshot.folder_of(name).mkdir(parents=True)
        os.utime(snapshot.folder_of(name), (1000 + age, 1000 + age))
    monitor = Monitor(tmp_path / "monitor", "completed")
    snapshot.save("new", monitor.path, console, print)
    monitor.thread.join(20)
    left = {path.name for path in snapshot.folder_of("x").parent.glob("[!.]*")}
    assert left == {*names[1:], "new"}


def test_scripts_of_a_lab_are_shell_scripts(tmp_path: Path) -> None:
    """Odd characters in paths break neither the init nor the script that mounts the shares."""
    odd = f"{initramfs.TMPFS[0]}/a b"
    shares = initramfs.shares_script(tmp_path / "it's; here", [Path(odd)])
    for text in (initramfs.early_init("/usr/bin/python3"), shares):
        checked = subprocess.run(["busybox", "sh", "-n"], input=text.encode(), capture_output=True)
        assert checked.returncode == 0, checked.stderr
    assert f"'{odd}'" in shares and "9p" not in initramfs.early_init("/usr/bin/python3")


def test_agent_runs_from_what_is_packed_for_it(tmp_path: Path) -> None:
    """The packed Python finds its library, compiled, with nothing of this machine's."""
    for name, data in userland.agent(interpreter()).items():
        path = tmp_path / name.strip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o755)
    there = tmp_path / "lab" / initramfs.GUEST.relative_to(paths.ROOT)
    shutil.copytree(initramfs.GUEST, there)
    for folder in there.relative_to(tmp_path / "lab").parents[:-1]:
        (tmp_path / "lab" / folder / "__init__.py").touch()
    code = "import json; from offload.suite.bench.vm.guest import agent, known; print(json.__file__)"
    argv = ["unshare", "-r", "chroot", str(tmp_path), interpreter(), "-S", "-s", "-c", code]
    done = subprocess.run(
        argv, capture_output=True, text=True, env={"PYTHONPATH": "/lab", "PATH": "/usr/sbin:/usr/bin"}
    )
    if "unshare failed" in done.stderr:
        pytest.skip("no user namespaces here")
    assert done.returncode == 0 and done.stdout.strip().endswith("json/__init__.pyc"), done.stderr
