"""HAProxy of experimental is taken with sid's libraries, not with experimental's."""

from __future__ import annotations

from offload.debian.packages import Package
from offload.suite.bench.programs.managers import choose
from tests.lib.flow import haproxy


def test_only_haproxy_comes_from_experimental() -> None:
    """A newer library of experimental, and sid's own HAProxy, are left alone."""
    shelf = (
        Package("haproxy", "3.2.1-1", "sid", "libssl3t64", 1, 1),
        Package("haproxy", "3.4.7-1", "experimental", "libssl3t64 (>= 3.5), adduser", 1, 1),
        Package("libssl3t64", "4.0.1-1", "experimental", "", 1, 1),
        Package("libssl3t64", "3.6.5-1", "sid", "", 1, 1),
        Package("zlib1g", "1.3-1", "sid", "", 1, 1),
        Package("adduser", "3.1", "sid", "", 1, 1),
    )
    taken = choose(haproxy.of_sid(shelf), "sid", set(), haproxy.PACKAGES)
    assert {(one.name, one.version) for one in taken} == {
        ("haproxy", "3.4.7-1"),
        ("libssl3t64", "3.6.5-1"),
        ("zlib1g", "1.3-1"),
    }
