"""Run the checks: `run.py PROGRAM FAKE_KTLS_LIBRARY [WORD]`; last line "N passed, M failed"."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "testing"))

import check_client
import check_close
import check_fallback
import check_handover
import check_options
import check_peer
import check_place
import check_policy
import check_serve
import check_steps
import check_taken
import runner
from rig import Rig, make_certificates

MODULES = (
    check_options,
    check_peer,
    check_steps,
    check_handover,
    check_close,
    check_fallback,
    check_serve,
    check_place,
    check_policy,
    check_client,
    check_taken,
)


def main(program: str, fake: str, word: str = "") -> int:
    """Run the checks of every module."""
    with tempfile.TemporaryDirectory() as folder:
        make_certificates(Path(folder))
        rig = Rig(str(Path(program).resolve()), str(Path(fake).resolve()), Path(folder))
        return runner.run(MODULES, rig, word)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
