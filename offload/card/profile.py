"""nic-profiles/*.yaml -> frozen Profile: where profiles are found and how one is loaded."""

from __future__ import annotations

from pathlib import Path

from offload.card.profile_model import (
    CIPHERS,
    DIRECTIONS,
    FEATURES,
    VERSIONS,
    WORDS,
    Cell,
    CounterMap,
    Kconfig,
    Limitation,
    Note,
    Profile,
    Step,
)
from offload.card.profile_schema import profile as read_profile
from offload.errors import ConfigError
from offload.paths import profiles
from offload.yamlfile import near, quoted, read_yaml

__all__ = [
    "CIPHERS",
    "DIRECTIONS",
    "FEATURES",
    "VERSIONS",
    "WORDS",
    "Cell",
    "CounterMap",
    "Kconfig",
    "Limitation",
    "Note",
    "Profile",
    "Step",
    "find",
    "folder",
    "load",
    "load_all",
    "near",
]


def folder() -> Path:
    """The folder of our profiles. ConfigError if there is none."""
    places = profiles()
    for place in places:
        if place.is_dir():
            return place
    raise ConfigError(
        f"no profiles: neither {places[0]} nor {places[1]} exists", "is the installation complete?"
    )


def shown(path: Path) -> str:
    """A path as a person would type it: without the current folder in front."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def load(path: str | Path) -> Profile:
    """One profile. ConfigError with every problem as `file:line: key: what was there, what was wanted`."""
    where = Path(path)
    return read_profile(read_yaml(where, shown(where), "profile"), where)


def load_all(place: str | Path | None = None) -> tuple[Profile, ...]:
    """Every profile of a folder (default: ours), by id. ConfigError with the problems of all files."""
    found, wrong = [], []
    for path in sorted(Path(place or folder()).glob("*.yaml")):
        try:
            found.append(load(path))
        except ConfigError as exc:
            wrong.append(str(exc))
    if wrong:
        raise ConfigError("\n".join(wrong))
    return tuple(found)


def find(ident: str, place: str | Path | None = None) -> Profile:
    """The profile of that id, or in that file if it ends in .yaml. ConfigError with the nearest id."""
    if ident.endswith(".yaml"):
        return load(ident)
    where = Path(place or folder())
    ids = sorted(p.stem for p in where.glob("*.yaml"))
    if ident in ids:
        return load(where / f"{ident}.yaml")
    raise ConfigError(f"no profile {quoted(ident)}{near(ident, ids)}", f"there are: {', '.join(ids)}")
