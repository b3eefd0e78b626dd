"""NFS and NVMe/TCP: the kernel's own connections, for which tlshd makes the TLS handshake."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from offload.doctor.apps.files import Files, Place
from offload.doctor.apps.model import SUITES, App, Said, Service
from offload.doctor.kernel import facts
from offload.doctor.versions import dots, numbers

NFS = ("/proc/mounts", "/etc/fstab", "/etc/exports", "/etc/exports.d/*.exports")
# a controller with a TLS key, ports of the target, and what nvme-cli connects
NVME = ("/sys/class/nvme/nvme*/tls_key", "/sys/kernel/config/nvmet/ports/*/addr_tsas", "/etc/nvme/*")
PATHS = {"nfs": NFS[0], "nvme": NVME[0].partition("/nvme*")[0]}
TITLES = {"nfs": "NFS", "nvme": "NVMe/TCP"}
MOUNT = re.compile(r"(\S+)\s+(\S+)\s+nfs4?\s+(?:\S*,)?xprtsec=m?tls\b")
EXPORT = re.compile(r"(/\S*)\s.*\bxprtsec=(?:\w+:)*m?tls\b")
ASKS = re.compile(r'"tls"\s*:\s*true|--tls\b|^tls1\.3$|^[0-9a-f]{8}$')


def nfs(files: Files, path: str, environment: Mapping[str, str]) -> App:
    """NFS: mounts and exports with xprtsec=tls or mtls."""
    app = _app("nfs", files)
    for name in (path,) if path else NFS:
        for at, line in _lines(files, name):
            if found := MOUNT.match(line):
                if f"mount {found[2]}" in {one.name for one in app.services}:
                    continue  # fstab repeats what is mounted
                app.services.append(_service(f"mount {found[2]}", at, "client", found[1].rpartition(":")[0]))
            elif found := EXPORT.match(line):
                app.services.append(_service(f"export {found[1]}", at, "server", ""))
    if app.version >= tuple(facts()["rekey"]):
        for service in (one for one in app.services if one.side == "client"):
            service.notes.add("D836", service.where, ["rx"], name=service.title())
    _shake(app, files)
    return app


def nvme(files: Files, path: str, environment: Mapping[str, str]) -> App:
    """NVMe/TCP: controllers, ports of the target, and connections of nvme-cli that ask for TLS."""
    app = _app("nvme", files)
    for name in (path,) if path else NVME:
        for at, line in _lines(files, name):
            if ASKS.search(line):
                where = at.path.split("/")
                title = where[-2] if at.path.startswith("/sys") else where[-1]
                side = "server" if "nvmet" in at.path else "client"
                app.services.append(_service(title, at, side, ""))
    for service in app.services:
        service.notes.add("D834", service.where, ["rx"], name=service.title())
    _shake(app, files)
    return app


def _app(name: str, files: Files) -> App:
    """The kernel is the program, so its version counts."""
    version = numbers(files.host.run(["uname", "-r"], check=False, timeout=20).text)
    shown = f"{TITLES[name]} of Linux {dots(version[:2])}" if version else TITLES[name]
    return App(name, version[:2], title=shown, files=files)


def _lines(files: Files, pattern: str) -> Iterator[tuple[Place, str]]:
    """Each line of the files that a pattern names; what is not there has none, and is no problem."""
    for name in files.matching(pattern):
        if files.there(name):
            for number, line in enumerate((files.text(name) or "").splitlines(), 1):
                if (text := line.strip()) and not text.startswith("#"):
                    yield Place(name, number), text


def _service(name: str, at: Place, side: str, address: str) -> Service:
    """Connections of one mount, export, controller or port: TLS 1.3 only, and nothing changes that."""
    return Service(
        name=name,
        where=str(at),
        side=side,
        address=address,
        ask=Said("on", str(at)),
        versions=Said("1.3", "tlshd"),
        ciphers=Said(""),
        suites=Said(SUITES, "tlshd"),
        put="",
        line="",
        stop="",
        gcm="",
    )


def _shake(app: App, files: Files) -> None:
    """Note that nobody makes the handshake; the version of tlshd is the library's."""
    said = files.host.run(["tlshd", "--version"], check=False, timeout=20)
    output = said.text + said.stderr.decode("utf-8", "replace")
    if found := re.search(r"ktls-utils ([0-9][0-9.]{0,20})", output):
        app.library = f"ktls-utils {found[1]}"
    elif app.services:
        app.notes.add("D835", "tlshd --version: no answer", app=app.shown)
