"""Where a resident listens: in a folder that nobody else can change, alone, and removing only its own."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from check_serve import resident
from rig import Rig, listening

NOBODY = 65534
SLOW = {"FAKE_SLOW_UNIX": "50"}  # ms in which somebody else may act, after connect() and after bind()
# takes away what appears at the path, and puts a link to a file there
ATTACK = """
import os, sys
path, victim, ready = sys.argv[1:]
os.close(os.open(ready, os.O_CREAT | os.O_WRONLY))
while True:
    try:
        if not os.path.islink(path):
            os.unlink(path)
            os.symlink(victim, path)
    except FileNotFoundError:
        pass
"""


def check_path_in_use(rig: Rig) -> None:
    """A path that somebody serves is refused; one that a killed resident left behind is taken over."""
    with resident(rig) as home:
        got = rig.plain("serve", str(home.path), "--ca", rig.file("ca"), fake={})
        assert got.rc == 1 and "another process already serves there" in got.errors[0], got
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as left:
        left.bind(str(rig.folder / "resident"))
    with resident(rig) as home, rig.server() as port:
        assert home.ask("connect", "127.0.0.1", port).json["ok"]


def check_path_of_another(rig: Rig) -> None:
    """The path of somebody else's live socket, of another type, is refused and stays his."""
    path = rig.folder / "stream"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as his, socket.socket(socket.AF_UNIX) as client:
        his.bind(str(path))
        his.listen()
        got = rig.plain("serve", str(path), "--ca", rig.file("ca"), fake={})
        assert got.rc == 5 and "cannot listen" in got.errors[0], got
        client.connect(str(path))


def folder_of(rig: Rig, name: str, mode: int = 0o755, uid: int = -1) -> Path:
    """A folder that belongs to this user (-1: ours)."""
    rig.folder.chmod(0o711)
    found = rig.folder / name
    found.mkdir()
    os.chown(found, uid, -1)
    found.chmod(mode)
    return found


def refused(rig: Rig, path: Path, why: str, *more: str) -> None:
    """`serve` does not serve there, says why, and leaves the folder as it was."""
    before = sorted(path.parent.iterdir())
    got = rig.plain("serve", str(path), "--ca", rig.file("ca"), *more, fake={})
    assert got.rc == 1 and why in got.errors[0] and len(got.errors) == 1, got
    assert sorted(path.parent.iterdir()) == before


@contextmanager
def attacker(path: Path, victim: Path) -> Iterator[None]:
    """User nobody puts a link to the victim in place of whatever is there, again and again."""
    ready = path.with_name("ready")
    with subprocess.Popen(
        ["/usr/bin/python3", "-c", ATTACK, str(path), str(victim), str(ready)], user=NOBODY
    ) as child:
        while not ready.exists():
            time.sleep(0.01)
        try:
            yield
        finally:
            child.kill()


def check_nobody_is_made_owner_of_a_file(rig: Rig) -> None:
    """In a folder of --user that he changes all the time, no file of ours is given to him."""
    if os.getuid():
        return
    victim = rig.folder / "victim"
    victim.write_text("root's")
    path = folder_of(rig, "his", uid=NOBODY) / "resident"
    args = ("--ca", rig.file("ca"), "--user", str(NOBODY))
    with attacker(path, victim):
        for _ in range(5):
            child = subprocess.Popen(
                [rig.program, "serve", str(path), *args], env=rig.env(SLOW), stderr=subprocess.DEVNULL
            )
            try:
                rc = child.wait(60)
            except subprocess.TimeoutExpired:
                rc = None
            child.kill()
            child.wait()
            assert victim.stat().st_uid == 0 and rc == 1, (victim.stat(), rc)


def check_folder_that_others_may_write(rig: Rig) -> None:
    """A folder for all, for a group, or of another user is refused, as last one or on the way."""
    for mode in (0o777, 0o1777, 0o775):
        refused(rig, folder_of(rig, f"mode-{mode:o}", mode) / "s", "other users can write to it")
        (rig.folder / f"mode-{mode:o}" / "ours").mkdir(mode=0o700)
    refused(rig, rig.folder / "mode-777/ours/s", "'mode-777' of the socket: other users can write to it")
    with_sticky = rig.folder / "mode-1777/ours/s"
    child = subprocess.Popen([rig.program, "serve", str(with_sticky), "--no-verify"], env=rig.env({}))
    while not listening(with_sticky) and child.poll() is None:
        time.sleep(0.01)
    child.terminate()
    assert child.wait(120) == 0 and not list(with_sticky.parent.iterdir())
    if os.getuid() == 0:
        his = folder_of(rig, "of-nobody", uid=NOBODY)
        refused(rig, his / "s", "another user owns it", "--user", str(NOBODY))
        (his / "ours").mkdir()
        refused(rig, his / "ours/s", "'of-nobody' of the socket: another user owns it")


def check_no_link_is_followed(rig: Rig) -> None:
    """A link in place of a folder, the socket or its lock is refused; what it leads to is left alone."""
    real = folder_of(rig, "real")
    (rig.folder / "link").symlink_to(real)
    refused(rig, rig.folder / "link/s", "'link' of the socket: a symbolic link")
    (real / "below").mkdir()
    refused(rig, rig.folder / "link/below/s", "'link' of the socket: a symbolic link")
    victim = rig.folder / "seen"
    victim.write_text("as it was")
    for name in ("s", "s.lock"):
        (real / name).symlink_to(victim)
        got = rig.plain("serve", str(real / "s"), "--ca", rig.file("ca"), fake={})
        assert got.rc == 5 and "cannot l" in got.errors[0], got
        (real / name).unlink()
    assert victim.read_text() == "as it was" and [p.name for p in real.iterdir()] == ["below"]
    (real / "s.lock").hardlink_to(victim)
    got = rig.plain("serve", str(real / "s"), "--ca", rig.file("ca"), fake={})
    assert got.rc == 5 and "not a file of this user" in got.errors[0] and (real / "s.lock").exists(), got
    for path in (f"{real}/", f"{real}/below/..", str(real / "no/s")):
        got = rig.plain("serve", path, "--ca", rig.file("ca"), fake={})
        assert got.rc == 1 and len(got.errors) == 1, got


def check_socket_of_a_user(rig: Rig) -> None:
    """The socket goes to --user, with mode 0600; a lock is beside it as long as the resident lives."""
    uid = NOBODY if os.getuid() == 0 else os.getuid()
    with resident(rig, "--ca", rig.file("ca"), "--user", str(uid)) as home:
        found = home.path.lstat()
        assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (uid, 0o600)
        lock = home.path.with_name("resident.lock").lstat()
        assert (lock.st_uid, stat.S_IMODE(lock.st_mode), lock.st_size) == (os.getuid(), 0o600, 0)
    assert not lock_of(home.path).exists()


def lock_of(path: Path) -> Path:
    """The lock beside a socket."""
    return path.with_name(f"{path.name}.lock")


def check_what_came_in_its_place_stays(rig: Rig) -> None:
    """At the end only the socket that was made is removed, not what somebody put there since."""
    path = folder_of(rig, "replaced") / "s"
    with subprocess.Popen([rig.program, "serve", str(path), "--no-verify"], env=rig.env({})) as child:
        while not listening(path) and child.poll() is None:
            time.sleep(0.01)
        path.unlink()
        path.write_text("another's")
        child.terminate()
        assert child.wait(120) == 0
    assert path.read_text() == "another's" and not lock_of(path).exists()


def check_three_at_once(rig: Rig) -> None:
    """Of three that find the socket of a killed one at the same time, one serves, and the others say so."""
    path = folder_of(rig, "three") / "s"
    for _ in range(3):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as left:
            left.bind(str(path))
        argv = [rig.program, "serve", str(path), "--no-verify"]
        how = {"env": rig.env(SLOW), "stderr": subprocess.PIPE, "text": True}
        three = [subprocess.Popen(argv, **how) for _ in range(3)]
        try:
            end = time.monotonic() + 60
            while [c.poll() for c in three].count(1) < 2 and time.monotonic() < end:
                time.sleep(0.02)
            while not listening(path) and time.monotonic() < end:
                time.sleep(0.02)
            ended = [c for c in three if c.poll() is not None]
            assert [c.returncode for c in ended] == [1, 1], [c.poll() for c in three]
            assert all("another process already serves there" in c.stderr.read() for c in ended)
        finally:
            for child in three:
                child.kill()
                child.communicate()
        path.unlink()
