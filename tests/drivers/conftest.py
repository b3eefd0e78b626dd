"""The kernel source that these tests read: Debian's package of each of the lab's kernels, fetched once."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import pytest

from offload.debian.cache import cache_root, locked, new_folder
from offload.driver import source, target
from offload.driver.kinds import Kind
from tests.lib.catalogue.driver_tables import files

TABLES = Kind(
    "tables", "", "", "", needs={}, take=files(), include=(), modules={}, witness={}, public="", reload=()
)


def tree_of(series: str) -> Path:
    """The files of a series' kernel, unpacked in the cache; fetched if they are not there."""
    kernel = target.find(series)
    folder = cache_root() / "driver-tables"
    tree = folder / f"{kernel.version}-{crc32(repr(TABLES.take).encode()):08x}"
    with locked(folder / ".lock"):
        if not tree.is_dir():
            with new_folder(tree) as into:
                source.take(kernel, TABLES, into, None, print)
    return tree


@pytest.fixture(scope="session")
def trees() -> dict[str, Path]:
    """Where the source of each series is: filled by `tree`."""
    return {}


@pytest.fixture
def tree(series: str, trees: dict[str, Path]) -> Path:
    """The source of the kernel that a test names."""
    return trees.setdefault(series, tree_of(series))
