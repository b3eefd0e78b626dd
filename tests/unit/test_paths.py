"""Where our files are found: in a checkout, in a distribution's package and in a wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from offload import paths
from offload.cli.main import main
from offload.debian.cache import cache_root
from offload.errors import ConfigError
from offload.suite.bench.vm import rundir

ASK = "from offload.card.profile import find, folder; print(folder(), find('nicsim').id)"
NAMELESS = "user id 4711 has no home folder: HOME is not set, and /etc/passwd has no entry"


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


@pytest.fixture
def nameless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a user id without an entry in /etc/passwd and without HOME, as in many containers."""
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 4711)


@pytest.mark.usefixtures("nameless")
@pytest.mark.parametrize("verb", ["up", "fetch"])
def test_a_user_without_a_home_is_told(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence that says what to set, no traceback."""
    assert main(["lab", verb]) == 2
    hint = "  hint: set HOME or XDG_CACHE_HOME\n"
    assert capsys.readouterr().err == f"ktls-offload: error: {NAMELESS}\n{hint}"


@pytest.mark.usefixtures("nameless")
def test_a_folder_that_is_given_needs_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is asked for a home folder that is not needed."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/given")
    assert paths.cache() == Path("/given/ktls-offload")
    with pytest.raises(ConfigError, match=f"{NAMELESS}\n.*set HOME or XDG_STATE_HOME"):
        paths.state()


@pytest.mark.usefixtures("nameless")
@pytest.mark.parametrize("home", ["~", "~nobody-of-us"])
def test_a_path_below_a_home_that_nobody_knows_is_refused(home: str) -> None:
    with pytest.raises(ConfigError, match=f"{home}/key: there is no such home folder"):
        paths.expanded(f"{home}/key")
