"""Where are our files, the built programs, and this user's cache, state and sockets? Nobody else looks."""

from __future__ import annotations

import os
from pathlib import Path

from offload.errors import ConfigError

PACKAGE = Path(__file__).resolve().parent  # offload/, and the data files in it
ROOT = PACKAGE.parent  # the checkout; installed, what is not in the package is missing here
BUILD = ROOT / "build"  # what `make build` made
NAME = "ktls-offload"


def profiles() -> tuple[Path, ...]:
    """Where the profiles may be: in a wheel, then in a checkout and in the packages of a distribution."""
    return PACKAGE / "nic-profiles", ROOT / "nic-profiles"


def cache() -> Path:
    """Return what can be made again: ${XDG_CACHE_HOME:-~/.cache}/ktls-offload."""
    return _home("XDG_CACHE_HOME", ".cache") / NAME


def state() -> Path:
    """Return what must not be lost: ${XDG_STATE_HOME:-~/.local/state}/ktls-offload."""
    return _home("XDG_STATE_HOME", ".local/state") / NAME


def runtime() -> Path:
    """Return what ends with its process, as sockets do: ${XDG_RUNTIME_DIR:-/tmp}/ktls-offload-UID."""
    import tempfile  # takes longer to open than most verbs do

    return Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"{NAME}-{os.getuid()}"


def expanded(text: str | Path) -> Path:
    """A path as a person gave it, `~` and `~USER` expanded. ConfigError if nothing says where that is."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ConfigError(f"{text}: there is no such home folder", "write the path in full") from None


def _home(variable: str, below: str) -> Path:
    """The folder that a variable names, or one below the home folder. ConfigError if this user has none."""
    if given := os.environ.get(variable):
        return Path(given)
    try:
        return Path.home() / below
    except RuntimeError:  # as in a container whose user id /etc/passwd does not list
        why = f"user id {os.getuid()} has no home folder: HOME is not set, and /etc/passwd has no entry"
        raise ConfigError(why, f"set HOME or {variable}") from None
