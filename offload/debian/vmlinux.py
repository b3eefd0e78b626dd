"""The ELF kernel inside a bzImage: booted directly (PVH), it saves the guest seconds of decompression."""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib
from collections.abc import Callable

from offload.cmd import run
from offload.errors import RigError

# Documentation/arch/x86/boot.rst: setup_sects, header magic, payload_offset, payload_length
SETUP_SECTS, MAGIC, PAYLOAD = 0x1F1, 0x202, 0x248


def _zstd(data: bytes) -> bytes:
    """The last four bytes of the payload are the unpacked size (scripts/Makefile.lib), not zstd data."""
    rc, out, err, _ = run(["zstd", "-dc"], input=data[:-4], timeout=120)
    if rc != 0:
        raise RigError(f"zstd cannot unpack the kernel: {err.decode('utf-8', 'replace').strip()[-200:]}")
    return out


UNPACK: dict[bytes, Callable[[bytes], bytes]] = {
    b"\xfd7zXZ\x00": lambda data: lzma.LZMADecompressor().decompress(data),
    b"\x28\xb5\x2f\xfd": _zstd,
    b"\x1f\x8b": lambda data: zlib.decompressobj(31).decompress(data),
    b"BZh": lambda data: bz2.BZ2Decompressor().decompress(data),
}


def payload(image: bytes) -> bytes:
    """Return the compressed kernel of a bzImage; RigError if this is not one."""
    if len(image) < 0x250 or image[MAGIC : MAGIC + 4] != b"HdrS":
        raise RigError("not a bzImage: no setup header")
    start = ((image[SETUP_SECTS] or 4) + 1) * 512
    offset, length = struct.unpack_from("<II", image, PAYLOAD)
    if start + offset + length > len(image):
        raise RigError("bzImage is cut short")
    return image[start + offset : start + offset + length]


def extract(image: bytes) -> bytes:
    """Return the ELF vmlinux of a bzImage; RigError if the compression is unknown or the data damaged."""
    data = payload(image)
    for magic, unpack in UNPACK.items():
        if data.startswith(magic):
            try:
                elf = unpack(data)
            except (lzma.LZMAError, zlib.error, OSError) as exc:
                raise RigError(f"kernel image is damaged: {exc}") from exc
            if not elf.startswith(b"\x7fELF"):
                raise RigError("kernel image holds no ELF file")
            return elf
    raise RigError(f"kernel compression is unknown: starts with {data[:6].hex()}")
