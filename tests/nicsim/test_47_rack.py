"""A rack of three hosts over ssh: tests say what they say through the lab's agent, and a plain peer will do.

`make test` certifies such a rack (`make test-rack`); this is for `make test-bench`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from offload.debian.kernels import fetch
from offload.suite.bench.vm.lab import Lab
from offload.suite.report import events
from tests.lib.rig import sshd
from tests.lib.rig.rig import Labs

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(bool(sshd.missing()), reason=sshd.missing()),
]
SLOW = 900  # seconds: sshd and three log-ins in an emulated guest
# a payload, and every record of one beyond the card: DUT, peer and wire are a host each
RACK = "(sends_to_stunnel or records_it_sends) and tx-12_aes_gcm_128-v4"


@pytest.fixture(scope="module")
def rack(pytestconfig: pytest.Config, labs: Labs) -> Iterator[Lab]:
    """A VM with an sshd in each namespace; the peer has a plain card."""
    labs.close()
    kernel = fetch(pytestconfig.getoption("--kernel"))
    cards = "connectx-6-dx,plain"
    with Lab.boot(kernel, kind="nicsim", personality=cards, say=lambda _: None, ssh=True) as lab:
        yield lab


def outcomes(path: Path) -> dict[str, str]:
    """Each test's outcome in a run's events."""
    return {event["id"]: event["outcome"] for event in events.read(path).results()}


def suite(folder: Path, *how: str) -> dict[str, str]:
    """Run some hardware tests on a bench that is reached in this way: each one's outcome."""
    log = folder / f"events{how[0]}.jsonl"
    env = {**os.environ, "KTLS_OFFLOAD_STATE": str(folder / "state")}
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--events", str(log), *how]
    done = subprocess.run(
        [*argv, "-k", RACK, "tests/hw"], env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=SLOW
    )
    assert done.returncode == 0 and log.exists(), done.stdout[-3000:].decode()
    return outcomes(log)


def test_hosts_over_ssh_say_the_same(rack: Lab, tmp_path: Path) -> None:
    """Without this a test could pass through the lab's agent and not on the real hosts of a rack."""
    file = rack.folder / "ssh" / "lab.yaml"
    over_ssh = suite(tmp_path, "--lab", str(file))
    assert len(over_ssh) == 2 and set(over_ssh.values()) == {"pass"}, over_ssh
    assert suite(tmp_path, "--attach", rack.name) == over_ssh


def test_a_plain_peer_proves_interop(rack: Lab, tmp_path: Path) -> None:
    """Without this a bench whose peer has an ordinary card could not be certified, and not be told before."""
    file, out = str(rack.folder / "ssh" / "lab.yaml"), tmp_path / "run"
    env = {**os.environ, "KTLS_OFFLOAD_STATE": str(tmp_path / "state")}

    def typed(*words: str) -> tuple[int, str]:
        argv = [sys.executable, "-m", "offload", *words]
        done = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=SLOW)
        return done.returncode, (done.stdout + done.stderr).decode()

    code, said = typed("lab", "check", file)
    assert code == 0 and "can prove all 35 required promises" in said, said
    assert "the peer's card does not offer tls-hw-tx-offload: interop.card" in said, said
    code, said = typed("certify", "--lab", file, "--only", "each_kind", "--out", str(out))
    assert code == 21, said  # a part of the tests never certifies
    found = {name.partition("::")[2]: word for name, word in outcomes(out / "events.jsonl").items()}
    kinds = [f"test_{direction}_each_kind" for direction in ("sends_to", "receives_from")]
    wanted = {"hw": "skip", "sw": "pass", "user": "pass"}
    assert found == {f"{test}[{far}]": word for test in kinds for far, word in wanted.items()}, said
