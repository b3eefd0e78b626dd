"""Pages of docs/ that list data: where one says `made by MODULE`, the entries of that module belong."""

from __future__ import annotations

import re
from importlib import import_module


def filled(text: str) -> str:
    """A page as the web site and the packages show it."""
    return re.sub(r"<!-- made by (offload[\w.]+) -->", lambda found: import_module(found[1]).entries(), text)
