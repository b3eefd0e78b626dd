"""doctor: a server is judged by the version that is installed, as its change log says."""

from __future__ import annotations

import pytest

from tests.unit.doctor.fake_doctor import FakeHost
from tests.unit.doctor.test_doctor import ASKS, NGINX, codes, seen

STUNNEL_KNOWS = "stunnel {} on x86_64-pc-linux-gnu platform\noptions = ALL\noptions = ENABLE_KTLS\n"
HAPROXY_BUILT = "HAProxy version {} 2026/01/01\nFeature list : +EPOLL +KTLS +OPENSSL\n"


@pytest.mark.parametrize(
    ("command", "said", "lines", "code", "words"),
    [
        # nginx CHANGES 1.23.4: TLS 1.3 by default; a line that names it does so in any version
        (("nginx", "-V"), "nginx version: nginx/1.22.1", [ASKS], "", "nginx 1.22.1 stops at TLS 1.2"),
        (("nginx", "-V"), "nginx version: nginx/1.23.4", [ASKS], "D602", "(by default)"),
        (("nginx", "-V"), "", [ASKS], "D602", "(by default)"),
        (
            ("nginx", "-V"),
            "nginx version: nginx/1.22.1",
            [ASKS, "ssl_protocols TLSv1.2 TLSv1.3;"],
            "D602",
            f"({NGINX}:5)",
        ),
        (("nginx", "-V"), "nginx version: nginx/1.30.6", [ASKS, "ssl_protocols TLSv1.2;"], "", "asks for"),
        (("nginx", "-V"), "nginx version: nginx/1.18.0", [], "D601", "(this is 1.18.0, and 1.19.4 is"),
        (("nginx", "-V"), "nginx version: nginx/1.22.1", [], "D601", "in http or server: "),
        (("haproxy", "-vv"), HAPROXY_BUILT.format("2.6.12-1"), [], "D604", "(this is 2.6.12, and 3.3"),
        (("haproxy", "-vv"), HAPROXY_BUILT.format("3.4.1-abc"), [], "D604", "`ktls on` on bind"),
        (("haproxy", "-vv"), "HAProxy version 3.4.1 x\n", [], "D604", "another HAProxy (this one is built"),
        (("stunnel", "-options"), STUNNEL_KNOWS.format("5.60"), [], "D603", "in the service's section: "),
        (("stunnel", "-options"), STUNNEL_KNOWS.format("5.59"), [], "D603", "(this is 5.59, and 5.60 is"),
        (
            ("stunnel", "-options"),
            STUNNEL_KNOWS.format("5.60").replace("ENABLE_KTLS", "X"),
            [],
            "D603",
            "another stunnel (this one is built",
        ),
        (
            ("stunnel", "-options"),
            STUNNEL_KNOWS.format("5.68"),
            ["options = ENABLE_KTLS"],
            "D602",
            "(by default)",
        ),
    ],
)
def test_a_server_is_judged_by_its_version(
    command: tuple[str, str], said: str, lines: list[str], code: str, words: str
) -> None:
    """What a server can, and what it does by default, are those of the version installed."""
    host, (name, _) = FakeHost(), command
    place, uses = {
        "nginx": (NGINX, "listen 443 ssl;"),
        "haproxy": ("/etc/haproxy/a.cfg", "bind :443 ssl"),
        "stunnel": ("/etc/stunnel/a.conf", "accept = 443"),
    }[name]
    host.configured(name, *(f"{place}:{n}: {line}" for n, line in enumerate([uses, *lines], 3)))
    host.answers[command] = (0, said if name == "haproxy" else "", said)
    found = seen(host, "eth0")
    hits = [f for f in found.findings if f.code.startswith("D60")]
    assert [f.code for f in hits] == [code] * bool(code)
    reported = " ".join((*found.fine, *(f"{f.what} {f.remedy}" for f in hits)))
    assert words in reported, reported
    if words.startswith(("in http", "`ktls", "in the")):
        assert hits[0].remedy.startswith(words), "nothing has to come before it"


@pytest.mark.parametrize(
    ("library", "reported"),
    [("OpenSSL 3.0.19 27 Jan 2026", True), ("OpenSSL 3.6.3", False), ("LibreSSL 4.1.0", False)],
)
def test_a_library_that_moves_wrongly(library: str, reported: bool) -> None:
    """OpenSSL before 3.6.3 and 4.0.1 is named to every host whose programs may hand it records."""
    host = FakeHost()
    host.trial(library=library)
    assert ("D504" in codes(seen(host, "eth0"))) == reported
