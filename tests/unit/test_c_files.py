"""Which C files need each other in a circle? A file can be read and tested with those below it alone.

A file needs the headers that it includes, and the files that define the functions and variables that it uses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# every folder that is built to one program, library or module; its folders below belong to it
PROGRAMS = sorted(
    path.parent.relative_to(ROOT).as_posix()
    for top in ("native", "offload")
    for path in (ROOT / top).rglob("Makefile")
    if path.parent != ROOT / "native" and "tests" not in path.parts
)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
INCLUDE = re.compile(r'^#include "(?:\.\./)*([\w/.-]+)"$', re.M)
TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"')
# REAL() looks its function up by name, behind ours (native/iperf3/original.h); a tag names no value
OTHER = re.compile(r"\b(?:REAL\(|struct\s+|union\s+|enum\s+)\w+")
# kernel style: a definition begins in the first column, and so does a function's body
NOT_HERE = r"^(?!static |extern |typedef |return |int;)"
FUNCTION = re.compile(NOT_HERE + r"[A-Za-z_][\w *]*?\b(\w+)\([^;{}]*\)\n\{", re.M)
VARIABLE = re.compile(NOT_HERE + r"[A-Za-z_]\w*[ *][\w *]*?\b(\w+)(?:\[[^\]\n]*\])*(?: = .*|[;,].*)$", re.M)
INLINE = re.compile(r"^static inline [\w *]*?\b(\w+)\([^;{}]*\)\n\{.*?^\}", re.M | re.S)
MACRO = re.compile(r"(?<=^#define )\w+(?:\([^)]*\))?((?:\\\n|.)*)", re.M)


def defined(name: str, text: str) -> set[str]:
    """The functions and variables that a file has for others; of a header, what acts."""
    kinds = (INLINE,) if name.endswith(".h") else (FUNCTION, VARIABLE)
    return {found[1] for kind in kinds for found in kind.finditer(text)}


def acting(name: str, text: str) -> str:
    """What of a file is run: of a header, its inline functions and macros."""
    if not name.endswith(".h"):
        return text
    return "\n".join([found[0] for found in INLINE.finditer(text)] + MACRO.findall(text))


def included(name: str, there: Set[str]) -> str:
    """The file of the program that an #include means: none, if it is of another one."""
    return next((one for one in sorted(there) if one == name or one.endswith("/" + name)), "")


def needs(files: Mapping[str, str]) -> dict[str, set[str]]:
    """The files of a program that each of them needs."""
    bare = {name: COMMENT.sub(" ", text) for name, text in files.items()}
    mute = {name: OTHER.sub("int", TEXT.sub('""', text)) for name, text in bare.items()}
    home = {word: name for name, text in mute.items() for word in defined(name, text)}
    graph = {}
    for name, text in mute.items():
        used = {home[word] for word in re.findall(r"\w+", acting(name, text)) if word in home}
        headers = {included(found[1], files.keys()) for found in INCLUDE.finditer(bare[name])}
        own = {re.sub(r"\.h$", ".c", name), ""}  # a header is the front of the file of its name
        graph[name] = (used | headers) - {name, *own}
    return graph


def in_circles(graph: Mapping[str, Set[str]]) -> set[str]:
    """The files from which a way leads back to them."""

    def below(name: str) -> set[str]:
        found, left = set[str](), [name]
        while left:
            new = graph.get(left.pop(), set()) - found
            found |= new
            left += new
        return found

    return {name for name in graph if name in below(name)}


@cache
def graph_of(program: str) -> dict[str, set[str]]:
    """The files of a program, without its tests, and what each of them needs."""
    folder = ROOT / program
    names = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.[ch]"))}
    return needs({name: path.read_text() for name, path in names.items() if not name.startswith("tests/")})


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_two_c_files_need_each_other(program: str) -> None:
    """No file of a C program needs one that needs it back, by whatever way."""
    graph = graph_of(program)
    assert graph and sum(map(len, graph.values())) >= len(graph) - 1, "what was read?"
    assert not in_circles(graph), {name: sorted(graph[name]) for name in sorted(in_circles(graph))}


def test_no_two_c_folders_need_each_other() -> None:
    """The folders of a program lead one way, too; what is at its top lies above them, or below."""
    for program in PROGRAMS:
        graph: dict[str, set[str]] = {}
        for name, others in graph_of(program).items():
            here = name.rpartition("/")[0]
            graph.setdefault(here, set()).update({other.rpartition("/")[0] for other in others} - {here, ""})
        graph.pop("", None)
        assert not in_circles(graph), graph


def test_all_programs_are_read() -> None:
    """The list of programs is found, so a new one is in it; and most of what they need was seen."""
    assert {"native/nicsim", "native/iperf3", "offload/suite/wire/core"} < set(PROGRAMS)
    assert sum(len(others) for program in PROGRAMS for others in graph_of(program).values()) > 600


def test_a_circle_of_c_files_is_noticed() -> None:
    """The check itself goes red for a circle through a header, and not for a comment or a text."""
    esp = "int esp_add(int a)\n{\n\treturn shim(a);\n}\n"
    shim = "static inline int shim(int a)\n{\n\treturn esp_add(a);\n}\n"
    assert in_circles(needs({"esp.c": esp, "compat.h": shim})) == {"esp.c", "compat.h"}
    quiet = shim.replace("esp_add(a)", '/* esp_add */ "esp_add"[a]')
    assert in_circles(needs({"esp.c": esp, "compat.h": quiet})) == set()


@pytest.mark.parametrize(
    "above",
    [
        "int main(void)\n{\n\treturn low();\n}\n",
        "int (*with)(void) = low;\nconst char *table[LOW] = { 0 };\n",
        '#include "compat.h"\nstruct later;\nint table;\n',
    ],
    ids=["function", "variable", "header"],
)
def test_each_kind_of_need_for_a_file_is_seen(above: str) -> None:
    """A call, a variable, a macro and an #include each close a circle."""
    low = "int low(void)\n{\n\treturn main() + !table;\n}\n"
    header = "#define LOW low()\n"
    assert in_circles(needs({"above.c": above, "low.c": low, "compat.h": header})) >= {"above.c", "low.c"}
