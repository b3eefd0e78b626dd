"""Without a NIC that offloads, ktls-handoff keeps its word on the lab's kernel: its own checks, run there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from offload.host.base import Side

ROOT = Path(__file__).parents[2]


@pytest.mark.requires("tls", "ktls-handoff", "stunnel", "openssl")
def test_handoff_keeps_its_word(dut: Side) -> None:
    """Without a NIC that offloads every check of ktls-handoff passes: ciphers, causes, the safe close."""
    checks, program = ROOT / "native/ktls-handoff/tests/real.py", ROOT / "build/ktls-handoff"
    done = dut.host.run(["python3", "-B", str(checks), str(program)], check=False, timeout=300)
    said = done.text + done.stderr.decode("utf-8", "replace")
    told = re.search(r"^(\d+) passed, (\d+) failed", said, re.M)
    assert done.rc == 0 and told, said[-2000:]
    assert int(told.group(1)) >= 10 and told.group(2) == "0", said[-2000:]
