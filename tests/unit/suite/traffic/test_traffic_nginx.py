"""nginx and wrk: configuration by arm, versions that can and cannot, answers with errors are no answers."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from offload.errors import RigError
from offload.host.base import Completed
from offload.suite.traffic import nginx, wrk
from offload.suite.traffic.certs import Placed
from offload.suite.traffic.nginx import Shop

AT = Placed("/run/x", "/run/x/ca.pem", "/run/x/cert.pem", "/run/x/key.pem")


def host(rc: int, out: str = "", err: str = "") -> Any:
    """A host on which every program answers this."""
    done = Completed(("x",), rc, out.encode(), err.encode(), 0.0, "dut")
    return SimpleNamespace(name="dut", run=lambda argv, **more: done)


def test_configuration() -> None:
    """The kernel's TLS is asked for where the arm wants it, and nowhere else."""
    user, kernel, copy = (
        nginx.config(Shop("192.0.2.1", 8443, True, ktls=k, zerocopy=z), AT)
        for k, z in ((False, False), (True, False), (True, True))
    )
    assert "Options -KTLS;" in user and "Options KTLS;" in kernel
    assert "Options KTLS,KTLSTxZerocopySendfile;" in copy
    plain = nginx.config(Shop("fd00::1", 80, False), AT)
    assert "ssl" not in plain and "listen [fd00::1]:80 backlog" in plain
    assert Shop("fd00::1", 80, False).url(4096) == "http://[fd00::1]:80/4096"


@pytest.mark.parametrize(
    ("rc", "said", "zerocopy", "why"),
    [
        (127, "", False, "nginx is not installed"),
        (0, "built with OpenSSL 1.1.1", False, "without OpenSSL 3"),
        (0, "built with OpenSSL 3.0.22 (running with OpenSSL 3.0.19", True, "needs OpenSSL 3.2"),
        (0, "built with OpenSSL 3.0.2 (running with OpenSSL 3.5.1", True, ""),
        (0, "built with OpenSSL 3.0.22", False, ""),
        (0, "no words", False, "without OpenSSL 3"),
    ],
)
def test_what_nginx_lacks(rc: int, said: str, zerocopy: bool, why: str) -> None:
    """What is missing is said in a few words; zero-copy needs OpenSSL 3.2."""
    found = nginx.missing(host(rc, err=said), zerocopy=zerocopy)
    assert (why in found) if why else not found


def summary(**more: Any) -> Completed:
    """What wrk prints with our script."""
    said = {"bytes": 70000, "requests": 1, "usec": 2_000_000, "errors": [0] * 5, **more}
    text = f"Running 1s test\n{wrk.MARK}{json.dumps(said)}\n"
    return Completed(("wrk",), 0, text.encode(), b"", 2.0, "peer")


def test_wrk() -> None:
    """wrk's whole numbers are read, and its threads are never more than its connections."""
    assert wrk.parse(summary()) == wrk.Result(70000, 1, 2.0)
    asked = wrk.argv("s.lua", "http://x/1", 2, 0.3, 8, close=True)
    assert asked[asked.index("-t") + 1] == "2" and "1s" in asked and "Connection: close" in asked
    assert wrk.missing(host(1)) == "wrk is not installed" and wrk.version(host(1)) == "none"
    assert wrk.version(host(1, "wrk debian/4.1.0-3+b2 [epoll]")) == "debian/4.1.0-3+b2"


@pytest.mark.parametrize(
    ("done", "why"),
    [
        (Completed(("wrk",), 1, b"unable to connect", b"", 0.1, "peer"), "exit 1 .peer.: unable to connect"),
        (summary(errors=[0, 3, 0, 0, 0]), "errors: {'read': 3}"),
        (summary(requests=-1), "-1 answers"),
        (summary(errors=[0]), "wrk, exit 0"),
        (summary(bytes="many"), "wrk, exit 0"),
        (Completed(("wrk",), 0, b"", b"", 0.1), "it said nothing"),
    ],
)
def test_failed_requests_are_no_figure(done: Completed, why: str) -> None:
    """Requests that failed, or an answer that makes no sense, end the turn."""
    with pytest.raises(RigError, match=why):
        wrk.parse(done)
