"""What the operator's verbs are made of runs on Python 3.9, the oldest that RHEL 9 and its like bring."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from offload.cli import main as cli
from tests.unit.test_rooms import GROUND_FLOOR, files, room_of

OPERATOR = {*GROUND_FLOOR} - {"debian", "driver"}
VERMIN = [sys.executable, "-c", "from vermin import main; main()", "-t=3.9-", "--violations", "--no-tips"]
GUARDED = "os.setns"  # sockets_reader asks first whether it is there
TYPES = {"int", "str", "bytes", "float", "bool", "list", "dict", "tuple", "set"}


def unions(tree: ast.AST) -> Iterator[int]:
    """Lines with `int | str` or `X | None` that run; annotations do not, and vermin knows no others."""
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            if getattr(node, name, None):
                setattr(node, name, None)
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            names = {getattr(side, "id", "") for side in (node.left, node.right)}
            none = any(
                isinstance(side, ast.Constant) and side.value is None for side in (node.left, node.right)
            )
            if none or names & TYPES:
                yield node.lineno


def newer(*paths: Path) -> str:
    """What in these files needs a Python newer than 3.9; an empty string if nothing does."""
    done = subprocess.run([*VERMIN, "--exclude", GUARDED, *map(str, paths)], capture_output=True, text=True)
    found = [
        f"{path}:{line}: a union of types requires 3.10" for path in paths for line in unions(_tree(path))
    ]
    return "\n".join([*([done.stdout + done.stderr] if done.returncode else []), *found])


def _tree(path: Path) -> ast.AST:
    return ast.parse(path.read_text())


def test_the_operators_files_need_no_more() -> None:
    """No file of the operator's verbs uses what came after Python 3.9."""
    ours = [path for path in files() if room_of(path) in OPERATOR]
    assert len(ours) > 60 and not newer(*ours)


def test_newer_words_are_noticed(tmp_path: Path) -> None:
    """The check itself goes red for words of 3.10 and 3.11, and not for annotations."""
    newest = (
        "import tomllib",
        "zip([], [], strict=True)",
        "isinstance(1, int | str)",
        "match 1:\n    case 1: pass",
    )
    names = [tmp_path / f"f{number}.py" for number in range(len(newest))]
    for name, line in zip(names, newest, strict=True):
        name.write_text(f"{line}\n")
    said = newer(*names)
    assert said.count("requires") == len(newest), said
    fine = tmp_path / "fine.py"
    fine.write_text("from __future__ import annotations\n\ndef f(a: int | None = None) -> str | None: ...\n")
    assert not newer(fine)


@pytest.mark.parametrize("verb", cli.SUITE)
def test_the_suite_says_what_it_needs(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A verb of the suite on an older Python is one line that says so, before it is opened."""
    monkeypatch.setattr(cli, "NEWER", (9, 0))
    assert cli.main([verb, "--help"]) == 2
    said = capsys.readouterr().err
    assert f"`ktls-offload {verb}` needs Python 3.11" in said and "run here: status, doctor, ls" in said


def test_completion_leaves_out_what_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The script for a shell on an older Python offers no options of verbs that do not run."""
    monkeypatch.setattr(cli, "NEWER", (9, 0))
    offered = {c.path[0]: {name for o in c.options for name in o.names} for c in cli.whole().walk() if c.path}
    assert {verb for verb, names in offered.items() if not names - {"-h", "--help"}} >= {*cli.SUITE}
    assert "--dry-run" in offered["enable"] and "--explain" in offered["doctor"]
