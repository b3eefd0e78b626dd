"""In what orders a connection can end: what each end does, and what the other one must see of it."""

from __future__ import annotations

import time
from collections.abc import Callable

from offload.cmd import settles
from tests.lib.life.life import CLOSE_NOTIFY, KIB, Pair
from tests.lib.rig.rig import Rig

INTERNAL_ERROR = "0250"  # fatal, 80: RFC 5246 section 7.2
SOL_SOCKET, SO_SNDBUF, SO_RCVBUF, TCP, USER_TIMEOUT = 1, 7, 8, 6, 18
GONE = {"ECONNRESET", "EPIPE"}


def bye(first: str) -> Callable[[Pair], None]:
    """Close as TLS wants it: `first` (near, far) says close_notify, the other one answers."""

    def end(pair: Pair) -> None:
        one, other = (pair.near, pair.far) if first == "near" else (pair.far, pair.near)
        one.alert()
        one.call("shut")
        assert other.take()["closed"] == "close_notify"
        other.alert()
        other.close()
        assert one.take()["closed"] == "close_notify"
        one.close()

    return end


def half(pair: Pair) -> None:
    """We say that we are done, the peer goes on sending."""
    pair.near.alert(CLOSE_NOTIFY)
    pair.near.call("shut")
    assert pair.far.take()["closed"] == "close_notify"
    pair.sends("half", 128 * KIB, back=True)
    pair.far.close()
    assert pair.near.take()["closed"] == "eof"
    pair.near.close()


def silent(first: str) -> Callable[[Pair], None]:
    """Close without close_notify: the other end must not take it for the end of the stream."""

    def end(pair: Pair) -> None:
        one, other = (pair.near, pair.far) if first == "near" else (pair.far, pair.near)
        one.close()
        assert other.take()["closed"] == "eof", "an end without close_notify is not one with it"
        other.close()

    return end


def reset(first: str) -> Callable[[Pair], None]:
    """Reset the connection while the DUT has data in flight that no program reads."""

    def end(pair: Pair) -> None:
        pair.near.call("send", seed="in flight", size=48 * KIB)
        one, other = (pair.near, pair.far) if first == "near" else (pair.far, pair.near)
        one.close(reset=True)
        seen = other.take()
        assert seen["error"] in GONE or seen["closed"] == "eof", f"after a reset: {seen}"
        assert seen["closed"] != "close_notify", "a reset passes for an orderly end"
        other.close()

    return end


def alarm(pair: Pair) -> None:
    """The peer says that something is wrong, and leaves."""
    pair.near.call("send", seed="in vain", size=32 * KIB)
    pair.far.alert(INTERNAL_ERROR)
    pair.far.close(reset=False)
    seen = pair.near.take()
    assert seen["closed"] == "alert 80" or seen["error"] in GONE, f"of a fatal alert there came {seen}"
    pair.near.close()


def stall(pair: Pair) -> None:
    """Each receiver does nothing for two seconds, with more on its way than both ends can hold.

    A receive buffer that is set does not grow with what was read before (SOCK_RCVBUF_LOCK, net/core/sock.c).
    """
    for source, sink in ((pair.near, pair.far), (pair.far, pair.near)):
        source.call("option", level=SOL_SOCKET, name=SO_SNDBUF, value=64 * KIB)
        sink.call("option", level=SOL_SOCKET, name=SO_RCVBUF, value=64 * KIB)
        sent = source.begin("send", seed="stall", size=1024 * KIB)
        time.sleep(2)
        assert not source.connections.answered(sent), "nothing stalled: all of it fitted in"
        sink.takes("stall", 1024 * KIB)
        source.connections.end(sent)
    pair.close()


ENDINGS: dict[str, Callable[[Pair], None]] = {
    "we-first": bye("near"),
    "peer-first": bye("far"),
    "both": Pair.close,
    "half": half,
    "we-silent": silent("near"),
    "peer-silent": silent("far"),
    "we-reset": reset("near"),
    "peer-reset": reset("far"),
    "fatal-alert": alarm,
    "stall": stall,
}


def vanish(pair: Pair) -> float:
    """The peer is away (the caller saw to that): seconds until TCP says so at our end."""
    pair.near.call("option", level=TCP, name=USER_TIMEOUT, value=1500)  # milliseconds, RFC 5482
    began = time.monotonic()
    pair.near.call("send", seed="to nobody", size=32 * KIB)
    seen = pair.near.take()
    assert seen["error"] == "ETIMEDOUT", f"the peer was away, and there came {seen}"
    pair.near.close()
    return round(time.monotonic() - began, 1)


def gone(rig: Rig, port: int) -> None:
    """Assert that the DUT soon has no socket with this port; TIME-WAIT is none: it holds no context."""
    argv = ["ss", "-Htan", "state", "all", "exclude", "time-wait", f"sport = :{port}"]
    assert settles(lambda: not rig.bench.dut.host.run(argv).text.strip(), 15), f"port {port} has a socket"
