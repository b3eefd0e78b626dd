"""doctor: whatever programs and files say, there is an answer, and no byte of it steers a terminal."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from offload.card.profile import DIRECTIONS, load_all
from offload.doctor.document import as_json
from offload.doctor.examine import EXITS, Diagnosis, Doctor
from offload.doctor.library import Trial, attempt
from offload.doctor.text import as_text
from offload.errors import OffloadError
from tests.unit.doctor.fake_doctor import FakeHost, card
from tests.unit.doctor.test_doctor import CASES, PROFILES

NASTY = (
    "",
    "\x1b[2J\x1b]0;owned\x07",
    "{",
    "[" * 5000,
    "null",
    "[null]",
    '{"dev": []}',
    "[[]]",
    "9" * 5000,
    "\x00",
    '[{"kind": "netem", "options": "\\u001b[31m"}]',
    "\udcff\udcfe",
    "install \x1b[31m",
    "a\nb\r\nc\x85d\u2028e",
    '{"cells": {"1.2 aes-gcm-128": {"ulp": true, "tx": 1e999}}, "openssl": [], "bits": "64", "library": [1]}',
    '{"cells": [], "openssl": {}}',
    "Debian Debian Debian",
    "6.1.0 \x1b[1m Debian 6.1-\x1b[0m",
    "x" * 20_000,
    "/etc/nginx/\x1b[31m.conf:3: listen 443 ssl;",
    "/etc/nginx/a:b:c:1: ssl_certificate \x1b[31m",
)


def clean(text: str) -> bool:
    """Say whether only line ends and printable characters are in a text."""
    return text.replace("\n", "").isprintable()


def reported(found: Diagnosis) -> None:
    """Both forms of an answer are sound."""
    assert clean(as_text(found, verbose=True)) and clean(as_text(found))
    document = as_json(found)
    assert document.isascii() and clean(document)
    assert json.loads(document)["exit"] == EXITS[found.state()]


def whole(host: FakeHost, dev: str = "eth0") -> None:
    """Ask; an answer, or an error for a person."""
    with suppress(OffloadError):
        reported(Doctor(host, DIRECTIONS, PROFILES).diagnose([dev]))


@pytest.mark.parametrize("code", ["D109", "D106", "D210"])
def test_any_program_may_say_anything(code: str) -> None:
    """Each program's answer may be any nonsense, with either exit code."""
    make, dev = CASES[code]
    host = FakeHost()
    make(host)
    programs = [*host.answers, ("uname",), ("ethtool",), ("ethtool", "-i"), ("devlink",), ("unshare",)]
    for words in programs:
        for nonsense in NASTY:
            host = FakeHost()
            make(host)
            rc = len(nonsense) % 2
            host.answers[words] = (rc, nonsense, nonsense.encode("utf-8", "replace").decode())
            whole(host, dev)


@pytest.mark.parametrize("seed", range(100))
def test_any_byte_may_be_another(seed: int) -> None:
    """Answers with bytes changed, left out or repeated give no traceback."""
    chance = random.Random(seed)
    host = FakeHost()
    make, dev = CASES[chance.choice(sorted(CASES))]
    make(host)
    for words in list(host.answers):
        rc, out, err = host.answers[words]
        host.answers[words] = (rc, _mangled(chance, out), err)
    host.files = {
        path: _mangled(chance, data.decode("latin-1")).encode("latin-1", "replace")
        for path, data in host.files.items()
    }
    for nic in host.devices.values():
        nic["driver"] = _mangled(chance, nic["driver"])
        for row in nic["features"].values():
            if chance.random() < 0.2:
                row[chance.choice(["active", "fixed", "requested"])] = chance.choice([None, "on", [], 7, {}])
    whole(host, dev)


def _mangled(chance: random.Random, text: str) -> str:
    if not text or chance.random() < 0.5:
        return text
    at = chance.randrange(len(text))
    cut = at + chance.randrange(len(text) - at + 1)
    odd = chance.choice(["", "\x1b[31m", "\x00", '"', "{", "-1", text, chr(chance.randrange(1, 0x300))])
    return text[:at] + odd + text[cut:]


def test_names_of_devices_are_quoted_in_remedies() -> None:
    """A device with a name for a shell does not bring its command into a remedy."""
    host = FakeHost()
    nic = card("mlx5_core", "0000:04:00.0", "15b3:101d")
    nic["features"]["tls-hw-rx-offload"] = {"active": False, "fixed": False, "requested": False}
    host.devices = {"a;reboot": nic}
    found = Doctor(host, DIRECTIONS, PROFILES).diagnose(["a;reboot"])
    reported(found)
    remedies = {f.code: f.remedy for f in found.devices[0].findings}
    assert remedies["D301"] == "ktls-offload enable 'a;reboot' --rx"


@pytest.mark.parametrize(
    "make",
    [
        lambda h: h.answers.update({("unshare",): (1, "", "unshare: not permitted")}),
        lambda h: h.trial(cells=None),
        lambda h: h.trial(cells={"1.2 aes-gcm-128": None}, openssl=3, library={"a": 1}, bits=None),
    ],
)
def test_a_trial_that_fails_says_so(make: Callable[[FakeHost], Any]) -> None:
    """A trial without an answer is unknown, and one without sense says nothing."""
    host = FakeHost()
    host.answers.pop(("unshare", "--net"))
    make(host)
    found = Doctor(host, DIRECTIONS, PROFILES).diagnose(["eth0"])
    assert isinstance(found.trial, Trial) and not found.trial.asked
    assert found.state() == "ready", "the library is another matter"
    reported(found)


def test_trial_without_a_namespace_of_its_own() -> None:
    host = FakeHost()
    answer = host.answers.pop(("unshare", "--net"))
    host.answers["/usr/bin/python3",] = answer
    machine = Doctor(host, DIRECTIONS, PROFILES).diagnose(["eth0"]).machine
    assert attempt(host, machine).asked == frozenset(DIRECTIONS)


def test_profiles_that_are_wrong_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong() -> Any:
        raise OffloadError("nic-profiles/foo.yaml:7: unknown key")

    monkeypatch.setattr("offload.doctor.examine.load_all", wrong)
    found = Doctor(FakeHost()).diagnose(["eth0"])
    assert "warning profiles not read: nic-profiles/foo.yaml:7" in as_text(found)
    assert found.state() == "ready" and len(load_all()) > 2
