"""The command: exit codes, one-line errors, and a ground floor that opens nothing heavy."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from offload import errors
from offload.cli import main as cli
from offload.cli import streams as std
from offload.cli.main import main
from offload.switch import verbs
from tests.lib.rig.schemas import checker

ROOT = Path(__file__).parents[3]


def command(*argv: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The command as a person calls it."""
    env = {**os.environ, **more}
    return subprocess.run(
        [sys.executable, "-m", "offload", *argv], capture_output=True, text=True, cwd=ROOT, env=env
    )


def test_help_lists_every_verb_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    assert all(f"    {v.name} " in said for v in cli.VERBS)
    assert all(f"\n  {code} " in said for code in (0, 2, 3, 4, 5, 6, 7, 130))


@pytest.fixture
def host_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """An installation of the package ktls-offload alone; the verbs that it lacks."""
    monkeypatch.setattr(cli, "PACKAGE", tmp_path)
    return {verb.name for verb in cli.VERBS if verb not in cli.here()}


def test_without_the_suite_its_verbs_are_not_listed(
    host_tool: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """--help, completion and the nearest verb name only what is installed."""
    assert host_tool == {"lab", "certify", "measure", "report", "wire"}
    assert main(["--help"]) == 0
    listed = set(re.findall(r"^    (\w+) ", capsys.readouterr().out, re.M))
    assert not host_tool & listed and {"status", "enable", "doctor"} <= listed
    assert not host_tool & {command.words for command in cli.whole().walk()}
    assert main(["certifi"]) == 2
    assert "certify" not in capsys.readouterr().err


def test_without_the_suite_its_verbs_say_what_to_install(
    host_tool: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A verb that is not installed names its package, or the checkout it needs, and opens nothing."""
    suite = "`ktls-offload {}` is part of the certification suite", "in a checkout: make deb"
    checkout = "`ktls-offload {}` needs a source checkout", "in a checkout: make "
    for name in host_tool:
        assert main([name, "--help"]) == 2
        said = capsys.readouterr().err
        words, hint = checkout if name in ("certify", "measure") else suite
        assert words.format(name) in said and f"hint: {hint}" in said


@pytest.mark.parametrize("verb", ["status", "enable", "disable", "restore"])
def test_every_operator_verb_explains_itself(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """VERB --help says what is promised about undoing."""
    assert main([verb, "--help"]) == 0
    assert len(capsys.readouterr().out) > 300


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        ([], "which verb?"),
        (["stauts"], "no verb 'stauts' (did you mean status?)"),
        (["persist"], "no verb 'persist'\n  hint: ktls-offload enable DEV --persist"),
        (["enable"], "required: DEV"),
        (["enable", "eth0", "--both"], "unrecognized arguments: --both"),
        (["restore", "eth0", "--all"], "not allowed with argument"),
        (["--what"], "unrecognized arguments"),
    ],
)
def test_wrong_usage_is_exit_2(argv: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A usage error is exit 2 and says what is wrong."""
    assert main(argv) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("argv", [[], ["stauts"], ["enable"], ["enable", "eth0", "--both"], ["--what"]])
def test_wrong_usage_is_a_document_with_json(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A program that asks for JSON gets JSON, also if it asked for what is not there."""
    assert main([*argv, "--json"]) == 2
    said = capsys.readouterr()
    document = json.loads(said.out)
    checker("error").validate(document)
    assert document["exit"] == 2 and document["verb"] == (argv[0] if argv and argv != ["--what"] else "")
    assert f"error: {document['error']['message']}\n  hint: {document['error']['hint']}\n" in said.err


def test_a_wrong_option_shows_those_of_its_verb(capsys: pytest.CaptureFixture[str]) -> None:
    """The usage and the hint are the verb's, not the command's."""
    main(["enable", "eth0", "--both"])
    said = capsys.readouterr().err
    assert said.startswith("usage: ktls-offload enable ") and "hint: ktls-offload enable --help" in said


@pytest.mark.parametrize("kind", [errors.ConfigError, errors.NoDevice, errors.Refused, errors.RigError])
def test_errors_become_one_block_and_their_code(
    kind: type[errors.OffloadError], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of ours is `ktls-offload: error: ...`, its hint, and its exit code."""

    def fail(args: object) -> int:
        raise kind("it broke", "mend it")

    monkeypatch.setattr(verbs, "_status", fail)
    assert main(["status"]) == kind.exit_code
    assert capsys.readouterr().err == "ktls-offload: error: it broke\n  hint: mend it\n"


def test_an_error_sends_nothing_that_a_terminal_obeys(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a program said is quoted without escape sequences, line by line."""

    def fail(args: object) -> int:
        raise errors.CommandFailed(["ethtool"], 1, b"", b"\x1b]0;owned\x07one\n\ttwo\x9b31m")

    monkeypatch.setattr(verbs, "_status", fail)
    main(["status"])
    said = capsys.readouterr().err
    assert "?]0;owned?one\n" in said and "two" in said
    assert all(char.isprintable() or char == "\n" for char in said)


def test_interrupt_is_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C is exit 130 and one line."""

    def interrupt(args: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(verbs, "_status", interrupt)
    assert main(["status"]) == 130
    assert capsys.readouterr().err == "ktls-offload: interrupted\n"


def test_a_reader_that_leaves_is_quiet_and_no_success() -> None:
    """A closed pipe gives no traceback and not exit 0."""
    reads, writes = os.pipe()
    os.close(reads)
    argv = [sys.executable, "-m", "offload", "status", "--json"]
    done = subprocess.run(argv, stdout=writes, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    os.close(writes)
    assert done.returncode == 141 and done.stderr == ""


@pytest.mark.parametrize("streams", ["2>/dev/full", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("words", "code"), [("frobnicate", 2), ("status nosuch0", 3), ("cards", 0)])
def test_a_message_that_nobody_reads_changes_no_exit_code(words: str, code: int, streams: str) -> None:
    """A full disk below stderr, or a stream that a daemon has closed, changes no exit code."""
    env = {name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"}
    line = f"exec {sys.executable} -m offload {words} {streams}"
    done = subprocess.run(["sh", "-c", line], cwd=ROOT, env=env, stdout=subprocess.PIPE)
    assert done.returncode == code and b"error" not in done.stdout


def test_the_ground_floor_opens_nothing_heavy() -> None:
    """Status runs where only PyYAML is installed beside Python."""
    heavy = [
        "pytest",
        "jinja2",
        "jsonschema",
        "offload.suite.bench.vm",
        "offload.suite.report",
        "offload.suite.certify.verbs",
    ]
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({heavy}))\n"
        "from offload.cli.main import main\n"
        "sys.exit(main(['status', '--json']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert '"schema": 1' in done.stdout


@pytest.mark.parametrize(
    ("module", "verb", "extra"),
    [
        ("offload.suite.bench.lab.verbs", "lab", "test"),
        ("offload.suite.certify.verbs", "certify", "report,test,wire"),
        ("offload.suite.report.verbs", "report", "report"),
    ],
)
def test_a_missing_extra_is_one_line(
    module: str, verb: str, extra: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A verb whose packages are missing says which extra to install."""
    monkeypatch.setitem(sys.modules, module, None)
    assert main([verb]) == 2
    assert f"pip install 'ktls-offload[{extra}]'" in capsys.readouterr().err


def test_no_traceback_without_the_state_folder(tmp_path: Path) -> None:
    """A journal that cannot be written is one line, not a traceback."""
    (tmp_path / "file").write_text("")
    done = command("restore", KTLS_OFFLOAD_STATE=str(tmp_path / "file" / "below"))
    assert (
        done.returncode == 7 and "cannot write the journal" in done.stderr and "Traceback" not in done.stderr
    )


def test_version_is_the_packages() -> None:
    """--version prints one line."""
    done = command("--version")
    assert (done.returncode, done.stdout) == (0, "ktls-offload 0.1.0\n")


def test_no_null_device_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare chroot has no /dev/null: with all three streams open nothing is opened; a closed one is."""
    monkeypatch.setattr(os, "devnull", "/nonexistent/null")
    std.settle()
    script = "import os\nos.close(0)\nfrom offload.cli.streams import settle as std\nstd()\n"
    script += "print(os.readlink('/proc/self/fd/0'))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("/dev/null\n", ""), done
