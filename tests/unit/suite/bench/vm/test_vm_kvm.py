"""The KVM probe ends in time whatever QEMU does, and believes only a kernel that booted."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from offload.debian.kernels import Kernel
from offload.errors import ConfigError
from offload.suite.bench.vm import kvm
from offload.suite.bench.vm.qemu import Qemu


def fake(folder: Path, body: str) -> Qemu:
    """A QEMU that is a shell script."""
    program = folder / "qemu"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    return Qemu(str(program), "0.0.0")


def kernel(folder: Path) -> Kernel:
    """A kernel that is never booted."""
    return Kernel("6.1", "6.1.0-1-amd64", "6.1.1-1", *[folder / "none"] * 4)


@pytest.mark.parametrize(
    "body, why",
    [
        ("echo LABPROBE-OK", ""),
        ("true", "printed nothing"),
        ("echo LABPROBE-OK; exit 1", "exit 1"),
        ("echo 'failed to set MSR' >&2; kill -ABRT $$", "failed to set MSR"),
        ("sleep 60 & wait", "within 0.5 s"),
    ],
)
def test_only_marker_and_clean_end_count(tmp_path: Path, body: str, why: str) -> None:
    """An abort, a hang and a silent end all mean that KVM is no use here."""
    said = kvm.probe(tmp_path / "vmlinux", fake(tmp_path, body), wall=0.5)
    assert (why in said) if why else said == ""


def test_spinning_qemu_is_cut_by_processor_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A QEMU that burns the processor ends by its limit, long before the wall."""
    monkeypatch.setattr(kvm, "CPU_LIMIT", 1)
    began = time.monotonic()
    said = kvm.probe(tmp_path / "vmlinux", fake(tmp_path, "while :; do :; done"), wall=600)
    assert "exit -" in said and time.monotonic() - began < 300


def test_answer_is_kept_for_this_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The question is asked once; where one kernel fails, the next is not tried."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("LAB_ACCEL", raising=False)
    monkeypatch.setattr(kvm, "DEVICE", Path("/dev/null"))
    asked: list[Path] = []
    monkeypatch.setattr(kvm, "probe", lambda vmlinux, qemu: asked.append(vmlinux) or "hangs")
    for _ in range(2):
        assert kvm.accelerator(kernel(tmp_path), Qemu("q", "1.0.0"), lambda text: None) == ("tcg", "hangs")
    assert len(asked) == 1


def test_no_device_is_tcg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without /dev/kvm gets TCG at once."""
    monkeypatch.delenv("LAB_ACCEL", raising=False)
    monkeypatch.setattr(kvm, "DEVICE", tmp_path / "kvm")
    assert kvm.accelerator(kernel(tmp_path), Qemu("q", "1"))[0] == "tcg"


def test_wish_is_obeyed_or_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """LAB_ACCEL decides without asking; a word that it does not know is a usage error."""
    for wish in ("tcg", "kvm"):
        monkeypatch.setenv("LAB_ACCEL", wish)
        assert kvm.accelerator(kernel(tmp_path), Qemu("q", "1")) == (wish, f"LAB_ACCEL={wish}")
    monkeypatch.setenv("LAB_ACCEL", "xen")
    with pytest.raises(ConfigError, match="xen"):
        kvm.accelerator(kernel(tmp_path), Qemu("q", "1"))
