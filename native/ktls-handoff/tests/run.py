"""Run the checks: `run.py PROGRAM FAKE_KTLS_LIBRARY [WORD]`; last line "N passed, M failed"."""

from __future__ import annotations

import sys
import tempfile
import time
import traceback
from pathlib import Path

import check_close
import check_fallback
import check_handover
import check_options
import check_peer
import check_steps
from rig import Rig, make_certificates

MODULES = (check_options, check_peer, check_steps, check_handover, check_close, check_fallback)


def main(program: str, fake: str, word: str = "") -> int:
    """Run the checks whose name holds `word`; 1 if one failed, or none ran."""
    passed, failed = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        make_certificates(Path(folder))
        rig = Rig(str(Path(program).resolve()), str(Path(fake).resolve()), Path(folder))
        for module in MODULES:
            for name in [n for n in vars(module) if n.startswith("check_") and word in n]:
                began = time.monotonic()
                try:
                    getattr(module, name)(rig)
                except Exception:
                    traceback.print_exc(file=sys.stdout)
                    failed += 1
                    print(f"FAILED {name}")
                else:
                    passed += 1
                    print(f"ok {name} ({time.monotonic() - began:.2f} s)")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
