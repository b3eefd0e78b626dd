"""A test of a card can be read alone: beside the fixtures and `proof`, two files of the library at most."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[4]
HW = sorted((ROOT / "tests/hw").rglob("test_*.py"))
# what docs/contribute/add-a-test.md explains: the fixtures, and the words of a proof
WORDS = ("flow.flow", "flow.proof", "life.life", "rig.rig", "rig.switch", "wire.wire")
KNOWN = {f"tests.lib.{name}" for name in WORDS}
MOST = 2
MORE = {"test_scenario_holds": "its parts are in the scenario's line, which tests/lib/scenario plays"}


def imported(tree: ast.Module) -> dict[str, str]:
    """The names that a file has from the tests' library, and the module of each."""
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests.lib"):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                is_file = (ROOT / f"{inner.replace('.', '/')}.py").is_file()
                found[alias.asname or alias.name] = inner if is_file else str(node.module)
    return found


def defined(tree: ast.Module) -> dict[str, ast.stmt]:
    """What a file defines at its top: functions, classes and constants by name."""
    found: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            names = (name for target in node.targets for name in ast.walk(target))
            found |= {name.id: node for name in names if isinstance(name, ast.Name)}
    return found


def opened(name: str, own: Mapping[str, ast.stmt], library: Mapping[str, str]) -> set[str]:
    """The library's files that somebody opens who reads this function, with what its file adds to it."""
    todo, seen, files = [name], set[str](), set[str]()
    while todo:
        seen.add(one := todo.pop())
        node = own[one]
        parts = node.body if isinstance(node, ast.FunctionDef) else [node]
        used = {n.id for part in parts for n in ast.walk(part) if isinstance(n, ast.Name)}
        files |= {library[word] for word in used & set(library)}
        todo += [word for word in used & set(own) if word not in seen]
    return files - KNOWN


def tests(path: Path) -> Iterator[tuple[str, set[str]]]:
    """Each test of a file, and the library's files behind it."""
    tree = ast.parse(path.read_text())
    own, library = defined(tree), imported(tree)
    yield from ((name, opened(name, own, library)) for name in own if name.startswith("test_"))


def test_a_test_of_a_card_opens_two_files_at_most() -> None:
    """Beyond what every test has, its body and its file's helpers name two files of tests/lib, no more."""
    found = {name: files for path in HW for name, files in tests(path)}
    assert len(found) > 90 and sum(map(len, found.values())) > 50, "what was read?"
    many = {name: sorted(files) for name, files in found.items() if len(files) > MOST}
    assert set(many) == set(MORE), many


def test_a_third_file_is_noticed() -> None:
    """A file counts that a helper or a constant of the test's own file needs; a fixture's does not."""
    text = """
from tests.lib.flow import proof, shapes
from tests.lib.impair.link import down
from tests.lib.rig.rig import Rig
from tests.lib.wire import raw
SIZE = shapes.RECORD
def helps(): return down(SIZE)
def test_a(rig: Rig): helps(), proof.intact(Rig)
def test_b(): return helps(), raw.moved
"""
    tree = ast.parse(text)
    files = {name: opened(name, defined(tree), imported(tree)) for name in ("test_a", "test_b")}
    assert files["test_a"] == {"tests.lib.flow.shapes", "tests.lib.impair.link"}
    assert files["test_b"] - files["test_a"] == {"tests.lib.wire.raw"}


def test_a_twin_has_the_name_of_its_test() -> None:
    """The same number is the same promise: who reads one of the two files finds the other by its name."""
    hw = {path.name[:7]: path.name for path in HW}
    twins = [path.name for path in (ROOT / "tests/sw-fallback").glob("test_*.py")]
    assert len(twins) > 20, "what was read?"
    assert not [(name, hw[name[:7]]) for name in twins if hw.get(name[:7], name) != name]
