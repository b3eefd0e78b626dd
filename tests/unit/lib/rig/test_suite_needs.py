"""What each promise asks of a bench: the markers of tests/hw, held against the criteria."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from offload.card.profile import load_all
from offload.suite.report.criteria import load
from offload.suite.report.facts import of
from tests.unit.hw_tests import PROFILES, Tests

LAB = Path(__file__).parents[4] / "docs/certify/the-lab.md"
EVERY = "nicsim"  # every test there is: the simulated card promises all that the kernel offloads
# of two ordinary servers and a cable, as docs/certify/the-lab.md asks for them
OF_ANY_BENCH = {"tls", "ktls-handoff", "stunnel", "openssl", "qemu"}
OF_A_WIRE_BOX = {"wire", "wire-tap", "pedit", "records-trace"}


@pytest.mark.parametrize("profile", PROFILES)
def test_no_promise_asks_for_more_tests_than_there_are(profile: str, hw_tests: Tests) -> None:
    """Otherwise no card of this profile could be certified."""
    facts = of(next(one for one in load_all() if one.id == profile))
    have = Counter(promise for promise, _ in hw_tests[profile].values())
    wanted = {name: one.tests for name, one in load().promises.items() if facts.applies(one.applies)}
    assert not {name: (have[name], least) for name, least in wanted.items() if have[name] < least}


@pytest.mark.parametrize("profile", PROFILES)
def test_every_card_meets_what_drivers_trip_over(profile: str, hw_tests: Tests) -> None:
    """A retransmission that ends inside a tag, a changed port, a slow release: tests of every profile."""
    there = {test.rpartition("::")[2] for test in hw_tests[profile]}
    port = {f"test_port_changes_under_live_connections[{e}]" for e in ("toggle", "mtu", "rings", "channels")}
    slow = {"test_gives_contexts_back", "test_sends_on_after_link_down"}  # what rows slow-remove run
    assert not ({"test_sends_again_what_ends_inside_a_tag"} | port | slow) - there


def test_no_blocker_rests_on_the_peers_card(hw_tests: Tests) -> None:
    """A bench with an ordinary peer can be certified: no blocker asks what its card can."""
    blockers = {name for name, promise in load().promises.items() if promise.blocker}
    asked = {test: set(wanted) for test, (promise, wanted) in hw_tests[EVERY].items() if promise in blockers}
    assert len(asked) > 100
    odd = {test: wanted - OF_ANY_BENCH - OF_A_WIRE_BOX for test, wanted in asked.items()}
    assert not {test: names for test, names in odd.items() if names}


@pytest.mark.parametrize("promise", ["interop.tx", "interop.rx"])
def test_interop_is_proved_without_a_card_at_the_peer(promise: str, hw_tests: Tests) -> None:
    """Only the cells with hardware at the far end ask for it, and they count for no blocker."""
    mine = [test for test, (of, _) in hw_tests[EVERY].items() if of == promise]
    assert len(mine) >= load().promises[promise].tests and not [test for test in mine if "hw]" in test]
    cards = {test: wanted for test, (of, wanted) in hw_tests[EVERY].items() if of == "interop.card"}
    assert len(cards) == 6 and all("hw]" in test for test in cards)
    assert all(any(name.startswith("peer-tls-hw") for name in wanted) for wanted in cards.values())


def blocked_by(need: str, hw_tests: Tests) -> set[str]:
    """The required promises of which a test asks for this."""
    required = {name for name, promise in load().promises.items() if promise.required}
    asked = {promise for promise, wanted in hw_tests[EVERY].values() if promise and need in wanted}
    return asked & required


def test_the_lab_lists_what_needs_a_wire_box(hw_tests: Tests) -> None:
    """docs/certify/the-lab.md names each required promise that a bench without a wire box cannot prove."""
    listed = re.search(r"<!-- compared by .*?-->(.*?)<!-- compared: end -->", LAB.read_text(), re.S)
    assert listed
    assert sorted(re.findall(r"`([\w.-]+)`", listed[1])) == sorted(blocked_by("wire", hw_tests))


@pytest.mark.parametrize(
    ("need", "program"), [("qemu", "qemu-system"), ("pedit", "act_pedit"), ("records-trace", "tracefs")]
)
def test_the_lab_says_what_a_program_is_for(need: str, program: str, hw_tests: Tests) -> None:
    """Its table of hosts names the required promises that rest on a program not every host has."""
    row = next(line for line in LAB.read_text().splitlines() if line.startswith("|") and program in line)
    assert set(re.findall(r"`([a-z]+\.[a-z-]+)`", row.split("|")[3])) == blocked_by(need, hw_tests)
