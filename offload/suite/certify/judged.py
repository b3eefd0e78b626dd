"""What does a run judge by? Digests of profile, tests and kernel, and the commit: once, at its start."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from offload.card.profile import Profile, find, folder
from offload.cmd import run
from offload.debian.digests import of_file, of_folder
from offload.errors import ConfigError
from offload.suite.report.judged import Shipped

if TYPE_CHECKING:
    from offload.host.base import Host

TESTS = ("tests/conftest.py", "tests/hw", "tests/lib")
RECORDS = "benchmarks/results"  # of earlier runs: nothing that a run judges by, and each run may add one
DISK, RUNNING = ("image", "modules", "driver"), ("running", "running_driver", "version")
ON_DISK = "as on the host's disk now, which may differ from the running ones"
# A kernel can be asked for the build ids of itself and of a module (ELF note 3 of "GNU": 20 bytes), not for
# its image: that is what lies on disk. A folder as offload/debian/digests.py has it.
HOST = """\
sum() { sha256sum "$1" 2>/dev/null | cut -d" " -f1; }
note=s/.*1400000003000000474e5500
id() { od -An -v -tx1 "$1" 2>/dev/null | tr -d " \\n" | sed -n "$note\\(.\\{40\\}\\).*/\\1/p"; }
release=$(uname -r)
echo "running $(id /sys/kernel/notes)"
echo "running_driver $(id "/sys/module/$1/notes/.note.gnu.build-id")"
echo "version $(sum /proc/version)"
echo "image $(sum "/boot/vmlinuz-$release")"
echo "driver $(sum "$(modinfo -n "$1" 2>/dev/null)")"
cd "/lib/modules/$release" || exit 0
echo "modules $(find . -type f | LC_ALL=C sort | xargs -d "\\n" sha256sum | sha256sum | cut -d" " -f1)"
"""


def judged(profile: Profile, root: Path) -> dict[str, Any]:
    """Return the fields of the `judged` event; `root`: the checkout whose tests are run."""
    data = Path(profile.path).read_bytes()
    state, of = _shipped(profile, data)
    there = {name: root / name for name in TESTS if (root / name).exists()}
    return {
        "profile": {"sha256": hashlib.sha256(data).hexdigest(), "shipped": state.value, "of": of},
        "tests": {name: of_folder(path) if path.is_dir() else of_file(path) for name, path in there.items()},
        "commit": _git(root, "rev-parse", "--verify", "HEAD").decode().strip(),
        "dirty": bool(_git(root, "status", "--porcelain", "--", ".", f":(exclude){RECORDS}").strip()),
    }


def _shipped(profile: Profile, data: bytes) -> tuple[Shipped, str]:
    """Compare a profile with the shipped one of that id, by the commit; that one's title if they differ."""
    place, name = folder(), f"{profile.id}.yaml"
    if not _git(place, "rev-parse", "--verify", "HEAD"):
        return Shipped.UNKNOWN, ""
    committed = _git(place, "show", f"HEAD:./{name}")
    if committed == data:
        return Shipped.YES, ""
    if not committed:
        return Shipped.FOREIGN, ""
    try:
        return Shipped.ALTERED, find(profile.id).title()
    except ConfigError:
        return Shipped.ALTERED, profile.id


def _git(place: Path, *words: str) -> bytes:
    """Return what git says of the checkout; nothing where there is none, or no git. Nothing is written."""
    argv = [
        "git",
        "--no-optional-locks",
        "-c",
        "core.fsmonitor=false",
        "-c",
        "safe.directory=*",
        "-C",
        str(place),
        *words,
    ]
    rc, out, _, _ = run(argv, timeout=60)
    return out if rc == 0 else b""


def on_host(host: Host, driver: str) -> dict[str, str]:
    """Return the `booted` event of a real host: build ids of what runs, digests of what is on its disk."""
    done = host.run(["sh", "-c", HOST, "sh", driver], check=False, timeout=300)
    pairs = [line.split() for line in done.text.splitlines()]
    found = {words[0]: words[1] for words in pairs if len(words) == 2}
    about = {name: found.get(name, "") for name in (*DISK, *RUNNING)}
    return {"kernel": host.run(["uname", "-r"]).text.strip(), "checked": ON_DISK, **about}
