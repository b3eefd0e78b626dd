"""Bad cards against the suite without one of its checks: does another one see them, or do they escape?"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.lib import catalogue, suite
from tests.lib.catalogue_run import Stand
from tests.nicsim.escape_checks import ROOT, Check, checks
from tests.nicsim.escape_checks import without as text_without
from tests.nicsim.escape_read import cards, credit


@contextmanager
def tree_without(check: Check) -> Iterator[Path]:
    """A folder with the tests, without the check; the package that they test is the installed one."""
    with tempfile.TemporaryDirectory(prefix="ktls-offload-escape-") as name:
        root = Path(name)
        shutil.copyfile(ROOT / "pyproject.toml", root / "pyproject.toml")
        shutil.copytree(ROOT / "tests", root / "tests", ignore=shutil.ignore_patterns("__pycache__", "unit"))
        changed = root / check.file
        changed.write_text(text_without(changed.read_text(), check))
        yield root


def without(check: Check, ids: Sequence[str], kernel: str, lab: str, folder: Path) -> dict[str, str]:
    """Run these cards without the check: card -> the check that caught it, or nothing. RigError."""
    rows = tuple(row for row in catalogue.load() if row.id in ids and kernel in row.kernels)
    out = folder / "escape" / str(check).replace("/", "-").replace(":", "-")
    out.mkdir(parents=True, exist_ok=True)
    before = suite.ROOT
    with tree_without(check) as root:
        suite.ROOT = root
        try:
            with Stand(kernel, out, lambda line: None, attach=lab) as stand:
                for step in catalogue.steps(rows):
                    if step.row:
                        stand.do(step)
        finally:
            suite.ROOT = before
        facts = credit(list(cards(out, ids)), checks(ROOT))  # the lines of the copy are the same
    caught = {card: name for name, found in facts.deciding.items() for card in found}
    caught |= {line.partition(":")[0]: line.partition(" at ")[2] for line in facts.elsewhere}
    return {name: caught.get(name, "") for name in (row.id for row in rows)}
