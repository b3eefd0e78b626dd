"""One host whose two cards are cabled to each other is a bench: made, certified and put back by its verbs.

The whole program runs inside the VM, as on the server with the cards: no ssh, no agent, no wire box.
"""

from __future__ import annotations

import json
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
CARDS = ("nicsim0", "nicsim1")
FOLDER = "/run/one-host"
OUT = "/run/lab/out/one-host"  # the results share
SLOW = 900  # seconds: Python in an emulated guest, several times
ONE = "test_sends_to_stunnel and tx-12_aes_gcm_128-v4 or test_records_it_sends and tx-12_aes_gcm_128-v4"
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
