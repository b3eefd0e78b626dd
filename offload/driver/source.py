"""Where does the driver's source come from? Debian's package of that very kernel, verified by apt."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from offload.cmd import run
from offload.debian.cache import need_space
from offload.debian.packages import Package, download, last_words, refresh
from offload.driver.kinds import Kind
from offload.driver.target import Target
from offload.errors import ConfigError, RigError

Say = Callable[[str], None]
SIZE, UNPACKED = 170 << 20, 170 << 20  # bytes: linux-source-7.2 is 165 MB, of which nearly all is one archive
NO_GUESS = ("APT::Get::AllowUnauthenticated=false", "Acquire::AllowInsecureRepositories=false")


def take(target: Target, kind: Kind, into: Path, archive: Path | None, say: Say) -> None:
    """Put the driver's files into `into`, below the paths that they have in the kernel.

    They come from `archive` (a linux-source-X.Y.tar.xz) or from the package of the target's version. RigError
    if that cannot be had; ConfigError for an archive of another version.
    """
    if archive is not None:
        if not archive.is_file():
            raise ConfigError(f"no file {archive}")
        _unpack(target, kind, archive, into)
        return
    kept = Path(f"/usr/src/{target.source}.tar.xz")
    if kept.is_file() and _installed(target):
        say(f"source: {kept}, installed as {target.version}")
        _unpack(target, kind, kept, into)
        return
    with tempfile.TemporaryDirectory(prefix=".source-", dir=into.parent) as name:
        _fetch(target, Path(name), say)
        _unpack(target, kind, Path(name) / f"usr/src/{target.source}.tar.xz", into)


def _installed(target: Target) -> bool:
    """Whether the source package is installed in the version of the kernel."""
    rc, out, _, _ = run(["dpkg-query", "-W", "-f", "${db:Status-Abbrev}${Version}", target.source])
    return rc == 0 and out.decode().split() == ["ii", target.version]


def _fetch(target: Target, into: Path, say: Say) -> None:
    """Fetch and unpack the package: by this machine's apt, else by ours, which knows more of Debian."""
    need_space(into, SIZE + UNPACKED, target.source)
    wanted = f"{target.source}={target.version}"
    say(f"source: fetching {wanted} ({SIZE >> 20} MiB at most), verified by apt")
    options = [word for option in NO_GUESS for word in ("-o", option)]
    rc, _, _, _ = run(["apt-get", "-q", *options, "download", wanted], timeout=3600, cwd=str(into))
    debs = list(into.glob("*.deb"))
    if rc != 0 or len(debs) != 1:
        _fetch_ours(target, into)
        return
    rc, _, err, _ = run(["dpkg-deb", "-x", str(debs[0]), str(into)], timeout=900)
    if rc != 0:
        raise RigError(f"cannot unpack {debs[0].name}: {last_words(err.decode('utf-8', 'replace'))}")


def _fetch_ours(target: Target, into: Path) -> None:
    """The same by the private apt of the lab."""
    complaint = refresh()
    try:
        download([Package(target.source, target.version, "", "", SIZE, UNPACKED)], into)
    except RigError as exc:
        raise RigError(
            f"{target.source} {target.version} cannot be fetched: {complaint or str(exc).splitlines()[0]}",
            "the mirror keeps only some versions: apt update, and boot a newer kernel; or name this version's"
            " archive with --source",
        ) from None


def _unpack(target: Target, kind: Kind, archive: Path, into: Path) -> None:
    """Take the driver's files out of the archive, and see that it is of the kernel's version."""
    members = [f"{target.source}/{path}" for path in ("Makefile", "COPYING", *kind.take)]
    argv = ["tar", "-xf", str(archive), "-C", str(into), "--strip-components=1", "--no-same-owner"]
    rc, _, err, _ = run([*argv, "--wildcards", "--no-wildcards-match-slash", *members], timeout=1800)
    if rc != 0:
        said = err.decode("utf-8", "replace").strip()[-300:]
        raise RigError(f"{archive.name} does not hold the driver's files: {said}")
    has = _sublevel(into / "Makefile")
    (into / "Makefile").unlink()
    if has != (wanted := target.version.split("-")[0]):
        raise ConfigError(f"{archive} is Linux {has}, and kernel {target.release} is {wanted}")


def _sublevel(makefile: Path) -> str:
    """The version that a kernel's Makefile states."""
    rows = (line.split(" = ") for line in makefile.read_text(errors="replace").splitlines()[:6])
    fields = {row[0]: row[1].strip() for row in rows if len(row) == 2}
    return ".".join(fields.get(k, "?") for k in ("VERSION", "PATCHLEVEL", "SUBLEVEL"))
