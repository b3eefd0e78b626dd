"""Run the checks: `run.py PROGRAM [WORD]`, in a network namespace; last line "N passed, M failed"."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "testing"))

import check_frames
import check_stop
import check_usage
import runner
from rig import Rig, inside, ip, permitted


def main(program: str, word: str = "") -> int:
    """Run the checks; 1 if one failed, or none ran. Without a namespace only those that need none."""
    how = permitted()
    if how and not inside():
        argv = [*how.split(), sys.executable, "-B", __file__, program, word]
        os.execvpe(argv[0], argv, {**os.environ, "WIRETAP_NAMESPACE": "yes"})
    modules = [check_usage, check_frames, check_stop]
    if not how:
        print("no network namespaces here: only the command line is checked")
        modules = [check_usage]
    else:
        ip("link", "set", "lo", "up")
    with tempfile.TemporaryDirectory() as folder:
        rig = Rig(str(Path(program).resolve()), Path(folder))
        return runner.run(modules, rig, word)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
