"""What `ip` says of a port is taken apart as it has to be put together again, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from offload.errors import NoPermission, Refused
from offload.suite.bench.lab.model import ONE_HOST, LabFile, Port, Target
from offload.suite.bench.lab.onehost import check
from offload.suite.bench.lab.onehost import port as onehost_port
from offload.suite.bench.lab.onehost.port import _link_local, address_words, route_words
from offload.suite.bench.lab.verbs import limits

FOREVER = {"valid_life_time": 4294967295, "preferred_life_time": 4294967295}
V4 = {"family": "inet", "local": "10.9.0.1", "prefixlen": 24, "scope": "global", "label": "far0"}
V6 = {"family": "inet6", "local": "fd00:9::1", "prefixlen": 64, "scope": "global", "nodad": True}
UP: dict[str, Any] = {"ifname": "far0", "link_type": "ether", "flags": ["UP"]}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (
            V4 | FOREVER | {"broadcast": "10.9.0.255"},
            "10.9.0.1/24 broadcast 10.9.0.255 scope global label far0",
        ),
        (
            V4 | FOREVER | {"address": "10.9.1.1", "prefixlen": 32},
            "10.9.0.1 peer 10.9.1.1/32 scope global label far0",
        ),
        (
            V4 | {"dynamic": True, "valid_life_time": 3600, "preferred_life_time": 60, "noprefixroute": True},
            "10.9.0.1/24 scope global label far0 valid_lft 3600 preferred_lft 60 noprefixroute",
        ),
        (V6 | FOREVER | {"metric": 300}, "fd00:9::1/64 scope global metric 300 nodad"),
    ],
)
def test_an_address(row: dict[str, Any], words: str) -> None:
    """An address is written as `ip address replace` takes it."""
    assert " ".join(address_words(row)) == words


def test_an_address_that_the_kernel_makes() -> None:
    """Link-local addresses of IPv6, and no others, are left to the kernel."""
    assert _link_local({"family": "inet6", "scope": "link"})
    assert not _link_local({"family": "inet", "scope": "link"}) and not _link_local(V6)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (
            {
                "type": "unicast",
                "dst": "10.10.0.0/16",
                "gateway": "10.9.0.2",
                "table": "main",
                "protocol": "boot",
                "scope": "global",
                "metric": 5,
                "flags": ["linkdown"],
                "metrics": [{"mtu": 1400}],
            },
            "-4 unicast 10.10.0.0/16 via 10.9.0.2 table main proto boot scope global metric 5 mtu 1400",
        ),
        (
            {
                "type": "unicast",
                "dst": "fd00:10::/64",
                "gateway": "fd00:9::2",
                "table": "77",
                "protocol": "static",
                "metric": 1024,
                "flags": ["onlink"],
                "pref": "medium",
            },
            "-6 unicast fd00:10::/64 via fd00:9::2 table 77 proto static metric 1024 pref medium onlink",
        ),
    ],
)
def test_a_route(row: dict[str, Any], words: str) -> None:
    """A route is written as `ip route replace` takes it."""
    assert " ".join(route_words("far0", row)) == words


@pytest.mark.parametrize(
    "more", [{"nhid": 7}, {"encap": "mpls"}, {"metrics": [{"rto_min": "40ms"}]}, {"expires": 60}]
)
def test_a_route_that_nobody_can_write(more: dict[str, Any]) -> None:
    """A route with a word that we do not know is refused before anything is changed."""
    with pytest.raises(Refused, match="could not be put back"):
        route_words("far0", {"dst": "10.10.0.0/16", **more})


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            {"far0": UP | {"linkinfo": {"info_kind": "vlan"}}},
            "far0 is not a port of a card: its kind is vlan",
        ),
        ({"far0": UP | {"link_type": "none"}}, "far0 is not a port of a card: its kind is none"),
        ({"far0": UP | {"master": "bond0"}}, "far0 belongs to bond0"),
        (
            {"far0": UP, "v7": {"link": "far0", "linkinfo": {"info_kind": "vlan"}}},
            "v7 is stacked on far0",
        ),
    ],
)
def test_what_is_no_port(rows: dict[str, dict[str, Any]], words: str) -> None:
    """An interface that lies on, below or in another one is refused."""
    with pytest.raises(Refused, match=words):
        check._port("far0", rows)


def test_the_other_end_of_a_veth_is_not_on_top() -> None:
    """Two ends of one cable are two ports."""
    pair = {"near0": UP | {"link": "far0", "linkinfo": {"info_kind": "veth"}}, "far0": UP}
    check._port("far0", pair)


def test_wants_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who is not root is told so before anything is asked."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(NoPermission, match="only root"):
        check.root()


def test_sysctls_that_a_move_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each setting of the interface is noted, those that differ are written, others are not."""
    monkeypatch.setattr(onehost_port, "SYSCTLS", tmp_path)
    folder = tmp_path / "ipv4" / "conf" / "far0"
    folder.mkdir(parents=True)
    for name, value in (("rp_filter", "2\n"), ("forwarding", "1\n"), ("mc_forwarding", "0\n")):
        (folder / name).write_text(value)
    (folder / "mc_forwarding").chmod(0o444)
    known = dict(onehost_port._sysctls("far0"))
    assert known == {"ipv4/conf/far0/forwarding": "1", "ipv4/conf/far0/rp_filter": "2"}
    (folder / "rp_filter").write_text("0\n")
    before = (folder / "forwarding").stat().st_mtime_ns
    assert onehost_port._set(onehost_port.Found("far0", True, (), (), known)) == []
    assert (folder / "rp_filter").read_text() == "2\n" and (
        folder / "forwarding"
    ).stat().st_mtime_ns == before
    gone = onehost_port.Found("far0", True, (), (), {"ipv4/conf/far1/rp_filter": "2"})
    assert onehost_port._set(gone) == ["sysctl net/ipv4/conf/far1/rp_filter=2: No such file or directory"]


def test_what_such_a_bench_cannot_show() -> None:
    """`lab check` says what one host, and what a missing wire box, costs."""
    port = Port("eth0", "192.0.2.1", "fd00:2::1")
    dut, peer = Target("dut", None, "", port), Target("peer", None, ONE_HOST, port)
    said = limits(LabFile("lab.yaml", Path("lab.yaml"), dut, peer))
    assert [line.partition(":")[0] for line in said] == ["one host", "no wire box"]
    wire = Target("wire", None, "wire", None, ("w0", "w1"))
    assert len(limits(LabFile("lab.yaml", Path("lab.yaml"), dut, peer, wire))) == 1
