"""Which C files call each other in a circle? A file can be read and tested with those below it alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "native/nicsim",
    "native/ktls-handoff",
    "native/wirebox",
    "native/wiretap",
    "native/iperf3",
    "native/cx6sim",
    "offload/suite/wire/core",
)
# what is still to be taken apart: a file leaves this list, none joins it
KNOWN = {
    "native/iperf3": {"deal.c", "failure.c", "handshake.c", "hooks.c", "stream.c"},
    "offload/suite/wire/core": {
        "canary.c", "check.c", "hello.c", "jobs.c", "needles.c", "protected.c", "ranges.c", "records.c",
        "tls12.c", "tls13.c",
    },
}  # fmt: skip
SILENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
# kernel style: a definition begins in the first column, and its body too
DEFINED = re.compile(r"^(?!static )[A-Za-z_][\w *]*?\b(\w+)\([^;{}]*\)\n\{", re.M)
INLINE = re.compile(r"^static inline [\w *]*?\b(\w+)\([^;{}]*\)\n\{.*?^\}", re.M | re.S)


def calls(files: Mapping[str, str]) -> dict[str, set[str]]:
    """The files whose functions a file uses; of a header its inline functions count."""
    bare = {name: SILENT.sub(" ", text) for name, text in files.items()}
    inline = {name: list(INLINE.finditer(text)) for name, text in bare.items() if name.endswith(".h")}
    home = {f[1]: n for n, text in bare.items() for f in inline.get(n, DEFINED.finditer(text))}
    acting = {n: "".join(f[0] for f in inline[n]) if n in inline else text for n, text in bare.items()}
    used = {name: {home[w] for w in re.findall(r"\w+", text) if w in home} for name, text in acting.items()}
    return {name: others - {name} for name, others in used.items()}


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


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_two_c_files_need_each_other(folder: str) -> None:
    """No file of a C program calls one that calls it back, by whatever way."""
    graph = calls({path.name: path.read_text() for path in sorted((ROOT / folder).glob("*.[ch]"))})
    assert len(graph) > 3 and sum(map(len, graph.values())) >= len(graph) - 3, "what was read?"
    assert in_circles(graph) == KNOWN.get(folder, set()), {n: sorted(graph[n]) for n in in_circles(graph)}


def test_a_circle_of_c_files_is_noticed() -> None:
    """The check itself goes red for a circle through a header, and not for a comment or a text."""
    esp = "int esp_add(int a)\n{\n\treturn shim(a);\n}\n"
    shim = "static inline int shim(int a)\n{\n\treturn esp_add(a);\n}\n"
    assert in_circles(calls({"esp.c": esp, "compat.h": shim})) == {"esp.c", "compat.h"}
    quiet = shim.replace("esp_add(a)", '/* esp_add */ "esp_add"[a]')
    assert in_circles(calls({"esp.c": esp, "compat.h": quiet})) == set()
