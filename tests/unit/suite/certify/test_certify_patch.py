"""`certify --nicsim-patch`: what it takes, what it refuses, and that the card's own source stays as it is."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from offload.errors import ConfigError, RigError
from offload.suite.bench.cards import module
from offload.suite.certify.patch import apply_patch, build_patched, read_patch, try_patch

ROOT = Path(__file__).parents[4]
BLIND = sorted((ROOT / "tests/nicsim/blind").glob("*.patch"))
SOURCE = "one\ntwo\nthree\nfour\nfive\n"
GOOD = """From a stranger
diff --git a/native/nicsim/hw_tx.c b/native/nicsim/hw_tx.c
index 1..2 100644
--- a/native/nicsim/hw_tx.c\t2026-01-01
+++ b/native/nicsim/hw_tx.c
@@ -2,3 +2,3 @@
 two
--- three
+++ drei
 four
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A card of one file, whose third line looks like the head of a patch when it is taken away."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "hw_tx.c").write_text(SOURCE.replace("three", "-- three"))
    (folder / "Kbuild").write_text("obj-m := nicsim.o\n")
    monkeypatch.setattr(module, "SOURCE", folder)
    return folder


def written(folder: Path, text: str, name: str = "my.patch") -> Path:
    """A file with this patch."""
    (folder / name).write_text(text)
    return folder / name


def test_copy_is_patched_and_the_source_is_not(tmp_path: Path, source: Path) -> None:
    """A patch changes the copy, and the report's words say which patch it was."""
    patch = read_patch(written(tmp_path, GOOD))
    apply_patch(patch, tmp_path / "copy")
    assert (tmp_path / "copy/hw_tx.c").read_text() == SOURCE.replace("three", "++ drei")
    assert (source / "hw_tx.c").read_text() == SOURCE.replace("three", "-- three")
    assert sorted(p.name for p in (tmp_path / "copy").iterdir()) == ["Kbuild", "hw_tx.c"]
    assert patch.words() == f"patched by SHA-256 {hashlib.sha256(GOOD.encode()).hexdigest()} (my.patch)"


def test_names_without_a_folder_are_found(tmp_path: Path, source: Path) -> None:
    """A patch may name a file without its folder, or with one that it has left: names are unique."""
    (source / "silicon").mkdir()
    (source / "hw_tx.c").rename(source / "silicon/hw_tx.c")
    for number, folder in enumerate(("", "native/nicsim/", "a/native/nicsim/silicon/", "faults/")):
        text = f"--- {folder}hw_tx.c\n+++ {folder}hw_tx.c\n@@ -3 +3 @@\n--- three\n+three\n"
        apply_patch(read_patch(written(tmp_path, text)), tmp_path / str(number))
        assert (tmp_path / f"{number}/silicon/hw_tx.c").read_text() == SOURCE


def test_no_two_files_of_the_card_have_one_name() -> None:
    """So that a patch may leave folders out."""
    names = [path.name for path in module.sources(ROOT / "native/nicsim")]
    assert len(names) > 30 and len(set(names)) == len(names)


def test_folder_is_applied_in_order(tmp_path: Path, source: Path) -> None:
    """The patches of a folder go one after the other, a new header included."""
    folder = tmp_path / "patches"
    folder.mkdir()
    written(folder, GOOD, "1.patch")
    written(folder, "--- hw_tx.c\n+++ hw_tx.c\n@@ -3 +3 @@\n-++ drei\n+3\n", "2.patch")
    written(folder, "--- /dev/null\n+++ b/native/nicsim/new.h\n@@ -0,0 +1 @@\n+int x;\n", "3.patch")
    written(folder, "no patch at all\n", "notes.txt")
    apply_patch(read_patch(folder), tmp_path / "copy")
    assert (tmp_path / "copy/hw_tx.c").read_text() == SOURCE.replace("three", "3")
    assert (tmp_path / "copy/new.h").read_text() == "int x;\n"


HUNK = "@@ -1 +1 @@\n-one\n+eins\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "contains no patch"),
        ("diff --git a/hw_tx.c b/hw_tx.c\nold mode 100644\nnew mode 120000\n", "contains no patch"),
        (f"--- a/native/nicsim/Kbuild\n+++ b/native/nicsim/Kbuild\n{HUNK}", r"my.patch:1: .*Kbuild"),
        (f"--- a/tests/hw/test_20_wire.py\n+++ b/tests/hw/test_20_wire.py\n{HUNK}", "tests/hw/test_20"),
        (f"--- ../../x.c\n+++ ../../x.c\n{HUNK}", r"\.\./\.\./x.c"),
        (f"--- a/hw_tx.c\n+++ b/other.c\n{HUNK}", "hw_tx.c to b/other.c"),
        ("--- a/hw_tx.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", "to /dev/null"),
        (f"--- /dev/null\n+++ b/native/nicsim/more.c\n{HUNK}", "a new header"),
        ("--- hw_tx.c\n+++ hw_tx.c\n@@ -1,3 +1,3 @@\n-one\n+eins\n", "my.patch:3: .*cut off"),
    ],
)
def test_what_is_no_patch_of_the_card_is_refused(tmp_path: Path, text: str, why: str) -> None:
    """A file that changes anything but C files of the card is refused with line and name."""
    with pytest.raises(ConfigError, match=why):
        read_patch(written(tmp_path, text))


def test_what_does_not_apply_is_refused(tmp_path: Path, source: Path) -> None:
    """A patch for another source is refused in the words of patch(1)."""
    path = written(tmp_path, GOOD.replace(" two", " zwei"))
    with pytest.raises(ConfigError, match=r"my.patch does not apply to native/nicsim:\n(.|\n)*hw_tx.c"):
        apply_patch(read_patch(path), tmp_path / "copy")


def test_what_does_not_build_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A patch that does not compile is the person's affair, not a broken rig."""

    def broken(kernel: object, say: object, folder: Path) -> Path:
        raise RigError(f"nicsim does not build: {folder.name}/hw_tx.c:3: error: no")

    monkeypatch.setattr(module, "build_nicsim", broken)
    patch = read_patch(written(tmp_path, GOOD))
    with pytest.raises(ConfigError, match=r"my.patch, nicsim does not build: copy/hw_tx.c:3"):
        build_patched(patch, None, tmp_path / "copy", print)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", BLIND, ids=lambda path: path.stem)
def test_examples_apply(tmp_path: Path, path: Path) -> None:
    """The defects that docs/certify/try-to-fool-us.md shows apply to the card as it is."""
    apply_patch(read_patch(path), tmp_path / "copy")
    card, copy = ROOT / "native/nicsim", tmp_path / "copy"
    changed = [p for p in module.sources(card) if (copy / p).read_bytes() != (card / p).read_bytes()]
    assert len(changed) == 1 and path.name in (ROOT / "docs/certify/try-to-fool-us.md").read_text()


def test_the_commands_of_the_page_make_a_patch(tmp_path: Path) -> None:
    """What the page says to type makes a patch with a new header, and leaves a clean checkout."""
    page = (ROOT / "docs/certify/try-to-fool-us.md").read_text().splitlines()
    steps = [line.partition("  #")[0] for line in page if line.startswith("git ")]
    assert [step.split()[1] for step in steps] == ["add", "diff"]
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "native/nicsim", tree / "native/nicsim", ignore=shutil.ignore_patterns("tests"))
    begin = ["git init -q", "git add .", "git -c user.name=a -c user.email=a@b commit -qm card"]
    card = tree / "native/nicsim/silicon/hw_tx.c"
    edit = "printf 'int bad;\\n' >> native/nicsim/silicon/hw_tx.c; echo 'int worse;' > native/nicsim/bad.h"
    for line in (*begin, edit, *steps):
        subprocess.run(["sh", "-ec", line], cwd=tree, check=True, capture_output=True)
    left = subprocess.run(
        ["git", "status", "--porcelain"], cwd=tree, check=True, capture_output=True, text=True
    )
    assert left.stdout == "?? my.patch\n" and "int bad;" not in card.read_text()
    apply_patch(read_patch(tree / "my.patch"), tmp_path / "copy")
    assert (tmp_path / "copy/bad.h").read_text() == "int worse;\n"
    assert (tmp_path / "copy/silicon/hw_tx.c").read_text() == card.read_text() + "int bad;\n"


def test_a_folder_without_patches_is_reported_what_it_lacks(tmp_path: Path) -> None:
    """A folder of *.diff is refused: the message names the ending, and what is there."""
    folder = tmp_path / "defects"
    folder.mkdir()
    with pytest.raises(ConfigError, match=r"defects contains no file whose name ends with \.patch\n"):
        read_patch(folder)
    for number in range(3):
        written(folder, GOOD, f"{number}.diff")
    with pytest.raises(ConfigError, match=r"ends with \.patch; it holds 0\.diff, 1\.diff, 2\.diff\n.*rename"):
        read_patch(folder)
    for number in range(9):
        written(folder, GOOD, f"{number}.diff")
    with pytest.raises(ConfigError, match=r"3\.diff, 4\.diff and more\n"):
        read_patch(folder)
    assert read_patch(folder / "0.diff").names == ("0.diff",)


def test_a_trial_leaves_nothing(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy that a patch is tried on is gone afterwards, whether it applied or not."""
    here = tmp_path / "temporary"
    here.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(here))
    try_patch(read_patch(written(tmp_path, GOOD)))
    with pytest.raises(ConfigError, match="does not apply"):
        try_patch(read_patch(written(tmp_path, GOOD.replace(" two", " zwei"))))
    assert not list(here.iterdir()) and len(list(source.iterdir())) == 2


def test_no_file_and_too_much(tmp_path: Path) -> None:
    """A file that is not there, and one that is too large, are refused in one line."""
    with pytest.raises(ConfigError, match=r"cannot read the patch .*none.patch: No such file"):
        read_patch(tmp_path / "none.patch")
    with pytest.raises(ConfigError, match="larger than 1024 KiB"):
        read_patch(written(tmp_path, "x" * ((1 << 20) + 1)))
