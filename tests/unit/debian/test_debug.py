"""The debug kernel's recipe: what of it kconfig took, when it is built again, and what is said meanwhile."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest

from offload.debian import debug, own
from offload.debian.own import is_path, lacking
from offload.debian.packages import Package
from offload.errors import RigError

MAKEFILE = """\
alldefconfig:
\tcp $(KCONFIG_ALLCONFIG) .config
bzImage:
\t@echo '  CC      a.o'
\t@test ! -e broken || { echo 'a.c: it does not compile'; exit 1; }
\tmkdir -p arch/x86/boot && touch arch/x86/boot/bzImage
modules:
"""
KCONFIG = "config X86\n\tselect HAVE_OBJTOOL\t\t\tif X86_64\n\tselect HAVE_MORE\t\tif HAVE_OBJTOOL\n"


@pytest.fixture(autouse=True)
def archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """A cache of this test's own, and an archive with a small source; the names that were fetched of it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, answer in (("amd64_only", None), ("refresh", ""), ("index", None)):
        monkeypatch.setattr(debug, name, lambda answer=answer: answer)
    monkeypatch.setattr(debug, "need_space", lambda *_: None)
    monkeypatch.setattr(
        debug, "_newest", lambda names: [Package(n, "6.1.9-1", "bookworm", "", 9 << 20, 0) for n in names]
    )
    fetched: list[str] = []

    def download(packages: list[Package], into: Path) -> None:
        fetched.extend(package.name for package in packages)
        if packages[0].name == debug.SOURCE:
            (into / "usr/src").mkdir(parents=True)
            with tarfile.open(into / f"usr/src/{debug.SOURCE}.tar.xz", "w:xz") as file:
                file.add(source(tmp_path), debug.SOURCE)
        else:
            (into / "usr/bin").mkdir(parents=True)

    monkeypatch.setattr(debug, "download", download)
    monkeypatch.setattr("shutil.which", lambda name: None if name == "flex" else f"/usr/bin/{name}")
    return fetched


def source(tmp_path: Path) -> Path:
    """A kernel's source whose Makefile builds nothing, with parts that the lab has no use for."""
    top = tmp_path / "source"
    for name in ("arch/x86", "arch/alpha/kernel", "drivers/gpu/drm", "Documentation/doc"):
        (top / name).mkdir(parents=True, exist_ok=True)
    (top / "Makefile").write_text(MAKEFILE)
    (top / "arch/x86/Kconfig").write_text(KCONFIG)
    (top / "arch/x86/kernel").mkdir(exist_ok=True)
    (top / "arch/x86/kernel/module.c").write_text("{\n\tits_init_mod(me);\n}\n")
    for name in ("arch/x86/platform/pvh", "lib"):
        (top / name).mkdir(parents=True, exist_ok=True)
        (top / name / "Makefile").write_text("obj-y := a.o\n")
    for name in (
        "arch/alpha/kernel/a.c",
        "arch/alpha/kernel/Kconfig",
        "drivers/gpu/drm/a.c",
        "drivers/gpu/drm/Kconfig",
    ):
        (top / name).write_text("")
    return top


def test_the_tree_is_made_once_and_built_again_for_another_recipe(
    archive: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fetched, thinned out and built; then it is there; another fragment builds in the same tree."""
    said: list[str] = []
    tree = debug.tree(said.append)
    assert archive == [debug.SOURCE, *debug.TOOLS] and (tree / "arch/x86/boot/bzImage").is_file()
    assert not (tree / "arch/alpha/kernel/a.c").exists() and not (tree / "drivers/gpu/drm/a.c").exists()
    assert (tree / "drivers/gpu/drm/Kconfig").is_file() and (tree / "arch/alpha/kernel/Kconfig").is_file()
    assert (tree / "arch/x86/Kconfig").read_text() == KCONFIG.replace(KCONFIG.splitlines(True)[1], "")
    for name in ("arch/x86/platform/pvh/Makefile", "lib/Makefile"):
        assert "obj-y := a.o\nKASAN_SANITIZE" in (tree / name).read_text()
    assert any("fetching linux-source-6.1 6.1.9-1: 9 MiB" in line for line in said)
    said.clear()
    assert debug.tree(said.append) == tree and said == [] and len(archive) == 4
    other = tmp_path / "debug.config"
    other.write_text("CONFIG_KASAN=y\n")
    monkeypatch.setattr(debug, "FRAGMENT", other)
    assert debug.tree(said.append) == tree and (tree / ".config").read_text() == "CONFIG_KASAN=y\n"
    assert len(archive) == 4, "what was fetched is kept"
    monkeypatch.setattr(debug, "EDITS", debug.EDITS[:1])
    assert debug.tree(said.append) == tree and archive[4:] == [debug.SOURCE], "other edits, another source"
    assert (tree / "lib/Makefile").read_text() == "obj-y := a.o\n"


def test_a_build_that_fails_is_told_and_goes_on_later() -> None:
    """The compiler's words are in the message; mended, the same tree is built to its end."""
    tree = debug.tree(print)
    (tree.parent / "built.json").unlink()
    (tree / "broken").touch()
    with pytest.raises(RigError, match="does not build(.|\n)*it does not compile"):
        debug.tree(print)
    assert not (tree.parent / "built.json").exists()
    (tree / "broken").unlink()
    assert debug.tree(print) == tree


@pytest.mark.parametrize(
    ("fragment", "config", "lost"),
    [
        ("CONFIG_A=y\n# CONFIG_B is not set\n", "CONFIG_A=y\n# CONFIG_B is not set\n", []),
        ("# words\nCONFIG_A=y\n", "CONFIG_A=m\n", ["CONFIG_A=y"]),
        ("CONFIG_A=y\n", "", ["CONFIG_A=y"]),
        ("# CONFIG_B is not set\n", "CONFIG_B=y\nCONFIG_BB=y\n", ["# CONFIG_B is not set"]),
        ("# CONFIG_B is not set\n", "CONFIG_BB=y\n", ["# CONFIG_B is not set"]),
    ],
)
def test_what_kconfig_ignored(fragment: str, config: str, lost: list[str]) -> None:
    """An option that was not taken, or that something else turned on, is named."""
    assert debug.ignored(fragment, config) == lost


def test_the_fragment_has_what_the_lab_and_the_tools_need() -> None:
    """Set here or by default: of what the lab needs nothing is switched off, and each tool is on."""
    text = debug.FRAGMENT.read_text()
    defaults = ("CONFIG_SERIAL_8250_CONSOLE", "CONFIG_DEVTMPFS", "CONFIG_MODULES")
    assert [line for line in lacking(text) if not line.startswith(defaults)] == []
    tools = "KASAN PROVE_LOCKING DEBUG_NET DEBUG_KMEMLEAK DEBUG_OBJECTS DEBUG_ATOMIC_SLEEP"
    assert all(f"CONFIG_{tool}=y\n" in text for tool in tools.split())
    names = [
        line.split("=")[0].removeprefix("# ").split(" ")[0] for line in text.splitlines() if "CONFIG" in line
    ]
    assert len(names) == len(set(names)), "an option twice"


def test_progress_counts_what_was_compiled() -> None:
    """Only lines of kbuild count."""
    said = "  CC      a.o\n  LD [M]  b.ko\n  AS      c.o\n  HOSTCC  d\nwarning: CC \n"
    assert debug.progress(said, 150) == f"debug kernel: 3 of some {debug.STEPS} steps after 2 min"


def test_debug_is_a_kernel_of_ones_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`--kernel debug` takes the built tree into the cache, as a path would."""
    taken: list[Any] = []
    monkeypatch.setattr(debug, "tree", lambda say: tmp_path)
    monkeypatch.setattr(
        own, "_name", lambda path, modules: taken.append((path, modules)) or "own-0123456789ab"
    )
    monkeypatch.setattr(own, "read_json", lambda _: {"release": "x"})
    assert is_path("debug") and own.take("debug", "", print) == "own-0123456789ab"
    assert taken == [(tmp_path, None)]
