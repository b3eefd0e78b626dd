"""What will stay unproved on this bench? Asked of the suite before it runs, for `certify` and `lab check`."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from offload.card.profile import Profile
from offload.cmd import run
from offload.errors import CommandFailed, RigError
from offload.paths import ROOT
from offload.suite.report import criteria, facts
from offload.suite.report.forecast import foresee

PATIENCE = 900.0  # seconds: a bench that is emulated on a busy machine takes ten


def suite(root: Path = ROOT) -> bool:
    """Say whether the tests are here: in a checkout they are."""
    return (root / "tests/hw").is_dir()


def lines(options: Sequence[str], profile: Profile, given: str = "", root: Path = ROOT) -> list[str]:
    """Return what the bench of these pytest options can prove of a card, for a person. RigError if that
    cannot be determined.

    `given`: the file of the profile, if it is not one of those that are shipped.
    """
    with tempfile.TemporaryDirectory(prefix="ktls-offload-") as folder:
        path = Path(folder) / "forecast.json"
        argv = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"]
        argv += ["--forecast", str(path), *options, "--profile", given or profile.id, "tests/hw"]
        rc, out, err, _ = run(argv, timeout=PATIENCE, cwd=str(root))
        if not path.is_file():
            raise CommandFailed(argv, rc, out, err)
        document = json.loads(path.read_text())
    if document["error"]:
        raise RigError(str(document["error"]).partition("\n")[0])
    return foresee(document, criteria.load(), facts.of(profile)).lines()
