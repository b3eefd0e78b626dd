"""May the lab use KVM here? Only a boot of the very kernel can tell, and it must never hang."""

from __future__ import annotations

import os
from collections.abc import Callable

from offload.vm.kernels import Kernel
from offload.vm.qemu import Qemu

Say = Callable[[str], None]


def accelerator(kernel: Kernel, qemu: Qemu, say: Say = print) -> tuple[str, str]:
    """("kvm" or "tcg", why)."""
    return "tcg", "LAB_ACCEL=tcg" if os.environ.get("LAB_ACCEL") == "tcg" else "not probed"
