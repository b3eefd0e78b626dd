"""A kernel of one's own: taken into the cache from its image, its package or its tree, or refused by name."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

from offload.cli.main import main
from offload.debian import kernels
from offload.debian.own import NAME, NEEDED, is_path, lacking, take
from offload.debian.record import Checked, check
from offload.errors import ConfigError

RELEASE = "9.8.7-own+"
ELF = b"\x7fELF" + bytes(60) + b"Linux version 9.8.7-own+ (me@here) (gcc 12) #1 SMP\n" + bytes(99)
CONFIG = "".join(f"{option}={least}\n" for option, least, _ in NEEDED)
TREE = """\
modules_install:
\tmkdir -p $(INSTALL_MOD_PATH)/lib/modules/9.8.7-own+/kernel
\techo $(INSTALL_MOD_STRIP) > $(INSTALL_MOD_PATH)/lib/modules/9.8.7-own+/kernel/strip
\tln -s $(CURDIR) $(INSTALL_MOD_PATH)/lib/modules/9.8.7-own+/build
"""


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of this test's own, on any processor."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(kernels, "amd64_only", lambda: None)
    return tmp_path / "cache/ktls-offload/kernels"


def bzimage(elf: bytes = ELF) -> bytes:
    """A kernel image around an ELF file, packed by gzip."""
    packer = zlib.compressobj(wbits=31)
    packed = packer.compress(elf) + packer.flush()
    head = bytearray(1024)
    head[0x1F1], head[0x202:0x206] = 1, b"HdrS"
    head[0x248:0x250] = struct.pack("<II", 0, len(packed))
    return bytes(head) + packed


def modules(root: Path, *, build: bool = True, config: str = CONFIG) -> Path:
    """lib/modules/RELEASE below a folder, with what modules are built against."""
    found = root / "lib/modules" / RELEASE
    (found / "kernel").mkdir(parents=True)
    (found / "kernel/a").write_text("a module")
    if build:
        (root / "tree").mkdir()
        (root / "tree/Makefile").write_text("")
        (root / "tree/.config").write_text(config)
        (found / "build").symlink_to(root / "tree")
    return found


def tree(path: Path, config: str = CONFIG) -> Path:
    """A built kernel tree whose make installs one module."""
    (path / "arch/x86/boot").mkdir(parents=True)
    (path / "arch/x86/boot/bzImage").write_bytes(bzimage())
    (path / "vmlinux").write_bytes(b"not stripped")
    (path / ".config").write_text(config)
    (path / "Makefile").write_text(TREE)
    return path


@pytest.mark.parametrize("data", [ELF, bzimage()])
def test_an_image_and_its_modules(data: bytes, tmp_path: Path, cache: Path) -> None:
    """An image with --modules DIR is a kernel of the cache: boots, builds, and is checked like Debian's."""
    (tmp_path / "image").write_bytes(data)
    name = take(str(tmp_path / "image"), str(modules(tmp_path)), print)
    assert NAME.fullmatch(name)
    kernel = kernels.fetch(name)
    assert (kernel.series, kernel.release, kernel.version) == (name, RELEASE, name)
    assert kernel.vmlinux.read_bytes() == ELF and kernel.config.read_text() == CONFIG
    assert (kernel.modules / "kernel/a").read_text() == "a module" and (
        kernel.modules / "modules.dep"
    ).exists()
    assert kernel.build.resolve() == (tmp_path / "tree").resolve()
    assert check(kernel).checked == Checked.FETCHED


def test_the_same_files_are_taken_once(tmp_path: Path, cache: Path) -> None:
    """A second call changes nothing; another build of the image has another name, and both stay."""
    image, of = tmp_path / "image", str(modules(tmp_path))
    image.write_bytes(ELF)
    names = [take(str(image), of, print) for _ in range(2)]
    image.write_bytes(ELF + b"more")
    names.append(take(str(image), of, print))
    assert names[0] == names[1] != names[2]
    assert sorted(p.stem for p in cache.glob("own-*.json")) == sorted(set(names))


def test_a_built_tree(tmp_path: Path) -> None:
    """A tree alone is enough: its modules are installed, stripped, and it is what nicsim is built against."""
    kernel = kernels.fetch(str(tree(tmp_path / "linux")))
    assert kernel.release == RELEASE and kernel.vmlinux.read_bytes() == ELF
    assert (kernel.modules / "kernel/strip").read_text() == "1\n" and not (
        kernel.modules / "build"
    ).is_symlink()
    assert kernel.build.resolve() == (tmp_path / "linux").resolve()


def test_who_hands_tls13_to_cards(tmp_path: Path) -> None:
    """The headers of a cached kernel say it; one without the series, or not in the cache, does not."""
    linux = tree(tmp_path / "linux")
    (header := linux / "include/uapi/linux/snmp.h").parent.mkdir(parents=True)
    header.write_text("LINUX_MIB_TLSTXREKEYOK,\n")
    name = take(str(linux), "", print)
    assert not kernels.hands_over_tls13(name) and not kernels.hands_over_tls13("7.2")
    header.write_text("LINUX_MIB_TLSTXREKEYOK,\nLINUX_MIB_TLSCURRTXREKEY,\n")
    assert kernels.hands_over_tls13(name)


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="no dpkg-deb")
def test_a_package_with_its_headers(tmp_path: Path) -> None:
    """A linux-image package brings its modules; the headers package beside it is found."""
    headers = f"usr/src/linux-headers-{RELEASE}"
    include = b"include /usr/src/linux-headers-x/Makefile\n"
    package(tmp_path, f"linux-headers-{RELEASE}", {f"{headers}/Makefile": include})
    package(tmp_path, f"linux-image-{RELEASE}", IMAGE | {f"lib/modules/{RELEASE}/kernel/a": b"a module"})
    kernel = kernels.fetch(str(tmp_path / f"linux-image-{RELEASE}_1_amd64.deb"))
    assert kernel.release == RELEASE and (kernel.modules / "kernel/a").exists()
    makefile = (kernel.build / "Makefile").read_text()
    assert makefile == f"include {kernel.vmlinux.parent}/deb/usr/src/linux-headers-x/Makefile\n"


def package(place: Path, name: str, files: dict[str, bytes]) -> Path:
    root = place / "unpacked" / name
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    (root / "DEBIAN").mkdir()
    fields = {"package": name, "version": "1", "architecture": "amd64", "maintainer": "a", "description": "a"}
    (root / "DEBIAN/control").write_text("".join(f"{key}: {value}\n" for key, value in fields.items()))
    out = place / f"{name}_1_amd64.deb"
    argv = ["dpkg-deb", "--root-owner-group", "-b", root, out]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return out


IMAGE = {f"boot/vmlinuz-{RELEASE}": bzimage(), f"boot/config-{RELEASE}": CONFIG.encode()}


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="no dpkg-deb")
@pytest.mark.parametrize("lib", ["lib", "usr/lib"])
def test_debians_headers_are_three_packages(lib: str, tmp_path: Path) -> None:
    """Headers, those common to all flavours, and kbuild; modules are in lib or in usr/lib."""
    modules_too = IMAGE | {f"{lib}/modules/{RELEASE}/kernel/a": b"a module"}
    image = package(tmp_path, f"linux-image-{RELEASE}", modules_too)
    package(tmp_path, f"linux-headers-{RELEASE}", {f"usr/src/linux-headers-{RELEASE}/Makefile": b""})
    package(tmp_path, f"linux-headers-{RELEASE}-common", {"usr/src/common": b""})
    package(tmp_path, "linux-kbuild-9.8.7", {"usr/lib/kbuild": b""})
    package(tmp_path, "linux-libc-dev", {"usr/include/other": b""})
    kernel = kernels.fetch(str(image))
    root = kernel.vmlinux.parent / "deb"
    assert (kernel.modules / "kernel/a").read_bytes() == b"a module"
    assert (root / "usr/src/common").exists() and (root / "usr/lib/kbuild").exists()
    assert not (root / "usr/include/other").exists()
    (tmp_path / "linux-kbuild-9.8.7_1_amd64.deb").touch()
    assert take(str(image), "", print) != kernel.version, "built again, so it is another kernel"


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="no dpkg-deb")
def test_a_package_without_modules(tmp_path: Path) -> None:
    """It is named, with the option that brings them; with that option it is a kernel."""
    image = package(tmp_path, f"linux-image-{RELEASE}", IMAGE)
    with pytest.raises(
        ConfigError, match=r"_1_amd64\.deb holds no modules(.|\n)*name them with --modules DIR"
    ):
        kernels.fetch(str(image))
    kernel = kernels.fetch(kernels.own.take(str(image), str(modules(tmp_path)), print))
    assert (kernel.modules / "kernel/a").read_text() == "a module"


def test_a_tree_that_has_no_modules(tmp_path: Path) -> None:
    """A kernel built without modules lacks the option, and nobody typed --modules."""
    bad = tree(tmp_path / "linux", CONFIG.replace("CONFIG_MODULES=y", ""))
    (bad / "Makefile").write_text("modules_install:\n")
    with pytest.raises(ConfigError, match=r"lacks CONFIG_MODULES=y \(the simulated card is a module\)"):
        kernels.fetch(str(bad))


def test_a_build_tree_inside_the_modules(tmp_path: Path) -> None:
    """It is linked where it lies, not copied into the cache."""
    (tmp_path / "image").write_bytes(ELF)
    found = modules(tmp_path, build=False)
    (found / "build").mkdir()
    for name in ("Makefile", ".config"):
        (found / "build" / name).write_text(CONFIG)
    kernel = kernels.fetch(take(str(tmp_path / "image"), str(found), print))
    assert kernel.build.resolve() == found / "build" and not (kernel.modules / "build").exists()


def test_each_part_gives_the_name(tmp_path: Path) -> None:
    """Another build of the same size, or with the same time, has another name; the same one is taken once."""
    image, of, said = tmp_path / "image", modules(tmp_path), list[str]()
    image.write_bytes(ELF)
    (of / "modules.dep").write_text("")
    names = [take(str(image), str(of), said.append) for _ in range(2)]
    assert len(said) == 1 and "preparing" in said[0]
    stamp = image.stat().st_mtime_ns
    os.utime(image, ns=(stamp, stamp + 1))
    names.append(take(str(image), str(of), said.append))
    image.write_bytes(ELF + b"more")
    os.utime(image, ns=(stamp, stamp))
    names.append(take(str(image), str(of), said.append))
    (of / "modules.dep").write_text("kernel/a:\n")
    names.append(take(str(image), str(of), said.append))
    assert len(set(names)) == len(names) - 1


@pytest.mark.parametrize("part", ["vmlinux", ".config", "Module.symvers"])
def test_each_part_of_a_tree_gives_the_name(part: str, tmp_path: Path) -> None:
    """A tree that was built again is another kernel."""
    linux = tree(tmp_path / "linux")
    before = take(str(linux), "", print)
    with (linux / part).open("a") as file:
        file.write("# again\n")
    assert take(str(linux), "", print) != before


@pytest.mark.parametrize(
    ("text", "missing"), [("CONFIG_TLS=y", False), ("CONFIG_TLS=m", False), ("# CONFIG_TLS=m", True)]
)
def test_built_in_is_enough_and_a_comment_is_not(text: str, missing: bool) -> None:
    """Many build everything into their kernel; a line that is commented out sets nothing."""
    found = lacking(CONFIG.replace("CONFIG_TLS=m\n", f"{text}\n"))
    assert found == (["CONFIG_TLS=m (kernel TLS)"] if missing else [])


@pytest.mark.parametrize("option", [option for option, _, _ in NEEDED])
def test_each_missing_option_is_named(option: str, tmp_path: Path) -> None:
    """A kernel that lacks an option is refused with its name and what it is for, before anything boots."""
    less = "\n".join(line for line in CONFIG.splitlines() if not line.startswith(f"{option}="))
    assert [word.partition("=")[0] for word in lacking(less)] == [option]
    assert [word.partition("=")[0] for word in lacking(f"{less}\n{option}=m")] == (
        [] if dict((o, least) for o, least, _ in NEEDED)[option] == "m" else [option]
    )


def test_all_missing_options_at_once(tmp_path: Path, cache: Path) -> None:
    """The refusal lists every option, and leaves nothing in the cache."""
    bad = tree(tmp_path / "linux", CONFIG.replace("CONFIG_TLS_DEVICE=y", "").replace("CONFIG_PVH=y", ""))
    with pytest.raises(ConfigError, match=r"9\.8\.7-own\+ of .* lacks CONFIG_TLS_DEVICE=y \(.*CONFIG_PVH=y"):
        kernels.fetch(str(bad))
    assert not list(cache.glob("own-*")) and not list(cache.glob(".new-*"))


def test_debians_kernels_have_what_is_needed() -> None:
    """The list asks for nothing that a stock kernel lacks: 6.1.192's configuration, as far as it matters."""
    built = (
        "TLS_DEVICE MODULES BLK_DEV_INITRD DEVTMPFS TMPFS PVH SERIAL_8250_CONSOLE NET_NS DEBUG_FS IPV6 PACKET"
    )
    loaded = "TLS VIRTIO_PCI VIRTIO_CONSOLE NET_9P_VIRTIO 9P_FS OVERLAY_FS BRIDGE NET_SCH_NETEM INET_TCP_DIAG"
    rows = [(name, "y") for name in [*built.split(), "PACKET"]]
    rows += [(name, "m") for name in [*loaded.split(), "CRYPTO_GCM"]]
    assert not lacking("".join(f"CONFIG_{name}={value}\n" for name, value in rows))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda at: at / "gone", "no kernel at"),
        (lambda at: at, "is no built kernel tree"),
        (lambda at: _file(at / "text", b"hello"), "text is no kernel"),
        (lambda at: _file(at / "long", b"text" * 999), "long is no kernel"),
        (lambda at: _file(at / "a.deb", b""), "a.deb is no kernel package"),
        (lambda at: _file(at / f"linux-image-{RELEASE}_1_amd64.deb", b"no archive"), "linux-image"),
        (lambda at: _file(at / "image", ELF), "no modules of kernel 9.8.7-own+"),
        (lambda at: _file(at / "image", b"\x7fELF" + bytes(99)), "names no Linux version"),
    ],
)
def test_what_is_no_kernel(make: object, words: str, tmp_path: Path, cache: Path) -> None:
    """Each wrong path is a sentence for a person."""
    with pytest.raises(ConfigError) as said:
        kernels.fetch(str(make(tmp_path)))  # type: ignore[operator]
    assert words in str(said.value)
    assert not list(cache.glob("own-*"))


def _file(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_modules_of_another_kernel(tmp_path: Path) -> None:
    """Modules of another release, of none, or without a build tree are refused."""
    (tmp_path / "image").write_bytes(ELF)
    other = tmp_path / "lib/modules/1.2.3"
    (other / "kernel").mkdir(parents=True)
    image = str(tmp_path / "image")
    with pytest.raises(ConfigError, match="nothing to build modules for"):
        take(image, str(other), print)
    (other / "build").mkdir()
    (other / "build/Makefile").write_text("")
    with pytest.raises(ConfigError, match=r"has modules of 1\.2\.3, the image is 9\.8\.7-own\+"):
        take(image, str(other), print)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="found 0 folders of modules"):
        take(image, str(tmp_path / "empty"), print)
    two = modules(tmp_path / "b").parents[2]
    name = take(image, str(two), print)
    assert name == take(image, str(two / "lib/modules" / RELEASE), print), "DIR may be where lib/modules is"
    (two / "lib/modules/1.2.3/kernel").mkdir(parents=True)
    with pytest.raises(ConfigError, match="found 2 folders of modules"):
        take(image, str(two), print)


def test_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """A path that is none is no series any more; --modules needs a path; a name that is gone says so."""
    for argv, words in (
        (["certify", "--kernel", "./gone"], "no kernel at ./gone"),
        (["certify", "--kernel", "6.1", "--modules", "x"], "--modules belongs to --kernel PATH"),
        (["certify", "--modules", "x"], "--modules needs --kernel"),
        (["certify", "--kernel", "6.3"], "or name a path"),
        (["lab", "up", "--kernel", "own-0123456789ab"], "no kernel own-0123456789ab in the cache"),
        (["lab", "up", "--kernel", "6.1", "--modules", "x"], "--modules belongs to --kernel PATH"),
        (["measure", "--cost", "--kernel", "/nowhere/bzImage"], "no kernel at /nowhere/bzImage"),
    ):
        assert main(argv) == 2, argv
        assert words in capsys.readouterr().err, argv
    assert not is_path("6.12") and all(map(is_path, ("../linux", "..", "~", "a.deb")))
