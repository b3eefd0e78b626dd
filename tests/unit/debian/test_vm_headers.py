"""Kernel headers that were unpacked, not installed: their programs are found, and no file stays open."""

from __future__ import annotations

from pathlib import Path

from offload.debian.headers import programs


def test_compiled_programs_are_found_and_closed(tmp_path: Path) -> None:
    """programs() finds what is ELF and executable, and leaves no descriptor open."""
    scripts = tmp_path / "usr/lib/linux-kbuild-7.2/scripts"
    (scripts / "mod").mkdir(parents=True)
    for name, data, mode in (
        ("mod/modpost", b"\x7fELF and more", 0o755),
        ("objtool", b"\x7fELF", 0o755),
        ("kconfig.o", b"\x7fELF", 0o644),
        ("check.sh", b"#!/bin/sh\n", 0o755),
        ("empty", b"", 0o755),
    ):
        (scripts / name).write_bytes(data)
        (scripts / name).chmod(mode)
    (scripts / "link").symlink_to("objtool")
    before = sorted(Path("/proc/self/fd").iterdir())
    assert {p.name for p in programs(tmp_path)} == {"modpost", "objtool"}
    assert sorted(Path("/proc/self/fd").iterdir()) == before
