"""doctor --pid: each connection has a reason, from the process's library, its cipher, or its route."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from offload.cli.main import main
from offload.doctor.examine import EXITS
from offload.doctor.process.judge import Answer, ask
from offload.doctor.process.text import as_json, as_text
from offload.doctor.reasons import load
from offload.errors import ConfigError
from tests.unit.doctor.fake_doctor import FakeHost, feature
from tests.unit.doctor.fake_process import (
    GNUTLS,
    PID,
    PID_CASES,
    SSL,
    SW,
    TLS13,
    Make,
    made,
    process,
    reported,
    row,
    switched_off,
)
from tests.unit.doctor.test_doctor_hostile import clean

SCHEMA = Path(__file__).parents[3] / "offload/doctor/schema/doctor-pid-1.schema.json"


def answer(make: Make) -> Answer:
    """What doctor says of the process of a host."""
    host = FakeHost()
    make(host)
    return ask(host, PID)


def codes(found: Answer) -> set[str]:
    return {f.code for f in found.findings}


def test_a_connection_on_the_card_is_ready() -> None:
    """A process whose connections the card has: ready, and nothing to say."""
    found = answer(made(row(), row(78, port=50001)))
    assert found.state() == "ready" and not codes(found)
    assert [one.count for one in found.connections] == [2], "two of one kind"
    assert found.connections[0].states == {"tx": ("ready", ""), "rx": ("ready", "")}


@pytest.mark.parametrize("code", PID_CASES)
def test_a_condition_gives_its_code(code: str) -> None:
    """Each condition is found, with the state of its level and a remedy that is filled in."""
    found = answer(PID_CASES[code])
    assert code in codes(found)
    if load()[code].level in ("never", "off"):
        assert found.state() == load()[code].level
    rows = [f for f in found.findings if f.code == code]
    assert all(f.remedy and f.evidence and "{" not in f.what + f.consequence + f.remedy for f in rows)


@pytest.mark.parametrize(
    ("make", "states", "code"),
    [
        (switched_off, {"tx": ("off", "D301"), "rx": ("ready", "")}, "D301"),
        (
            made(row(version=TLS13, tx=2, rx=1), version="OpenSSL 3.0.19"),
            {"tx": ("off", "D908"), "rx": ("off", "D813")},
            "D813",
        ),
        (made(row(device="?", **SW)), {"tx": ("unknown", ""), "rx": ("unknown", "")}, ""),
    ],
)
def test_the_first_reason_counts(make: Make, states: dict[str, tuple[str, str]], code: str) -> None:
    """The device's own reason where it is the device, the library's where it is that."""
    found = answer(make)
    assert found.connections[0].states == states
    assert not code or code in codes(found)


def test_a_card_without_a_direction_is_no_fault() -> None:
    """A direction that the card's profile does not promise does not count."""
    host = FakeHost()
    process(host, [row(rx=2)])
    host.devices["eth0"] |= {"driver": "cxgb4", "pci": "1425:6408"}
    host.change("tls-hw-rx-offload", feature(False, True))
    found = ask(host, PID)
    assert found.connections[0].states["rx"] == ("not promised", "D211")
    assert found.state() == "ready"


def test_libraries_by_their_maps() -> None:
    """OpenSSL, GnuTLS and s2n are named with what each waits for; an OpenSSL that copies wrongly is named."""
    assert "D504" in codes(answer(made(row(), version="OpenSSL 3.0.22")))
    assert "D829" in codes(answer(made(row(), version="OpenSSL 3.0.22", name="stunnel4")))
    for make in (made(plain=[5], maps=("/usr/lib/libs2n.so.1",), version=""), reported):
        assert codes(answer(make)) == {"D907"}, "it is able to: nobody asked"
    both = answer(made(plain=[5], maps=(SSL, GNUTLS), version="OpenSSL 3.6.3"))
    assert [x.name for x in both.process.libraries] == ["OpenSSL", "GnuTLS"]
    none = answer(made(plain=[5], maps=(SSL, "/usr/lib/libmbedtls.so.14")))
    assert codes(none) == {"D907"}, "OpenSSL may do it"
    other = answer(made(plain=[5], version=""))
    assert "D903" in codes(other) and "not OpenSSL" in other.process.libraries[0].name
    nss = answer(made(plain=[5], maps=("/usr/lib/x86_64-linux-gnu/libssl3.so",), version=""))
    assert nss.process.libraries[0].name == "NSS" and "D904" in codes(nss)


def test_a_library_that_no_connection_needs_is_no_reason() -> None:
    """All connections are on the card: a second library without kernel TLS changes nothing."""
    found = answer(made(row(), maps=(SSL, "/usr/lib/libmbedtls.so.14")))
    assert found.state() == "ready" and not codes(found)


def test_documents_fit_the_schema() -> None:
    """Each answer fits the published schema, which refuses one without a key; the text is clean."""
    judge = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    judge.check_schema(judge.schema)
    for code, make in PID_CASES.items():
        found = answer(make)
        document = json.loads(as_json(found))
        judge.validate(document)
        assert document["exit"] == EXITS[found.state()], code
        for key in document:
            assert not judge.is_valid({k: v for k, v in document.items() if k != key}), key
        assert clean(as_text(found, verbose=True))
    for key in document["process"]:
        less = {k: v for k, v in document["process"].items() if k != key}
        assert not judge.is_valid({**document, "process": less}), key


def test_text_shows_kind_and_reason() -> None:
    """The page has the process, its library, one entry for each kind of connection, and the reasons."""
    text = as_text(answer(made(row(**SW), row(78, **SW), row(79, version=TLS13, **SW), plain=[5])))
    assert text.startswith(f"nginx[1234]: /usr/sbin/nginx\n  library  OpenSSL 3.6.3, {SSL}\n\n")
    assert "192.0.2.1:443 - 192.0.2.2:50000, TLS 1.2 aes-gcm-128, eth0, and 1 more like it\n" in text
    assert "  transmit  sw        off          D912 opened-in-software\n" in text
    assert "  transmit  sw        off          D908 connection-speaks-tls13\n" in text
    assert "1 TCP connection without kernel TLS\n" in text


@pytest.mark.parametrize("name", ["\x1b]0;owned\x07", "a\nb", "", "x" * 500])
def test_a_process_may_call_itself_anything(name: str) -> None:
    """Name, map and program file are somebody else's words."""
    found = answer(made(row(), name=name, maps=(f"/opt/{name}/libssl.so.3", f"/{name}libgnutls.so")))
    assert clean(as_text(found)) and json.loads(as_json(found))["schema"] == 1


def test_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """No such process, no number, and options that exclude each other: exit 2 and a sentence."""
    with pytest.raises(ConfigError, match="no process 1234"):
        ask(FakeHost(), PID)
    assert main(["doctor", "--pid", "4194303"]) == 2
    assert "no process 4194303 on this host" in capsys.readouterr().err
    assert main(["doctor", "--pid", "1", "eth0"]) == 2
    assert "--pid takes no device" in capsys.readouterr().err
    for word in ("0", "-1", "x", "9" * 30, "١"):
        assert main(["doctor", f"--pid={word}"]) == 2
        assert "is not the number of a process" in capsys.readouterr().err
