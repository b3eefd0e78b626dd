"""Runs a program of the operating system on a host, and says which package it is in if it is not there."""

from __future__ import annotations

from collections.abc import Sequence

from offload.errors import NoPermission, RigError
from offload.host.base import Completed, Host

PACKAGES = {"ip": "iproute2", "modprobe": "kmod", "rmmod": "kmod"}


def tool(host: Host, argv: Sequence[str], timeout: float = 60.0) -> Completed:
    """Run to the end, whatever the exit code. RigError naming the package if the program is missing.

    NoPermission if the kernel or the file system said so.
    """
    done = host.run(argv, check=False, timeout=timeout)
    if done.rc == 127 or (done.rc == 255 and b"exec of" in done.stderr):  # 255: through `ip netns exec`
        package = PACKAGES.get(argv[0], argv[0])
        raise RigError(f"program {argv[0]} is not installed ({done.where})", f"apt install {package}")
    if done.rc != 0 and (b"not permitted" in done.stderr or b"Permission denied" in done.stderr):
        raise NoPermission(f"not permitted: {' '.join(argv)}", "run it as root")
    return done
