"""Run the checks in a private network namespace: `run.py PROGRAM [WORD]`; last line "N passed, M failed"."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "testing"))

import check_carry
import check_life
import check_real
import check_rules
import check_talk
import check_weather
import runner
from rig import Rig, make_links

MODULES = (check_talk, check_carry, check_rules, check_weather, check_life, check_real)
INSIDE = "WIREBOX_INSIDE"


def private() -> list[str]:
    """The command that gives a network namespace of our own: as root, or in a user namespace."""
    plain = ["unshare", "--net"]
    works = subprocess.run([*plain, "true"], capture_output=True).returncode == 0
    return plain if works else ["unshare", "--net", "--map-root-user"]


def main(program: str, word: str = "") -> int:
    """Run the checks of every module."""
    if INSIDE not in os.environ:
        argv = [*private(), sys.executable, "-B", *sys.argv]
        os.execvpe(argv[0], argv, {**os.environ, INSIDE: "1"})
    make_links()
    rig = Rig(str(Path(program).resolve()))
    return runner.run(MODULES, rig, word)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
