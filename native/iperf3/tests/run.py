"""Run the checks: `run.py PROGRAM FAKE_KTLS_LIBRARY [WORD]`; last line "N passed, M failed"."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "testing"))

import check_data
import check_options
import check_refusals
import check_upstream
import runner
from rig import Rig, make_certificates

MODULES = (check_options, check_data, check_refusals, check_upstream)


def main(program: str, fake: str, word: str = "") -> int:
    """Run the checks of every module; 1 if one failed, or none ran."""
    with tempfile.TemporaryDirectory() as folder:
        make_certificates(Path(folder))
        rig = Rig(str(Path(program).resolve()), str(Path(fake).resolve()), Path(folder))
        return runner.run(MODULES, rig, word)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
