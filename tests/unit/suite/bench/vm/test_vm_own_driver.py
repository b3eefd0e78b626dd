"""`certify --driver`: which mlx5_core it loads, what it compiles first, what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from offload.debian.kernels import Kernel
from offload.errors import ConfigError, RigError
from offload.suite.bench.vm import cards, own_driver

MAGIC = "6.1.0-56-amd64 SMP preempt mod_unload modversions"
WITNESS = "mlx5e_ktls_build_netdev"
Make = Callable[..., Path]


@pytest.fixture
def kernel(tmp_path: Path, make: Make) -> Kernel:
    """A kernel with one module of its own, from which its version magic is taken."""
    make("modules/kernel/net/tls/tls.ko", name="tls")
    none = tmp_path / "none"
    return Kernel("6.1", "6.1.0-56-amd64", "6.1.192-2", none, tmp_path / "modules", none, none)


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make a file that has the beginning of a module, and a modinfo that reads such files."""
    fields = dict[str, dict[str, str]]()

    def modinfo(path: Path, field: str) -> str:
        return fields.get(str(path), {}).get(field, "")

    def module(
        where: str,
        name: str = "mlx5_core",
        vermagic: str = MAGIC,
        symbol: str = WITNESS,
        head: bytes = b"\x7fELF",
    ) -> Path:
        path = tmp_path / where
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(head + b"\0" + symbol.encode() + b"\0")
        fields[str(path)] = {"name": name, "vermagic": vermagic}
        return path

    monkeypatch.setattr(own_driver, "modinfo", modinfo)
    return module


def tree(tmp_path: Path, version: str = "6.1.192-2") -> Path:
    """A folder as `driver build` leaves it, in which nothing was compiled."""
    folder = tmp_path / "mlx5-6.1.0-56-amd64"
    (folder / cards.WHERE).parent.mkdir(parents=True)
    (folder / "origin.json").write_text(f'{{"version": "{version}"}}')
    return folder


def test_a_module_that_fits_is_loaded_as_it_is(kernel: Kernel, make: Make) -> None:
    """It is named in the report by its path and digest."""
    mine = make("mine/mlx5_core.ko")
    own_driver.check_path(mine)
    assert own_driver.prepare(mine, kernel, print) == own_driver.place(mine) == mine
    said = cards.about(kernel, own_driver.words(mine, kernel))["driver under test"]
    assert said.startswith(f"mlx5_core of your own, {mine} (SHA-256 ") and said.endswith("on Linux 6.1.192-2")


def test_what_is_no_such_module_is_refused_before_anything_is_made(make: Make, tmp_path: Path) -> None:
    """Each with what it is, and with the remedy."""
    text = make("text.ko", head=b"#!/bin/sh")
    for path, why in (
        (tmp_path / "missing.ko", "cannot read the driver .*missing.ko: No such file"),
        (text, "text.ko is no kernel module: it does not begin as an ELF file"),
        (make("program", name=""), "program is no kernel module: it names none"),
        (make("tls.ko", name="tls"), "tls.ko is the module tls, and the cards need mlx5_core"),
        (make("plain.ko", symbol="mlx5e_open"), f"plain.ko has no TLS: it lacks {WITNESS}"),
        (tmp_path, "is no folder of `ktls-offload driver build mlx5`"),
    ):
        with pytest.raises(ConfigError, match=why):
            own_driver.check_path(path)


def test_a_module_too_large_for_the_guest_gets_a_remedy(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debug information is most of it."""
    monkeypatch.setattr(own_driver, "MOST", 8)
    with pytest.raises(ConfigError, match="larger than 0 MiB") as caught:
        own_driver.check_path(make("mlx5_core.ko"))
    assert caught.value.hint.startswith("strip --strip-debug")


@pytest.mark.parametrize(
    "vermagic",
    ["6.12.95+deb13-amd64 SMP preempt mod_unload modversions", "6.1.0-56-amd64 SMP mod_unload", ""],
)
def test_a_module_of_another_kernel_is_refused(kernel: Kernel, make: Make, vermagic: str) -> None:
    """By the whole version magic, as the kernel would refuse it."""
    with pytest.raises(
        ConfigError, match="was built for kernel .* and this lab boots '6.1.0-56-amd64 SMP"
    ) as caught:
        own_driver.prepare(make("mlx5_core.ko", vermagic=vermagic), kernel, print)
    assert "headers of 6.1.0-56-amd64" in caught.value.hint


def test_a_build_folder_is_compiled_first(
    kernel: Kernel, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was edited there is in the module; what does not compile is the owner's mistake."""
    folder, compiled = tree(tmp_path), list[Path]()

    def compile_again(target: str, _kind: object, where: Path, *_: object) -> None:
        compiled.append(make(str((where / cards.WHERE).relative_to(tmp_path))))
        assert target == kernel.release

    monkeypatch.setattr(own_driver, "find", lambda release: release)
    monkeypatch.setattr(own_driver, "compile_again", compile_again)
    own_driver.check_path(folder)
    assert own_driver.prepare(folder, kernel, print) == own_driver.place(folder) == folder / cards.WHERE
    assert compiled == [folder / cards.WHERE]

    def fails(*_: object) -> None:
        raise RigError("mlx5 does not build for 6.1.0-56-amd64:\nktls_tx.c:1: error", "the rest: build.log")

    monkeypatch.setattr(own_driver, "compile_again", fails)
    with pytest.raises(ConfigError, match=r"ktls_tx.c:1: error"):
        own_driver.prepare(folder, kernel, print)


def test_the_source_of_another_kernel_is_not_compiled(kernel: Kernel, tmp_path: Path) -> None:
    """Its structures are others; the command for a folder of this one is named."""
    folder = tree(tmp_path, "6.12.95-1")
    with pytest.raises(
        ConfigError, match="has the source of Linux 6.12.95-1, and this lab boots 6.1.192-2"
    ) as caught:
        own_driver.prepare(folder, kernel, print)
    assert "driver build mlx5 --kernel 6.1 --out" in caught.value.hint


def test_modinfo_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where only root finds it; without it, the package is named."""
    asked = list[tuple[list[str], str]]()

    def answers(argv: list[str], env: dict[str, str]) -> tuple[int, bytes, bytes, float]:
        asked.append((argv, env["PATH"]))
        return 0, b"mlx5_core\n", b"", 0.0

    monkeypatch.setattr(own_driver, "run", answers)
    assert own_driver.modinfo(tmp_path / "x.ko", "name") == "mlx5_core"
    assert asked[0][0] == ["modinfo", "-F", "name", f"{tmp_path}/x.ko"] and ":/usr/sbin" in asked[0][1]
    monkeypatch.setattr(own_driver, "run", lambda *_, **__: (127, b"", b"", 0.0))
    with pytest.raises(ConfigError, match="modinfo is not installed"):
        own_driver.modinfo(tmp_path / "x.ko", "name")


def test_a_kernel_without_modules_is_identified_by_its_release(
    kernel: Kernel, make: Make, tmp_path: Path
) -> None:
    """All else of the version magic is in no file then; the guest's kernel looks at it itself."""
    bare = replace(kernel, modules=tmp_path / "empty")
    own_driver.fits(make("mlx5_core.ko"), bare)
    with pytest.raises(ConfigError, match="this lab boots '6.1.0-56-amd64'"):
        own_driver.fits(make("mlx5_core.ko", vermagic="6.1.0-55-amd64 SMP"), bare)
