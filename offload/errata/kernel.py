"""Which kernel it is: series, stable number and whose build, as far as release and package version tell."""

from __future__ import annotations

import re
from dataclasses import dataclass

Series = tuple[int, int]
Version = tuple[int, int, int, int]  # 6.1.187-2 is (6, 1, 187, 2): series, stable number, packaging

# A package is rebuilt for an older Debian as 6.12.101-1~bpo12+1 or ~deb12u1: it sorts before 6.12.101-1 and
# holds the same fixes, so what follows the packaging number does not count.
VERSION = re.compile(r"(?:\d+:)?(\d+)\.(\d+)(?:\.(\d+))?(?:-(\d+)(?:[.+~][\w.+~-]*)?)?")
RELEASE = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(.*)")
CANDIDATE = re.compile(r"[-~]rc\d")
ARCHES = "amd64|arm64|686|686-pae|armmp|armmp-lpae|rpi|loong64|powerpc64le|riscv64|s390x"
DEBIAN = re.compile(rf"(?:\+(?:deb|bpo)\d+)?(?:-\d+)?(?:-rt|-cloud)?-(?:{ARCHES})")


@dataclass(frozen=True)
class Kernel:
    """A kernel. `stable` is None where it cannot be determined, and `why` says so; `whose` build it is:
    `debian`, `upstream` (nothing added to the number) or `other` (may hold fixes taken back)."""

    release: str
    package: str = ""
    series: Series | None = None
    stable: Version | None = None
    whose: str = "other"
    candidate: bool = False
    why: str = ""

    def __str__(self) -> str:
        return f"{self.release} ({self.package})" if self.package else self.release or "an unnamed kernel"


def version(text: str) -> Version | None:
    """The numbers of `6.12`, `6.1.20` or `6.1.187-1`; None for anything else. No packaging number is 1."""
    match = VERSION.fullmatch(text)
    if not match:
        return None
    x, y, z, packaging = match.groups()
    return int(x), int(y), int(z or 0), int(packaging or 1)


def series_of(text: str) -> Series | None:
    """The numbers of `6.12`; None for anything else."""
    match = re.fullmatch(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def kernel(release: str, package: str = "") -> Kernel:
    """The kernel with this `uname -r` and package version (Debian's; leave it out where there is none)."""
    match = RELEASE.fullmatch(release)
    if not match:
        return Kernel(release, package, why=f"{release!r:.60} is not a kernel release")
    x, y, z, rest = int(match[1]), int(match[2]), int(match[3] or 0), match[4]
    if CANDIDATE.search(rest) or CANDIDATE.search(package):
        why = f"{release} is a release candidate"
        return Kernel(release, package, (x, y), candidate=True, why=why)
    whose = "upstream" if not rest else "debian" if DEBIAN.fullmatch(rest) else "other"
    stable, why = _stable(release, (x, y, z, 1), whose, package)
    return Kernel(release, package, (x, y), stable, whose, why=why)


def _stable(release: str, own: Version, whose: str, package: str) -> tuple[Version | None, str]:
    """The stable number, or why it cannot be determined."""
    packed = version(package) if package else None
    if package and (packed is None or packed[:2] != own[:2]):
        return None, f"package version {package!r:.60} does not fit release {release}"
    if packed and packed[2]:
        return packed, ""
    if own[2] or whose == "upstream":
        return own, ""
    if whose == "debian":
        return (
            None,
            f"{release} does not show the stable release number: dpkg-query -W linux-image-{release} does",
        )
    return (
        None,
        f"{release} does not show the stable release number, and its vendor may have back-ported fixes",
    )
