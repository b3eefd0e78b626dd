"""Which half of the tests does a sample run today? The other half has its turn tomorrow."""

from __future__ import annotations

import datetime
import zlib

import pytest


def half_of(nodeid: str) -> int:
    """The half, 0 or 1, that a test is in; by its file's path from tests/ and its name."""
    return zlib.crc32(nodeid.partition("tests/")[2].encode()) % 2


def half_of_day(word: str) -> int:
    """The half of a day: `today`, in UTC, or a date as 2026-01-31. UsageError for anything else."""
    try:
        today = datetime.datetime.now(datetime.UTC).date()
        return (today if word == "today" else datetime.date.fromisoformat(word)).toordinal() % 2
    except ValueError:
        raise pytest.UsageError(f'--sample "{word}": wanted today, or a date as 2026-01-31') from None
