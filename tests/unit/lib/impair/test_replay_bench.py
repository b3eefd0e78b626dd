"""What a replay puts back on the bench: faults of the simulated cards, and impairment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from offload.errors import ConfigError
from offload.host.base import Completed
from offload.suite.bench.cards import knobs
from offload.suite.traffic.impair import Record
from tests.lib.impair.impairment import as_before

FOLDER = "/sys/kernel/debug/nicsim"


class FakeRoot:
    """A lab's root with debugfs files; keeps what was written."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = {f"{FOLDER}/{name}": text for name, text in files.items()}
        self.name = "lab"

    def run(self, argv: Sequence[str], *, input: bytes = b"", check: bool = True) -> Completed:
        """Play grep and tee."""
        lines = [f"{path}:{line}" for path, text in self.files.items() for line in text.splitlines()]
        if argv[0] == "tee":
            self.files[argv[1]] = input.decode().strip()
        return Completed(tuple(argv), 0, "\n".join(lines).encode(), b"", 0.0, "lab")


def test_faults_are_read_and_turned_again() -> None:
    """The knobs that are not at 0 are one line, and from it they are turned again."""
    counters = "tx_tls_ctx 3\nrx_tls_ctx:4"
    found: Any = FakeRoot({"1/rx_garble": "3", "0/tx_leak": "1", "0/tx_soft": "0", "0/counters": counters})
    assert knobs.turned(found) == "0/tx_leak=1 1/rx_garble=3"
    fresh: Any = FakeRoot({"0/tx_leak": "0", "1/rx_garble": "0"})
    assert knobs.turned(fresh) == ""
    knobs.turn(fresh, "0/tx_leak=1 1/rx_garble=3")
    assert knobs.turned(fresh) == "0/tx_leak=1 1/rx_garble=3"


@pytest.mark.parametrize("text", ["0/tx_leak", "tx_leak=1", "0/../x=1", "0/tx_leak=1; reboot", "/x=1"])
def test_what_is_no_knob_is_not_written(text: str) -> None:
    """Nothing but knobs and numbers of a former run reaches the lab's files."""
    root: Any = FakeRoot({})
    with pytest.raises(ConfigError, match="not knobs of the simulated card"):
        knobs.turn(root, text)
    assert root.files == {}


def test_impairment_of_the_former_run_is_taken() -> None:
    """A replay starts with the recorded rules and seed, not those that the test adds."""
    record = Record(9, ("a>b first drop", "clear"), (), {}, 1).json()
    assert as_before({"replay": record}, 1) == (("a>b first drop",), 9)
    assert as_before({}, 1) is None and as_before({"replay": {"tool": "netem"}}, 1) is None


def test_only_the_last_impairment_of_a_test_was_recorded() -> None:
    """A test that made impairments twice gets the recorded one for the second time."""
    record = {**Record(9, ("a>b first drop",), (), {}, 1).json(), "turn": 2}
    assert as_before({"replay": record}, 1) is None
    assert as_before({"replay": record}, 2) == (("a>b first drop",), 9)
