"""Which drivers can be built, and what does each take? The facts are in drivers.yaml."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import yaml

from offload.errors import ConfigError
from offload.paths import PACKAGE


@dataclass(frozen=True)
class Kind:
    """A driver: `option` is set to `value` (y or m); `take` are paths and patterns in the kernel's source.

    `modules` (name -> folder) are built; `witness` (module -> symbol) shows that the option worked; `public`
    is the folder of headers that modules see which are not rebuilt ('': all that see any are rebuilt).
    """

    name: str
    cards: str
    option: str
    value: str
    needs: Mapping[str, str]
    take: tuple[str, ...]
    include: tuple[str, ...]
    modules: Mapping[str, str]
    witness: Mapping[str, str]
    public: str
    reload: tuple[str, ...]


@cache
def kinds() -> dict[str, Kind]:
    """Every driver of drivers.yaml by its name."""
    rows = yaml.safe_load((PACKAGE / "driver/drivers.yaml").read_text("utf-8"))
    return {name: _kind(name, row) for name, row in rows.items()}


def _kind(name: str, row: Mapping[str, object]) -> Kind:
    """One row; lists become tuples."""
    fields = {key: tuple(v) if isinstance(v, list) else v for key, v in row.items()}
    return Kind(name=name, **fields)  # type: ignore[arg-type]


def kind(name: str) -> Kind:
    """The driver of this name; ConfigError with the likely one if there is none."""
    found = kinds().get(name)
    if found is None:
        near = difflib.get_close_matches(name, kinds(), n=1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        raise ConfigError(f"no driver {name!r} to build{meant}", f"choose one of {' and '.join(kinds())}")
    return found
