"""What a verb of the operator opens before it answers, and how often it asks: a start is most of its time."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from offload.cli import main as cli
from offload.host.terminal import columns
from tests.unit.switch.fake_bench import FakeMachine

ROOT = Path(__file__).parents[2]
LOOK = """
import sys
before = set(sys.modules)
from offload.cli.main import main
code = main(sys.argv[1:])
print("opened", *sorted(set(sys.modules) - before), file=sys.stderr)
sys.exit(code)
"""
# Each of these takes longer to open than a verb's own files do, or opens such a one.
HEAVY = {
    "asyncio",
    "bz2",
    "concurrent",
    "email",
    "hashlib",
    "http",
    "logging",
    "lzma",
    "multiprocessing",
    "optparse",
    "random",
    "secrets",
    "shutil",
    "socket",
    "ssl",
    "tempfile",
    "unittest",
    "xml",
    "zipfile",
}
FLOOR = {"cli", "cmd", "errors", "host", "paths", "yamlfile"}
BASE = FLOOR | {"card", "card.nic", "card.profile"}
SWITCH = BASE | {"switch", "switch.verbs", "switch.enable", "switch.plan", "switch.many", "switch.journal"}
ROOMS = {
    "enable": SWITCH | {"switch.persist"},
    "disable": SWITCH | {"switch.persist"},
    "restore": SWITCH | {"switch.restore"},
    "status": BASE | {"card.counters", "switch", "switch.journal", "switch.status", "switch.verbs"},
    "doctor": BASE | {"card.counters", "doctor", "errata"},
}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    """A simulated ConnectX-6 Dx (sim0) among others; its programs are on PATH."""
    return FakeMachine(tmp_path, monkeypatch)


def opened(*argv: str) -> tuple[int, set[str]]:
    """A verb's exit code, and the modules that it opened."""
    done = subprocess.run(
        [sys.executable, "-c", LOOK, *argv], capture_output=True, text=True, cwd=ROOT, timeout=120
    )
    line = next((line for line in done.stderr.splitlines() if line.startswith("opened ")), "")
    assert line, done.stderr
    return done.returncode, set(line.split()[1:])


@pytest.mark.parametrize("verb", ROOMS)
def test_a_verb_opens_its_own_rooms_and_nothing_heavy(machine: FakeMachine, verb: str) -> None:
    """A verb opens the rooms that it needs and none of the standard library's heavy modules."""
    code, names = opened(verb, "sim0")
    assert code in (0, 10, 11, 12) and (code == 0 or verb == "doctor")
    kinds = re.compile(r"offload\.((?:card|switch)\.[a-z]+|[a-z]+)")  # of these two each file counts
    rooms = {found[1] for name in names if (found := kinds.match(name))}
    assert rooms == ROOMS[verb]
    assert not HEAVY & {name.partition(".")[0] for name in names}


def test_doctor_reads_no_configuration_of_a_server_that_is_not_there(machine: FakeMachine) -> None:
    """The readers of nginx's, HAProxy's and stunnel's files stay closed without --app."""
    assert not [name for name in opened("doctor", "sim0")[1] if name.startswith("offload.doctor.apps")]


def test_ls_opens_no_terminal() -> None:
    """What --watch needs is opened by --watch alone."""
    code, names = opened("ls", "--here")
    assert code == 0 and not {"offload.connections.watch", "termios", "textwrap", *HEAVY} & names


def test_enable_asks_as_often_as_it_must(machine: FakeMachine) -> None:
    """The card is looked at once, under the lock, and its features once after the change."""
    assert machine.call("enable", "sim0") == 0
    show, driver, features = "ip -j -d link show", "ethtool -i sim0", "ethtool --json -k sim0"
    change = "ethtool -K sim0 tls-hw-rx-offload on"
    assert machine.state()["log"] == [show, driver, features, change, features]


@pytest.mark.parametrize("verb", [verb.name for verb in cli.VERBS])
def test_the_parser_of_one_verb_is_that_of_all(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A verb says the same where the others' parsers are made and where they are not."""
    one = [v for v in cli.VERBS if v.name == verb]
    for argv in ([verb, "--help"], [verb, "--no-such-option"]):
        said = []
        for shown in (one, cli.VERBS):
            with pytest.raises((SystemExit, cli.Misused)) as caught:
                cli.parser(one, shown).parse_args(argv)
            said.append((*capsys.readouterr(), str(caught.value), getattr(caught.value, "usage", "")))
        assert said[0] == said[1] and any(said[0])


@pytest.mark.parametrize("said", ["", "0", "-3", "many", "57"])
def test_the_width_is_as_shutil_has_it(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """COLUMNS counts if it is a number above 0, and otherwise nothing is known of a pipe."""
    monkeypatch.setenv("COLUMNS", said)
    assert [columns(), columns(100)] == [shutil.get_terminal_size((n, 24)).columns for n in (80, 100)]


@pytest.mark.parametrize("wide", [0, 61])
def test_the_width_of_a_terminal(wide: int) -> None:
    """A terminal's width is asked of it, and one that does not know it has 80 columns."""
    ours, theirs = pty.openpty()
    ask = "from offload.host.terminal import columns; import sys; sys.stderr.write(str(columns()))"
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    subprocess.run(["stty", "cols", str(wide), "rows", "24"], stdin=theirs, check=True)
    done = subprocess.run(
        [sys.executable, "-c", ask], stdout=theirs, stderr=subprocess.PIPE, cwd=ROOT, env=env, check=True
    )
    os.close(ours), os.close(theirs)
    assert done.stderr == (str(wide) if wide else "80").encode()
