"""A kernel of your own, as the cache keeps Debian's: from a bzImage, a vmlinux, a .deb or a built tree."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from offload.cmd import run
from offload.debian import debug
from offload.debian.cache import cache_root, locked, need_space, new_folder, read_json, write_json
from offload.debian.digests import of_file, of_folder
from offload.debian.headers import relocate
from offload.debian.vmlinux import MAGIC, extract
from offload.errors import ConfigError, RigError
from offload.paths import expanded

NAME = re.compile(r"own-[0-9a-f]{12}")
BANNER = re.compile(rb"Linux version (\d+\.\d[\w.+~-]{0,80}) ")
FORMS = "bzImage, vmlinux, linux-image-*.deb or a built tree"
# what the lab needs of a kernel: option, the least that will do, and what for
NEEDED = (
    ("CONFIG_TLS", "m", "kernel TLS"),
    ("CONFIG_TLS_DEVICE", "y", "the part of kernel TLS that hands records to a card"),
    ("CONFIG_MODULES", "y", "the simulated card is a module"),
    ("CONFIG_BLK_DEV_INITRD", "y", "the lab's first file system"),
    ("CONFIG_PVH", "y", "QEMU boots the ELF kernel"),
    ("CONFIG_SERIAL_8250_CONSOLE", "y", "the console"),
    ("CONFIG_DEVTMPFS", "y", "/dev"),
    ("CONFIG_TMPFS", "y", "/run"),
    ("CONFIG_DEBUG_FS", "y", "the knobs of the simulated card"),
    ("CONFIG_VIRTIO_PCI", "m", "the lab's devices"),
    ("CONFIG_VIRTIO_CONSOLE", "m", "the lab's agent"),
    ("CONFIG_NET_9P_VIRTIO", "m", "the guest reads the host's files"),
    ("CONFIG_9P_FS", "m", "the guest reads the host's files"),
    ("CONFIG_OVERLAY_FS", "m", "keeps what the guest writes apart from the host's files"),
    ("CONFIG_NET_NS", "y", "DUT, wire and peer"),
    ("CONFIG_IPV6", "y", "half of the tests"),
    ("CONFIG_PACKET", "y", "the wire tap"),
    ("CONFIG_BRIDGE", "m", "the wire"),
    ("CONFIG_NET_SCH_NETEM", "m", "impairments"),
    ("CONFIG_INET_TCP_DIAG", "m", "who does a connection's records"),
    ("CONFIG_CRYPTO_GCM", "m", "AES-GCM in software, for the peer and for fallback"),
)
LOW = {"m": ("m", "y"), "y": ("y",)}
Say = Callable[[str], None]


class Parts(NamedTuple):
    """What a kernel is made of: `modules` holds kernel/, `build` is what modules are built against."""

    image: Path
    modules: Path | None
    config: Path | None
    build: Path | None


def take(path: str, modules: str, say: Say) -> str:
    """Put a kernel into the cache, once, and return the name by which `fetch` has it.

    `debug`: the debug kernel, built first if need be.
    ConfigError for a path that is no kernel, lacks a part, or is built without what the lab needs.
    """
    given = debug.tree(say) if path == debug.NAME else expanded(path)
    if not given.exists():
        raise ConfigError(f"no kernel at {path}", f"name a {FORMS}, or a series")
    of = _inner(expanded(modules)) if modules else None
    name = _name(given, of)
    root = cache_root() / "kernels"
    with locked(root / ".lock", say):
        if not read_json(root / f"{name}.json"):
            with new_folder(root / name) as temp:
                known = _fill(temp, root / name, given, of, say) | {"series": name}
                write_json(temp / "kernel.json", known)
            write_json(root / f"{name}.json", {"release": name})
    return name


def _name(path: Path, modules: Path | None) -> str:
    """Names what lies there now: another build of the same tree has another name."""
    marks = [path.resolve(), *(p for p in (modules, modules and modules / "modules.dep") if p)]
    if path.is_dir():
        marks += [path / name for name in ("vmlinux", ".config", "Module.symvers")]
    else:
        marks += sorted(path.parent.glob("linux-*.deb")) if path.suffix == ".deb" else []
    state = hashlib.sha256()
    for mark in marks:
        stat = mark.stat() if mark.exists() else None
        state.update(f"{mark}\0{stat and (stat.st_size, stat.st_mtime_ns)}\0".encode())
    return f"own-{state.hexdigest()[:12]}"


def _fill(temp: Path, final: Path, path: Path, modules: Path | None, say: Say) -> dict[str, str]:
    """Make the folder of a kernel; what kernel.json says of it."""
    need_space(temp, 1 << 30, "the unpacked kernel")
    parts = _parts(temp, final, path, modules, say)
    data = parts.image.read_bytes()
    elf = data if data.startswith(b"\x7fELF") else extract(data)
    release = _release(elf, path)
    _check(parts, release, path, say)
    if parts.modules is None:
        raise ConfigError(f"no modules of kernel {release} at {path}", "--modules DIR: lib/modules/RELEASE")
    if parts.build is None:
        raise ConfigError(
            f"nothing to build modules for {release} against",
            "DIR/build, or linux-headers-*.deb beside the image",
        )
    say(f"preparing kernel {release} of {path}")
    (temp / "vmlinux").write_bytes(elf)
    shutil.copyfile(parts.config, temp / "config") if parts.config else (temp / "config").write_text("")
    _modules(temp / "root", parts.modules, release)
    _link(temp / "root/usr/src" / f"linux-headers-{release}", parts.build, temp, final)
    known = {"release": release, "version": final.name, "suite": "own"}
    given = {"vmlinux": of_file(temp / "vmlinux"), "modules": of_folder(temp / "root/lib/modules" / release)}
    return known | given


def _parts(temp: Path, final: Path, path: Path, modules: Path | None, say: Say) -> Parts:
    """Find image, modules, configuration and build tree."""
    if path.is_dir():
        return _tree(temp, path, modules, say)
    if path.suffix == ".deb":
        return _deb(temp, final, path, modules)
    with path.open("rb") as file:
        head = file.read(MAGIC + 4)
    if not head.startswith(b"\x7fELF") and head[MAGIC:] != b"HdrS":
        raise ConfigError(f"{path} is no kernel", f"name a {FORMS}, or a series")
    return Parts(path, *_next_to(path, modules))


def _inner(modules: Path) -> Path:
    """The folder that holds kernel/: DIR itself, or the one release of DIR/lib/modules."""
    if (modules / "kernel").is_dir():
        return modules
    found = _releases(modules)
    if len(found) != 1:
        raise ConfigError(
            f"--modules {modules}: found {len(found)} folders of modules", "name lib/modules/RELEASE"
        )
    return found[0]


def _releases(root: Path) -> list[Path]:
    """The folders of modules below a root, one for each kernel."""
    return sorted(p.parent for p in root.glob("lib/modules/*/kernel"))


def _next_to(path: Path, modules: Path | None) -> tuple[Path | None, Path | None, Path | None]:
    """Modules, and the configuration and build tree that belong to an image or to them."""
    release = modules.name if modules else ""
    root = modules.parents[2] if modules and len(modules.parents) > 2 else path.parent
    builds = [modules / "build"] if modules else []
    builds += [root / "usr/src" / f"linux-headers-{release}", Path(f"/usr/src/linux-headers-{release}")]
    build = next((b for b in builds if release and (b / "Makefile").is_file()), None)
    configs = [path.parent / "config", path.parent / f"config-{release}", root / f"boot/config-{release}"]
    configs += [modules / "config"] if modules else []
    configs += [build / ".config"] if build else []
    return modules, next((c for c in configs if c.is_file()), None), build


def _tree(temp: Path, path: Path, modules: Path | None, say: Say) -> Parts:
    """A built kernel tree: its modules are installed into the cache."""
    image = next((p for p in (path / "arch/x86/boot/bzImage", path / "vmlinux") if p.is_file()), None)
    if image is None or not (path / ".config").is_file():
        raise ConfigError(f"{path} is no built kernel tree", "run make there, or name the image")
    if modules is not None:
        return Parts(image, modules, path / ".config", path.resolve())
    say(f"installing the modules of {path} into the cache")
    argv = [
        "make",
        "-s",
        "-C",
        str(path),
        "modules_install",
        f"INSTALL_MOD_PATH={temp / 'tree'}",
        "INSTALL_MOD_STRIP=1",
    ]
    rc, _, err, _ = run(argv, timeout=1800)
    if rc != 0:
        raise ConfigError(
            f"{path}: make modules_install failed: {err.decode('utf-8', 'replace').strip()[-300:]}",
            "run make there, or name modules with --modules DIR",
        )
    return Parts(image, next(iter(_releases(temp / "tree")), None), path / ".config", path.resolve())


def _deb(temp: Path, final: Path, path: Path, modules: Path | None) -> Parts:
    """A linux-image package, with the header packages of its folder."""
    match = re.match(r"linux-image-(?:unsigned-)?([^_]+)_", path.name)
    if not match:
        raise ConfigError(f"{path.name} is no kernel package", "its name begins with linux-image-RELEASE_")
    series, flavour = ".".join(match[1].split(".")[:2]), match[1].removesuffix("-amd64")
    others = [
        p
        for p in sorted(path.parent.glob("linux-*.deb"))
        if p.name.startswith((f"linux-headers-{match[1]}_", f"linux-kbuild-{series}"))
        or p.name.startswith(f"linux-headers-{flavour}-common_")
    ]
    into = temp / "deb"
    for package in (path, *others):
        rc, _, err, _ = run(["dpkg-deb", "-x", str(package), str(into)], timeout=600)
        if rc != 0:
            raise ConfigError(f"{package}: {err.decode('utf-8', 'replace').strip()[-300:]}")
    if not (into / "lib").exists():
        (into / "lib").symlink_to("usr/lib")
    relocate(into, final / "deb")
    found = modules or next(iter(_releases(into)), None)
    if found is None:
        raise ConfigError(f"{path.name} holds no modules", "name them with --modules DIR")
    places = (into / f"boot/vmlinuz-{match[1]}", found / "vmlinuz")
    image = next((p for p in places if p.is_file()), None)
    if image is None:
        raise ConfigError(f"{path.name} holds no vmlinuz-{match[1]}")
    return Parts(image, *_next_to(image, found))


def _release(elf: bytes, path: Path) -> str:
    """Return the release, as `uname -r` shows it."""
    found = BANNER.search(elf)
    if not found:
        raise ConfigError(f"{path}: the image names no Linux version")
    return found[1].decode("ascii", "replace")


def lacking(config: str) -> list[str]:
    """Each option that the lab needs and a configuration does not set: `CONFIG_TLS=m (kernel TLS)`."""
    has = dict(re.findall(r"^(CONFIG_\w+)=(\w+)$", config, re.M))
    return [f"{option}={least} ({why})" for option, least, why in NEEDED if has.get(option) not in LOW[least]]


def _check(parts: Parts, release: str, path: Path, say: Say) -> None:
    """ConfigError with every option that is missing; a word where there is no configuration to read."""
    if parts.config is None:
        say(f"no configuration of kernel {release} found: its options were not checked")
        return
    if missing := lacking(parts.config.read_text(errors="replace")):
        raise ConfigError(
            f"kernel {release} of {path} lacks {', '.join(missing)}", "set them and build it again"
        )


def _modules(root: Path, modules: Path, release: str) -> None:
    """Copy the modules, and let depmod list them again."""
    if modules.name != release:
        raise ConfigError(f"{modules} has modules of {modules.name}, the image is {release}")
    target = root / "lib/modules" / release
    if modules.is_relative_to(root.parent):
        target.parent.mkdir(parents=True)
        modules.rename(target)
    else:
        shutil.copytree(modules, target, symlinks=True, ignore=shutil.ignore_patterns("build", "source"))
    for name in ("build", "source"):
        (target / name).unlink(missing_ok=True)
    rc, _, err, _ = run(["depmod", "-b", str(root), release], timeout=600)
    if rc != 0:
        raise RigError(f"depmod failed: {err.decode('utf-8', 'replace').strip()[-300:]}")


def _link(link: Path, build: Path, temp: Path, final: Path) -> None:
    """Name the build tree where a kernel of the cache has it; one below `temp` moves with it to `final`."""
    link.parent.mkdir(parents=True, exist_ok=True)
    real = build.resolve()
    link.symlink_to(final / real.relative_to(temp.resolve()) if real.is_relative_to(temp.resolve()) else real)


def is_path(text: str) -> bool:
    """Say whether somebody named a kernel by its place, or the debug kernel."""
    return text == debug.NAME or "/" in text or text.startswith((".", "~")) or text.endswith(".deb")
