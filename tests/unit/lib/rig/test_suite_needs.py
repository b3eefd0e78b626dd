"""What each promise asks of a bench: the markers of tests/hw, held against the criteria."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from offload.card.profile import load_all
from offload.suite.report.criteria import load
from offload.suite.report.facts import of

ROOT = Path(__file__).parents[4]
# every test there is: the simulated card promises all that the kernel offloads
COLLECT = """
import json, sys
import pytest
from offload.suite.report.record.testinfo import promise_of

class Reported:
    def pytest_collection_finish(self, session):
        reported = [[item.nodeid, promise_of(item), self.needs(item)] for item in session.items]
        print("REPORTED " + json.dumps(reported))

    def needs(self, item):
        return sorted({name for mark in item.iter_markers("requires") for name in mark.args})

sys.exit(pytest.main(["-q", "--collect-only", "--profile", sys.argv[1], "tests/hw"], plugins=[Reported()]))
"""
# of two ordinary servers and a cable, as docs/certify/the-lab.md asks for them
OF_ANY_BENCH = {"tls", "ktls-handoff", "stunnel", "openssl", "qemu"}
OF_A_WIRE_BOX = {"wire", "wire-tap", "pedit", "records-trace"}


@cache
def needs(profile: str = "nicsim") -> Mapping[str, tuple[str | None, tuple[str, ...]]]:
    """Each test of tests/hw that a card of this profile gets: its promise and its needs."""
    done = subprocess.run([sys.executable, "-c", COLLECT, profile], cwd=ROOT, capture_output=True, text=True)
    reported = [line for line in done.stdout.splitlines() if line.startswith("REPORTED ")]
    assert reported, done.stdout + done.stderr
    return {
        name: (promise, tuple(wanted))
        for name, promise, wanted in json.loads(reported[0].removeprefix("REPORTED "))
    }


@pytest.mark.parametrize("profile", ["nicsim", "connectx-6-dx", "chelsio-t6"])
def test_no_promise_asks_for_more_tests_than_there_are(profile: str) -> None:
    """Otherwise no card of this profile could be certified."""
    facts = of(next(one for one in load_all() if one.id == profile))
    have = Counter(promise for promise, _ in needs(profile).values())
    wanted = {name: one.tests for name, one in load().promises.items() if facts.applies(one.applies)}
    assert not {name: (have[name], least) for name, least in wanted.items() if have[name] < least}


def test_no_blocker_rests_on_the_peers_card() -> None:
    """A bench with an ordinary peer can be certified: no blocker asks what its card can."""
    blockers = {name for name, promise in load().promises.items() if promise.blocker}
    asked = {test: set(wanted) for test, (promise, wanted) in needs().items() if promise in blockers}
    assert len(asked) > 100
    odd = {test: wanted - OF_ANY_BENCH - OF_A_WIRE_BOX for test, wanted in asked.items()}
    assert not {test: names for test, names in odd.items() if names}


@pytest.mark.parametrize("promise", ["interop.tx", "interop.rx"])
def test_interop_is_proved_without_a_card_at_the_peer(promise: str) -> None:
    """Only the cells with hardware at the far end ask for it, and they count for no blocker."""
    mine = [test for test, (of, _) in needs().items() if of == promise]
    assert len(mine) >= load().promises[promise].tests and not [test for test in mine if "hw]" in test]
    cards = {test: wanted for test, (of, wanted) in needs().items() if of == "interop.card"}
    assert len(cards) == 6 and all("hw]" in test for test in cards)
    assert all(any(name.startswith("peer-tls-hw") for name in wanted) for wanted in cards.values())
