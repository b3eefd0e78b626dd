"""Which checks does the hardware suite have (every `assert`), and what is a file without one of them?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("tests/hw", "tests/lib")
# what runs on the other side of a connection, reads the catalogue, or makes captures: it judges no card
NOT = ("crowd.py", "secrets.py", "suite.py", "wiredocs.py")


@dataclass(frozen=True)
class Check:
    """An assert: the file, the function that it is in, its number there (from 1), its lines."""

    file: str
    function: str
    number: int
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.file.removeprefix('tests/')}:{self.function}:{self.number}"


def checks(root: Path) -> list[Check]:
    """Every check of the suite below `root`, in the order of files and lines."""
    paths = [path for folder in FOLDERS for path in sorted((root / folder).glob("*.py"))]
    mine = [path for path in paths if path.name not in NOT and not path.name.startswith("catalogue")]
    return [check for path in mine for check in _of(path.relative_to(root).as_posix(), path.read_text())]


def _of(file: str, text: str) -> Iterator[Check]:
    """The checks of a file; one in a nested function or a method is that function's."""
    counts: dict[str, int] = {}
    found = sorted(_asserts(ast.parse(text), ""), key=lambda pair: pair[1].lineno)
    for function, node in found:
        counts[function] = counts.get(function, 0) + 1
        yield Check(file, function, counts[function], node.lineno, node.end_lineno or node.lineno)


def _asserts(node: ast.AST, name: str) -> Iterator[tuple[str, ast.Assert]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Assert):
            yield name, child
        inner = isinstance(child, ast.FunctionDef | ast.ClassDef)
        yield from _asserts(child, f"{name}.{child.name}".strip(".") if inner else name)


def without(text: str, check: Check) -> str:
    """Return a file's text with this check doing nothing, every other line where it was."""
    lines = text.splitlines(keepends=True)
    indent = lines[check.first - 1][: -len(lines[check.first - 1].lstrip())]
    lines[check.first - 1 : check.last] = [f"{indent}pass\n"] + ["\n"] * (check.last - check.first)
    return "".join(lines)
