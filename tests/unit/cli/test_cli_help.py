"""--help of every verb: examples that the parser takes, columns that fit, one tree for all who read it."""

from __future__ import annotations

import re
import shlex

import pytest

from offload.cli import main as cli
from offload.cli.examples import EXAMPLES
from offload.cli.tree import Command

ROOT = cli.whole()
VERBS = {c.words: c for c in ROOT.walk()}
LEAVES = [c for c in ROOT.walk() if not c.verbs]
LINE = re.compile(r"^ +(ktls-offload .*)$", re.M)


def examples(command: Command) -> list[str]:
    """The command lines of a --help."""
    return LINE.findall(f"{command.description}\n{command.epilog}")


@pytest.mark.parametrize("command", list(ROOT.walk()), ids=lambda c: c.words or "ktls-offload")
def test_the_parser_takes_every_example(command: Command) -> None:
    """Each example of each --help can be typed as it stands."""
    parser = cli.parser(cli.VERBS)
    for line in examples(command):
        words = shlex.split(line.split(" > ")[0], comments=True)
        args = parser.parse_args(words[1:])
        assert args.verb == words[1], line


@pytest.mark.parametrize("name", [v.name for v in cli.VERBS])
def test_every_verb_shows_an_example(name: str) -> None:
    """Each verb's --help shows how it is called."""
    assert [line for line in examples(VERBS[name]) if line.startswith(f"ktls-offload {name}")]


def test_no_example_without_its_verb() -> None:
    assert set(EXAMPLES) <= set(VERBS)


@pytest.mark.parametrize("command", LEAVES, ids=lambda c: c.words)
def test_every_option_is_explained(command: Command) -> None:
    """Each option and argument of each verb has words beside it."""
    for part in (*command.options, *command.arguments):
        assert part.help, f"{command.words}: {part}"


@pytest.mark.parametrize("command", LEAVES, ids=lambda c: c.words)
def test_help_begins_with_a_sentence(command: Command) -> None:
    """The --help of each verb says first, in a sentence, what it does."""
    assert re.match(r"[A-Z`][^\n]", command.description), command.description


@pytest.mark.parametrize("width", [80, 111])
def test_help_fits_the_terminal(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No --help is wider than the terminal, but for commands, which stay on one line to be copied."""
    monkeypatch.setenv("COLUMNS", str(width))
    for command in ROOT.walk():
        assert cli.main([*command.path, "--help"]) == 0
        said = capsys.readouterr().out
        lines = [line for line in said.splitlines() if "#" in line or not line.startswith("  ktls-offload")]
        assert [line for line in lines if len(line) > width] == [], command.words
        assert said.isprintable() or all(c.isprintable() or c == "\n" for c in said)


@pytest.mark.parametrize(
    ("verb", "last"), [("lab", "lab run --in dut"), ("certify", "--jobs N"), ("measure", "--json")]
)
def test_the_first_screen_is_enough_to_start(
    verb: str, last: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first 24 lines of 80 columns hold the examples and the usual options; no line is longer."""
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main([verb, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = "\n".join(lines[:24])
    assert "examples:" in first and last in first
    assert [line for line in lines if len(line) > 80] == []


def test_help_groups_the_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    """Each verb stands below the name of its group."""
    assert cli.main(["--help"]) == 0
    said = capsys.readouterr().out
    places = [said.index(f"\n  {group}\n") for group in (cli.HOST, cli.LAB, cli.REPORT)]
    assert places == sorted(places)
    for verb in cli.VERBS:
        before = [p for p in places if p < said.index(f"\n    {verb.name} ")]
        assert before and said[before[-1] :].startswith(f"\n  {verb.group}\n"), verb.name


def test_one_verb_opens_one_module() -> None:
    """Asking for one verb leaves the arguments of the others unread."""
    verb = next(v for v in cli.VERBS if v.name == "status")
    from offload.cli.tree import tree

    opened = {c.words: bool(c.arguments or c.verbs) for c in tree(cli.parser([verb])).walk()}
    assert [name for name, has in opened.items() if has] == ["", "status"]
