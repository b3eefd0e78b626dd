"""The lab's first file system and its kernel are what the formats say."""

from __future__ import annotations

import lzma
import struct
import subprocess
from pathlib import Path

import pytest

from offload.debian import vmlinux
from offload.errors import RigError
from offload.suite.bench.vm import initramfs


def unpack(data: bytes) -> dict[str, tuple[int, bytes]]:
    """Name: (mode, content) of a cpio archive, read by the format's description."""
    found, at = {}, 0
    while True:
        assert data[at : at + 6] == b"070701"
        fields = [int(data[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        name = data[at + 110 : at + 110 + fields[11] - 1].decode()
        start = (at + 110 + fields[11] + 3) // 4 * 4
        if name == "TRAILER!!!":
            return found
        assert name not in found
        found[name] = (fields[1], data[start : start + fields[6]])
        at = (start + fields[6] + 3) // 4 * 4


def test_cpio_roundtrip() -> None:
    """Files come out of the archive as they went in, below folders made once."""
    cpio = initramfs.Cpio()
    sizes = {f"a/b/{n}": bytes(range(n)) for n in range(9)}
    for name, data in sizes.items():
        cpio.file(name, data, 0o755)
    cpio.console()
    found = unpack(cpio.done())
    assert {n: d for n, (mode, d) in found.items() if mode == 0o100755} == sizes
    assert [n for n, (mode, _) in found.items() if mode == 0o040755] == ["a", "a/b", "dev"]
    assert found["dev/console"][0] == 0o020600


def test_busybox_reads_our_cpio() -> None:
    """Another program agrees on the archive."""
    cpio = initramfs.Cpio()
    cpio.file("x/y", b"content")
    listed = subprocess.run(["busybox", "cpio", "-t"], input=cpio.done(), capture_output=True, check=True)
    assert listed.stdout.split() == [b"x", b"x/y"]


def modules(folder: Path) -> Path:
    """A modules folder in which a needs b, b needs c, d is built in."""
    (folder / "modules.dep").write_text("k/a-x.ko.xz: k/b.ko k/c.ko\nk/b.ko: k/c.ko\nk/c.ko:\n")
    (folder / "modules.builtin").write_text("k/d.ko\n")
    return folder


def test_modules_come_after_what_they_need(tmp_path: Path) -> None:
    """Each module is loaded once, after those it needs; built-in ones are not."""
    order = initramfs.module_order(modules(tmp_path), ["d", "a_x", "b"])
    assert [p.name for p in order] == ["c.ko", "b.ko", "a-x.ko.xz"]


def test_missing_module_is_named(tmp_path: Path) -> None:
    """A kernel without a module that the lab needs is told by name."""
    with pytest.raises(RigError, match="has no module virtio_warp"):
        initramfs.module_order(modules(tmp_path), ["virtio_warp"])


def test_a_module_that_newer_kernels_have_merged_is_left_out(tmp_path: Path) -> None:
    """The list for cx6sim names ghash_generic, which 7.2 has no more; where it is, it is loaded."""
    folder = modules(tmp_path)
    assert [p.name for p in initramfs.module_order(folder, ["ghash_generic", "c"])] == ["c.ko"]
    with (folder / "modules.dep").open("a") as more:
        more.write("k/ghash-generic.ko: k/c.ko\n")
    order = initramfs.module_order(folder, ["ghash_generic"])
    assert [p.name for p in order] == ["c.ko", "ghash-generic.ko"]


def test_modules_are_unpacked(tmp_path: Path) -> None:
    """The guest's small insmod gets plain files."""
    (tmp_path / "m.ko.xz").write_bytes(lzma.compress(b"\x7fELF"))
    assert initramfs.unpacked(tmp_path / "m.ko.xz") == b"\x7fELF"


def test_folders_below_the_guests_own_are_bound() -> None:
    """A project below the temporary folder is still seen in the guest, outermost only."""
    one, other = initramfs.TMPFS[:2]
    paths = [Path(p) for p in (f"{one}/a", f"{one}/a/venv", "/srv/b", f"{one}x", f"{other}/user/1")]
    assert initramfs.below_tmpfs(paths) == sorted([f"{other}/user/1", f"{one}/a"])


def test_init_script_is_a_shell_script(tmp_path: Path) -> None:
    """Odd characters in paths do not break the guest's init."""
    odd = f"{initramfs.TMPFS[0]}/a b"
    text = initramfs.init_script(tmp_path / "it's; here", [Path(odd)], "/usr/bin/python3")
    checked = subprocess.run(["busybox", "sh", "-n"], input=text.encode(), capture_output=True)
    assert checked.returncode == 0, checked.stderr
    assert f"'{odd}'" in text


def bzimage(payload: bytes) -> bytes:
    """A bzImage of one setup sector that holds this payload."""
    image = bytearray(0x400)
    image[vmlinux.SETUP_SECTS] = 1
    image[vmlinux.MAGIC : vmlinux.MAGIC + 4] = b"HdrS"
    struct.pack_into("<II", image, vmlinux.PAYLOAD, 0, len(payload))
    return bytes(image) + payload


@pytest.mark.parametrize("level", ["xz", "zstd"])
def test_vmlinux_comes_out_of_a_bzimage(level: str) -> None:
    """The kernel inside is found, for both compressions that Debian uses."""
    elf = b"\x7fELF" + bytes(5000)
    if level == "xz":
        payload = lzma.compress(elf, check=lzma.CHECK_CRC32)
    else:
        payload = subprocess.run(["zstd", "-c"], input=elf, capture_output=True, check=True).stdout
    assert vmlinux.extract(bzimage(payload + struct.pack("<I", len(elf)))) == elf


@pytest.mark.parametrize(
    "image, words",
    [
        (b"", "no setup header"),
        (bytes(0x1000), "no setup header"),
        (bzimage(b"\xfd7zXZ\x00")[:-3], "cut short"),
        (bzimage(b"\xfd7zXZ\x00" + bytes(99)), "damaged"),
        (bzimage(lzma.compress(b"not ELF")), "no ELF"),
        (bzimage(b"\x02\x21\x4c\x18"), "unknown"),
    ],
)
def test_bad_kernel_image_is_one_line(image: bytes, words: str) -> None:
    """A damaged kernel image is an error that says which."""
    with pytest.raises(RigError, match=words):
        vmlinux.extract(image)
