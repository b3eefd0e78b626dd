"""For all unit tests: a pytest that one of them starts leaves labgrid's plug-in out, as ours does."""

from __future__ import annotations

import os

# pyproject.toml says so for this project alone; the plug-in takes half of the time of a small child
os.environ["PYTEST_ADDOPTS"] = "-p no:labgrid"
