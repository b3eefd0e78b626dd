"""For which kernel is a driver built: its release, Debian's version of it, and where its headers are."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from offload.debian.cache import cache_root, read_json
from offload.debian.kernels import SERIES
from offload.driver.kinds import Kind
from offload.errors import ConfigError, Refused, RigError

# include/generated/compile.h: `#define UTS_VERSION "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-11-16)"`
BANNER = re.compile(r'UTS_VERSION "[^"\n]* Debian ((\d+\.\d+)[\w.+~-]*) ')
RELEASE = re.compile(r"[A-Za-z0-9][\w.+~-]{0,63}")


@dataclass(frozen=True)
class Target:
    """A kernel of Debian: `version` is that of its package, `series` as 6.1; `modules` is /lib/modules/R."""

    release: str
    version: str
    series: str
    headers: Path
    modules: Path
    config: Mapping[str, str]

    @property
    def source(self) -> str:
        """The package that holds this kernel's source."""
        return f"linux-source-{self.series}"


def find(release: str | None, root: Path = Path("/")) -> Target:
    """The kernel to build for (None: the one that runs), by its headers below `root` or in the lab's cache.

    A series, as 6.1, is the kernel that the lab has of it.
    ConfigError for a release that cannot be one, or whose headers are not here (with how to get them);
    Refused on a system, or for a kernel, that is not Debian's.
    """
    debian(root)
    if release is None and " Debian " not in os.uname().version:
        raise _foreign(os.uname().release)
    release = _of_series(bare(release, root).release)
    headers, modules = _places(release, root)
    return read(release, headers, modules)


def _of_series(release: str) -> str:
    """The release of the lab's kernel if a series was named; any other word as it is.

    ConfigError for a series of which the lab has no kernel.
    """
    pointer = read_json(cache_root() / "kernels" / f"{release}.json")
    if not pointer and re.fullmatch(r"\d+\.\d+", release):
        known = f"ktls-offload lab fetch {release}" if release in SERIES else f"it has {', '.join(SERIES)}"
        hint = f"{known}; or name a release, as uname -r prints it"
        raise ConfigError(f"the lab has no kernel {release} here", hint)
    return pointer.get("release", release) if pointer else release


def bare(release: str | None, root: Path = Path("/")) -> Target:
    """A kernel of which only the modules matter: its headers may be gone."""
    release = release or os.uname().release
    if not RELEASE.fullmatch(release):
        raise ConfigError(f"{release!r} is not a kernel release", "uname -r prints one, as 6.1.0-56-amd64")
    return Target(release, "", "", root / "nowhere", root / "lib/modules" / release, {})


def debian(root: Path) -> None:
    """Refused, in one sentence, where the kernel is not Debian's."""
    try:
        lines = (root / "etc/os-release").read_text("utf-8", "replace").splitlines()
    except OSError:
        lines = [f"{k}={v}" for k, v in {"ID": "", "PRETTY_NAME": platform.system()}.items()]
    fields = {k: v.strip("\"'") for k, _, v in (line.partition("=") for line in lines)}
    if fields.get("ID") != "debian":
        name = fields.get("PRETTY_NAME") or fields.get("ID") or "an unknown system"
        raise Refused(
            f"this is {name}, but `driver` rebuilds only drivers of Debian's kernels",
            "many other kernels have the option: ktls-offload doctor --explain D104",
        )


def _places(release: str, root: Path) -> tuple[Path, Path]:
    """Headers and modules of a release."""
    modules = root / "lib/modules" / release
    cached = cache_root() / "kernels" / release / "root"
    for headers, found in (
        (modules / "build", modules),
        (root / f"usr/src/linux-headers-{release}", modules),
        (cached / f"usr/src/linux-headers-{release}", cached / "lib/modules" / release),
    ):
        if (headers / "Module.symvers").is_file():
            return headers, found
    raise ConfigError(f"no headers of kernel {release} here", f"apt install linux-headers-{release}")


def _foreign(release: str) -> Refused:
    """The error for a kernel that somebody else built."""
    return Refused(
        f"kernel {release} is not one that Debian built",
        "its vendor can set the option in the kernel configuration",
    )


def read(release: str, headers: Path, modules: Path) -> Target:
    """Return what the headers say of their kernel. Refused if it is not one that Debian built."""
    text = ""
    for name in ("compile.h", "utsversion.h"):  # 6.2 moved UTS_VERSION
        path = headers / "include/generated" / name
        text += path.read_text(errors="replace") if path.is_file() else ""
    match = BANNER.search(text)
    if match is None:
        raise _foreign(release)
    try:
        lines = (headers / ".config").read_text(errors="replace").splitlines()
    except OSError as exc:
        raise RigError(f"cannot read {headers}/.config: {exc.strerror}") from None
    config = {k: v for k, eq, v in (line.partition("=") for line in lines) if eq and k.startswith("CONFIG_")}
    return Target(release, match[1], match[2], headers, modules, config)


def fits(target: Target, kind: Kind) -> None:
    """Refused if this kernel has the option already, or lacks what it depends on."""
    if target.config.get(kind.option):
        raise Refused(
            f"kernel {target.release} has {kind.option}={target.config[kind.option]} already",
            "ktls-offload doctor says what else keeps TLS from being offloaded",
        )
    short = [f"{k}={v}" for k, v in kind.needs.items() if target.config.get(k) != v]
    if short:
        raise Refused(
            f"kernel {target.release} lacks {', '.join(short)}, which {kind.option} depends on",
            "use the amd64 flavor of Debian's kernel, not cloud",
        )
