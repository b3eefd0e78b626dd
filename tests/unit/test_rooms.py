"""The doors between the rooms of offload/: the table is the architecture, a change of it is a review."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "offload"

# room: (rooms it may import, packages from outside the standard library)
DOORS: dict[str, tuple[str, str]] = {
    "__init__": ("", ""),
    "__main__": ("cli", ""),
    "errors": ("", ""),
    "cmd": ("errors", ""),
    "paths": ("", ""),
    "yamlfile": ("errors", "yaml"),
    "usage": ("", ""),
    "host": ("cmd errors", ""),
    "profile": ("yamlfile paths errors", ""),
    "cards": ("profile yamlfile paths errors", ""),
    "errata": ("yamlfile paths errors", ""),
    "nic": ("host cmd profile errors", ""),
    "counters": ("host cmd profile errors", ""),
    "cpu": ("host cmd paths errors", ""),
    "journal": ("cmd errors", ""),
    "enable": ("host cmd nic counters journal profile errors", ""),
    "status": ("host cmd nic counters profile errors", ""),
    "doctor": ("ls host nic counters profile errata paths errors", "yaml"),
    "driver": ("vm journal cmd paths errors", "yaml"),
    "probe": ("doctor host nic counters profile paths errors", "yaml"),
    "sockets": ("host paths errors", ""),
    "ipsec": ("host nic errors", ""),
    "persist": ("enable host nic journal profile errors", ""),
    "connect": ("paths errors", ""),
    "ls": ("sockets host nic counters profile errors", ""),
    "traffic": ("host cmd paths errors", ""),
    "wire": ("cmd paths errors", "cryptography"),
    "vm": ("ipsec host profile cmd paths errors", ""),
    "measure": ("vm ipsec host nic counters enable journal cpu traffic profile cmd errors", ""),
    "report": ("profile errata cpu cmd yamlfile paths errors", ""),
    "lab": ("enable vm traffic host nic journal profile cmd yamlfile paths errors", "yaml"),
    "fleet": ("cmd paths errors", "yaml"),
    "labgrid": ("", "labgrid attr"),
    "certify": ("fleet lab vm host report profile usage cmd yamlfile paths errors", ""),
    "cli": ("persist enable status nic counters journal profile host paths errors", ""),
}
# doors of single files, beyond those of their room
FILE_DOORS: dict[str, tuple[str, str]] = {
    "report/plugin.py": ("", "pytest"),
    "report/recorder.py": ("", "pytest"),
    "report/settle.py": ("", "pytest"),
    "report/testinfo.py": ("", "pytest"),
    "report/render.py": ("", "jinja2"),
    "lab/verbs.py": ("certify", ""),  # `lab check` says what `certify --lab` would end with
    "cli_tree.py": ("doctor vm", ""),  # words that completion offers
    "cli.py": ("vm report certify wire measure", ""),  # only inside a function: the ground floor stays light
}
GROUND_FLOOR = (
    "errors", "cmd", "paths", "yamlfile", "host", "profile", "cards", "errata", "nic", "counters",
    "journal", "enable", "status", "sockets", "ls", "persist", "doctor", "driver", "connect", "cli",
)  # fmt: skip


def files() -> list[Path]:
    """Every Python file of the package."""
    return [p for p in sorted(PACKAGE.rglob("*.py")) if "__pycache__" not in p.parts]


def room_of(path: Path) -> str:
    """The room of a file: its folder below offload/, or its own name."""
    parts = path.relative_to(PACKAGE).parts
    name = parts[0].removesuffix(".py")
    return name if name in DOORS else name.split("_")[0]


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every import in a file, at any depth."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and [a.name for a in node.names] != ["__version__"]:
            yield node.lineno, "." * node.level + (node.module or "")


def allowed(path: Path) -> tuple[set[str], set[str]]:
    """Rooms and outside packages that a file may import."""
    rooms, outside = DOORS[room_of(path)]
    more_rooms, more_outside = FILE_DOORS.get(path.relative_to(PACKAGE).as_posix(), ("", ""))
    return {room_of(path), *rooms.split(), *more_rooms.split()}, {*outside.split(), *more_outside.split()}


def complaint(path: Path, name: str) -> str:
    """Why this import is not allowed, or an empty string."""
    rooms, outside = allowed(path)
    top, _, rest = name.partition(".")
    if name.startswith("."):
        return "relative import"
    if top in sys.stdlib_module_names or top in outside:
        return ""
    if top != "offload":
        return f"{top} is not for this room"
    if not rest:
        return "`from offload import x` names no room: write `from offload.x import y`"
    room = (
        room_of(PACKAGE / (rest.split(".")[0] + ".py"))
        if rest.split(".")[0] not in DOORS
        else rest.split(".")[0]
    )
    return "" if room in rooms else f"{room_of(path)} has no door to {room}"


def test_every_room_has_a_row_and_every_row_a_room() -> None:
    """The table and the folders agree."""
    assert {room_of(p) for p in files()} == set(DOORS)


@pytest.mark.parametrize("path", files(), ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_imports_use_doors(path: Path) -> None:
    """Every import goes through a door of the table."""
    shown = path.relative_to(PACKAGE.parent)
    bad = [f"{shown}:{line}: {name}: {why}" for line, name in imports(path) if (why := complaint(path, name))]
    assert not bad, "\n".join(bad)


def test_a_closed_door_is_noticed() -> None:
    """The check itself goes red for each kind of bad import."""
    assert complaint(PACKAGE / "errors.py", "offload.cmd") == "errors has no door to cmd"
    assert complaint(PACKAGE / "cmd.py", "yaml") == "yaml is not for this room"
    assert complaint(PACKAGE / "cmd.py", ".errors") == "relative import"
    assert complaint(PACKAGE / "cmd.py", "offload").startswith("`from offload import x`")
    assert complaint(PACKAGE / "report/verdict.py", "pytest") == "pytest is not for this room"


def needs(path: Path) -> set[str]:
    """The files of ours that a file imports, at any depth: inside a function or for types too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    names = {name.replace(".", "/").removeprefix("offload/") for name in found if name.startswith("offload.")}
    return {f"{name}.py" for name in names if (PACKAGE / f"{name}.py").is_file()}


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


def test_a_circle_is_noticed() -> None:
    """The check itself goes red for two files, for three, and not for two ways to one file."""
    assert circle({"a": {"b"}, "b": {"a"}}) == ["a", "b"]
    assert circle({"a": {"b", "d"}, "b": {"c"}, "c": {"d"}, "d": {"b"}}) == ["b", "c", "d"]
    assert circle({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}}) == []


def looks_for_itself(path: Path) -> list[int]:
    """Lines where a file asks where it lies, or for a folder of the user."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        words = node.args if isinstance(node, ast.Call) else []
        words = [node.slice] if isinstance(node, ast.Subscript) else words
        folder = any(isinstance(w, ast.Constant) and str(w.value).startswith("XDG_") for w in words)
        if folder or isinstance(node, ast.Name) and node.id == "__file__":
            found.append(node.lineno)
    return found


def test_only_paths_knows_where_things_are() -> None:
    """Checkout, build, cache, state and sockets have one address; what is sent to a guest asks for none."""
    knowing = {p.relative_to(PACKAGE).as_posix(): lines for p in files() if (lines := looks_for_itself(p))}
    assert set(knowing) == {"paths.py"}, f"`from offload.paths import ...` instead: {knowing}"
    assert len(knowing["paths.py"]) > 2


def test_cli_opens_heavy_rooms_only_inside_a_verb() -> None:
    """The ground floor starts without the lab, the report and their extras."""
    tree = ast.parse((PACKAGE / "cli.py").read_text())
    top = [n.module or "" for n in tree.body if isinstance(n, ast.ImportFrom)]
    assert not [m for m in top if m.split(".")[1:2] in (["vm"], ["report"], ["certify"], ["wire"])]


def test_ground_floor_needs_only_pyyaml() -> None:
    """A production host with only PyYAML beside Python runs the operator's verbs."""
    outside = {DOORS[room][1] for room in GROUND_FLOOR} - {""}
    assert outside == {"yaml"}
