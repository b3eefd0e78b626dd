"""The Debian package of ktls-handoff: what is in it, what it needs, and `connect` where it is installed."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
import yaml

from offload import __version__
from tests.daemons.connect_peer import PAYLOAD, exchanged, needs_stunnel, serving
from tests.daemons.test_deb import field

ROOT = Path(__file__).parents[2]
NAME = "ktls-offload-handoff"
KERNEL_TLS = "tls" in Path("/proc/sys/net/ipv4/tcp_available_ulp").read_text().split()
TOOLS = ("dpkg-deb", "dpkg-shlibdeps", "cc", "make", "strip")
FILES = {
    "usr/bin/ktls-handoff",
    "usr/include/ktls-connect.h",
    "usr/lib/systemd/system/ktls-handoff.service",
    "usr/share/man/man8/ktls-handoff.8.gz",
    *(f"usr/share/doc/{NAME}/{name}" for name in ("README.md", "changelog.gz", "connect.md", "copyright")),
}
# A throw-away copy of this machine's files: what dpkg does in it is gone with the namespace.
INSTALL = """\
mount -t tmpfs tmpfs "$1" && mkdir "$1/up" "$1/aside" "$1/tree"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/up,workdir=$1/aside" "$1/tree" || exit 99
cp "$2" "$3" "$1/tree/" && cd /
exec chroot "$1/tree" /bin/sh -ec '
  dpkg --force-unsafe-io --force-depends --no-triggers -i /ktls-offload*.deb
  ktls-handoff --version
  if command -v systemd-analyze; then systemd-analyze verify ktls-handoff.service; fi
  find /etc/systemd -name "ktls*" | grep . && exit 98
  dpkg --force-unsafe-io --no-triggers --purge ktls-offload-handoff
  test ! -e /usr/bin/ktls-handoff && test ! -e /usr/include/ktls-connect.h && echo gone'
"""
C_CLIENT = """\
#define _GNU_SOURCE
#include <ktls-connect.h>
int main(void)
{
	struct ktls_target to = { .host = "h", .port = "1", .policy = "/p", .resident = "/r" };
	struct ktls_answer answer;

	return ktls_connect(&to, &answer) < 0;
}
"""


def build(tree: Path, folder: Path, script: str) -> Path:
    """A package of a copy of the project, made into a folder."""
    env = {**os.environ, "SOURCE_DATE_EPOCH": "1790000000"}
    done = subprocess.run([tree / "packaging" / script, folder], capture_output=True, env=env, text=True)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.splitlines()[0])  # build-deb makes the suite's, too


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that both packages are made of, as they are now: whoever edits meanwhile does not disturb."""
    found = tmp_path_factory.mktemp("tree")
    leave = shutil.ignore_patterns("__pycache__", "core")
    for name in ("offload", "nic-profiles", "docs", "packaging", "native/ktls-handoff"):
        shutil.copytree(ROOT / name, found / name, ignore=leave)
    for name in ("README.md", "CHANGELOG.md", "native/common.mk"):
        shutil.copy(ROOT / name, found / name)
    return found


@pytest.fixture(scope="module")
def package(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of the program, built once."""
    if lacking := [tool for tool in TOOLS if shutil.which(tool) is None]:
        pytest.skip(f"not here: {', '.join(lacking)}")
    return build(tree, tmp_path_factory.mktemp("deb"), "build-deb-handoff")


@pytest.fixture(scope="module")
def ground(tree: Path, package: Path) -> Path:
    """The package of the command, beside it."""
    return build(tree, package.parent, "build-deb")


def unpacked(root: Path, *packages: Path) -> Path:
    """A root folder that holds these packages and PyYAML."""
    for package in packages:
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)
    (root / "only").mkdir()
    (root / "only/yaml").symlink_to(Path(yaml.__file__).parent)
    return root


def test_what_it_needs(package: Path, ground: Path) -> None:
    """The package depends on the libraries it was linked with; the command's suggests it."""
    needed = [word.split()[0] for word in field(package, "Depends").split(", ")]
    assert len(needed) == 2 and needed[0] == "libc6" and needed[1].startswith("libssl3"), needed
    reported = subprocess.run(
        ["dpkg", "--print-architecture"], check=True, capture_output=True, text=True
    ).stdout
    assert (field(package, "Architecture"), field(package, "Version")) == (reported.strip(), __version__)
    assert field(package, "Recommends") == "stunnel4" and NAME in field(ground, "Suggests").split(", ")


def test_what_is_in_it(package: Path, tmp_path: Path) -> None:
    """Program, header, man page, unit and papers are in it; nothing starts by itself."""
    root = unpacked(tmp_path, package)
    assert {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()} == FILES
    subprocess.run(["dpkg-deb", "-e", package, tmp_path / "control"], check=True)
    assert {p.name for p in (tmp_path / "control").iterdir()} == {"control", "md5sums"}, (
        "no script: not enabled"
    )
    (tmp_path / "client.c").write_text(C_CLIENT)
    strict = ["cc", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{root}/usr/include"]
    subprocess.run([*strict, tmp_path / "client.c"], check=True)


def test_the_same_files_give_the_same_package(tree: Path, package: Path, tmp_path: Path) -> None:
    """A second build is the same, byte for byte."""
    again = build(tree, tmp_path, "build-deb-handoff")
    assert hashlib.sha256(again.read_bytes()).digest() == hashlib.sha256(package.read_bytes()).digest()


def test_what_it_lacks_is_named_before_the_first_build(tree: Path, tmp_path: Path) -> None:
    """Without a compiler `make deb` says what to install, and builds none of the packages."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for found in Path("/usr/bin").iterdir():
        if found.name != "cc":
            (programs / found.name).symlink_to(found)
    shutil.copytree(tree, tmp_path / "tree")
    shutil.copy(ROOT / "Makefile", tmp_path / "tree")
    argv = ["/usr/bin/make", "-C", tmp_path / "tree", "deb"]
    done = subprocess.run(argv, capture_output=True, text=True, env={"PATH": str(programs)})
    assert done.returncode == 2 and not (tmp_path / "tree/build").exists()
    wanted = "build-deb-handoff: error: no cc: apt install build-essential dpkg-dev libssl-dev"
    assert wanted in done.stderr.splitlines()


def connected(root: Path, folder: Path, *, path: str) -> tuple[str, bytes]:
    """Call `connect` of an unpacked package; what it said, and what a server sent back of the payload."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    env = {"PATH": path, "PYTHONPATH": str(root / "only"), "PYTHONDONTWRITEBYTECODE": "1"}
    with ours, theirs, serving(folder) as server:
        words = [
            "connect",
            "127.0.0.1",
            str(server.port),
            "--ca",
            str(server.ca),
            "--fd",
            str(theirs.fileno()),
        ]
        argv = ["/usr/bin/python3", "-S", root / "usr/bin/ktls-offload", *words]
        how = {"pass_fds": [theirs.fileno()], "capture_output": True, "text": True, "cwd": "/"}
        done = subprocess.run(argv, env=env, **how)  # type: ignore[call-overload]
        assert done.returncode == 0, done.stderr
        fds = socket.recv_fds(ours, 8192, 1)[1]
        return done.stderr, exchanged(socket.socket(fileno=fds[0]))


@needs_stunnel
def test_connect_of_an_installed_package(package: Path, ground: Path, tmp_path: Path) -> None:
    """`connect` of both packages asks the kernel, and falls back only where that has no TLS."""
    root = unpacked(tmp_path / "root", package, ground)
    said, back = connected(root, tmp_path, path=f"{root}/usr/bin:/usr/bin:/bin")
    assert back == PAYLOAD
    if KERNEL_TLS:
        assert said == ""
    else:
        assert said.count("\n") == 1 and "no kTLS (not available here: " in said


@needs_stunnel
def test_connect_without_the_program_names_the_package(ground: Path, tmp_path: Path) -> None:
    """`connect` of one package says in a line what to install, and the stream arrives."""
    root = unpacked(tmp_path / "root", ground)
    said, back = connected(root, tmp_path, path=str(tmp_path / "nothing"))
    assert back == PAYLOAD and said.count("\n") == 1
    assert f"no kTLS (no program ktls-handoff: install {NAME}); the stream goes through stunnel" in said


def test_lintian_finds_nothing(package: Path) -> None:
    """Debian's own checker has neither error nor warning."""
    if shutil.which("lintian") is None:
        pytest.skip("lintian is not installed")
    done = subprocess.run(["lintian", "--allow-root", package], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "", done.stdout + done.stderr


def test_it_installs_and_goes(package: Path, ground: Path, tmp_path: Path) -> None:
    """dpkg installs both; the unit is right, and off; nothing stays after purge."""
    argv = ["unshare", "-m", "/bin/sh", "-ec", INSTALL, "sh", str(tmp_path), str(package), str(ground)]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode in (1, 99) and os.geteuid() != 0 or done.returncode == 99:
        pytest.skip("needs root and overlayfs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"ktls-handoff {__version__}, OpenSSL" in done.stdout and done.stdout.endswith("gone\n")
