"""Which checks does the hardware suite have (every `assert`), and how is one of them switched off?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("tests/hw", *(f"tests/lib/{room}" for room in ("flow", "impair", "life", "rig", "wire")))
SUBJECT = re.compile(r"\Ahw/[^/]+/")  # a check of tests/hw is named by its file, not by its folder
# what runs on the other side of a connection, or makes captures: it judges no card
NOT = ("many_connections.py", "secrets.py", "wiredocs.py")


@dataclass(frozen=True)
class Check:
    """An assert: the file, the function that it is in, its number there (from 1), its lines.

    `condition`: where that begins and ends, as line, column, line, column (bytes, from 1 and from 0).
    """

    file: str
    function: str
    number: int
    first: int
    last: int
    condition: tuple[int, int, int, int] = field(default=(0, 0, 0, 0), compare=False)

    def __str__(self) -> str:
        file = SUBJECT.sub("hw/", self.file.removeprefix("tests/"))
        return f"{file}:{self.function}:{self.number}"


def checks(root: Path) -> list[Check]:
    """Every check of the suite below `root`, in the order of files and lines."""
    paths = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))]
    mine = [path for path in paths if path.name not in NOT]
    return [check for path in mine for check in _of(path.relative_to(root).as_posix(), path.read_text())]


def _of(file: str, text: str) -> Iterator[Check]:
    """The checks of a file; one in a nested function or a method is that function's."""
    counts: dict[str, int] = {}
    found = sorted(_asserts(ast.parse(text), ""), key=lambda pair: pair[1].lineno)
    for function, node in found:
        counts[function] = counts.get(function, 0) + 1
        what = node.test
        place = what.lineno, what.col_offset, what.end_lineno or 0, what.end_col_offset or 0
        yield Check(file, function, counts[function], node.lineno, node.end_lineno or node.lineno, place)


def _asserts(node: ast.AST, name: str) -> Iterator[tuple[str, ast.Assert]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Assert):
            yield name, child
        inner = isinstance(child, ast.FunctionDef | ast.ClassDef)
        yield from _asserts(child, f"{name}.{child.name}".strip(".") if inner else name)


def switched(text: str, found: Iterable[Check]) -> str:
    """Return a file's text whose checks ask, when they fail, whether they are off; no line moves.

    `assert x, y` becomes `assert (x) or check_is_off(NAME), y`; catalogue_plugin.py answers.
    """
    lines = text.encode().splitlines(keepends=True)
    for check in sorted(found, key=lambda check: check.condition, reverse=True):
        first, begin, last, end = check.condition
        ask = f') or check_is_off("{check}")'.encode()
        lines[last - 1] = lines[last - 1][:end] + ask + lines[last - 1][end:]
        lines[first - 1] = lines[first - 1][:begin] + b"(" + lines[first - 1][begin:]
    return b"".join(lines).decode()
