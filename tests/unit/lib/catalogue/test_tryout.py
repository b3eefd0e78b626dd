"""`make try` finds what T means: a test's id, a file, or an expression."""

from __future__ import annotations

from pathlib import Path

import pytest

from offload.errors import ConfigError
from tests.lib.catalogue import tryout

HW = "tests/hw/2_bytes/test_20_wire.py"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with three files of tests."""
    for path, text in (
        (HW, "def test_sends(cell): ..."),
        ("tests/sw-fallback/test_20_wire.py", "def test_Sends_less(): ..."),
        ("tests/nicsim/test_30_void.py", "def test_void(): ..."),
    ):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    "wanted, arguments",
    [
        (HW, [HW]),
        (
            f"{HW}::test_sends[a b]",
            [f"{HW}::test_sends[a b]"],
        ),
        ("test_30_void.py", ["tests/nicsim/test_30_void.py"]),
        (
            "test_20_wire.py::test_sends",
            [f"tests/{f}/test_20_wire.py::test_sends" for f in ("hw/2_bytes", "sw-fallback")],
        ),
        (
            "test_sends",
            ["-k", "test_sends", HW, "tests/sw-fallback/test_20_wire.py"],
        ),
        ("test_30", ["-k", "test_30", "tests/nicsim/test_30_void.py"]),
        ("test_nowhere", ["-k", "test_nowhere", *tryout.FOLDERS]),
        ("tx", ["-k", "tx", *tryout.FOLDERS]),
        ("test_sends or void", ["-k", "test_sends or void", *tryout.FOLDERS]),
    ],
)
def test_words_become_arguments(root: Path, wanted: str, arguments: list[str]) -> None:
    """Each way to name tests reaches them, in all three folders."""
    assert tryout.chosen(wanted, root) == arguments


def test_file_that_is_not_there_is_refused(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong file is one line, not a run of nothing."""
    with pytest.raises(ConfigError, match="no file 'tests/hw/test_99.py'"):
        tryout.chosen("tests/hw/test_99.py", root)
    assert tryout.main(["test_99_nothing.py::test_x"]) == 2
    assert "no file 'test_99_nothing.py'" in capsys.readouterr().err


def test_without_a_test_warm_labs_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only labs of `make try` end, and each is named."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    held = {name: tryout.rundir.create(name) for name in ("try-6.1-veth", "mine")}
    ended: list[str] = []
    monkeypatch.setattr(tryout.rundir, "end", lambda name: ended.append(name) or True)
    assert tryout.main([""]) == 0
    for one in held.values():
        one.release()
    assert ended == ["try-6.1-veth"] and capsys.readouterr().out == "lab try-6.1-veth is down\n"
