"""The doors between the rooms of offload/: the table is the architecture, a change of it is a review.

A room is a folder. `python -m tests.unit.test_rooms` writes the same table into architecture.md.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.unit.test_house import TRACKED, read

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "offload"
BEGIN, END = "<!-- made by tests/unit/test_rooms.py: begin -->\n", "<!-- end of the rooms -->\n"


class Room(NamedTuple):
    """Which rooms it may import, which packages that are not Python's own, and its most lines of Python."""

    rooms: str
    outside: str
    budget: int


# A room is a folder below offload/ or offload/suite/, or a file at the root. A room that outgrows its budget
# gives something to another room or loses something; a new room needs an old one to shrink, or a reason.
ROOMS: dict[str, Room] = {
    "__init__": Room("", "", 10),
    "__main__": Room("cli", "", 10),
    "errors": Room("", "", 100),
    "paths": Room("errors", "", 70),
    "cmd": Room("errors", "", 210),
    "yamlfile": Room("errors", "yaml", 320),
    "host": Room("cmd errors", "", 900),
    "card": Room("host cmd yamlfile paths errors", "", 1700),
    "errata": Room("yamlfile paths errors", "", 500),
    "debian": Room("cmd paths errors", "", 1370),
    "switch": Room("card host cmd paths errors", "", 1600),
    "connections": Room("card host paths errors", "", 1600),
    "doctor": Room("connections errata card host paths errors", "yaml", 4700),
    "probe": Room("doctor card host paths errors", "yaml", 700),
    "driver": Room("debian switch cmd paths errors", "yaml", 1300),
    "connect": Room("cmd paths errors", "", 800),
    "cli": Room("cmd switch card host paths errors", "", 1250),
    "suite": Room("", "", 10),
    "suite.wire": Room("cmd paths errors", "cryptography", 3700),
    "suite.traffic": Room("card host cmd paths errors", "", 3700),
    "suite.bench": Room(
        "suite.traffic driver debian switch card host yamlfile cmd paths errors", "yaml", 8460
    ),
    "suite.measure": Room("suite.bench suite.traffic debian switch card host cmd paths errors", "", 4300),
    "suite.report": Room("suite.measure errata card yamlfile cmd paths errors", "", 8800),
    "suite.certify": Room(
        "suite.bench suite.report debian card host yamlfile cmd paths errors", "yaml", 2500
    ),
}
# doors of single files, beyond those of their room
FILES: dict[str, tuple[str, str]] = {
    "suite/report/record/plugin.py": ("", "pytest"),
    "suite/report/record/recorder.py": ("", "pytest"),
    "suite/report/record/settle.py": ("", "pytest"),
    "suite/report/record/testinfo.py": ("", "pytest"),
    "suite/report/render/render.py": ("", "jinja2"),
    "suite/bench/lab/labgrid_ext.py": ("", "labgrid attr"),
    "suite/bench/lab/verbs.py": ("suite.certify", ""),  # `lab check` says what `certify --lab` would end with
    "cli/tree.py": ("doctor debian", ""),  # words that completion offers
}
SUITE = tuple(name for name in ROOMS if name.startswith("suite"))
GROUND_FLOOR = tuple(name for name in ROOMS if name not in SUITE)
NAMES, FILES_OF_A_FOLDER = 16, 25
CROWDED = {  # folders that may have more files, and why
    "offload/suite/wire/core/tests/corpus/capture": "inputs of a fuzzer, one file each: nobody reads them",
}


@cache
def files() -> list[Path]:
    """Every Python file of the package."""
    return [p for p in sorted(PACKAGE.rglob("*.py")) if "__pycache__" not in p.parts]


def room_of(path: Path) -> str:
    """The room of a file: its folder below offload/ or offload/suite/, or its own name."""
    parts = [part.removesuffix(".py") for part in path.relative_to(PACKAGE).parts]
    return ".".join(parts[:2]) if parts[0] == "suite" and len(parts) > 2 else parts[0]


@cache
def is_file(path: Path) -> bool:
    """Whether it is a file, asked once."""
    return path.is_file()


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of every import in a file, at any depth; a file by its own name, not its folder's."""
    for node in read(path).imports:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif [a.name for a in node.names] != ["__version__"]:
            name = "." * node.level + (node.module or "")
            inner = [
                f"{name}.{a.name}"
                for a in node.names
                if is_file(PACKAGE.parent / name.replace(".", "/") / f"{a.name}.py")
            ]
            yield from ((node.lineno, one) for one in inner or [name])


def complaint(path: Path, name: str) -> str:
    """Why this import is not allowed, or an empty string."""
    here, room = room_of(path), ROOMS[room_of(path)]
    more_rooms, more_outside = FILES.get(path.relative_to(PACKAGE).as_posix(), ("", ""))
    top, _, rest = name.partition(".")
    if name.startswith("."):
        return "relative import"
    if top in sys.stdlib_module_names or top in (*room.outside.split(), *more_outside.split()):
        return ""
    if top != "offload":
        return f"{top} is not for this room"
    if not rest:
        return "`from offload import x` names no room: write `from offload.x import y`"
    path = PACKAGE / rest.replace(".", "/")
    there = room_of(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))
    allowed = there in (here, *room.rooms.split(), *more_rooms.split())
    return "" if allowed else f"{here} has no door to {there}"


def test_every_room_has_a_row_and_every_row_a_room() -> None:
    """The table and the folders agree."""
    assert {room_of(p) for p in files()} == set(ROOMS)


@pytest.mark.parametrize("path", files(), ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_imports_use_doors(path: Path) -> None:
    """Every import goes through a door of the table."""
    shown = path.relative_to(ROOT)
    bad = [f"{shown}:{line}: {name}: {why}" for line, name in imports(path) if (why := complaint(path, name))]
    assert not bad, "\n".join(bad)


def test_a_closed_door_is_noticed() -> None:
    """The check itself goes red for each kind of bad import."""
    assert complaint(PACKAGE / "errors.py", "offload.cmd") == "errors has no door to cmd"
    assert complaint(PACKAGE / "cmd.py", "yaml") == "yaml is not for this room"
    assert complaint(PACKAGE / "cmd.py", ".errors") == "relative import"
    assert complaint(PACKAGE / "cmd.py", "offload").startswith("`from offload import x`")
    assert complaint(PACKAGE / "suite/report/verdict.py", "pytest") == "pytest is not for this room"
    assert (
        complaint(PACKAGE / "card/nic.py", "offload.suite.bench.vm.lab") == "card has no door to suite.bench"
    )
    assert complaint(PACKAGE / "card/nic.py", "offload.suite.report") == "card has no door to suite.report"


def test_no_room_of_the_host_tool_imports_the_suite() -> None:
    """One sentence holds both wings apart; what a verb of the suite is, `cli` knows by name only."""
    assert not [name for name in GROUND_FLOOR if "suite" in ROOMS[name].rooms]
    assert not [
        path for path, (rooms, _) in FILES.items() if "suite" in rooms and not path.startswith("suite/")
    ]
    assert {ROOMS[name].outside for name in GROUND_FLOOR} == {"", "yaml"}, "a host has PyYAML beside Python"


def room_circle() -> list[str]:
    """Rooms that need each other, by the table."""
    return circle({name: set(room.rooms.split()) for name, room in ROOMS.items()})


def needs(path: Path) -> set[str]:
    """The files of ours that a file imports, at any depth: inside a function or for types too."""
    names = {
        name.replace(".", "/").removeprefix("offload/")
        for _, name in imports(path)
        if name.startswith("offload.")
    }
    return {f"{name}.py" for name in names if is_file(PACKAGE / f"{name}.py")}


def circle(graph: Mapping[str, Set[str]]) -> list[str]:
    """The files of one circle in the order in which they need each other, or none."""
    done: set[str] = set()

    def walk(name: str, above: list[str]) -> list[str]:
        if name in above:
            return above[above.index(name) :]
        if name in done:
            return []
        found = next((c for other in sorted(graph.get(name, ())) if (c := walk(other, [*above, name]))), [])
        done.add(name)
        return found

    return next((found for name in sorted(graph) if (found := walk(name, []))), [])


def test_no_two_files_need_each_other() -> None:
    """A file can be read, tested and moved with those below it: there is no circle, in a function neither."""
    graph = {path.relative_to(PACKAGE).as_posix(): needs(path) for path in files()}
    assert sum(map(len, graph.values())) > 1000, "what was read?"
    assert not circle(graph), " -> ".join(circle(graph))


def test_no_two_rooms_need_each_other() -> None:
    """The table itself leads one way."""
    assert not room_circle(), " -> ".join(room_circle())


def test_a_circle_is_noticed() -> None:
    """The check itself goes red for two files, for three, and not for two ways to one file."""
    assert circle({"a": {"b"}, "b": {"a"}}) == ["a", "b"]
    assert circle({"a": {"b", "d"}, "b": {"c"}, "c": {"d"}, "d": {"b"}}) == ["b", "c", "d"]
    assert circle({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}}) == []


HOMES = {"home", "expanduser"}  # they raise RuntimeError for a user without a home folder


def looks_for_itself(path: Path) -> list[int]:
    """Lines where a file asks where it lies, or for a folder of the user."""
    found = []
    text = path.read_text()
    suspect = any(word in text for word in ("__file__", "XDG_", *HOMES))
    for node in ast.walk(ast.parse(text)) if suspect else ():
        words = node.args if isinstance(node, ast.Call) else []
        words = [node.slice] if isinstance(node, ast.Subscript) else words
        folder = any(isinstance(w, ast.Constant) and str(w.value).startswith("XDG_") for w in words)
        if folder or isinstance(node, ast.Name) and node.id == "__file__" or asks_for_home(node):
            found.append(node.lineno)
    return found


def asks_for_home(node: ast.AST) -> bool:
    """Whether a node is `Path.home` or `.expanduser` of anything."""
    return isinstance(node, ast.Attribute) and node.attr in HOMES


def test_only_paths_knows_where_things_are() -> None:
    """Checkout, build, cache, state and sockets have one address; what is sent to a guest asks for none."""
    knowing = {p.relative_to(PACKAGE).as_posix(): lines for p in files() if (lines := looks_for_itself(p))}
    assert set(knowing) == {"paths.py"}, f"`from offload.paths import ...` instead: {knowing}"
    assert len(knowing["paths.py"]) > 2


def names(folder: Path) -> list[Path]:
    """What `ls` shows of a folder, but for what Python writes."""
    return [path for path in folder.iterdir() if not path.name.startswith(("__", "."))]


def test_the_house_can_be_seen_at_a_glance() -> None:
    """The root shows few names."""
    assert len(names(PACKAGE)) <= NAMES, sorted(path.name for path in names(PACKAGE))


def crowded(paths: Iterable[str]) -> dict[str, int]:
    """Folders with more files than a reader can see at a glance, and how many."""
    counts = Counter(path.rpartition("/")[0] for path in paths)
    return {folder: count for folder, count in counts.items() if count > FILES_OF_A_FOLDER}


def test_no_folder_of_the_repository_has_many_files() -> None:
    """Every folder of what git has, tests and pages too; an exception says why, and goes when it is none."""
    paths = [path.relative_to(ROOT).as_posix() for path in TRACKED]
    assert len(paths) > 1000, "what was read?"
    assert set(crowded(paths)) == set(CROWDED), crowded(paths)


def test_a_crowded_folder_is_noticed() -> None:
    """One file more than the limit is one too many; files of a sub-folder are not its parent's."""
    few = [f"a/{n}.py" for n in range(FILES_OF_A_FOLDER)]
    assert not crowded([*few, "a/b/c.py", "c.py"]) and crowded([*few, "a/c.py"]) == {"a": len(few) + 1}


def lines(room: str) -> int:
    return sum(path.read_text().count("\n") for path in files() if room_of(path) == room)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_keeps_its_budget(room: str) -> None:
    """A room has no more lines than the table gives it; and a budget is not much more than what is needed."""
    assert lines(room) <= ROOMS[room].budget, "shrink it, or give something to another room"
    assert ROOMS[room].budget <= lines(room) * 1.3 + 100, "lower the budget"


def table() -> str:
    """The rooms as docs/contribute/architecture.md shows them."""
    head = ("room", "question it answers", "may import", "lines at most")
    rows = [head, ("---",) * 3 + ("---:",)]
    for name, room in ROOMS.items():
        if name.startswith("__") or name == "suite":
            continue
        path = PACKAGE / name.replace(".", "/")
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        said = (read(file).docstring or "").partition("\n")[0]
        doors = ", ".join(room.rooms.split()) or "nothing of ours"
        rows.append(
            (f"`{name.replace('.', '/')}{'/' if path.is_dir() else ''}`", said, doors, f"{room.budget:,}")
        )
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def page() -> Path:
    """The page that shows the table, wherever docs/ keeps it."""
    return next((ROOT / "docs").rglob("architecture.md"))


def filled(text: str) -> str:
    """The page with the table of today."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


def test_the_page_shows_this_table() -> None:
    """docs/architecture.md has the table as it is: `python -m tests.unit.test_rooms` writes it."""
    text = page().read_text()
    assert BEGIN in text and filled(text) == text, "python -m tests.unit.test_rooms"


if __name__ == "__main__":
    page().write_text(filled(page().read_text()))
