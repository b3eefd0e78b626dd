"""Programs of this machine with all that they need, for a guest that has no other file system yet."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from functools import lru_cache
from pathlib import Path

from offload.cmd import run
from offload.errors import CommandFailed, RigError
from offload.paths import ROOT

SYSTEM = ("/usr/sbin", "/sbin", "/usr/bin", "/bin")  # a user's PATH may lack the first two
LIST = """\
import json, sys
sys.path.insert(0, sys.argv[1])
import offload.suite.bench.vm.guest.agent, offload.suite.bench.vm.guest.known
print(json.dumps([m.__file__ for m in sys.modules.values() if getattr(m, "__file__", None)]))
"""


def program(name: str) -> Path:
    """Where a tool is; RigError with the package if it is not installed."""
    found = shutil.which(name, path=":".join(SYSTEM))
    if not found:
        raise RigError(f"no {name}", "apt-get install iproute2 ethtool")
    return Path(found)


def libraries(binary: Path) -> list[Path]:
    """The shared libraries of a program and its loader, as ldd finds them; RigError if one is missing."""
    rc, out, err, _ = run(["ldd", str(binary)])
    text = out.decode("utf-8", "replace")
    if rc != 0 or "not found" in text:
        raise RigError(f"{binary} does not run here: {(text + err.decode('utf-8', 'replace')).strip()[:300]}")
    return [Path(path) for path in re.findall(r"(?:=> |^\s+)(/\S+) \(0x", text, re.M)]


@lru_cache(maxsize=1)
def agent(python: str) -> dict[str, bytes]:
    """Path and content of all that the guest's agent and `ip` need, but for the agent itself.

    The standard library's modules without their sources: compiled, and the times of their files do not count.
    """
    argv = [python, "-S", "-s", "-c", LIST, str(ROOT)]
    rc, out, err, _ = run(argv)
    if rc != 0:
        raise CommandFailed(argv, rc, out, err)
    modules = [Path(name) for name in json.loads(out) if not Path(name).is_relative_to(ROOT)]
    binaries = [Path(python), program("ip"), *(path for path in modules if path.suffix == ".so")]
    needed = {library for binary in binaries for library in libraries(binary)}
    found = {str(path): path.read_bytes() for path in sorted({*binaries, *needed})}
    return found | {f"{path}c": _compiled(path) for path in modules if path.suffix == ".py"}


def _compiled(path: Path) -> bytes:
    """A module as the distribution compiled it."""
    cached = Path(importlib.util.cache_from_source(str(path)))
    if not cached.is_file():
        raise RigError(f"{path} is not compiled", f"python3 -m compileall {path}")
    return cached.read_bytes()
