"""Many benches at once: a real labgrid coordinator and exporter on loopback, a certify that is played."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from offload.cmd import wait_until
from offload.errors import ConfigError, RigError
from offload.suite.bench.lab.file import load
from offload.suite.certify import verbs
from offload.suite.certify.fleet import run as fleet
from offload.suite.certify.fleet.bench import reached, verdict
from offload.suite.certify.fleet.grid import Grid, Place, parsed, resources, tags
from offload.suite.report.trust import verify
from tests.lib.rig import benches
from tests.lib.rig.labgrid_client import warm
from tests.lib.rig.sshd import free_port

PLAYED = """
import json, sys, time
from pathlib import Path
words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
out, lab = Path(words["--out"]), words["--attach"]
out.mkdir(parents=True)
(out / "events.jsonl").write_text("{}")
(out / "began").write_text(str(time.time()))
if lab == "dies":
    sys.exit("ktls-offload: error: lab dies: the VM is gone")
while lab == "hangs":
    time.sleep(0.1)
while lab == "slow":
    (out / "events.jsonl").open("a").write("{}")
    time.sleep(0.1)
abreast = Path(__file__).with_name("abreast")  # these wait for each other
names, until = abreast.read_text().split() if abreast.exists() else [], time.time() + 60
while not all((out.parent / name / "began").exists() for name in names) and time.time() < until:
    (out / "events.jsonl").open("a").write("{}")
    time.sleep(0.05)
(out / "report.html").write_text("<html>")
word = "failed" if lab == "bad" else "certified"
(out / "report.json").write_text(json.dumps({"verdict": word, "headline": f"{lab} is {word}"}))
(out / "ended").write_text(str(time.time()))
"""


LABS = {"good": "fine", "broken": "dies", "faulty": "bad", "stuck": "hangs", "long": "slow"}


# a key of nobody: type, length and 32 bytes as RFC 8709 has them
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
RACK: dict[str, dict[str, object]] = {
    "dut-port": {
        "cls": "OffloadNic",
        "ifname": "ens1",
        "profile": "connectx-6-dx",
        "v4": "192.0.2.1/24",
        "v6": "fd00:2::1/64",
    },
    "dut-host": {"cls": "OffloadHost", "hostkeys": f"{KEY}, {KEY} root@dut1"},
    "dut-ssh": {"cls": "NetworkService", "address": "dut1.example", "username": "root"},
    "peer-port": {"cls": "OffloadNic", "ifname": "ens2", "v4": "192.0.2.2/24", "v6": "fd00:2::2/64"},
    "peer-host": {"cls": "OffloadHost", "hostkeys": KEY, "sudo": True},
    "peer-ssh": {"cls": "NetworkService", "address": "peer1.example", "username": "lab", "port": 2222},
    "wire-ports": {"cls": "OffloadWire", "ports": "eno1, eno2"},
    "wire-host": {"cls": "OffloadHost", "hostkeys": KEY},
    "wire-ssh": {"cls": "NetworkService", "address": "wire1.example", "username": "root"},
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """labgrid's client, which need not be imported for each call."""
    pytest.importorskip("labgrid", reason="pip install 'ktls-offload[lab]'")
    with warm(tmp_path_factory.mktemp("client")) as program:
        yield program


@pytest.fixture(scope="module")
def switched() -> Iterator[tuple[int, list[str]]]:
    """A power switch on loopback, for labgrid's model `simplerest`: its port, and what it was asked."""
    asked: list[str] = []

    class Switch(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Switch) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port, asked
        server.shutdown()


@pytest.fixture(scope="module")
def coordinator(
    client: str, switched: tuple[int, list[str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A coordinator with a place for each lab, one with two power switches, and one of real hosts."""
    tags = {name: {"nic": name, "site": "x" if name != "long" else "y"} for name in LABS}
    url = f"http://127.0.0.1:{switched[0]}/{{index}}/{{value}}"
    port = {"cls": "NetworkPowerPort", "model": "simplerest", "host": url}
    ports = {"dut-power": {**port, "index": "3"}, "peer-power": {**port, "index": "4"}}
    more = {"stuck": {**ports, **RACK}, "rack": RACK}
    labs, tags = {**LABS, "rack": ""}, {**tags, "rack": {"nic": "real"}}
    with benches.coordinator(tmp_path_factory.mktemp("labgrid"), labs, tags, client, more) as address:
        yield address


@pytest.fixture
def grid(coordinator: str, client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Grid:
    """The coordinator, and a certify that is played."""
    script = tmp_path / "played.py"
    script.write_text(textwrap.dedent(PLAYED))
    monkeypatch.setattr(fleet, "command", lambda options: [sys.executable, str(script), *options])
    return Grid(coordinator, client)


def run(
    grid: Grid, out: Path, *given: str, hang: float = 60, wait: float = 60
) -> tuple[int, str, dict[str, dict[str, str]]]:
    said: list[str] = []
    code = fleet.run_all(grid, tags(given), out, [], said.append, wait=wait, hang=hang)
    document = json.loads((out / "benches.json").read_text())
    return code, "".join(said), {bench["place"]: bench for bench in document["benches"]}


def taken(grid: Grid) -> list[str]:
    return [place.name for place in grid.places() if place.taken]


def test_one_that_breaks_is_void_and_the_others_go_on(
    grid: Grid, switched: tuple[int, list[str]], tmp_path: Path
) -> None:
    """Benches run side by side; one that dies or hangs is void, and all are given back."""
    (tmp_path / "abreast").write_text("faulty good")
    code, said, found = run(grid, tmp_path / "out", "site=x", hang=20)
    assert code == 22 and {name: bench["word"] for name, bench in found.items()} == {
        "broken": "void",
        "faulty": "failed",
        "good": "certified",
        "stuck": "void",
    }
    assert (
        "the VM is gone" in found["broken"]["reason"]
        and "hung: no event for 20 s" in found["stuck"]["reason"]
    )
    assert found["stuck"]["reason"].endswith("the bench was power-cycled") and found["stuck"]["cycled"]
    assert switched[1] == ["/3/0", "/3/1", "/4/0", "/4/1"], "each: off, then on"
    assert not taken(grid)
    began, done = (
        [float((tmp_path / "out" / n / w).read_text()) for n in ("faulty", "good")]
        for w in ("began", "ended")
    )
    assert max(began) < min(done), (began, done)
    assert "4 benches with site=x: broken, faulty, good, stuck" in said and "good: CERTIFIED" in said
    page = (tmp_path / "out" / "benches.html").read_text()
    assert 'href="good/report.html"' in page and "http" not in page


def test_a_place_of_real_hosts_becomes_a_lab_file(grid: Grid, tmp_path: Path) -> None:
    """What an exporter says of hosts on a rack is a lab file that can be read."""
    with grid.held("rack") as found:
        assert reached(found, tmp_path / "lab.yaml") == ["--lab", str(tmp_path / "lab.yaml")]
    lab = load(tmp_path / "lab.yaml")
    assert lab.dut.login and lab.dut.login.hostkeys == (KEY, KEY) and lab.dut.port
    assert (lab.dut.login.address, lab.dut.port.ifname, lab.dut.port.v6) == (
        "dut1.example",
        "ens1",
        "fd00:2::1",
    )
    assert lab.peer.login and (lab.peer.login.user, lab.peer.login.port) == ("lab", 2222)
    assert lab.peer.login.sudo and lab.wire and lab.wire.wire == ("eno1", "eno2")


def test_what_cannot_be_switched_is_reported(grid: Grid) -> None:
    """A bench without a power switch, or one that labgrid cannot switch, is said to be so."""
    with grid.held("good") as found:
        assert grid.cycle("good", found) == "the place has no power switch"
        why = grid.cycle("good", {"NetworkPowerPort:gone": {}})
        assert why.startswith(f"labgrid at {grid.coordinator}: ") and "no compatible resource" in why


def test_a_merged_result_can_be_verified(grid: Grid, tmp_path: Path) -> None:
    """What many benches left is one result: listed, signed and checked as that of one bench."""
    words = ["--all-benches", "site=x", "nic=good", "--coordinator", grid.coordinator]
    assert certified(*words, "--out", str(tmp_path / "out")) == 0
    found = verify.check(tmp_path / "out")
    assert not found.problems and found.files >= 6
    assert "it says: certified: good: certified" in verify.text(found)
    (tmp_path / "out" / "good" / "report.html").write_text("<html> ")
    assert [bad.path for bad in verify.check(tmp_path / "out").problems] == ["good/report.html"]


def test_waits_for_a_bench_that_others_hold(grid: Grid, tmp_path: Path) -> None:
    """A place that is taken is waited for; one that does not come free is void, with that."""
    with grid.held("faulty"):
        assert taken(grid) == ["faulty"]
        code, _, found = run(grid, tmp_path / "late", "nic=faulty", wait=2)
        assert code == 22 and "timed out after 2 s" in found["faulty"]["reason"] and taken(grid) == ["faulty"]
    assert not taken(grid)


def test_interrupt_gives_every_bench_back(grid: Grid, tmp_path: Path) -> None:
    """Ctrl-C ends the children, and releases the places."""
    begun = tmp_path / "out" / "long" / "began"

    def interrupt() -> None:
        wait_until(begun.exists, 60, "the child")
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run(grid, tmp_path / "out", "nic=long")
    assert not taken(grid)
    size = (begun.parent / "events.jsonl").stat().st_size
    time.sleep(0.4)
    assert (begun.parent / "events.jsonl").stat().st_size == size


def test_no_such_bench_names_those_that_there_are(coordinator: str) -> None:
    """A tag that no place has is answered with those that there are; the installed client."""
    with pytest.raises(ConfigError) as wrong:
        Grid(coordinator).matching({"nic": "t7"})
    assert "no bench with nic=t7" in str(wrong.value) and "faulty: nic=faulty site=x" in str(wrong.value)


@pytest.mark.parametrize("name", ["127.0.0.1:99999", "http://x:1", "-x", "a b", "x:y", "\x1b[2J"])
def test_coordinator_that_is_none(name: str) -> None:
    """A coordinator that cannot be one is refused, not answered by labgrid's traceback."""
    with pytest.raises(ConfigError, match="no coordinator '"):
        Grid(name, "/bin/false")


def test_broken_labgrid_is_one_sentence(tmp_path: Path) -> None:
    """A labgrid that cannot start says why, without where in its source."""
    program = tmp_path / "labgrid-client"
    program.write_text("#!/usr/bin/python3\nimport no_such_module\n")
    program.chmod(0o755)
    with pytest.raises(RigError) as caught:
        Grid("127.0.0.1:1", str(program)).places()
    assert caught.value.args[0].endswith(": ModuleNotFoundError: No module named 'no_such_module'")


def test_nothing_is_left_where_nothing_was_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator that is not there leaves no folder of results, and yours alone."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    for more in ([], ["--out", "new"], ["--out", "mine"]):
        with pytest.raises(RigError, match="labgrid at"):
            certified("--all-benches", "nic=x", "--coordinator", "127.0.0.1:1", *more)
    assert [path.name for path in tmp_path.iterdir() if path.name != "results"] == ["mine"]
    assert not list(tmp_path.glob("results/*"))


@pytest.mark.parametrize("more", [["--coordinator", "127.0.0.1:1"], ["--wait", "5"], ["--hang", "5"]])
def test_options_of_many_benches_alone(more: list[str]) -> None:
    """What is only of use for many benches starts no run of a lab without them."""
    with pytest.raises(ConfigError, match=f"{more[0]} needs --all-benches"):
        certified(*more)


def certified(*words: str) -> int:
    """`ktls-offload certify WORDS`."""
    parser = argparse.ArgumentParser()
    verbs.add_parser(parser.add_subparsers())
    args = parser.parse_args(["certify", *words])
    return int(args.func(args))


def test_no_coordinator_is_one_sentence(coordinator: str) -> None:
    """A coordinator that is not there is named with its address."""
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(RigError) as wrong:
        Grid(address).places()
    assert address in str(wrong.value) and "Traceback" not in str(wrong.value)


@pytest.mark.parametrize("given", [[], [","], ["nic"], ["=x"], ["nic=a b=\x1b"], ["nic=" + "x" * 65]])
def test_tags_that_are_none(given: list[str]) -> None:
    """Words that are no tags are refused by name."""
    with pytest.raises(ConfigError, match="--all-benches"):
        tags(given)


def test_reads_what_the_client_prints() -> None:
    """Places with and without tags are read, hostile names passed over."""
    text = "Place 'a':\n  tags: nic=x, y=z\n  acquired: host/me\nnonsense\n"
    text += "Place '\x1b[2J':\n  tags: q=r\nPlace 'b':\n  matches:\n"
    assert list(parsed(text)) == [Place("a", {"nic": "x", "y": "z"}, "host/me"), Place("b", {}, "")]


@pytest.mark.parametrize(
    "text", ["", "[", "targets: 3", "targets: {p: {resources: [3]}}", "targets: {q: {resources: []}}", "\x00"]
)
def test_resources_that_cannot_be_read(text: str) -> None:
    """What is no environment of the place is a broken rig, in one sentence."""
    with pytest.raises(RigError, match="place p"):
        resources(text, "p")


def test_how_a_bench_is_reached(tmp_path: Path) -> None:
    """A place is a lab in a VM, or hosts by role; anything else is refused with what it has."""
    file = tmp_path / "bench.yaml"
    assert reached({"OffloadVm:vm": {"lab": "one"}}, file) == ["--attach", "one"] and not file.exists()
    nic, ssh = {"ifname": "ens1", "v4": "192.0.2.1/24"}, {"address": "192.0.2.9", "username": "root"}
    found = {
        f"{k}:{role}-{k}": v
        for role in ("dut", "peer")
        for k, v in (("OffloadNic", nic), ("NetworkService", ssh))
    }
    assert reached(found, file) == ["--lab", str(file)]
    targets = yaml.safe_load(file.read_text())["targets"]
    assert targets["peer"]["resources"] == {"OffloadNic": nic, "NetworkService": ssh} and len(targets) == 2
    for wrong in ({}, {"USBSerialPort:x": {}}, {"OffloadNic:dut-port": nic}, {"OffloadVm:vm": {"lab": 3}}):
        with pytest.raises(ConfigError, match="does not say how to reach its bench"):
            reached(wrong, file)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"verdict": "certified"}', "\x00"])
def test_a_report_that_cannot_be_read_is_void(text: str, tmp_path: Path) -> None:
    """No verdict is taken from half a report; and none from a whole one if the bench broke."""
    (tmp_path / "report.json").write_text(text)
    assert verdict(tmp_path / "report.json", "")[0] == "void"
    (tmp_path / "report.json").write_text('{"verdict": "certified", "headline": "x"}')
    assert verdict(tmp_path / "report.json", "")[0] == "certified"
    assert verdict(tmp_path / "report.json", "hung")[0] == "void"
