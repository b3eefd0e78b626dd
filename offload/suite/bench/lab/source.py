"""Where is a bench described? In a lab file, in upstream's net.config, or in the environment."""

from __future__ import annotations

import os
from pathlib import Path

from offload.suite.bench.lab.file import load
from offload.suite.bench.lab.model import LabFile
from offload.suite.bench.lab.netconfig import from_environment, from_file

ENVIRONMENT = "env"


def load_any(path: Path) -> LabFile:
    """The bench of a lab file, of a file ending in .config, or (`env`) of NETIF and its like. ConfigError."""
    if str(path) == ENVIRONMENT:
        return from_environment(os.environ)
    return from_file(path) if path.suffix == ".config" else load(path)
