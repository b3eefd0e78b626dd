"""The lab's verbs refuse what cannot be, in one line and with the documented exit code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from offload.cli import main as cli
from offload.debian import kernels
from offload.debian.kernels import Kernel
from offload.errors import ConfigError, RigError
from offload.suite.bench.cards import module
from offload.suite.bench.vm import cards, qemu, qemu_cards, topology, verbs


@pytest.fixture(autouse=True)
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who never had a lab."""
    for name in ("XDG_RUNTIME_DIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))


@pytest.mark.parametrize(
    "argv, words",
    [
        (("up", "--kernel", "5.4"), "no kernel series '5.4'"),
        (("up", "--kind", "real"), "no bench of kind 'real'"),
        (("fetch", "--kind", "real"), "no bench of kind 'real'"),
        (("up", "--card", "real"), "no bench of kind 'real'"),
        (("fetch", "--card", "real"), "no bench of kind 'real'"),
        (("up", "--personality", "a;b"), "personality 'a;b'"),
        (("up", "--name", "../x"), "lab name '../x'"),
        (("up", "--cpus", "99"), "'99' vCPUs"),
        (("run", "--", "true"), "no lab is running"),
        (("run", "-n", "x"), "which command?"),
        (("run", "-n", "x", "--", "true"), "no lab named 'x'"),
        (("down", "x"), "no lab named 'x'"),
        (("down", "-n", "x"), "no lab named 'x'"),
        (("down", "-n", "x", "y"), "give one name, not x and y"),
        (("down", "x", "--all"), "give either a name or --all"),
        (("shell",), "no lab is running"),
    ],
)
def test_usage_errors_are_one_line(
    argv: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong words give exit code 2 and say what would be right."""
    assert cli.main(["lab", *argv]) == 2
    said = capsys.readouterr().err
    assert words in said and "Traceback" not in said


def test_our_own_command_is_found_in_the_guest() -> None:
    """`lab run -- ktls-offload` is this installation's, whatever the guest's PATH has."""
    assert verbs.as_here(["ktls-offload", "ls"]) == [sys.executable, "-m", "offload", "ls"]
    assert verbs.as_here(["ls", "ktls-offload"]) == ["ls", "ktls-offload"]


@pytest.mark.parametrize("kind", ["nicsim", "mlx5"])
def test_fetch_gets_what_a_kind_needs(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After it a run needs no network: the real driver's lab has a QEMU and a driver of its own."""
    folder = Path("x")
    kernel = Kernel("6.1", "6.1.0-1-amd64", "6.1.1-1", folder, folder, folder, folder)
    programs = {qemu: "7.2", qemu_cards: "11.1"}
    for module_, version in programs.items():
        monkeypatch.setattr(module_, "find", lambda _, version=version: qemu.Qemu("qemu", version))
    monkeypatch.setattr(kernels, "fetch", lambda *_: kernel)
    monkeypatch.setattr(module, "build_nicsim", lambda *_: None)
    monkeypatch.setattr(cards, "driver", lambda *_: Path("mlx5_core.ko"))
    assert cli.main(["lab", "fetch", "6.1", "--kind", kind]) == 0
    said = capsys.readouterr().out.splitlines()
    more = {"QEMU 11.1 for cards of another process", "mlx5_core for 6.1.0-1-amd64: mlx5_core.ko"}
    assert set(said) == {"QEMU 7.2", "kernel 6.1: 6.1.0-1-amd64 (6.1.1-1)"} | (
        more if kind == "mlx5" else set()
    )


def test_status_without_labs(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing running is said so, and is no error."""
    assert cli.main(["lab", "status"]) == 0
    assert capsys.readouterr().out == "no lab is up\n"


def test_personality_is_for_both_or_each() -> None:
    """One card name counts for DUT and peer, two for each."""
    assert topology.check_personality("plain") == "plain,plain"
    assert topology.check_personality("chelsio-t6,plain") == "chelsio-t6,plain"
    for bad in ("", "a,b,c", "a,", "x y"):
        with pytest.raises(ConfigError):
            topology.check_personality(bad)


@pytest.mark.parametrize("kind", topology.KINDS)
def test_both_benches_have_one_shape(kind: str) -> None:
    """Every port ends in its namespace and both wire ports in the bridge."""
    ends = topology.ENDS[kind]
    lines = topology.links(kind)
    for dev, place in (
        (ends.dut, "dut"),
        (ends.peer, "peer"),
        (ends.wire[0], "wire"),
        (ends.wire[1], "wire"),
    ):
        assert f"link set {dev} netns {place}" in lines
    assert [line for line in topology.inside(kind, "wire") if "master br0" in line] == [
        f"link set {port} master br0 up" for port in ends.wire
    ]


def test_compile_error_is_one_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that does not compile says where, in the project's own paths."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = tmp_path / "source"
    source.mkdir()
    (source / "Kbuild").write_text("obj-m := nicsim.o\n")
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers/Makefile").write_text("modules:\n\t@echo $(M)/main.c:7: error: no; exit 1\n")
    (tmp_path / "config").touch()
    none = tmp_path / "none"
    kernel = Kernel("6.1", "6.1.0-1-amd64", "6.1.1-1", none, none, tmp_path / "headers", tmp_path / "config")
    with pytest.raises(
        RigError, match=r"does not build for 6.1.0-1-amd64(.|\n)*native/nicsim/main.c:7: error: no"
    ):
        module.build_nicsim(kernel, lambda text: None, source)
    assert not list(tmp_path.rglob("nicsim.ko"))


def test_module_name_follows_its_sources(tmp_path: Path) -> None:
    """A changed source, name, kernel or option is another module; tests and leftovers do not count."""
    card = tmp_path / "card"
    (card / "tests").mkdir(parents=True)
    (card / "Kbuild").touch()
    (card / "a.c").write_text("int a;")
    kernels = [
        Kernel("6.1", release, "6.1.1-1", *[tmp_path] * 4) for release in ("6.1.0-1-amd64", "6.1.0-2-amd64")
    ]
    names = [module.digest(k, card, ["make"]) for k in kernels]
    names.append(module.digest(kernels[0], card, ["make", "W=1"]))
    (card / "tests/b.c").touch()
    (card / "nicsim.mod.c").touch()
    assert module.digest(kernels[0], card, ["make"]) == names[0]
    (card / "a.c").write_text("int b;")
    names.append(module.digest(kernels[0], card, ["make"]))
    (card / "a.c").rename(card / "c.c")
    names.append(module.digest(kernels[0], card, ["make"]))
    assert len(set(names)) == 5
