"""Stock Debian kernels: fetched and unpacked with their headers, never installed, kept in the cache."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from offload.cmd import run
from offload.debian import own
from offload.debian.cache import cache_root, locked, need_space, new_folder, read_json, write_json
from offload.debian.digests import of_file, of_folder
from offload.debian.headers import relocate, runtime, too_new, wrap
from offload.debian.packages import (
    Package,
    amd64_only,
    depends,
    download,
    index,
    newest,
    refresh,
    version_key,
)
from offload.debian.vmlinux import extract
from offload.errors import ConfigError, RigError

SERIES = ("6.1", "6.12", "7.2")
IMAGE = re.compile(r"^linux-image-(\d+\.\d+\.\d[\w.+~]*(?:-\d+)?)-amd64$")
PART = re.compile(r"^linux-(?:image|binary|modules|base|headers|kbuild)-\d")
# modules of devices that no lab has: half of all, and depmod would unpack each of them
UNUSED = (
    "sound",
    "drivers/bluetooth",
    "drivers/comedi",
    "drivers/firewire",
    "drivers/gpu",
    "drivers/hid",
    "drivers/hwmon",
    "drivers/iio",
    "drivers/isdn",
    "drivers/media",
    "drivers/mfd",
    "drivers/mmc",
    "drivers/mtd",
    "drivers/net/wireless",
    "drivers/power",
    "drivers/regulator",
    "drivers/staging",
    "drivers/usb",
    "drivers/video",
)
TLS13 = b"LINUX_MIB_TLSCURRTXREKEY"  # v17 of the series that gives TLS 1.3 and KeyUpdate to cards
Say = Callable[[str], None]


@dataclass(frozen=True)
class Kernel:
    """A kernel in the cache: files to boot it (vmlinux, modules) and to build for it (build = KDIR)."""

    series: str
    release: str
    version: str
    vmlinux: Path
    modules: Path
    build: Path
    config: Path


def codename() -> str:
    """The host's release, or an empty string: a kernel built for it needs no other tools."""
    try:
        return platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    except OSError:
        return ""


def choose(series: str, packages: tuple[Package, ...], host: str) -> Package | None:
    """The newest stock image of the series; of equal ones the one that was built for the host's release."""

    def rank(package: Package) -> tuple[object, ...]:
        upstream = package.version.split("-")[0]
        return version_key(upstream), package.suite.startswith(host or "-"), version_key(package.version)

    found = [p for p in packages if IMAGE.match(p.name) and p.version.startswith(f"{series}.")]
    return max(found, key=rank, default=None)


def closure(names: list[str], suite: str, packages: tuple[Package, ...]) -> list[Package]:
    """The named packages and the kernel parts that they depend on, newest of the image's release."""
    release = suite.split("-")[0]
    best = newest(packages, {p.suite for p in packages if p.suite.split("-")[0] == release})
    chosen: dict[str, Package] = {}
    while names:
        name = names.pop()
        if name in best and name not in chosen:
            chosen[name] = best[name]
            names += [d for d in depends(best[name]) if PART.match(d)]
    return list(chosen.values())


def fetch(series: str, say: Say = print, newest: bool = False, modules: str = "") -> Kernel:
    """Return the kernel of a series from the cache, filling it first if need be; or one of your own, by its
    path or by the name that the cache gave it.

    `newest` asks the archive although there is one in the cache. ConfigError for a series that the lab
    does not know; RigError for no network, no room, or no such package.
    """
    amd64_only()
    if own.is_path(series) or own.NAME.fullmatch(series):
        return _own(series, modules, say)
    if modules:
        raise ConfigError("--modules belongs to --kernel PATH", f"{series} is a series of Debian")
    if series not in SERIES:
        raise ConfigError(
            f"no kernel series {series!r} here", f"choose one of {', '.join(SERIES)}, or name a path"
        )
    root = cache_root() / "kernels"
    root.mkdir(exist_ok=True)
    with locked(root / ".lock", say):
        if not newest and (kernel := cached(series)):
            return kernel
        return _fill(series, root, say)


def _own(text: str, modules: str, say: Say) -> Kernel:
    """A kernel of one's own: put into the cache if it is named by its path."""
    name = own.take(text, modules, say) if own.is_path(text) else text
    kernel = cached(name)
    if kernel is None:
        raise ConfigError(f"no kernel {name} in the cache", "name it by its path again")
    return kernel


def cached(series: str) -> Kernel | None:
    """The kernel that the cache holds for a series, or None."""
    pointer = read_json(cache_root() / "kernels" / f"{series}.json")
    if not pointer:
        return None
    folder = cache_root() / "kernels" / pointer.get("release", "")
    known = read_json(folder / "kernel.json")
    return _kernel(folder, known) if known and known.get("series") == series else None


def _kernel(folder: Path, known: dict[str, str]) -> Kernel:
    """The Kernel that lies in a finished folder of the cache."""
    release = known["release"]
    root = folder / "root"
    return Kernel(
        series=known["series"],
        release=release,
        version=known["version"],
        vmlinux=folder / "vmlinux",
        modules=root / "lib/modules" / release,
        build=root / "usr/src" / f"linux-headers-{release}",
        config=folder / "config",
    )


def hands_over_tls13(series: str) -> bool:
    """Say whether a kernel of the cache hands TLS 1.3 to cards: its headers count what that brought."""
    if not (kernel := cached(series)):
        return False
    build = kernel.build.resolve()
    places = (build, *build.parent.glob("linux-headers-*-common"))
    headers = [place / "include/uapi/linux/snmp.h" for place in places]
    return any(TLS13 in path.read_bytes() for path in headers if path.is_file())


def measured(vmlinux: Path, modules: Path) -> dict[str, str]:
    """The digests by which a cached kernel is known again (record.py)."""
    return {"vmlinux": of_file(vmlinux), "modules": of_folder(modules)}


def _fill(series: str, root: Path, say: Say) -> Kernel:
    """Fetch, unpack, prepare; the folder appears in the cache only when all of it worked."""
    complaint = refresh()
    image = choose(series, index(), codename())
    if image is None:
        refresh(force=True)
        image = choose(series, index(), codename())
    if image is None:
        raise RigError(
            f"no {series} kernel in the suites that could be fetched"
            + (f": {complaint}" if complaint else "")
        )
    match = IMAGE.match(image.name)
    assert match
    release = f"{match[1]}-amd64"
    parts = closure([image.name, f"linux-headers-{release}"], image.suite, index())
    say(f"fetching kernel {release} ({image.version}, {image.suite}): {sum(p.size for p in parts) >> 20} MiB")
    folder = root / release
    known = {"series": series, "release": release, "version": image.version, "suite": image.suite}
    with new_folder(folder) as temp:
        (temp / "root").mkdir()
        download(parts, temp / "root")
        say("preparing it: vmlinux, module dependencies, headers")
        _prepare(temp, folder, known)
        known |= measured(temp / "vmlinux", temp / "root/lib/modules" / release)
        write_json(temp / "kernel.json", known)
    write_json(root / f"{series}.json", {"release": release})
    index.cache_clear()
    return _kernel(folder, known)


def _prepare(temp: Path, folder: Path, known: dict[str, str]) -> None:
    """Make what the packages' installation would have made, and an ELF kernel."""
    release, root = known["release"], temp / "root"
    if not (root / "lib").exists():
        (root / "lib").symlink_to("usr/lib")  # newer kernels ship usr/lib/modules only
    need_space(temp, 200 << 20, "the unpacked kernel")
    (temp / "vmlinux").write_bytes(extract(_boot_file(root, "vmlinuz", release).read_bytes()))
    shutil.copyfile(_boot_file(root, "config", release), temp / "config")
    _boot_file(root, "vmlinuz", release).unlink()
    for unused in ("usr/share", *(f"lib/modules/{release}/kernel/{part}" for part in UNUSED)):
        shutil.rmtree(root / unused, ignore_errors=True)
    rc, _, err, _ = run(["depmod", "-b", str(root), release], timeout=600)
    if rc != 0:
        raise RigError(f"depmod failed: {err.decode('utf-8', 'replace').strip()[-300:]}")
    relocate(root, folder / "root")
    if wanted := too_new(root):
        (temp / "runtime").mkdir()
        libraries = runtime(index(), known["suite"])
        if "libc6" not in {p.name for p in libraries}:
            raise RigError(
                f"the libraries of {known['suite']} that kernel {release} is built with are missing"
            )
        download(libraries, temp / "runtime")
        wrap(wanted, root, folder / "root", folder / "runtime")


def _boot_file(root: Path, what: str, release: str) -> Path:
    """Where the packages put an image or configuration: /boot up to 6.19, next to the modules later."""
    places = (root / "boot" / f"{what}-{release}", root / "usr/lib/modules" / release / what)
    for place in places:
        if place.is_file():
            return place
    raise RigError(f"the packages of kernel {release} hold no {what}")


def compiler(kernel: Kernel) -> str:
    """The C compiler for modules: the kernel's own if it is installed, else the host's default."""
    text = kernel.config.read_text(errors="replace")
    match = re.search(r'CONFIG_CC_VERSION_TEXT="(\S*gcc-\d+)', text)
    wanted = match[1].removeprefix("x86_64-linux-gnu-") if match else ""
    return wanted if wanted and shutil.which(wanted) else os.environ.get("CC", "gcc")
