"""Python 3.9 with PyYAML and pytest, for tests of old hosts: Debian 11's, unpacked into the cache."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from offload.cmd import run
from offload.debian.cache import cache_root, kept, new_folder, read_json
from offload.debian.packages import amd64_only
from offload.debian.sources import archive
from offload.errors import RigError

PLACE = "python39"
# Debian 11 does not change any more: below pool/main of any Debian mirror, with SHA-256
PACKAGES = {
    "p/python3.9/python3.9-minimal_3.9.2-1_amd64.deb": (
        "5d6003c5c20223a2547ac4976e09a9ec778dbe351507a6292bef3b60df5f4aa7"
    ),
    "p/python3.9/libpython3.9-minimal_3.9.2-1_amd64.deb": (
        "594283526d67e03e3c4e96534f6bfe5da1bf41da5d49360553c9b79fbf08c4ab"
    ),
    "p/python3.9/libpython3.9-stdlib_3.9.2-1_amd64.deb": (
        "32ac64d959ac2dbc5bb289532fc9834dab8f671b5455695a3a9315aad973c65b"
    ),
    "p/pyyaml/python3-yaml_5.3.1-5_amd64.deb": (
        "449c14ac28f76a94421d1bd82347a67690069551fb5e8950402711c0d5edcd29"
    ),
    "liby/libyaml/libyaml-0-2_0.2.2-1_amd64.deb": (
        "b0fd7c43eea64016dd3ebd14bd2d32c2a11f08f7a1692716e10f8a22501784a2"
    ),
    "libf/libffi/libffi7_3.3-6_amd64.deb": (
        "30ca89bfddae5fa6e0a2a044f22b6e50cd17c4bc6bc850c579819aeab7101f0f"
    ),
    "o/openssl/libssl1.1_1.1.1w-0+deb11u1_amd64.deb": (
        "aadf8b4b197335645b230c2839b4517aa444fd2e8f434e5438c48a18857988f7"
    ),
}
# the last pytest for 3.9; pip reckons with the Python that it runs on, so what older ones need is named
WHEELS = ("pytest==8.4.2", "jsonschema==4.25.1", "exceptiongroup", "tomli", "typing_extensions")
STARTER = '#!/bin/sh\nLD_LIBRARY_PATH="{0}/usr/lib/x86_64-linux-gnu" exec "{0}/usr/bin/python3.9" "$@"\n'


def fetch(say: Callable[[str], None] = print) -> str:
    """The path of a Python 3.9, fetched if need be; RigError if it cannot be had."""
    amd64_only()
    return str(kept(PLACE, lambda root: _fetch(root, say), say) / "python3.9")


def had() -> str:
    """The same path if it has been fetched, else ''."""
    state = read_json(cache_root() / PLACE / "current.json")
    path = cache_root() / PLACE / state["folder"] / "python3.9" if state else None
    return str(path) if path and path.is_file() else ""


def _fetch(root: Path, say: Callable[[str], None]) -> Path:
    say("fetching Python 3.9 of Debian 11, and pytest for it: 8 MiB")
    folder = root / "3.9.2"
    with new_folder(folder) as temp:
        for path, digest in PACKAGES.items():
            _unpack(f"{archive().main.rstrip('/')}/pool/main/{path}", digest, temp)
        site = temp / "usr/lib/python3/dist-packages"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        wheels = ["--python-version", "3.9", "--only-binary=:all:", "--target", str(site), *WHEELS]
        _done([*pip, *wheels], "pytest for Python 3.9")
        starter = temp / "python3.9"
        starter.write_text(STARTER.format(folder))
        starter.chmod(0o755)
    return folder


def _unpack(address: str, digest: str, folder: Path) -> None:
    """One package, by apt's own downloader, which goes by the host's proxies and checks the digest."""
    file = folder / "package.deb"
    helper = ["/usr/lib/apt/apt-helper", "-o", "APT::Sandbox::User=root", "download-file"]
    _done([*helper, address, str(file), f"SHA256:{digest}"], address.rpartition("/")[2])
    _done(["dpkg-deb", "-x", str(file), str(folder)], address.rpartition("/")[2])
    file.unlink()


def _done(argv: list[str], what: str) -> None:
    """Run to a good end; RigError with the program's last line."""
    rc, out, err, _ = run(argv, timeout=600)
    if rc != 0:
        said = (err + out).decode("utf-8", "replace").strip().splitlines() or [f"exit {rc}"]
        raise RigError(f"cannot get {what}: {said[-1]}")
