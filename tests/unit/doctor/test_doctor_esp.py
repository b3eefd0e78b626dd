"""doctor: which IPsec policies are told of a device, and what `ip` may say of them."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from offload.card.nic import look
from offload.doctor.esp import NETLINK, examine, policies
from offload.doctor.reasons import Notes
from tests.unit.doctor.fake_doctor import FakeHost, feature

LIST = ("ip", "xfrm", "policy", "list")
ROUTE = ("ip", "-j", "route", "get")
# `ip xfrm policy list`, iproute2 6.1, in the lab
OURS = """\
src 192.0.2.1/32 dst 192.0.2.2/32 proto tcp 
	dir out priority 27508 ptype main 
	tmpl src 192.0.2.1 dst 192.0.2.2
		proto esp reqid 27508 mode transport
src 192.0.2.2/32 dst 192.0.2.1/32 proto tcp 
	dir in priority 27508 ptype main 
	tmpl src 192.0.2.2 dst 192.0.2.1
		proto esp reqid 27508 mode transport
"""  # noqa: W291
TUNNEL = """\
src 10.1.0.0/16 dst 10.2.0.0/16 
	dir out priority 379519 ptype main 
	tmpl src 192.0.2.1 dst 198.51.100.7
		proto esp spi 0xc2d0f1a9 reqid 1 mode tunnel
"""  # noqa: W291
NETLINK_ROWS = """\
sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode
00000000118b002a 0   0          00000000 0        0        0     2        0        10308   
00000000a833eef8 6   0          00000000 0        0        0     2        0        10362   
"""  # noqa: W291


def host(text: str, route: str = "", rc: int = 0) -> FakeHost:
    """A host whose `ip` says so of its policies and routes."""
    made = FakeHost()
    made.files[NETLINK] = NETLINK_ROWS.encode()
    made.answers[LIST] = (rc, text, "RTNETLINK answers: Operation not permitted\n" if rc else "")
    made.answers[ROUTE] = (0, f'[{{"dst":"192.0.2.2","dev":"{route}"}}]' if route else "", "")
    return made


def seen(on: FakeHost, *, active: bool = True) -> Notes:
    """What is noted of eth0."""
    on.change("tls-hw-tx-offload", feature(active))
    notes = Notes("eth0")
    examine(on, look(on, "eth0"), notes)
    return notes


def codes(notes: Notes) -> list[str]:
    """What was found."""
    return [finding.code for finding in notes.findings]


def test_a_policy_in_transport_mode_is_reported() -> None:
    """A policy for TCP is told with its traffic, its kind and the switch that helps."""
    notes = seen(host(OURS, "eth0"))
    (found,) = notes.findings
    assert (found.code, found.level, found.directions) == ("D406", "risk", ("tx",))
    assert "src 192.0.2.1/32 dst 192.0.2.2/32 proto tcp" in found.what and "esp transport" in found.what
    assert found.remedy.startswith("ktls-offload disable eth0 --tx")
    assert found.what.count("src ") == 1, "the policy for what comes in is another's business"


@pytest.mark.parametrize(
    ("text", "route", "reported"),
    [
        (OURS, "eth1", False),  # routed by another device
        (OURS, "", True),  # nobody knows
        (OURS.replace("proto tcp", "proto udp"), "eth0", False),
        (OURS.replace("proto tcp", ""), "eth0", True),
        (OURS.replace("proto tcp", "proto tcp dport 443 dev eth1"), "eth0", False),
        (OURS.replace("proto tcp", "proto tcp dport 443 dev eth0"), "eth0", True),
        (OURS.replace("dst 192.0.2.2/32", "dst 192.0.2.0/24"), "eth1", True),  # some of it may be ours
        (OURS.replace("dir out", "dir fwd"), "eth0", False),
        (OURS.replace("dir out", "dir out action block"), "eth0", False),
        (OURS.replace("ptype main", "ptype main \n\tif_id 0x5"), "eth0", False),
        (OURS.replace("ptype main", "ptype main \n\tif_id 0x0"), "eth0", True),
        (OURS.replace("ptype main", "\n\tcrypto offload parameters: dev eth0 mode packet"), "eth0", False),
        (OURS.replace("proto esp", "proto ah"), "eth0", True),
        (OURS.replace("192.0.2.", "2001:db8::").replace("/32", "/128"), "eth0", True),
        (TUNNEL, "eth0", True),
        (TUNNEL, "eth1", False),  # what counts is where the tunnel ends
        ("", "eth0", False),
        (
            "src 0.0.0.0/0 dst 0.0.0.0/0 \n\tsocket out priority 0 ptype main \n",
            "eth0",
            False,
        ),  # an IKE daemon
    ],
)
def test_which_policies_are_reported(text: str, route: str, reported: bool) -> None:
    """A policy is told unless it surely takes nothing of this device's TCP."""
    assert (codes(seen(host(text, route))) == ["D406"]) is reported


def test_what_may_not_be_read_is_said() -> None:
    """Without leave to list policies that is a note, with what `ip` says."""
    (found,) = seen(host("", rc=1)).findings
    assert found.code == "D407" and "Operation not permitted" in found.evidence


@pytest.mark.parametrize("change", [{"active": False}, {}])
def test_ip_is_not_asked_where_nothing_can_be(change: dict[str, bool]) -> None:
    """Nothing is asked with the switch off, or without IPsec, which asking would load."""
    on = host(OURS, "eth0")
    if not change:
        on.files[NETLINK] = b"\n".join(r for r in NETLINK_ROWS.encode().split(b"\n") if b" 6 " not in r)
    assert codes(seen(on, **change)) == [] and LIST not in on.asked


def test_many_policies_are_counted_not_listed() -> None:
    """A thousand policies give one finding that names four, and few questions."""
    on = host("".join(OURS.replace("2.2/32", f"2.{n}/32") for n in range(1000)), "eth0")
    (found,) = seen(on).findings
    assert found.what.count("dst 192.0.2.") == 4 and " and more before" in found.what
    assert len([words for words in on.asked if words[:4] == ROUTE]) == 5


@pytest.mark.parametrize("seed", range(60))
def test_any_text_is_survived(seed: int) -> None:
    """A list with bytes changed gives findings in one printable line each, or none."""
    chance = random.Random(seed)
    text = "".join(c if chance.random() > 0.05 else chr(chance.randrange(1, 0x2FF)) for c in OURS + TUNNEL)
    notes = seen(host(text, chance.choice(["", "eth0", "\x1b[31m"])))
    assert all(f.what.isprintable() and f.evidence.isprintable() for f in notes.findings)
    assert set(codes(notes)) <= {"D406"}


@pytest.mark.parametrize("route", ["null", "[]", "[3]", '[{"dev": 7}]', "[" * 9000, "{", '{"dev": "eth1"}'])
def test_a_route_that_makes_no_sense_leaves_nothing_out(route: str) -> None:
    """A policy is told where `ip route get` says nothing of use."""
    on = host(OURS)
    on.answers[ROUTE] = (0, route, "")
    assert codes(seen(on)) == ([] if route == '[{"dev": 7}]' else ["D406"])


@pytest.mark.parametrize("make", [lambda: "\tdir out" * 9999, lambda: "src " * 99999, lambda: OURS * 2000])
def test_a_long_list_takes_no_time(make: Callable[[], str]) -> None:
    """No list makes the reader work more than its length asks for."""
    assert len(list(policies(make()))) in (0, 2000)
