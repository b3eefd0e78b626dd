"""ci/setup: it waits for whoever holds apt's locks, says who, and gives up with apt's own words."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FAKES = {
    "dpkg-query": "exit 1",
    "apt-cache": "exit 0",
    "id": "echo 1000",
    "systemctl": "exit 0",
    "sleep": "exit 0",
    # what is done as root is not done, but for apt-get
    "sudo": 'case "$*" in *apt-get*) exec "$@" ;; *tee*) cat >/dev/null ;; esac',
}
LOCKED = "E: Could not get lock /var/lib/{}. It is held by process {} (unattended-upgr)"
WAITED = """Waiting for cache lock: Could not get lock /var/lib/{0}. It is held by process {1} (upgrade)...
E: Unable to acquire the dpkg frontend lock (/var/lib/{0}), is another process using it?"""


@dataclass
class Host:
    """A Debian host whose programs are fakes, as many answers of apt-get as there are files."""

    home: Path

    def answers(self, *texts: str) -> None:
        """What apt-get says in turn: nothing is a success."""
        for number, text in enumerate(texts):
            (self.home / f"answer-{number}").write_text(text)
        body = 'n=$(cat "$HERE/n"); echo $((n + 1)) >"$HERE/n"; echo "$@" >>"$HERE/asked"\n'
        body += '[ -s "$HERE/answer-$n" ] || exit 0; cat "$HERE/answer-$n" >&2; exit 100'
        (self.home / "n").write_text("0")
        for name, text in (FAKES | {"apt-get": body}).items():
            (self.home / name).write_text(f"#!/bin/sh\n{text}\n")
            (self.home / name).chmod(0o755)

    def setup(self, wait: int, what: str = "run") -> tuple[int, str]:
        """Run ci/setup: exit code and what it said."""
        env = os.environ | {
            "PATH": f"{self.home}:/usr/bin:/bin",
            "HERE": str(self.home),
            "SETUP_LOCK_WAIT": str(wait),
        }
        done = subprocess.run([ROOT / "ci/setup", what], env=env, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def asked(self) -> list[str]:
        """What apt-get was asked to do."""
        lines = (self.home / "asked").read_text().splitlines()
        return ["install" if "install" in line.split() else line.split()[-1] for line in lines]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A host on which nothing is installed."""
    return Host(tmp_path)


def test_it_waits_and_says_for_whom(host: Host) -> None:
    """A lock held by another program is waited for, with one line for each holder."""
    lists, dpkg = LOCKED.format("apt/lists/lock", 41), WAITED.format("dpkg/lock-frontend", 42)
    host.answers(lists, lists, "", dpkg, dpkg, dpkg, "")
    rc, said = host.setup(600)
    assert rc == 0 and host.asked() == ["update"] * 3 + ["install"] * 4
    lines = [line for line in said.splitlines() if "waiting for apt's lock" in line]
    assert [line.partition(" s: ")[2] for line in lines] == [
        "/var/lib/apt/lists/lock. It is held by process 41 (unattended-upgr)",
        "/var/lib/dpkg/lock-frontend. It is held by process 42 (upgrade)",
    ]


@pytest.mark.parametrize("answer", ["E: Unable to locate package", LOCKED.format("dpkg/lock", 4)])
def test_it_ends_with_the_words_of_apt(host: Host, answer: str) -> None:
    """Another failure is not repeated, and a lock that nobody gives back ends it, too."""
    host.answers("", answer)
    rc, said = host.setup(0)
    assert rc == 7 and host.asked() == ["update", "install"]
    assert answer in said and "setup: error: apt-get install failed" in said


def test_a_user_whom_sudo_refuses_is_told_so(host: Host) -> None:
    """A refusal of sudo is not taken for a network that is down."""
    host.answers("")
    words = "sudo: unable to resolve host vm\nsudo: a password is required"
    (host.home / "sudo").write_text(f"#!/bin/sh\necho '{words}' >&2; exit 1\n")
    rc, said = host.setup(0)
    assert rc == 4 and "sudo: a password is required" in said and "network" not in said
    assert "setup: error: sudo did not run apt-get" in said and not (host.home / "asked").exists()


def test_no_test_is_skipped_for_what_set_up_could_install() -> None:
    """On a fresh machine tests with daemons find each program that they look for, but for lintian."""
    packages = {"dpkg-deb": "dpkg", "sh": "dash", "cc": "gcc", "ip": "iproute2"}
    there = {"dpkg", "dash", "lintian"}  # essential ones, and one that brings half of Perl
    check = (ROOT / "ci/setup").read_text().partition("bench_packages=")[0]
    there |= set(re.findall(r'^  "([a-z0-9.+-]+):', check, re.M))
    text = "".join(path.read_text() for path in sorted((ROOT / "tests/daemons").glob("*.py")))
    wanted = set(re.findall(r'which\("([^"]+)"\)', text)) | {"git"}  # lists our files for the tests' rules
    assert {"nginx", "wrk"} <= wanted and {packages.get(name, name) for name in wanted} <= there
