"""kmemleak is asked where it is there, and twice."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from tests.lib.life.kmemleak import FILE, YOUNG, leaks


class Kernel:
    """A host whose kernel has kmemleak, or has not."""

    name = "dut"

    def __init__(self, there: bool) -> None:
        self.there, self.asked = there, [""]

    def run(self, argv: Sequence[str], **given: Any) -> Any:
        """Answer as the files do."""
        self.asked.append(f"{argv[0]} {given.get('input', b'').decode()}".strip())
        return SimpleNamespace(rc=0 if self.there else 1, text="unreferenced object 0x1 (size 8):\n")


def test_it_scans_twice_and_waits_until_objects_are_old_enough() -> None:
    """An object counts from its second scan on, and not in its first seconds."""
    kernel, slept = Kernel(True), list[float]()
    host: Any = kernel
    assert leaks(host, slept.append) == "unreferenced object 0x1 (size 8):\n"
    assert kernel.asked[1:] == ["test", "tee scan", "tee scan", "cat"] and slept == [YOUNG, YOUNG]
    assert FILE.startswith("/sys/kernel/debug/")


def test_a_stock_kernel_is_left_alone() -> None:
    """Without the file nothing is waited for."""
    kernel, slept = Kernel(False), list[float]()
    host: Any = kernel
    assert leaks(host, slept.append) == "" and slept == [] and kernel.asked[1:] == ["test"]
