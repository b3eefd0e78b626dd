"""Which mlx5_core does `certify --driver` load? Your module, or that of a build folder, compiled first."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from offload.cmd import run
from offload.debian.kernels import Kernel
from offload.driver.build import SBIN, compile_again, origin
from offload.driver.kinds import kind
from offload.driver.target import find
from offload.errors import ConfigError, RigError
from offload.suite.bench.vm.cards import KIND, MODULE, WHERE
from offload.yamlfile import read_plain

NAME = MODULE.removesuffix(".ko")
MOST = 64 << 20  # bytes: it lies in the guest's memory
OWN = f"{NAME} of your own"  # how the reports of such a run begin to name the driver
HINT = "docs/certify/change-mlx5e.md says how to make one"


def check_path(path: Path) -> None:
    """ConfigError, before anything is made, for what is neither a build folder nor mlx5_core with TLS."""
    if not path.is_dir():
        check_module(path)
    elif not origin(path):
        raise ConfigError(
            f"{path} is no folder of `ktls-offload driver build {KIND}`: it has no origin.json", HINT
        )


def place(path: Path) -> Path:
    """Return the module itself: that of a build folder, or the one that was named."""
    return path / WHERE if path.is_dir() else path


def prepare(path: Path, kernel: Kernel, say: Callable[[str], None]) -> Path:
    """Compile a build folder, and return a module that fits the kernel. ConfigError if there is none."""
    if path.is_dir():
        _compile(path, kernel, say)
    module = place(path)
    check_module(module)
    fits(module, kernel)
    return module


def _compile(tree: Path, kernel: Kernel, say: Callable[[str], None]) -> None:
    """Compile what has changed in a build folder; ConfigError, with the compiler's words, if it fails."""
    if origin(tree) != kernel.version:
        raise ConfigError(
            f"{tree} has the source of Linux {origin(tree)}, and this lab boots {kernel.version}",
            f"make one: ktls-offload driver build {KIND} --kernel {kernel.series} --out DIR",
        )
    try:
        compile_again(find(kernel.release), kind(KIND), tree, os.cpu_count() or 1, say)
    except RigError as exc:
        raise ConfigError(*exc.args) from None


def check_module(path: Path) -> None:
    """ConfigError for a file that is no kernel module, another module, or mlx5_core without TLS."""
    try:
        content = read_plain(path, MOST + 1)
    except OSError as exc:
        raise ConfigError(f"cannot read the driver {path}: {exc.strerror}", HINT) from None
    if content[:4] != b"\x7fELF":
        raise ConfigError(f"{path} is no kernel module: it does not begin as an ELF file", HINT)
    if len(content) > MOST:
        raise ConfigError(f"{path} is larger than {MOST >> 20} MiB", f"strip --strip-debug {path}")
    name = modinfo(path, "name")
    if name != NAME:
        what = f"the module {name}" if name else "no kernel module: it names none"
        raise ConfigError(f"{path} is {what}, and the cards need {NAME}", HINT)
    witness = kind(KIND).witness[NAME]
    if f"\0{witness}\0".encode() not in content:
        raise ConfigError(
            f"{path} has no TLS: it lacks {witness}()",
            f"set {kind(KIND).option}=y, or use ktls-offload driver build {KIND}",
        )


def fits(module: Path, kernel: Kernel) -> None:
    """ConfigError for a module that was built for another kernel, by its version magic."""
    stock = next(iter(sorted(kernel.modules.rglob("*.ko*"))), None)
    wanted = modinfo(stock, "vermagic") if stock else kernel.release
    has = modinfo(module, "vermagic")
    if has.split()[: len(wanted.split())] != wanted.split():
        raise ConfigError(
            f"{module} was built for kernel {has!r}, and this lab boots {wanted!r}",
            f"build it against the headers of {kernel.release}: {kernel.build}",
        )


def modinfo(module: Path, field: str) -> str:
    """Return what modinfo says of a module: one of its fields, '' if it has none."""
    env = {"PATH": os.pathsep.join((os.environ.get("PATH", ""), *SBIN))}
    rc, out, err, _ = run(["modinfo", "-F", field, str(module.absolute())], env=env)
    if rc == 127:
        raise ConfigError("program modinfo is not installed", "apt install kmod")
    return out.decode("utf-8", "replace").strip()


def words(module: Path, kernel: Kernel) -> str:
    """Return what reports say of such a driver."""
    digest = sha256(module.read_bytes()).hexdigest()
    return f"{OWN}, {module} (SHA-256 {digest}), on Linux {kernel.version}"
