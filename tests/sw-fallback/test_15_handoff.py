"""Without a NIC that offloads, ktls-handoff keeps its word on the lab's kernel: its own checks, run there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from offload.host.base import Side

ROOT = Path(__file__).parents[2]


@pytest.mark.requires("tls", "ktls-handoff", "stunnel", "openssl")
@pytest.mark.turns("checks")
@pytest.mark.parametrize("checks", ["real", "real_resident"])
def test_handoff_keeps_its_word(dut: Side, checks: str) -> None:
    """Without a NIC that offloads every check of ktls-handoff passes: ciphers, causes, the safe close."""
    pytest_of_native = [sys.executable, "-B", "-m", "pytest", "-c", str(ROOT / "native/pytest.ini")]
    path = str(ROOT / f"native/ktls-handoff/tests/{checks}.py")
    argv = [*pytest_of_native, "--program", str(ROOT / "build/ktls-handoff"), path]
    done = dut.host.run(argv, check=False, timeout=1800)
    said = done.text + done.stderr.decode("utf-8", "replace")
    reported = re.search(r"^(\d+) passed in ", said, re.M)
    assert done.rc == 0 and reported and int(reported.group(1)) >= 5, said[-2000:]
