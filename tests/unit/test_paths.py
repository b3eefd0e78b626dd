"""Where our files are found: in a checkout, in a distribution's package and in a wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from offload import paths
from offload.debian.cache import cache_root
from offload.suite.bench.vm import rundir

ASK = "from offload.card.profile import find, folder; print(folder(), find('nicsim').id)"


def laid(place: Path, profiles: str) -> Path:
    """The package's own files alone in a folder, and the profiles beside or below them."""
    shutil.copytree(paths.PACKAGE, place / "offload", ignore=shutil.ignore_patterns("__pycache__", "core"))
    shutil.copytree(paths.ROOT / "nic-profiles", place / profiles)
    return place / profiles


@pytest.mark.parametrize("profiles", ["nic-profiles", "offload/nic-profiles"], ids=["deb", "wheel"])
def test_profiles_are_found_where_they_are_installed(tmp_path: Path, profiles: str) -> None:
    """In share/ktls-offload of a .deb or .rpm they lie beside the package, in a wheel inside it."""
    there = laid(tmp_path / "usr", profiles)
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "usr")}
    done = subprocess.run([sys.executable, "-c", ASK], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout.split() == [str(there), "nicsim"], done.stderr


def test_the_packages_own_files_are_there() -> None:
    """The address of the checkout is right: its profiles, its sources and its makefile."""
    assert paths.PACKAGE.name == "offload" and (paths.PACKAGE / "errata/errata.yaml").is_file()
    assert (paths.ROOT / "Makefile").is_file() and paths.BUILD.parent == paths.ROOT


def test_folders_of_the_user_follow_their_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """XDG_* where it is set and not empty, or else the usual folder below $HOME."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, "")
    assert paths.cache() == tmp_path / ".cache/ktls-offload"
    assert paths.state() == tmp_path / ".local/state/ktls-offload"
    for name, what in (("CACHE_HOME", cache_root), ("STATE_HOME", paths.state)):
        monkeypatch.setenv(f"XDG_{name}", str(tmp_path / name))
        assert what() == tmp_path / name / "ktls-offload"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert rundir.base() == paths.runtime() == tmp_path / f"ktls-offload-{os.getuid()}"
