"""The lab with the real driver: which QEMU, which driver, how the cards are started and named."""

from __future__ import annotations

import socket
import time
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from offload.card.profile import find
from offload.debian.cache import locked
from offload.debian.kernels import Kernel
from offload.driver.build import lock_of
from offload.errors import ConfigError, RigError
from offload.suite.bench.cards.silicon import Silicon
from offload.suite.bench.vm import cards, qemu_cards, recipe, topology
from offload.suite.bench.vm.qemu import Qemu, command

KERNEL = Kernel(
    "6.1", "6.1.0-56-amd64", "6.1.192-2", Path("vmlinux"), Path("modules"), Path("build"), Path("config")
)


WHOLE = replace(KERNEL, config=Path(__file__))


class Guest:
    """Plays the guest's root: insmod works, and the cards have these ports."""

    def __init__(self, ports: str) -> None:
        self.ports, self.ran = ports, list[str]()

    def run(self, argv: list[str], **_: object) -> Any:
        """Note a command; only the one that lists ports says something."""
        self.ran.append(" ".join(argv))
        return type("Said", (), {"text": self.ports if "sh" in argv else ""})()


def program(tmp_path: Path, script: str) -> Path:
    """A program in place of cx6sim."""
    path = tmp_path / "cx6sim"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_the_driver_is_built_once_for_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first lab, with a word of warning; again for another version of Debian's source only."""
    tree, built, said = tmp_path / "drivers/mlx5-6.1.0-56-amd64", list[str](), list[str]()

    def build(target: str, *_: object) -> None:
        (tree / cards.WHERE).parent.mkdir(parents=True, exist_ok=True)
        (tree / cards.WHERE).touch()
        (tree / "origin.json").write_text('{"version": "6.1.192-2"}')
        built.append(target)

    monkeypatch.setattr("offload.driver.build.cache_root", lambda: tmp_path)
    monkeypatch.setattr(cards, "find", lambda release: release)
    monkeypatch.setattr(cards, "build", build)
    assert cards.driver(KERNEL, said.append) == tree / cards.WHERE and built == [KERNEL.release]
    assert said == ["building mlx5_core with TLS for 6.1.0-56-amd64: once, and it takes minutes"]
    cards.driver(KERNEL, said.append)
    assert len(said) == len(built) == 1
    (tree / "origin.json").write_text('{"version": "6.1.191-1"}')
    cards.driver(KERNEL, said.append)
    assert len(said) == len(built) == 2
    with pytest.raises(ConfigError, match="and this kernel is your own"):
        cards.driver(replace(KERNEL, series="own-0123456789ab"), said.append)
    assert len(built) == 2


def test_a_build_that_runs_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another command builds the driver: its half-written module is not taken, nor is it built twice."""
    tree, held = tmp_path / "drivers/mlx5-6.1.0-56-amd64", Event()
    written, said = list[str](), list[str]()

    def other() -> None:
        with locked(lock_of(tree)):
            (tree / cards.WHERE).parent.mkdir(parents=True)
            (tree / cards.WHERE).touch()
            (tree / "origin.json").write_text('{"version": "6.1.192-2"}')
            held.set()
            time.sleep(0.3)
            written.append("whole")

    monkeypatch.setattr("offload.driver.build.cache_root", lambda: tmp_path)
    builder = Thread(target=other)
    builder.start()
    held.wait()
    assert cards.driver(KERNEL, said.append) == tree / cards.WHERE
    assert written == ["whole"] and said == [f"waiting: another ktls-offload holds {lock_of(tree)}"]
    builder.join()


@pytest.mark.parametrize(
    "name, fits", [("connectx-6-dx", True), ("connectx-7", False), ("chelsio-t6", False), ("nicsim", False)]
)
def test_a_bench_is_refused_for_a_card_that_it_is_not(name: str, fits: bool) -> None:
    """The model is one card, and a profile of another would be judged by what it never promised."""
    if fits:
        cards.check_profile(find(name))
        return
    with pytest.raises(ConfigError, match="cx6sim is a ConnectX-6 Dx .15b3:101d., and cannot be tested as"):
        cards.check_profile(find(name))


def test_a_report_says_what_was_real() -> None:
    """The driver by its source and version; the card with the number of guesses of today's page."""
    said = cards.about(KERNEL)
    known, guesses = cards.behaviors(cards.PAGE.read_text())
    assert said["driver under test"] == (
        "mlx5_core of Debian's Linux 6.1.192-2, unmodified, built with MLX5_EN_TLS"
    )
    assert f"simulated by cx6sim; of {known} behaviors of its firmware {guesses} are guesses" in said["card"]
    assert cards.behaviors("| behavior | source |\n|---|---|\n| a | ifc |\n| b | **guess** |\n") == (2, 1)


def test_cards_that_are_gone_are_a_fault_of_the_rig(tmp_path: Path) -> None:
    """With the last words of the process; while it answers there is none."""
    (tmp_path / cards.LOG).write_text("==1==ERROR: AddressSanitizer\n")
    (found,) = cards.dead(tmp_path)
    assert "the simulated cards are gone" in found and found.endswith("AddressSanitizer")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / cards.CONTROL))
        server.listen()
        answer = Thread(
            target=answers, args=(server, b'{"card":0,"sealed":3}\n', b'{"error":"no fault x"}\n')
        )
        answer.start()
        assert cards.dead(tmp_path) == []
        with pytest.raises(ConfigError, match="cx6sim: no fault x"):
            Silicon(tmp_path / cards.CONTROL).turn(0, "x", 1)
        answer.join()


def answers(server: socket.socket, *lines: bytes) -> None:
    """Answer so many clients, one after the other."""
    for line in lines:
        client = server.accept()[0]
        with client, client.makefile("rb") as said:
            said.readline()
            client.sendall(line)


def test_each_card_is_behind_a_root_port_of_its_own(tmp_path: Path) -> None:
    """And all of the guest's memory is shared with them."""
    text = " ".join(cards.devices(tmp_path, 1024))
    assert "size=1024M,share=on" in text and "-machine memory-backend=mem" in text
    for i in range(4):
        assert f"id=rp{i}," in text and f'"bus":"rp{i}"' in text and f'"path":"{tmp_path}/card{i}"' in text


def test_the_cards_say_when_they_are_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sockets are there then; a program that ends instead is quoted, a missing one named."""
    monkeypatch.setattr(cards, "PROGRAM", program(tmp_path, 'echo "$@" > args; echo ready; exec sleep 60'))
    monkeypatch.chdir(tmp_path)
    child = cards.start(tmp_path, False)
    child.kill()
    child.wait()
    said = (tmp_path / "args").read_text()
    assert said == f"--control {tmp_path}/cards " + " ".join(f"{tmp_path}/card{i}" for i in range(4)) + "\n"
    monkeypatch.setattr(cards, "PROGRAM", program(tmp_path, "echo no room >&2; exit 1"))
    with pytest.raises(RigError, match="cx6sim does not start: no room"):
        cards.start(tmp_path, True)
    monkeypatch.setattr(cards, "PROGRAM", tmp_path / "missing")
    with pytest.raises(RigError, match="missing is not built"):
        cards.start(tmp_path, True)


def test_the_ports_get_the_names_of_their_places() -> None:
    """In the order of their places on the bus; a card without a port is a broken rig."""
    guest = Guest("eth0\neth1\neth2\neth3\n")
    lines = cards.load(guest, 1)  # type: ignore[arg-type]
    assert lines == [f"link set eth{i} name {n}" for i, n in enumerate(("cx0", "cx1", "cxw0", "cxw1"))]
    assert guest.ran[0] == "insmod /run/lab/mlx5_core.ko"
    with pytest.raises(RigError, match="made 1 ports of 4 cards: eth0"):
        cards.load(Guest("eth0\n"), 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(("cpus", "off"), [(1, [1]), (2, []), (4, [])])
def test_cpus_rest_once_the_driver_is_loaded(cpus: int, off: list[int]) -> None:
    """It has made a queue for each by then."""
    guest = Guest("eth0\neth1\neth2\neth3\n")
    cards.load(guest, cpus)  # type: ignore[arg-type]
    found = [(n, said) for n, said in enumerate(guest.ran) if "online" in said]
    assert [said.partition(" -c ")[2] for _, said in found] == [
        f"echo 0 > /sys/devices/system/cpu/cpu{n}/online" for n in off
    ]
    assert all(n > 0 for n, _ in found) and guest.ran[0].startswith("insmod ")


@pytest.mark.parametrize(
    ("kind", "cpus", "spare", "said"),
    [
        ("mlx5", 1, 1, "tcg,thread=single -smp 2"),
        ("mlx5", 2, 0, "tcg,thread=multi -smp 2"),
        ("mlx5", 4, 0, "tcg,thread=multi -smp 4"),
        ("nicsim", 1, 0, "tcg,thread=multi -smp 1"),
    ],
)
def test_a_vm_of_the_real_driver_has_a_cpu_for_a_second_queue(
    kind: str, cpus: int, spare: int, said: str, tmp_path: Path
) -> None:
    """It rests later, so one thread is enough; who wants more CPUs to work needs none."""
    made = recipe.Recipe(WHOLE, kind, "", cpus, Qemu("qemu", "11", ()), "tcg", "", None)
    assert made.spare == spare
    argv = command(made.machine(()), tmp_path)
    has = [argv[argv.index(word) + 1] for word in ("-accel", "-smp")]
    assert said == " -smp ".join(has)


def test_no_timer_wakes_an_idle_lab_and_no_snapshot_repeats_numbers(tmp_path: Path) -> None:
    """QEMU's HPET would wake each lab 250 times a second; vmgenid makes the guest draw new random numbers."""
    made = recipe.Recipe(WHOLE, "nicsim", "", 1, Qemu("qemu", "11", ()), "tcg", "", None)
    argv = command(made.machine(()), tmp_path)
    assert argv[argv.index("-M") + 1] == "q35,hpet=off"
    assert "vmgenid,guid=auto" in argv


@pytest.mark.parametrize(
    ("kind", "words", "ports"),
    [
        ("mlx5", "gro off", ["cxw0", "cxw1"]),
        ("nicsim", "fq_codel target 10s", ["nicsim0", "nicsim1", "nswire0", "nswire1"]),
        ("veth", "", []),
    ],
)
def test_no_port_changes_or_drops_frames(kind: str, words: str, ports: list[str]) -> None:
    """GRO, which real cards have, would merge frames before the capture; CoDel drops what waits long."""
    guest: Any = Guest("")
    topology.settle(kind, guest, guest, guest)
    assert all(words in line for line in guest.ran)
    assert [port for line in guest.ran for port in ports if f" {port} " in line] == ports


@pytest.mark.parametrize("version, new", [("10.1.0", True), ("11.1.3", True), ("10.0.2", False), ("", False)])
def test_an_old_qemu_does_not_have_the_device(
    version: str, new: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This machine's own is taken if it is new enough; else the one with its own libraries and loader."""
    monkeypatch.setattr(qemu_cards, "kept", lambda what, make, say: tmp_path)
    shown = {qemu_cards.PROGRAM: version}
    monkeypatch.setattr(qemu_cards, "version_of", lambda name, options=(): shown.get(name, "11.1.3"))
    found = qemu_cards.find()
    assert (found.program == qemu_cards.PROGRAM) == new
    assert new or (found.options[0] == "--library-path" and found.program.startswith(str(tmp_path)))
