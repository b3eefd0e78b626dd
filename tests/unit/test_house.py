"""The house rules that a machine can check: first lines, lengths, and words that must not be committed."""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRACKED = [
    ROOT / name
    for name in subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    if (ROOT / name).is_file()
]
PYTHON = [p for p in TRACKED if p.suffix == ".py"]
C_FILES = [p for p in TRACKED if p.suffix in (".c", ".h")]
SHIPPED = [p for p in PYTHON if p.is_relative_to(ROOT / "offload")]


def shown(path: Path) -> str:
    """The path as a person would type it."""
    return path.relative_to(ROOT).as_posix()


@cache
def read(path: Path) -> tuple[str | None, list[tuple[str, int]]]:
    """Docstring of a Python file, and its functions; parsed once, which is what costs."""
    tree = ast.parse(path.read_text())
    return ast.get_docstring(tree), functions(tree)


def functions(tree: ast.Module) -> list[tuple[str, int]]:
    """Name and length in lines of every function of a Python file."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        (n.name, (n.end_lineno or n.lineno) - n.lineno + 1) for n in ast.walk(tree) if isinstance(n, kinds)
    ]


@pytest.mark.skipif(not TRACKED, reason="not a git checkout")
@pytest.mark.parametrize("path", PYTHON, ids=shown)
def test_python_files_are_small_and_say_what_they_are_for(path: Path) -> None:
    """Without a NIC a file opens with one sentence, has at most 400 lines, a function at most 60."""
    text = path.read_text()
    assert text.count("\n") <= 400, "split it"
    sentence, found = read(path)
    assert sentence or not text.strip(), "no first line that says what it is for"
    assert not [name for name, length in found if length > 60]


@pytest.mark.parametrize("path", C_FILES, ids=shown)
def test_c_files_are_small_and_say_what_they_are_for(path: Path) -> None:
    """Without a NIC a C file has at most 300 lines and opens with its licence and a comment."""
    lines = path.read_text().splitlines()
    assert len(lines) <= 300 or path.suffix == ".h", "split it"
    head = "\n".join(lines[:4])
    assert "SPDX-License-Identifier" in head, "no licence line"
    assert re.search(r"/\*(?! SPDX)|^//(?! SPDX)", head, re.M), "no comment that says what it is for"


def test_functions_are_short_on_the_whole() -> None:
    """Without a NIC functions have at most 12 lines in the median and 35 at the 90th percentile."""
    lengths = sorted(length for path in SHIPPED for _, length in read(path)[1])
    assert lengths[len(lengths) // 2] <= 12
    assert lengths[len(lengths) * 9 // 10] <= 35


def test_no_machine_path_or_unfinished_word_is_committed() -> None:
    """Without a NIC nothing tracked names one machine's folders or leaves a note of work undone."""
    words = "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"])
    bad = re.compile(rf"\b(?:{words})\b|(?:^|[\s\"'=(:])/(?:work|farm|root)/", re.M)
    texts = [p for p in TRACKED if p.suffix not in (".png", ".ico") and "LICENSES" not in p.parts]
    hits = [f"{shown(p)}: {m.group(0)!r}" for p in texts if (m := bad.search(p.read_text(errors="replace")))]
    assert not hits, "\n".join(hits)
