"""doctor --pid at its edges: versions, states, sockets and files that decide which reason is told."""

from __future__ import annotations

from typing import Any

import pytest

from offload.doctor.process.judge import Connection, Judge, ask
from offload.doctor.process.look import look
from offload.doctor.reasons import LEVELS
from tests.unit.doctor.fake_doctor import FakeHost, feature
from tests.unit.doctor.fake_process import (
    GNUTLS,
    NOT,
    PID,
    SOFTWARE,
    SSL,
    SW,
    TLS13,
    made,
    process,
    reported,
    row,
)
from tests.unit.doctor.test_process import answer, codes

RX_IN_USER_SPACE = {"version": TLS13, "tx": SOFTWARE, "rx": NOT}


@pytest.mark.parametrize(
    ("one", "version", "code"),
    [
        (row(**RX_IN_USER_SPACE), "OpenSSL 3.1.9", "D813"),
        (row(**RX_IN_USER_SPACE), "OpenSSL 3.2.0", "D911"),
        (row(tx=SOFTWARE, rx=NOT), "OpenSSL 3.0.19", "D911"),
    ],
)
def test_openssl_receives_tls13_in_user_space_until_3_2(one: list[Any], version: str, code: str) -> None:
    """The library is the reason only in TLS 1.3, only if it is known to be older than 3.2."""
    assert answer(made(one, version=version)).connections[0].states["rx"] == ("off", code)


def test_a_library_of_unknown_version_is_no_reason() -> None:
    """Its file has gone, so nothing tells the version."""
    found = answer(made(row(**RX_IN_USER_SPACE), maps=(f"{SSL} (deleted)",)))
    assert found.connections[0].states["rx"] == ("off", "D911")


def test_a_connection_that_the_card_lost_is_off_and_a_doubtful_one_unknown() -> None:
    """As `ls` marks them: hw stale, and hw ?."""
    host = FakeHost()
    process(host, [row()])
    judge = Judge(host, look(host, PID))
    doubts = {"tx": ("stale", "its route moved"), "rx": ("unsure", "the card holds fewer")}
    line = ask(host, PID).connections[0].line._replace(doubts=doubts)
    assert [judge._state(line, d) for d in ("tx", "rx")] == [("off", "D702"), ("unknown", "D702")]


def test_a_program_that_keeps_transmit_is_no_matter_of_openssl() -> None:
    """What OpenSSL lacks before 3.2 is receive in TLS 1.3, not transmit."""
    found = answer(made(row(version=TLS13, tx=NOT, rx=SOFTWARE), version="OpenSSL 3.0.19"))
    assert found.connections[0].states["tx"] == ("off", "D911")


@pytest.mark.parametrize(
    ("version", "wanted"), [("GnuTLS 3.7.2", {"D905"}), ("GnuTLS 3.7.3", set()), ("", set())]
)
def test_gnutls_can_since_3_7_3(version: str, wanted: set[str]) -> None:
    """With ktls = true only a GnuTLS that is known to be older is a reason."""

    def make(host: FakeHost) -> None:
        process(host, plain=[5], maps=(GNUTLS,), version=version)
        host.answers["grep", "-iE"] = (0, "ktls = true\n", "")

    assert codes(answer(make)) == {"D907", *wanted}


def test_the_worst_direction_is_the_state() -> None:
    """Off has a remedy, so it comes first; a direction without a promise does not count."""
    line = answer(made(row())).connections[0].line
    for words, state in (
        (("off", "unknown"), "off"),
        (("unknown", "never"), "unknown"),
        (("ready", "never"), "never"),
        (("ready", "not promised"), "ready"),
        (("not promised", "not promised"), "never"),
    ):
        states = dict(zip(("tx", "rx"), ((word, "") for word in words), strict=True))
        assert Connection(line, 1, states).state() == state


def test_without_connections_a_remedy_comes_first() -> None:
    """A finding that can be mended is the state, though another one says never."""
    found = answer(made(plain=[5], maps=("/usr/lib/libmbedtls.so.14", GNUTLS), version="GnuTLS 3.8.9"))
    assert {f.level for f in found.findings} >= {"off", "never"} and found.state() == "off"
    assert found.findings == tuple(sorted(found.findings, key=lambda f: (LEVELS.index(f.level), f.code)))


@pytest.mark.parametrize("device", ["", "?"])
def test_a_connection_without_a_device_is_unknown(device: str) -> None:
    """No route, or one that nobody knows: no device is asked."""
    states = answer(made(row(device=device, **SW))).connections[0].states
    assert states == {"tx": ("unknown", ""), "rx": ("unknown", "")}


def test_one_reason_of_a_device_is_reported_once() -> None:
    """Two kinds of connection meet the same switch."""

    def make(host: FakeHost) -> None:
        process(host, [row(tx=SOFTWARE), row(78, cipher=52, tx=SOFTWARE)])
        host.change("tls-hw-tx-offload", feature(False))

    found = answer(make)
    assert len(found.connections) == 2
    assert [f.code for f in found.findings] == ["D301"]


def test_other_connections_are_counted_with_eight_ports() -> None:
    """A server has thousands; whether some are under kernel TLS is said beside them."""

    def make(host: FakeHost) -> None:
        process(host, plain=range(5, 15))
        lines = [
            f" {n}: 010200C0:{5000 + n:04X} 020200C0:C350 01 00000000:00000000 00:00000000 00000000 0 0 {n} 1"
            for n in range(5, 15)
        ]
        host.answers["cat", f"/proc/{PID}/net/tcp"] = (0, "\n".join(lines), "")

    (alone,) = (f.evidence for f in answer(make).findings if f.code == "D907")
    assert alone == "10 established TCP connections, local port " + ", ".join(map(str, range(5005, 5013)))
    (evidence,) = (f.evidence for f in answer(made(row(), plain=[5])).findings if f.code == "D907")
    assert evidence.endswith("; others of its connections are")


def test_only_established_connections_count() -> None:
    """A listening socket is no connection that lacks kernel TLS."""

    def make(host: FakeHost) -> None:
        process(host, plain=[5])
        table = host.answers["cat", f"/proc/{PID}/net/tcp"][1]
        host.answers["cat", f"/proc/{PID}/net/tcp"] = (0, table.replace(" 01 ", " 0A "), "")

    assert codes(answer(make)) == {"D902"}


def test_what_a_user_may_not_see_is_unknown() -> None:
    """Who is not root does not see kernel TLS; another complaint of grep hides nothing."""
    assert "D901" in codes(answer(made(plain=[5], root=False)))

    def grumbles(host: FakeHost) -> None:
        process(host, [row()])
        host.answers["grep", "-aoE"] = (0, f"{SSL}\n", "grep: warning: something else\n")

    assert not codes(answer(grumbles))


def test_files_are_those_that_the_process_sees() -> None:
    """A process in a container has its own libraries and its own configuration."""
    host = FakeHost()
    reported(host)
    ask(host, PID)
    paths = [argv[-1] for argv in host.asked if argv[0] == "grep" and argv[1] in ("-aom1", "-iE")]
    assert sorted(paths) == [f"/proc/{PID}/root{path}" for path in ("/etc/gnutls/config", GNUTLS)]
