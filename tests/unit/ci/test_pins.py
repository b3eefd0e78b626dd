"""ci/constraints.txt: the environment of the checkout holds the releases that this file names."""

import re
from importlib.metadata import distributions

from offload.paths import ROOT

OURS = {"ktls-offload", "pip", "setuptools", "wheel"}  # the checkout, and what venv brings


def plain(name: str) -> str:
    """The name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    """Name and release of each line of the file."""
    lines = (ROOT / "ci/constraints.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    return {plain(name): release for name, release in pairs}


def test_each_library_is_the_release_that_the_file_names():
    found = {plain(one.name): one.version for one in distributions()}
    known = pins()
    wrong = {name: found[name] for name in found.keys() - OURS if known.get(name) != found[name]}
    assert not wrong, f"make venv, or after a change of pyproject.toml: make pins ({wrong})"
