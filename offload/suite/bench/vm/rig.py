"""The versions of everything that a result depends on; the lab's programs are the host's own."""

from __future__ import annotations

import platform
import re

from offload.cmd import run
from offload.debian.kernels import Kernel

TOOLS = {
    "openssl": (["openssl", "version"], r"OpenSSL (\S+)"),
    "stunnel": (["stunnel4", "-version"], r"stunnel (\S+)"),
    "ethtool": (["ethtool", "--version"], r"version (\S+)"),
    "iproute2": (["ip", "-V"], r"iproute2-(\S+?),?\s"),
}


def versions(kernel: Kernel, qemu: str, accel: str, size: str) -> dict[str, str]:
    """Names and versions; `none` for a tool that is not installed. `size`: of the VM, in words."""
    found = {
        "kernel": kernel.release,
        "kernel-package": kernel.version,
        "qemu": qemu,
        "accelerator": accel,
        "vm": size,
        "host": f"{platform.release()} {platform.machine()}",
        "python": platform.python_version(),
    }
    for name, (argv, pattern) in TOOLS.items():
        _, out, err, _ = run(argv, timeout=20)
        match = re.search(pattern, (out + err).decode("utf-8", "replace"))
        found[name] = match[1] if match else "none"
    return found
