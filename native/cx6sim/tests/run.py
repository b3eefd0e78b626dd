"""Run the checks: `run.py PROGRAM [WORD]`; last line "N passed, M failed"."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "testing"))

import check_bus
import check_commands
import check_control
import check_queues
import check_tls
import check_traffic
import runner
from rig import Rig

MODULES = (check_bus, check_commands, check_traffic, check_queues, check_tls, check_control)


def main(program: str, word: str = "") -> int:
    """Run the checks of every module."""
    return runner.run(MODULES, Rig(str(Path(program).resolve())), word)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
