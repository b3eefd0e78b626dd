"""A kernel of one's own: taken into the cache from its image, its package or its tree, or refused by name."""

from __future__ import annotations

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


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="no dpkg-deb")
def test_a_package_with_its_headers(tmp_path: Path) -> None:
    """A linux-image package brings its modules; the headers package beside it is found."""
    headers = f"usr/src/linux-headers-{RELEASE}"
    for name, files in (
        (
            "image",
            {
                f"boot/vmlinuz-{RELEASE}": bzimage(),
                f"boot/config-{RELEASE}": CONFIG.encode(),
                f"lib/modules/{RELEASE}/kernel/a": b"a module",
            },
        ),
        ("headers", {f"{headers}/Makefile": b"include /usr/src/linux-headers-x/Makefile\n"}),
    ):
        root = tmp_path / name
        for path, data in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
        (root / "DEBIAN").mkdir()
        fields = {"package": f"linux-{name}-{RELEASE}", "version": "1", "architecture": "amd64"}
        fields |= {"maintainer": "a", "description": "a"}
        (root / "DEBIAN/control").write_text("".join(f"{k}: {v}\n" for k, v in fields.items()))
        out = tmp_path / f"linux-{name}-{RELEASE}_1_amd64.deb"
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "-b", root, out], check=True, stdout=subprocess.DEVNULL
        )
    kernel = kernels.fetch(str(tmp_path / f"linux-image-{RELEASE}_1_amd64.deb"))
    assert kernel.release == RELEASE and (kernel.modules / "kernel/a").exists()
    makefile = (kernel.build / "Makefile").read_text()
    assert makefile == f"include {kernel.vmlinux.parent}/deb/usr/src/linux-headers-x/Makefile\n"


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
    assert take(image, str(modules(tmp_path / "b").parents[2]), print), "DIR may be where lib/modules is"


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
    assert not is_path("6.12") and is_path("../linux") and is_path("a.deb")
