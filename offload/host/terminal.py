"""How wide the person's terminal is."""

from __future__ import annotations

import os
from contextlib import suppress


def columns(otherwise: int = 80) -> int:
    """As shutil.get_terminal_size has it; importing that one takes longer than all else of a parser."""
    with suppress(KeyError, ValueError):
        if (said := int(os.environ["COLUMNS"])) > 0:
            return said
    with suppress(OSError):
        return os.get_terminal_size(1).columns or otherwise
    return otherwise
