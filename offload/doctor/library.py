"""Does OpenSSL hand records to the kernel, and which ciphers does the kernel take? Tried, not guessed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from offload.card.profile import CIPHERS, DIRECTIONS, VERSIONS
from offload.doctor.kernel import LOADED, Machine
from offload.doctor.reasons import Notes, plain
from offload.doctor.versions import copies, openssl_version
from offload.errors import OffloadError
from offload.host.base import Host
from offload.paths import PACKAGE

SCRIPT = PACKAGE / "doctor/loopback.py"
PYTHONS = ("/usr/bin/python3", "python3")  # the system's own first: its ssl module uses the system's OpenSSL
UNLOADED = "module tls is not loaded, and this command loads nothing"
MAX = 64 * 1024


class Trial(NamedTuple):
    """What was tried on loopback. `why` says why nothing was; `cells` has 0 or an error number per
    (direction, version, cipher); `asked` and `plain`: directions that OpenSSL gave to the kernel."""

    why: str = ""
    bits: int = 0
    library: str = ""
    error: str = ""
    cells: Mapping[tuple[str, str, str], int] | None = None
    asked: frozenset[str] = frozenset()
    plain: frozenset[str] = frozenset()


def attempt(host: Host, machine: Machine) -> Trial:
    """Let the host try it, in a network namespace of its own where it may have one."""
    if machine.module != LOADED:
        return Trial(UNLOADED)
    script = SCRIPT.read_bytes()
    said = ""
    for python in PYTHONS:
        for alone in (("unshare", "--net"), ()):
            try:
                done = host.run([*alone, python, "-I", "-S", "-"], input=script, check=False, timeout=60)
            except OffloadError as exc:
                return Trial(plain(str(exc)))
            if (found := _read(done.stdout)) is not None:
                return found
            said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2] or f"exit {done.rc}"
    return Trial(plain(f"python3 on this host: {said}"))


def _read(answer: bytes) -> Trial | None:
    """The answer of loopback.py; None if it is none. It ignores unknown keys and kinds."""
    try:
        found = json.loads(answer[:MAX])
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("cells"), dict):
        return None
    tried = found.get("openssl")
    tried = tried if isinstance(tried, dict) else {}
    bits = found.get("bits")
    return Trial(
        bits=bits if bits in (32, 64) else 0,
        library=plain(str(found.get("library", "")))[:60],
        error=plain(str(tried.get("error", "")))[:120],
        cells=_cells(found["cells"]),
        asked=_directions(tried.get("asked")),
        plain=_directions(tried.get("plain")),
    )


def _cells(rows: Mapping[str, Any]) -> dict[tuple[str, str, str], int]:
    """The kernel's answer per cell; what is not a number is left out."""
    found = {}
    for version in VERSIONS:
        for cipher in CIPHERS:
            row = rows.get(f"{version} {cipher}")
            for direction in DIRECTIONS if isinstance(row, dict) else ():
                answer = row.get("ulp") or row.get(direction) if isinstance(row, dict) else None
                if isinstance(answer, int):
                    found[direction, version, cipher] = int(answer)
    return found


def _directions(row: object) -> frozenset[str]:
    return frozenset(d for d in DIRECTIONS if isinstance(row, dict) and row.get(d) is True)


def examine(trial: Trial, notes: Notes) -> None:
    """Note what the trial says of the library."""
    if trial.bits == 32:
        notes.add("D110", "python3 on this host is 32-bit")
    if why := trial.why or trial.error:
        how = "modprobe tls && ktls-offload doctor" if trial.why == UNLOADED else "python3 -c 'import ssl'"
        notes.add("D503", trial.library or "not run", why=why, how=how)
        return
    seen = f"on loopback, asked: {_words(trial.asked)}; not asked: {_words(trial.plain)}"
    taken = any(answer == 0 for answer in (trial.cells or {}).values())
    if not trial.asked and taken:
        notes.add("D501", seen, library=short(trial.library))
        return
    if trial.asked:
        notes.ok(f"{short(trial.library)} gives records to the kernel when asked ({_words(trial.asked)})")
    if trial.asked and not copies(openssl_version(trial.library)):
        notes.add("D504", trial.library, library=short(trial.library))
    if trial.asked - trial.plain:
        notes.add("D502", seen, library=short(trial.library))


def short(library: str) -> str:
    """`OpenSSL 3.0.19` of `OpenSSL 3.0.19 27 Jan 2026`."""
    return " ".join(library.split()[:2])


def _words(directions: frozenset[str]) -> str:
    return " and ".join(d for d in DIRECTIONS if d in directions) or "nothing"
