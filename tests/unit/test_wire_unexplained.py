"""Every capture of a test is held against what a sender may put on the wire, whatever the test asks of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lib.wire import Secret, Watch
from tests.lib.wiregen import any_case  # noqa: F401  (enters every kind)
from tests.lib.wiregen.damage import damaged
from tests.lib.wiregen.scene import Case


def watched(case: Case, folder: Path) -> Watch:
    """A watch whose capture is this one."""
    watch = Watch({}, None, folder)  # type: ignore[arg-type]
    (folder / "wire.pcapng").write_bytes(case.capture)
    watch._files = {"wire": folder / "wire.pcapng"}
    watch._secret = Secret(case.keylog)
    return watch


@pytest.mark.parametrize("name", ["stray_far_away", "stray_noise", "fragment_of_connection", "ccs_of_two"])
def test_one_frame_that_no_sender_sends_is_told(name: str, tmp_path: Path) -> None:
    """Without a NIC a stray frame is told without payload, as a card that leaks each 1,024th frame needs."""
    case, want = damaged(name, 0)
    (found,) = watched(case, tmp_path).unexplained()
    assert want.problem is not None and found.startswith(want.problem[0])


@pytest.mark.parametrize("name", ["keepalive_with_garbage", "late_and_legal", "segment_lost", "no_fin"])
def test_what_tests_do_to_a_wire_is_no_alarm(name: str, tmp_path: Path) -> None:
    """Without a NIC a keep-alive, resets, loss and an end that was not captured are none of that."""
    assert watched(damaged(name, 0)[0], tmp_path).unexplained() == []


def test_a_wire_without_keys_tells_nothing(tmp_path: Path) -> None:
    """Without a NIC a test that made no TLS connection has no keys, and nothing to explain."""
    case, _ = damaged("stray_noise", 0)
    watch = watched(case, tmp_path)
    watch._secret = Secret(b"\n")
    assert watch.unexplained() == []
