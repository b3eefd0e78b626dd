"""A lab that outlives the run that booted it: used again while it is what would boot now, else replaced."""

from __future__ import annotations

import fcntl
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from offload.cmd import run
from offload.debian.cache import read_json, write_json
from offload.debian.kernels import fetch
from offload.errors import CommandFailed, RigError
from offload.suite.bench.cards import knobs
from offload.suite.bench.vm import made, rundir
from offload.suite.bench.vm.console import Console
from offload.suite.bench.vm.lab import STATE, Lab
from offload.suite.bench.vm.recipe import Say, choose
from offload.suite.bench.vm.topology import NAMESPACES

PREFIX = "try-"
IDLE = 60  # minutes without use, after which it ends by itself
BOOT_LIMIT = 900.0  # seconds for `lab up` on a busy machine, with a debug kernel
KILLED = "the previous run in it was killed"
LOOK = f"grep -sH '' {knobs.FOLDER}/*/*;" + "".join(
    f" printf 'link\\naddress show scope global\\n' | ip -n {name} -o -batch -; tc -n {name} qdisc;"
    for name in NAMESPACES
)
CARRIER = re.compile(r",LOWER_UP|state \w+|,NO-CARRIER|NO-CARRIER,")  # comes a moment after the boot
STATE_FOUND = "found.json"


def name_of(series: str, kind: str, personality: str) -> str:
    """The name of the warm lab for a kernel and a card: `try-6.1-connectx-6-dx`, `try-6.1-veth`."""
    card = personality.partition(",")[0] if kind == "nicsim" else kind
    return f"{PREFIX}{series}-{card}"[:32]


def names() -> list[str]:
    """The warm labs of this user that are up."""
    return [name for name in rundir.names() if name.startswith(PREFIX)]


@contextmanager
def lab(series: str, kind: str, personality: str, say: Say) -> Iterator[Lab]:
    """The warm lab of this kernel and card, for one user at a time; booted if there is none that fits.

    One line says whether it was used again, or why not. Errors as Lab.boot.
    """
    name = name_of(series, kind, personality)
    with _Use(name, say) as use:
        recipe = choose(fetch(series, say), kind, personality, None, None, say)
        why = use.trouble() or stale(name, recipe.made())
        found = _join(name, say) if not why else None
        if found is None:
            found = _boot(name, why or "it does not answer", (series, kind, personality), say)
        use.note(KILLED)
        try:
            yield found
        finally:
            use.note(left(found))
            found.detach()


def _join(name: str, say: Say) -> Lab | None:
    """The lab, if it answers."""
    with suppress(RigError):
        found = Lab.attach(name, project=True)
        say(f"lab {name}: reused: none of its parts has changed")
        return found
    return None


def _boot(name: str, why: str, wanted: tuple[str, str, str], say: Say) -> Lab:
    """Boot it in a process of its own, in place of the one that is up. CommandFailed with its words."""
    word = "rebooting" if rundir.end(name) else "booting"
    say(f"lab {name}: {word}, because {why}")
    options = zip(("--kernel", "--kind", "--personality"), wanted, strict=True)
    argv = [sys.executable, "-m", "offload", "lab", "up", "--name", name, "--idle", str(IDLE)]
    argv += [word for pair in options for word in pair]
    rc, out, err, _ = run(argv, timeout=BOOT_LIMIT)
    if rc != 0:
        raise CommandFailed(argv, rc, out, err)
    found = Lab.attach(name, project=True)
    write_json(found.folder / STATE_FOUND, {"state": _state(found)})
    return found


def stale(name: str, now: dict[str, str]) -> str:
    """Why the lab of this name cannot be used; empty if it can."""
    folder = rundir.alive(name)
    if folder is None:
        return "none was up"
    if read_json(folder / STATE) is None:
        return "the program that booted it did not finish"
    if new := made.changed(folder, now):
        return f"{' and '.join(new)} changed"
    if faults := Console(folder / "console.log").faults():
        return f"its kernel log has: {faults[0]}"
    return ""


def left(found: Lab) -> str:
    """Why a lab cannot be used after this; empty if it is as it was when it was booted."""
    try:
        then, now = (read_json(found.folder / STATE_FOUND) or {}).get("state", ""), _state(found)
    except (RigError, OSError):
        return "it did not answer at the end of the previous run"
    old, new = set(then.splitlines()), set(now.splitlines())
    odd = sorted(new - old) or sorted(old - new)
    return f"a test changed its state: {odd[0].strip()}" if odd else ""


def _state(found: Lab) -> str:
    """Return what tests change and put back: knobs, links, addresses, queues and features."""
    lines = found.root.run(["sh", "-c", LOOK], check=False).text.splitlines()
    said = [line for line in lines if not line.startswith(knobs.FOLDER) or knobs.LINE.fullmatch(line)]
    for side in (found.bench.dut, found.bench.peer):
        lines = side.host.run(["ethtool", "-k", side.dev], check=False).text.splitlines()
        said += [f"{side.host.name} {line}" for line in lines]
    return CARRIER.sub("", "\n".join(said))


class _Use:
    """Held while a warm lab is used; its file says what is wrong with the lab that was left."""

    def __init__(self, name: str, say: Say) -> None:
        self._name, self._say = name, say
        self._path = rundir.base() / f".use-{name}"

    def __enter__(self) -> _Use:
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._say(f"lab {self._name}: another run uses it; waiting for that run")
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def trouble(self) -> str:
        """Return what the last user left, for a reason not to use it."""
        return Path(self._path).read_text()

    def note(self, trouble: str) -> None:
        """Say what is wrong with the lab; empty: nothing is."""
        Path(self._path).write_text(trouble)
