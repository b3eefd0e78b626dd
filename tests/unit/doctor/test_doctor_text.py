"""doctor: what a person and a program see."""

from __future__ import annotations

import json
import re
from functools import cache

import jsonschema
import pytest

from offload.cli.main import main
from offload.doctor.document import as_json
from offload.doctor.examine import DIRECTIONS, Diagnosis, Doctor
from offload.doctor.reasons import FILE, load
from offload.doctor.text import as_text, explain
from offload.errors import ConfigError
from tests.unit.doctor.fake_doctor import FakeHost, feature
from tests.unit.doctor.test_doctor import CASES, PROFILES


def case(code: str) -> Diagnosis:
    make, dev = CASES[code]
    host = FakeHost()
    make(host)
    return Doctor(host, DIRECTIONS, PROFILES).diagnose([dev] if dev else [])


def test_a_switch_that_is_off_on_one_screen() -> None:
    """The usual answer has at most 32 lines of 100, with reason, evidence and command."""
    shown = as_text(case("D301"))
    lines = shown.splitlines()
    assert len(lines) <= 32 and max(len(line) for line in lines) <= 100
    assert lines[0] == "eth0: NVIDIA ConnectX-6 Dx, driver mlx5_core, firmware 22.35.1012"
    assert lines[1] == "  transmit  ready        new connections: TLS 1.2 with aes-gcm-128, aes-gcm-256"
    assert lines[2] == "  receive   off          D301 switched-off"
    assert "    seen  ethtool -k eth0: tls-hw-rx-offload: off" in lines
    assert "    do    ktls-offload enable eth0 --rx" in lines


def test_worst_first() -> None:
    """Findings are sorted by how bad they are."""
    levels = [f.level for f in case("D401").devices[0].findings]
    assert levels == sorted(levels, key=["never", "off", "unknown", "risk", "note"].index)


def test_color_only_when_asked() -> None:
    """There is no escape sequence unless the caller wants color; the words are the same."""
    found = case("D301")
    plain, colored = as_text(found), as_text(found, color=True)
    assert "\x1b" not in plain and "\x1b[33moff\x1b[0m" in colored
    for code in ("1", "2", "31", "32", "33", "35", "36", "0"):
        colored = colored.replace(f"\x1b[{code}m", "")
    assert colored == plain


def test_narrow_terminal() -> None:
    """With 60 columns only title, remedies and table are longer."""
    lines = as_text(case("D109"), width=60).splitlines()
    table = lines[(at := next(n for n, x in enumerate(lines) if x.startswith("who does it"))) : at + 4]
    assert not [
        x for x in lines[1:] if len(x) > 60 and x not in table and not x.startswith(("    do ", "more"))
    ]


def test_verbose_tells_notes_and_bugs() -> None:
    """`--verbose` has the symptom of each kernel bug, and every note in full."""
    found = case("D109")
    short, long = as_text(found), as_text(found, verbose=True)
    assert "sendfile-beyond-end: the last record is not sent" in long
    assert "sendfile-beyond-end: " not in short and short.count("    do ") < long.count("    do ")


def test_several_devices() -> None:
    """Two devices have a block each, and a row each in the table."""
    host = FakeHost()
    host.devices["eth1"] = json.loads(json.dumps(host.devices["eth0"]))
    host.change("tls-hw-tx-offload", feature(False), "eth1")
    found = Doctor(host, DIRECTIONS, PROFILES).diagnose()
    assert found.state() == "ready" and [d.state() for d in found.devices] == ["ready", "off"]
    shown = as_text(found)
    assert "\neth0 tx      hw " in shown and "\neth1 tx      sw " in shown


def test_json_has_its_schema() -> None:
    """The document for programs has schema 1, states, findings and the truth table."""
    reported = json.loads(as_json(case("D301")))
    assert (reported["schema"], reported["state"], reported["exit"]) == (1, "off", 10)
    device = reported["devices"][0]
    assert device["directions"] == {
        "tx": {"state": "ready", "code": None},
        "rx": {"state": "off", "code": "D301"},
    }
    assert device["findings"][0] == {
        "code": "D301",
        "name": "switched-off",
        "level": "off",
        "dev": "eth0",
        "directions": ["rx"],
        "what": "receive offload is switched off",
        "evidence": "ethtool -k eth0: tls-hw-rx-offload: off",
        "consequence": "new connections: every record is decrypted by the CPU",
        "remedy": "ktls-offload enable eth0 --rx",
        "detail": [],
    }
    assert len(device["table"]) == 12
    assert reported["kernel"]["package"] == "6.1.192-2" and reported["openssl"]["asked"] == ["rx", "tx"]


@pytest.mark.parametrize("code", CASES)
def test_json_fits_the_published_schema(code: str) -> None:
    """The document of each case is what offload/doctor/schema says."""
    published().validate(json.loads(as_json(case(code))))


@cache
def published() -> jsonschema.Draft202012Validator:
    """What judges a document; the schema itself is judged once."""
    schema = json.loads((FILE.parent / "schema/doctor-1.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_explain() -> None:
    """A code or its name is explained; for one that is none the nearest is named."""
    assert explain("d401").startswith("D401 qdisc-breaks-offload (off)\n")
    assert explain("switched-off").startswith("D301 ")
    with pytest.raises(ConfigError, match="did you mean switched-off"):
        explain("switchedoff")


def test_exit_codes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is the state, and usage errors keep theirs."""
    for code, wanted in {"D109": 0, "D301": 10, "D205": 11, "D105": 12}.items():
        make, dev = CASES[code]
        host = FakeHost()
        make(host)
        monkeypatch.setattr("offload.host.local.LocalHost", lambda host=host: host)
        assert main(["doctor", dev]) == wanted
        assert json.loads(capsys.readouterr().out) if main(["doctor", dev, "--json"]) is None else True
        capsys.readouterr()
    assert main(["doctor", "eth7"]) == 3 and main(["doctor", "--explain", "D999"]) == 2
    assert main(["doctor", "--json", "--explain", "D301"]) == 2


@pytest.mark.parametrize("code", load())
def test_explanation_has_no_raw_names(code: str) -> None:
    """`--explain` shows RELEASE where a finding puts one, and no {words} of the file."""
    shown = explain(code)
    assert not re.search(r"\{\w+\}", shown) and shown.startswith(code)
    assert "Linux RELEASE is older" in explain("kernel-too-old")
