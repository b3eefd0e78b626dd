"""The kernel's search for memory that nothing points to any more, where it is built with DEBUG_KMEMLEAK."""

from __future__ import annotations

import time
from typing import Any

from offload.host.base import Host

FILE = "/sys/kernel/debug/kmemleak"
YOUNG = 6.0  # seconds: younger objects are not reported (MSECS_MIN_AGE, mm/kmemleak.c)
SCAN = 600.0  # seconds: it looks at all memory, and KASAN watches it


def leaks(host: Host, sleep: Any = time.sleep) -> str:
    """What kmemleak lists, as dmesg would have it; empty without it.

    It scans twice: an object counts once its content was the same in two scans.
    """
    if host.run(["test", "-e", FILE], check=False).rc != 0:
        return ""
    for _ in range(2):
        sleep(YOUNG)
        host.run(["tee", FILE], input=b"scan\n", timeout=SCAN)
    return host.run(["cat", FILE]).text
