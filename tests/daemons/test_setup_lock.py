"""ci/setup waits for apt's own locks, held by another process: apt's real words, in a copy of this system."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = "stress-ng"  # what `ci/setup soak` wants; ours is empty
CONTROL = f"""\
Package: {PACKAGE}
Version: 0
Architecture: all
Maintainer: a test <test@test.invalid>
Description: nothing
"""
HOLD = """\
import fcntl, pathlib, sys, time
with open(sys.argv[1], "w") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    pathlib.Path("/held").touch()
    while not pathlib.Path("/release").exists():
        time.sleep(0.1)
"""
# A throw-away copy of this machine, with no archive but ours; the lock is released once setup waits for it.
INSTALL = f"""\
mount -t tmpfs tmpfs "$1" && mkdir "$1/up" "$1/aside" "$1/tree"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/up,workdir=$1/aside" "$1/tree" || exit 99
mount --rbind /dev "$1/tree/dev" && mount -t proc proc "$1/tree/proc" && cp -r "$2" "$1/tree/repo" && cd /
exec chroot "$1/tree" /bin/sh -c '
  dpkg --force-depends --remove {PACKAGE} >/dev/null 2>&1
  rm -rf /etc/apt/sources.list /etc/apt/sources.list.d
  echo "deb [trusted=yes] file:/repo ./" >/etc/apt/sources.list
  python3 /repo/hold.py "$1" & holder=$!
  until [ -e /held ]; do kill -0 $holder || exit 98; sleep 0.1; done
  /repo/setup soak >/log 2>&1 & setup=$!
  until grep -q "waiting for" /log || ! kill -0 $setup 2>/dev/null; do sleep 0.1; done
  touch /release
  wait $setup; code=$?
  cat /log
  dpkg-query -W -f "\\${{Package}} is \\${{Status}}\\n" {PACKAGE}
  exit $code' sh "$3"
"""


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A folder that apt takes packages from, with ci/setup and who holds the lock beside them."""
    if shutil.which("dpkg-deb") is None:
        pytest.skip("dpkg-deb is not installed: not a Debian system")
    there, tree = tmp_path / "repo", tmp_path / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(CONTROL)
    there.mkdir()
    deb = there / f"{PACKAGE}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, deb], check=True, capture_output=True)
    sha, size = hashlib.sha256(deb.read_bytes()).hexdigest(), deb.stat().st_size
    (there / "Packages").write_text(f"{CONTROL}Filename: ./{deb.name}\nSize: {size}\nSHA256: {sha}\n")
    (there / "hold.py").write_text(HOLD)
    shutil.copy(ROOT / "ci/setup", there / "setup")
    return there


@pytest.mark.parametrize("lock", ["/var/lib/apt/lists/lock", "/var/lib/dpkg/lock-frontend"])
def test_it_waits_for_a_lock_that_is_held(archive: Path, lock: str, tmp_path: Path) -> None:
    """Set-up names the process that holds a lock of apt or dpkg, waits, and installs."""
    (tmp_path / "copy").mkdir()
    argv = [
        "unshare",
        "-mpf",
        "--kill-child",
        "/bin/sh",
        "-ec",
        INSTALL,
        "sh",
        tmp_path / "copy",
        archive,
        lock,
    ]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode == 99 or os.geteuid() != 0:
        pytest.skip("needs root and overlayfs")
    assert done.returncode == 0, done.stdout + done.stderr
    held = [line for line in done.stdout.splitlines() if "waiting for apt's lock" in line]
    assert len(held) == 1 and f" s: {lock}. It is held by process " in held[0] and "(python3)" in held[0]
    assert f"setup: done\n{PACKAGE} is install ok installed\n" in done.stdout
