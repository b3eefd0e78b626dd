"""A broken rig says nothing of the card: neither a certificate nor a failure comes of it."""

from __future__ import annotations

import pytest

from tests.lib.rig import Labs
from tests.lib.suite import Suite

# what a fault in the middle of a test looks like from outside: a line of the kernel on the console
SAY = "for i in $(seq 600); do echo '<2>BUG: said by a test' > /dev/kmsg; sleep 0.2; done"
SENDS = "test_20_wire.py::test_sends_to_stunnel[tx-12_aes_gcm_128-v4]"


@pytest.mark.parametrize("noisy", [False, True], ids=["quiet", "fault"])
def test_kernel_fault_voids_the_run(suite: Suite, labs: Labs, noisy: bool) -> None:
    """Without this an oops during a run could end in a verdict on the card."""
    rig = labs.get("nicsim")
    speaker = rig.lab.root.start(["sh", "-c", SAY if noisy else ":"])
    try:
        found = suite.run(SENDS)
    finally:
        speaker.kill(9)
        speaker.wait(120)
        rig.log_read = rig.lab.console_mark()  # what was said here is no fault of the next test's rig
    assert found.verdict.word == ("void" if noisy else "incomplete"), found.output
    assert ("BUG: said by a test" in found.verdict.headline) == noisy, found.verdict.headline
