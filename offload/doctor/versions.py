"""Version numbers of programs and libraries, and which OpenSSL has a bug that kernel TLS brings out."""

from __future__ import annotations

import re
from collections.abc import Iterable

# openssl CHANGES.md of 3.6 and 4.0; those of 3.0 have no such entry through 3.0.22
MOVING_FIXED = ((3, 6, 3), (4, 0, 1))


def numbers(text: str) -> tuple[int, ...]:
    """The first version number in a text, () if there is none."""
    found = re.search(r"[0-9]{1,4}(?:\.[0-9]{1,4}){1,3}", text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def dots(version: Iterable[int]) -> str:
    """1.22.1 of (1, 22, 1)."""
    return ".".join(map(str, version))


def openssl_version(library: str) -> tuple[int, ...]:
    """3, 0, 19 of `OpenSSL 3.0.19`; () of another library."""
    return numbers(library) if library.startswith("OpenSSL") else ()


def copies(version: tuple[int, ...]) -> bool:
    """Say whether an OpenSSL copies what it sends again; a series without a record of the fix does not."""
    if not version:
        return True
    same = [fixed for fixed in MOVING_FIXED if fixed[:2] == version[:2]]
    return version >= same[0] if same else version > MOVING_FIXED[-1]
