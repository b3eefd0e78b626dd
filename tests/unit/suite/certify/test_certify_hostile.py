"""`certify` under two Ctrl-C, with a pipe for a file, and with names that turn a line round."""

import json
import os
import signal
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from offload.card.profile import find
from offload.cmd import settles, signals_interrupt, wait_until
from offload.errors import ConfigError, RigError
from offload.suite.bench.lab.netconfig import from_file
from offload.suite.bench.lab.source import load_any
from offload.suite.certify import tests, usage
from offload.suite.certify.patch import read_patch
from offload.suite.certify.tests import run_tests
from offload.suite.report.compare.history_store import open_store
from offload.suite.report.forms.checkbox import submission
from offload.suite.report.forms.in_toto import statement
from offload.suite.report.forms.junit import junit
from offload.suite.report.forms.ktap import ktap
from offload.suite.report.render.render import html
from offload.suite.report.render.summary import text
from tests.unit.suite.report.report_whole import document

TURN = "\u202e"
# asked once it notes that, and goes on: a test that does not end
DEAF = """
import signal, sys, time
signal.signal(signal.SIGINT, lambda *_: open("asked", "w").close())
with open("events.jsonl", "a", buffering=1) as out:
    open("ready", "w").close()
    while True:
        out.write("{}\\n")
        time.sleep(0.005)
"""


def test_two_interrupts_leave_no_test_that_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second Ctrl-C ends the tests at once: nothing moves that the manifest lists."""
    monkeypatch.setattr(tests, "command", lambda plan, lab: [sys.executable, "-c", DEAF])
    monkeypatch.setattr(tests, "ROOT", tmp_path)

    def interrupt() -> None:
        for name in ("ready", "asked"):
            wait_until((tmp_path / name).exists, 60, name)
            os.kill(os.getpid(), signal.SIGINT)

    before = children()
    both = threading.Thread(target=interrupt)
    both.start()
    interrupted(tmp_path)
    both.join()
    assert children() <= before, "it runs, or waits to be collected"


def test_an_interrupt_while_the_tests_start_ends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C between the start of pytest and the note of who it is leaves no test that runs."""

    def started(*args: Any, **how: Any) -> subprocess.Popen[bytes]:
        child = Popen(*args, **how)
        os.kill(os.getpid(), signal.SIGINT)
        return child

    Popen, before = subprocess.Popen, children()
    monkeypatch.setattr(tests, "command", lambda plan, lab: ["sleep", "600"])
    monkeypatch.setattr(subprocess, "Popen", started)
    interrupted(tmp_path)
    assert children() <= before, "it runs, or waits to be collected"


def interrupted(out: Path) -> None:
    """Run the tests as `certify` does, until an interrupt ends them; its handler is in place again."""
    with signals_interrupt():
        ours = signal.getsignal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            run_tests(SimpleNamespace(out=out), "lab", grace=60)  # type: ignore[arg-type]
        assert signal.getsignal(signal.SIGINT) is ours


def children() -> set[int]:
    """The children of this process, also those that have ended and wait to be collected."""
    return {pid for pid, parent in usage.parents().items() if parent == os.getpid()}


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Make a pipe of this name that nobody writes to; who waits for it is told after a while."""

    def made(name: str) -> Path:
        os.mkfifo(tmp_path / name)
        return tmp_path / name

    def late(number: int, frame: object) -> None:
        raise AssertionError("waits for a pipe")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    yield made
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("card.yaml", lambda path: find(str(path))),
        ("lab.yaml", load_any),
        ("net.config", from_file),
        ("a.patch", read_patch),
        ("history.db", open_store),
    ],
)
def test_a_pipe_is_no_file(pipe: Callable[[str], Path], name: str, read: Callable[[Path], object]) -> None:
    """A pipe as profile, lab file or patch is refused in one line, and not waited for."""
    with pytest.raises(ConfigError, match=r"cannot read.*: not a plain file"):
        read(pipe(name))


def turned(value: Any) -> Any:
    """The same with every text turned round, but for words that a program looks up."""
    if isinstance(value, dict):
        return {key: turned(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [turned(inner) for inner in value]
    return f"a{TURN}b\x07{value}" if isinstance(value, str) else value


def hostile() -> dict[str, Any]:
    """A report in which every free text turns its line round."""
    found: dict[str, Any] = json.loads(json.dumps(document(worst="fail")))
    for key in ("headline", "reasons", "kernel", "rig", "card"):
        found[key] = turned(found[key])
    for test in found["tests"]:
        test |= {key: turned(test[key]) for key in ("id", "reason", "details")}
        test["promise"] = turned(test["promise"])
    for promise in found["promises"]:
        promise |= {"reason": turned(promise["reason"])}
    return found


@pytest.mark.parametrize(
    "form",
    [
        lambda d: junit(d).decode(),
        lambda d: json.dumps(submission(d), ensure_ascii=False),
        lambda d: json.dumps(statement(d, {}), ensure_ascii=False),
        ktap,
        html,
        lambda d: text(d),
    ],
    ids=["junit", "checkbox", "in-toto", "ktap", "html", "summary"],
)
def test_no_form_of_a_report_turns_a_line_round(form: Callable[[dict[str, Any]], str]) -> None:
    """No form that a person or another program shows holds a control character."""
    odd = {char for char in form(hostile()) if unicodedata.category(char)[0] == "C"} - {"\n", "\t"}
    assert not odd, sorted(map(ascii, odd))


def test_states_are_types_and_not_words() -> None:
    """What a person reads decides nothing: no reason's first word, no error's text."""
    found: dict[str, Any] = json.loads(json.dumps(document()))
    found["promises"][0] |= {"state": "not proved", "gap": "no proof", "reason": "left out of the record"}
    assert not submission(found)["custom_joblist"]
    found["promises"][0]["gap"] = "left out of this run"
    assert submission(found)["custom_joblist"]

    def broken() -> bool:
        raise RigError("gave up after 1 s waiting for settles")

    with pytest.raises(RigError):
        settles(broken, 1)
    assert settles(lambda: True, 0) and not settles(lambda: False, 0, every=0)
