"""pytest, imported once: `python -m tests.lib.rig.warm_pytest NAME` forks for each stub.

Each start of pytest costs 0.3 s of processor, and unit tests start it more than a hundred times. A test that
interrupts it, asks for its parent, or has several workers starts Python itself.
"""

from __future__ import annotations

import atexit
import importlib
import os
import sys
from contextlib import AbstractContextManager
from pathlib import Path

from tests.lib.rig import stub

WORDS = 'readlink("/proc/self/cwd"), scalar(@ARGV), @ARGV, map { "$_=$ENV{$_}" } keys %ENV'
HERE = sys.path[0]
# what each run imports; no plug-in: pytest imports those itself, to rewrite their assertions
MOST = (
    "pytest",
    "execnet",
    "unittest",
    "yaml",
    "xml.etree.ElementTree",
    "_pytest.junitxml",
    "offload.suite.report.former",
)


def warm(folder: Path) -> AbstractContextManager[str]:
    """The path of a Python that knows only `-m pytest`, and starts at once; it ends with this."""
    return stub.warm(folder / "python-m-pytest", __name__, WORDS)


def play(given: list[str]) -> int:
    """Be pytest with these words, there, and with this environment."""
    import pytest

    folder, count, *rest = given
    argv, pairs = rest[: int(count)], rest[int(count) :]
    assert argv[:2] == ["-m", "pytest"], f"only -m pytest is played, not {argv}"
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(pair.split("=", 1) for pair in pairs)
    paths = filter(None, os.environ.get("PYTHONPATH", "").split(":"))
    sys.path[:] = [folder, *paths, *(path for path in sys.path if path != HERE)]
    sys.argv[:] = [str(Path(pytest.__file__).with_name("__main__.py")), *argv[2:]]
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    code = int(pytest.main())
    atexit._run_exitfuncs()
    return code


if __name__ == "__main__":
    for module in MOST:
        importlib.import_module(module)
    stub.serve(stub.listening(sys.argv[1]), play)
