"""One host whose two cards are cabled to each other is a bench: made, certified and put back by its verbs.

The whole program runs inside the VM, as on the server with the cards: no ssh, no agent, no wire box. There it
also runs as a job of netdev CI, which makes the bench itself.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from offload.cmd import settles, wait_until
from offload.debian.kernels import fetch
from offload.suite.bench.vm.lab import Lab
from offload.suite.report import events
from tests.lib.rig.rig import Labs

PROJECT = Path(__file__).parents[2]
PROGRAM = PROJECT / "packaging/kselftest/ktls_offload.sh"
CARDS = ("nicsim0", "nicsim1")
FOLDER = "/run/one-host"
OUT = "/run/lab/out/one-host"  # the results share
SLOW = 900  # seconds: Python in an emulated guest, several times
ONE = "test_sends_to_stunnel and tx-12_aes_gcm_128-v4 or test_records_it_sends and tx-12_aes_gcm_128-v4"
# where NIPA unpacks a kernel's selftests; each name and value as the kernel's own tests read them
HW = f"{FOLDER}/kselftest/drivers/net/hw"
CONFIG = """\
NETIF=nicsim0
LOCAL_V4=192.0.2.1
LOCAL_V6=fd00:2::1
REMOTE_V4=192.0.2.2
REMOTE_V6=fd00:2::2
REMOTE_TYPE=netns
REMOTE_ARGS=nipa
OFFLOAD_PROFILE=connectx-6-dx
"""
# what a machine of NIPA has when its job begins: both ends up, with addresses
WIRED = """\
ip netns add nipa; ip link set nicsim1 netns nipa
ip address add 192.0.2.1/24 dev nicsim0; ip address add fd00:2::1/64 dev nicsim0 nodad; ip link set nicsim0 up
ip -n nipa address add 192.0.2.2/24 dev nicsim1; ip -n nipa address add fd00:2::2/64 dev nicsim1 nodad
ip -n nipa link set lo up; ip -n nipa link set nicsim1 up
"""
UNWIRED = """\
ip -n nipa link set nicsim1 netns 1; ip netns del nipa
ip address flush dev nicsim0; ip address add 198.51.100.7/24 dev nicsim1
ip link set nicsim0 up; ip link set nicsim1 up
"""
SEEN = """\
for dev in nicsim0 nicsim1; do
ip -d address show dev $dev; ip -d route show table all dev $dev | sort; ethtool -k $dev; done; ip netns
"""


@dataclass
class Server:
    """The VM as a server with two cards, nicsim0 and nicsim1."""

    lab: Lab

    def typed(self, line: str) -> tuple[int, str]:
        """What `ktls-offload LINE` exits with and prints, typed in a folder of its own."""
        argv = [sys.executable, "-m", "offload", *shlex.split(line)]
        env = {"PYTHONPATH": str(PROJECT), "KTLS_OFFLOAD_STATE": f"{FOLDER}/state"}
        script = ["sh", "-c", f'mkdir -p {FOLDER} && cd {FOLDER} && exec "$@"', "sh", *argv]
        done = self.lab.root.run(script, env=env, timeout=SLOW, check=False)
        return done.rc, (done.stdout + done.stderr).decode("utf-8", "replace")

    def job(self, *words: str) -> tuple[int, str]:
        """What the program for the kernel's selftests exits with and prints, run in the kernel's folder."""
        command = f'#!/bin/sh\nexec {sys.executable} -m offload "$@"\n'
        self.lab.root.write(f"{FOLDER}/ktls-offload", command.encode(), 0o755)
        self.lab.root.write(f"{HW}/{PROGRAM.name}", PROGRAM.read_bytes(), 0o755)
        self.lab.root.write(f"{HW}/net.config", CONFIG.encode(), 0o644)
        env = {"PYTHONPATH": str(PROJECT), "KTLS_OFFLOAD_STATE": f"{FOLDER}/state"}
        env |= {"KTLS_OFFLOAD": f"{FOLDER}/ktls-offload", "KTLS_OFFLOAD_OUT": f"{OUT}-job"}
        script = ["sh", "-c", f'cd {HW} && exec ./{PROGRAM.name} "$@"', "sh", *words]
        done = self.lab.root.run(script, env=env, timeout=SLOW, check=False)
        return done.rc, done.text or done.stderr.decode("utf-8", "replace")

    def seen(self) -> str:
        """What `ip` and `ethtool` say of both cards, once each is up and has its first address."""

        def settled() -> bool:
            ip = ["ip", "-6", "address", "show", "up", "scope", "link", "dev"]
            shown = [self.lab.root.run([*ip, dev]).text for dev in CARDS]
            return all("LOWER_UP" in one and "inet6" in one and "tentative" not in one for one in shown)

        wait_until(settled, SLOW, "both cards to be up", every=0.5)
        return self.lab.root.run(["sh", "-c", SEEN]).text


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config, labs: Labs) -> Iterator[Server]:
    """A VM whose cards are where a server's are; the cable is a bridge that nobody can ask."""
    labs.close()
    kernel = fetch(pytestconfig.getoption("--kernel"))
    with Lab.boot(kernel, kind="nicsim", personality="connectx-6-dx", say=lambda _: None) as lab:
        for number, name in enumerate(("dut", "peer")):
            lab.root.run(["ip", "-n", name, "link", "set", "dev", f"nicsim{number}", "netns", "1"])
        lab.root.run(["ip", "address", "add", "198.51.100.7/24", "dev", "nicsim1"])
        for number in range(2):
            lab.root.run(["ip", "link", "set", "dev", f"nicsim{number}", "up"])
        yield Server(lab)


@pytest.mark.once
@pytest.mark.turns("a server of its own")  # with test_19_reboot.py: a boot, and minutes in it
def test_is_made_and_put_back(server: Server) -> None:
    """Without this the commonest bench, one server and a cable, had to be wired in namespaces by hand."""
    before = server.seen()
    assert "198.51.100.7/24" in before
    made(server)
    put_back(server, before)


@pytest.mark.once
@pytest.mark.long
def test_certifies_on_one_host(server: Server) -> None:
    """Without this the local transport of such a bench could fail where the suite runs beside the cards."""
    before = server.seen()
    made(server)
    code, said = server.typed(f"certify --lab lab.yaml --only {shlex.quote(ONE)} --out {OUT}")
    assert code == 21, said  # a part of the tests never certifies
    run = server.lab.out / "one-host"
    found = {
        e["id"].partition("::")[2].partition("[")[0]: e["outcome"]
        for e in events.read(run / "events.jsonl").results()
    }
    assert found == {"test_sends_to_stunnel": "pass", "test_records_it_sends": "skip"}, found
    assert json.loads((run / "report.json").read_text())["rig"]["transport"] == "local"
    put_back(server, before)


@pytest.mark.once
@pytest.mark.long
def test_is_a_job_of_netdev_ci(server: Server) -> None:
    """Without this the program for the kernel's selftests could fail on a machine as NIPA's."""
    server.lab.root.run(["sh", "-ec", WIRED])
    try:
        code, said = server.job("--only", ONE)
    finally:
        server.lab.root.run(["sh", "-ec", UNWIRED])
    assert code == 21, said  # a part of the tests never certifies
    lines = said.splitlines()
    assert lines[0] == "TAP version 13" and not [line for line in lines if "Bail out!" in line], said
    assert re.fullmatch(r"1\.\.\d+", lines[1]), said
    found = [line for line in lines if re.match(r"(not )?ok \d+ ", line)]
    kept = [line for line in found if "test_sends_to_stunnel" in line]
    assert len(kept) == 1 and kept[0].startswith("ok ") and "# SKIP" not in kept[0], said
    assert [line for line in found if re.match(r"ok .*test_records_it_sends.* # SKIP", line)], said
    assert [line for line in found if re.match(r"not ok \d+ verdict certified", line)], said


def made(server: Server) -> None:
    """Make the bench, and check it."""
    code, said = server.typed("lab init --one-host nicsim0 nicsim1")
    assert code == 0 and "cable: nicsim0 to nicsim1" in said, said
    code, said = server.typed("lab check lab.yaml")
    assert code == 0 and "transport: local" in said, said
    assert "one host: " in said and "no wire box: " in said, said
    assert "cannot prove" in said and "there is no wire box" in said, said


def put_back(server: Server, before: str) -> None:
    """Put both cards back where and as they were."""
    code, said = server.typed("lab restore")
    assert code == 0 and "as found" in said, said
    assert settles(lambda: server.seen() == before, 60), (before, server.seen())
