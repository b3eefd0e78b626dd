"""doctor: who does the connections that there are? What `ls` says, and nobody else."""

import pytest

from offload.connections.look import Inspector
from tests.unit.doctor.fake_doctor import FakeHost, connected
from tests.unit.doctor.test_doctor import PROFILES, seen


@pytest.mark.parametrize(
    ("given", "seen_there", "fine", "doubted"),
    [
        (0, 3, ["3 connections are on a card now"], 0),
        (3, 3, [], 3),
        (1, 3, [], 3),  # which one it gave back, nobody knows
        (
            0,
            1,
            ["1 connections are on a card now", "2 more are on a card according to the kernel; ls could not"],
            0,
        ),
    ],
)
def test_on_a_card_is_what_ls_says(given: int, seen_there: int, fine: list[str], doubted: int) -> None:
    """Doctor calls on a card what `ls` does: not what a card gave back after a link flap."""
    host = FakeHost()
    connected(host, given, seen_there)
    device = seen(host, "eth0").devices[0]
    listed = Inspector(host, everywhere=False, profiles=PROFILES).look()
    said = [words for words in device.fine if "card" in words and ("now" in words or "more" in words)]
    assert len(said) == len(fine)
    assert all(words.startswith(fine[number]) for number, words in enumerate(said))
    words = [finding.what for finding in device.findings if finding.code == "D702"]
    wanted = f"{doubted} connections that the kernel reports as offloaded are stale or doubtful"
    assert words == ([wanted] if doubted else [])
    assert (listed.on_card() == 0) == bool(doubted)
