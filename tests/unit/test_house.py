"""The house rules that a machine can check: first lines, lengths, and words that must not be committed."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]


LISTED = ("-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard")


def git(root: Path, *words: str) -> list[str]:
    """The lines that git says there."""
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True).stdout.splitlines()


def tracked(root: Path) -> list[Path]:
    """The files of a checkout, whoever owns it: root may test a person's. Without git: what it would take."""
    names = git(root, *LISTED)
    if not names:
        with tempfile.TemporaryDirectory() as empty:
            git(root, "init", "--bare", "--quiet", empty)
            names = git(root, f"--git-dir={empty}", "--work-tree=.", *LISTED)
    return [root / name for name in names if (root / name).is_file()]


TRACKED = tracked(ROOT)
PYTHON = [p for p in TRACKED if p.suffix == ".py"]
C_FILES = [p for p in TRACKED if p.suffix in (".c", ".h")]
FORMATTED = re.compile(r"# fmt: *(off|skip)\b")
SHIPPED = [p for p in PYTHON if p.is_relative_to(ROOT / "offload")]


def shown(path: Path) -> str:
    """The path as a person would type it."""
    return path.relative_to(ROOT).as_posix()


class Read(NamedTuple):
    """What the rules ask of a Python file: docstring, functions with their length, imports."""

    docstring: str | None
    functions: list[tuple[str, int]]
    imports: list[ast.Import | ast.ImportFrom]


@cache
def read(path: Path) -> Read:
    """A Python file, parsed once for all rules, which is what costs."""
    return read_text(path.read_text())


def read_text(text: str) -> Read:
    """What the rules ask of the text of a Python file."""
    tree = ast.parse(text)
    found = list(statements(tree))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    lengths = [(n.name, (n.end_lineno or n.lineno) - n.lineno + 1) for n in found if isinstance(n, kinds)]
    imports = [node for node in found if isinstance(node, (ast.Import, ast.ImportFrom))]
    return Read(ast.get_docstring(tree), lengths, imports)


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Every statement of a Python file, at any depth; expressions are most of a tree, and are left out."""
    nodes: list[ast.AST] = [tree]
    for node in nodes:  # which grows: statements stand in blocks, and blocks in these fields
        yield node
        for block in ("body", "orelse", "handlers", "finalbody", "cases"):
            found = getattr(node, block, [])
            nodes += found if isinstance(found, list) else []


def python_faults(path: Path) -> Iterator[str]:
    """What is wrong with a Python file."""
    text = path.read_text()
    if text.count("\n") > 400:
        yield "has more than 400 lines: split it"
    if FORMATTED.search(text):
        yield "tells the formatter to go away: nothing is worth a line saved"
    docstring, found, _ = read(path)
    if text.strip() and not docstring:
        yield "no first line that says what it is for"
    most = 50 if path in SHIPPED else 60
    yield from (f"{name} has {length} lines, at most {most}" for name, length in found if length > most)


def c_faults(path: Path) -> Iterator[str]:
    """What is wrong with a C file."""
    lines = path.read_text().splitlines()
    if len(lines) > 300 and path.suffix != ".h":
        yield "has more than 300 lines: split it"
    bodies = [
        found[0].count("\n") + 1 for found in re.finditer(r"^\{\n.*?^\}$", "\n".join(lines), re.M | re.S)
    ]
    yield from (f"a function has {length} lines, at most 50" for length in bodies if length > 50)
    head = "\n".join(lines[:4])
    if "SPDX-License-Identifier" not in head:
        yield "no license line"
    if not re.search(r"/\*(?! SPDX)|^//(?! SPDX)", head, re.M):
        yield "no comment that says what it is for"


def test_python_files_are_small_and_say_what_they_are_for() -> None:
    """A file opens with one sentence, has at most 400 lines, a function at most 60, of the product 50."""
    assert len(PYTHON) > 100
    found = [f"{shown(path)}: {fault}" for path in PYTHON for fault in python_faults(path)]
    assert not found, "\n".join(found)


def modules(file: Read) -> Iterator[str]:
    for node in file.imports:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif node.module and not node.level:
            yield node.module


@cache
def is_there(name: str) -> bool:
    """Whether a module of this checkout is a file or a folder."""
    place = ROOT / name.replace(".", "/")
    return place.is_dir() or place.with_suffix(".py").is_file()


def gone(file: Read) -> list[str]:
    """What of this checkout it imports that is not here: it was moved or renamed, and this import was not."""
    rooms = ("offload.", "tests.", "benchmarks.")
    return [name for name in modules(file) if name.startswith(rooms) and not is_there(name)]


DEEP = """
from tests.lib.rig.rig import Rig
import tests.nowhere1
class A:
    def f(self):
        import tests.nowhere2
try:
    import os
except OSError:
    import tests.nowhere5
else:
    import tests.nowhere3
finally:
    import tests.nowhere4
match 1:
    case 1:
        import tests.nowhere6
"""


def test_every_import_of_ours_is_there() -> None:
    assert sorted(gone(read_text(DEEP))) == [f"tests.nowhere{number}" for number in range(1, 7)]
    found = {shown(path): missing for path in PYTHON if (missing := gone(read(path)))}
    assert not found, found


def test_c_files_are_small_and_say_what_they_are_for() -> None:
    """A C file has at most 300 lines, a function at most 50, and it opens with its license and a comment."""
    assert len(C_FILES) > 10
    found = [f"{shown(path)}: {fault}" for path in C_FILES for fault in c_faults(path)]
    assert not found, "\n".join(found)


def test_each_fault_of_a_file_is_found(tmp_path: Path) -> None:
    """The checks themselves go red for each kind of bad file."""
    long = "def long():\n" + "    pass\n" * 60
    python, c = tmp_path / "bad.py", tmp_path / "bad.c"
    python.write_text(long + "\n" * 400 + "# fmt: " + "off\n")
    c.write_text("int i;\n" * 301)
    assert list(python_faults(python)) == [
        "has more than 400 lines: split it",
        "tells the formatter to go away: nothing is worth a line saved",
        "no first line that says what it is for",
        "long has 61 lines, at most 60",
    ]
    assert [fault.partition(":")[0] for fault in c_faults(c)] == [
        "has more than 300 lines",
        "no license line",
        "no comment that says what it is for",
    ]
    (empty := tmp_path / "empty.py").write_text("")
    head = "/* SPDX-License-Identifier: Apache-2.0 */\n/* Says one thing. */\n"
    c.write_text(head + "int i;\n" * 245 + "int main(void)\n{\n" + "\ti++;\n" * 48 + "}\n")
    assert not [*python_faults(empty), *c_faults(c)]
    c.write_text(head + "int main(void)\n{\n" + "\ti++;\n" * 49 + "}\n")
    assert list(c_faults(c)) == ["a function has 51 lines, at most 50"]


def test_functions_are_short_on_the_whole() -> None:
    """Functions have at most 12 lines in the median and 35 at the 90th percentile."""
    lengths = sorted(length for path in SHIPPED for _, length in read(path).functions)
    assert lengths[len(lengths) // 2] <= 12
    assert lengths[len(lengths) * 9 // 10] <= 35


# pages of openssl and in-toto, and names that stand for any page
OTHERS = {"CHANGES.md", "INSTALL.md", "statement.md", "test-result.md", "resource_descriptor.md"}
OTHERS |= {"page.md", "x.md"}


def test_each_page_that_is_named_is_here() -> None:
    """A page that a text cites is in the repository, or is a public one of another project."""
    here = {p.name for p in TRACKED if p.suffix == ".md"} | OTHERS
    cites = re.compile(r"(?<![\w*])[A-Za-z][\w-]*\.md\b")
    texts = [p for p in TRACKED if p.suffix not in (".png", ".ico") and p != Path(__file__)]
    named = {(shown(p), name) for p in texts for name in cites.findall(p.read_text(errors="replace"))}
    gone = sorted(f"{where}: {name}" for where, name in named if name not in here)
    assert len(named) > 100 and not gone, "\n".join(gone)


def test_links_between_pages_lead_somewhere() -> None:
    """Each link of a page to a file or heading of the repository finds it."""
    pages = {p.resolve(): p.read_text() for p in TRACKED if p.suffix == ".md"}
    links = [
        (page, (page.parent / name).resolve() if name else page, heading)
        for page, text in pages.items()
        for name, heading in re.findall(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)", text)
    ]
    gone = [
        f"{shown(page)}: {to.name}#{heading}" for page, to, heading in links if not leads(pages, to, heading)
    ]
    assert len(links) > 100 and not gone, "\n".join(gone)


def leads(pages: dict[Path, str], to: Path, heading: str) -> bool:
    """Whether a file is there, and has the heading that a link names, as forges write it."""
    if not heading or to not in pages:
        return to.exists()
    found = re.findall(r"^#+ (.*)$", pages[to], re.M)
    return heading in {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in found}


def test_no_machine_path_or_unfinished_word_is_committed() -> None:
    """Nothing tracked names one machine's folders or leaves a note of work undone."""
    words = "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"])
    bad = re.compile(rf"\b(?:{words})\b|(?:^|[\s\"'=(:])/(?:work|farm|root)/", re.M)
    texts = [p for p in TRACKED if p.suffix not in (".png", ".ico") and "LICENSES" not in p.parts]
    hits = [f"{shown(p)}: {m.group(0)!r}" for p in texts if (m := bad.search(p.read_text(errors="replace")))]
    assert not hits, "\n".join(hits)


def test_an_unpacked_tarball_is_read(tmp_path: Path) -> None:
    """Without a checkout the rules hold for what lies there, but for what is built."""
    for name in ("a.py", "native/b.c", "build/c.py", "native/d.o"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    shutil.copy(ROOT / ".gitignore", tmp_path)
    assert {path.name for path in tracked(tmp_path)} == {".gitignore", "a.py", "b.c"}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_a_checkout_of_another_user_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Git trusts no checkout of another user, and these tests would then see no file."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert tracked(ROOT) == TRACKED
