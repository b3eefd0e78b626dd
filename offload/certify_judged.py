"""What does a run judge by? Digests of profile, tests and kernel, and the commit: once, at its start."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from offload.cmd import run
from offload.errors import ConfigError
from offload.profile import Profile, find, folder
from offload.report.judged import Shipped
from offload.vm.digests import of_file, of_folder

if TYPE_CHECKING:
    from offload.host.base import Host
    from offload.vm.kernels import Kernel

TESTS = ("tests/conftest.py", "tests/hw", "tests/lib")
ON_DISK = "as the host's disk has them now"
# what the host runs, as it lies on its disk; a folder as offload/vm/digests.py has it
HOST = """\
sum() { sha256sum "$1" 2>/dev/null | cut -d" " -f1; }
release=$(uname -r)
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
        "dirty": bool(_git(root, "status", "--porcelain").strip()),
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


def booted(kernel: Kernel) -> dict[str, str]:
    """Return the `booted` event of a lab, all but the driver. RigError if the cache changed."""
    from offload.vm.record import check

    found = check(kernel)
    about = {"image": found.image, "modules": found.modules}
    return {"kernel": kernel.release, "checked": found.checked.value, **about}


def on_host(host: Host, driver: str) -> dict[str, str]:
    """Return the same for a real host: what lies on its disk, as nobody can ask a kernel for its image."""
    done = host.run(["sh", "-c", HOST, "sh", driver], check=False, timeout=300)
    pairs = [line.split() for line in done.text.splitlines()]
    found = {words[0]: words[1] for words in pairs if len(words) == 2}
    about = {name: found.get(name, "") for name in ("image", "modules", "driver")}
    return {"kernel": host.run(["uname", "-r"]).text.strip(), "checked": ON_DISK, **about}
