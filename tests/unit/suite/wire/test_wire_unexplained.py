"""Every capture of a test is explained frame by frame, whatever the test asks of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from offload.suite.report.captured import Code
from tests.lib.wire.explain import explain
from tests.lib.wiregen import any_case  # noqa: F401  (enters every kind)
from tests.lib.wiregen.damage.kinds import damaged
from tests.lib.wiregen.scene import Case

FAR = (
    "stray_far_away",
    "stray_noise",
    "fragment_of_connection",
)


def codes(case: Case, folder: Path, keys: bytes) -> set[Code]:
    """What is left over of this capture."""
    (folder / "wire.pcapng").write_bytes(case.capture)
    return {stray.code for stray in explain(folder / "wire.pcapng", keys).first}


@pytest.mark.parametrize("keys", [True, False], ids=["keys", "no-keys"])
@pytest.mark.parametrize("name", FAR)
def test_one_frame_that_no_sender_sends_is_reported(name: str, keys: bool, tmp_path: Path) -> None:
    """One stray frame is told, without payload and without keys: one in 1,024 is enough."""
    case, want = damaged(name, 0)
    assert want.problem is not None
    assert codes(case, tmp_path, case.keylog if keys else b"") == {Code(want.problem[0])}


def test_records_that_no_sender_makes_are_reported(tmp_path: Path) -> None:
    """A record that may not be there is told where there are keys."""
    case, _ = damaged("ccs_of_two", 0)
    assert codes(case, tmp_path, case.keylog) == {Code.CHANGE_CIPHER_SPEC}


@pytest.mark.parametrize("name", ["keepalive_with_garbage", "late_and_legal", "segment_lost", "no_fin"])
def test_what_tests_do_to_a_wire_is_no_alarm(name: str, tmp_path: Path) -> None:
    """Keep-alive bytes, resets, loss and an end that was not captured are none of that."""
    case, _ = damaged(name, 0)
    assert codes(case, tmp_path, case.keylog) == set()
