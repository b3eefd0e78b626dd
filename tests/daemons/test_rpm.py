"""The package for RHEL 9 and its like: what it needs, that it installs and goes, and runs on Python 3.9."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from offload import __version__
from tests.daemons.test_deb import ROOT, tree  # noqa: F401
from tests.lib.rig import python39

NAME = f"ktls-offload-{__version__}-1.noarch.rpm"
# A throw-away copy of this machine's files: what rpm does in it is gone with the namespace.
INSTALL = """\
mount -t tmpfs tmpfs "$1" && mkdir "$1/up" "$1/aside" "$1/tree"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/up,workdir=$1/aside" "$1/tree" || exit 99
cp "$2" "$1/tree/package.rpm" && cd /
exec chroot "$1/tree" /bin/sh -ec '
  rpm --dbpath /rpmdb --initdb
  rpm --dbpath /rpmdb --nodeps -i /package.rpm
  ktls-offload --version
  ls /usr/share/ktls-offload/offload/cli/__pycache__ | grep -c main.cpython
  mkdir -p /var/lib/ktls-offload && echo x >/var/lib/ktls-offload/journal.json
  rpm --dbpath /rpmdb --nodeps -e ktls-offload
  test -e /var/lib/ktls-offload/journal.json
  test ! -e /usr/bin/ktls-offload && test ! -e /usr/share/ktls-offload && echo gone'
"""


def build(place: Path, folder: Path) -> Path:
    """The package of a copy of the project, made into a folder."""
    env = {**os.environ, "SOURCE_DATE_EPOCH": "1790000000"}
    done = subprocess.run([place / "packaging/build-rpm", folder], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return folder / NAME


@pytest.fixture(scope="module")
def whole(tree: Path) -> Path:  # noqa: F811
    """The files that the package is made of, with their license."""
    shutil.copytree(ROOT / "LICENSES", tree / "LICENSES", dirs_exist_ok=True)
    return tree


@pytest.fixture(scope="module")
def package(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, built once."""
    if lacking := [name for name in ("rpmbuild", "dpkg-deb") if shutil.which(name) is None]:
        pytest.skip(f"{lacking[0]} is not installed: apt install rpm")
    return build(whole, tmp_path_factory.mktemp("rpm"))


@pytest.fixture(scope="module")
def unpacked(package: Path) -> Path:
    """Its files in a bare folder."""
    root = package.parent / "root"
    root.mkdir()
    argv = ["rpm2archive", "-"]
    packed = subprocess.run(argv, input=package.read_bytes(), check=True, capture_output=True).stdout
    subprocess.run(["tar", "-xz", "-C", root], input=packed, check=True)
    return root


def asked(package: Path, *words: str) -> set[str]:
    """Lines that `rpm -qp` prints."""
    argv = ["rpm", "-qp", *words, package]
    return set(subprocess.run(argv, check=True, capture_output=True, text=True).stdout.splitlines())


def test_it_needs_python_and_yaml_only(package: Path) -> None:
    """The package needs Python 3.9 and PyYAML; what else it asks is recommended."""
    needs = {line for line in asked(package, "--requires") if not line.startswith(("rpmlib(", "/bin/sh"))}
    assert needs == {"python3 >= 3.9", "python3-pyyaml"}
    assert asked(package, "--recommends") == {"ethtool", "iproute", "kmod"}
    assert "mstflint" in asked(package, "--suggests")
    assert asked(package, "--qf", "%{VERSION} %{ARCH} %{LICENSE}\n") == {f"{__version__} noarch Apache-2.0"}


def test_everything_is_in_it(package: Path, unpacked: Path) -> None:
    """Command, man page, completions, license and documents lie where such a system looks."""
    share = unpacked / "usr/share"
    for place in (
        "man/man1/ktls-offload.1.gz",
        "bash-completion/completions/ktls-offload",
        "zsh/site-functions/_ktls-offload",
        "fish/vendor_completions.d/ktls-offload.fish",
        "licenses/ktls-offload/Apache-2.0.txt",
        "doc/ktls-offload/docs/reference/reasons.md",
    ):
        assert (share / place).stat().st_size > 100, place
    owners = asked(package, "--qf", "[%{FILEUSERNAME} %{FILEGROUPNAME}\n]")
    assert owners == {"root root"}
    assert not [
        name for name in asked(package, "-l") if "__pycache__" in name or "vendor-completions" in name
    ]


def test_it_runs_on_python_39(unpacked: Path) -> None:
    """The unpacked command answers on the Python that RHEL 9 has."""
    python = python39.had()
    if not python:
        pytest.skip("Python 3.9 is not in the cache: `make fetch` gets it where the mirror has Debian 11")
    command = [python, unpacked / "usr/bin/ktls-offload", "status", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": os.environ["PATH"]}, cwd="/")
    assert done.returncode == 0 and '"schema": 1' in done.stdout, done.stderr


def test_the_same_files_give_the_same_package(whole: Path, package: Path, tmp_path: Path) -> None:
    """A second build is the same, byte for byte."""
    again = build(whole, tmp_path)
    assert hashlib.sha256(again.read_bytes()).digest() == hashlib.sha256(package.read_bytes()).digest()


def test_it_installs_and_goes(package: Path, tmp_path: Path) -> None:
    """rpm installs it in a copy of this system, it runs, and its removal leaves the journal."""
    argv = ["unshare", "-m", "/bin/sh", "-ec", INSTALL, "sh", str(tmp_path), str(package)]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode in (1, 99) and os.geteuid() != 0 or done.returncode == 99:
        pytest.skip("needs root and overlayfs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"ktls-offload {__version__}\n1\n" in done.stdout and done.stdout.endswith("gone\n")
