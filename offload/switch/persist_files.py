"""What keeps a switch over reboot, driver reload and link flap: the file of each network manager, as text."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

MANAGERS = ("networkmanager", "systemd", "ifupdown")
MARK = "written by ktls-offload"
# run-parts leaves out names with a dot (run-parts(8)); nothing else may become part of a script
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,14}")
HEAD = (
    "# {mark}: `ktls-offload {verb} {dev} --persist`; `ktls-offload enable {dev} --persist none` removes it\n"
)


@dataclass(frozen=True)
class Kept:
    """A file that a network manager obeys, and what must be run as root once it is there, or gone."""

    manager: str
    path: str
    mode: int
    text: str
    after: tuple[tuple[str, ...], ...] = ()
    before_removal: tuple[tuple[str, ...], ...] = ()
    linked_from: tuple[str, ...] = ()

    def folders(self) -> tuple[str, ...]:
        """Where its name is, and where the manager links to it."""
        return (self.path.rpartition("/")[0], *self.linked_from)


def path_of(manager: str, dev: str) -> str:
    """Where the file of a manager for a device is."""
    return {
        "systemd": f"/etc/systemd/system/ktls-offload-{dev}.service",
        "networkmanager": f"/etc/NetworkManager/dispatcher.d/90-ktls-offload-{dev}",
        "ifupdown": f"/etc/network/if-up.d/ktls-offload-{dev}",
    }[manager]


def made(manager: str, dev: str, verb: str, commands: list[list[str]]) -> Kept:
    """The file that makes a manager run these commands whenever the device appears or comes up."""
    head = HEAD.format(mark=MARK, verb=verb, dev=dev)
    path = path_of(manager, dev)
    if manager == "systemd":
        return _unit(dev, path, head, commands)
    when = '[ "$1" = {dev} ] && [ "$2" = up ]' if manager == "networkmanager" else '[ "$IFACE" = {dev} ]'
    lines = [shlex.join(words) for words in commands]
    script = (
        f"#!/bin/sh\n{head}{when.format(dev=shlex.quote(dev))} || exit 0\nset -e\n" + "\n".join(lines) + "\n"
    )
    return Kept(manager, path, 0o755, script)


def _unit(dev: str, path: str, head: str, commands: list[list[str]]) -> Kept:
    """A unit that starts with the device and stops with it, so that a reloaded driver starts it again."""
    name, device = path.rpartition("/")[2], device_unit(dev)
    steps = "\n".join(f"ExecStart={shlex.join(words)}" for words in commands)
    text = (
        f"{head}[Unit]\nDescription=TLS offload of {dev}\nBindsTo={device}\nAfter={device}\n\n"
        f"[Service]\nType=oneshot\nRemainAfterExit=yes\n{steps}\n\n[Install]\nWantedBy={device}\n"
    )
    return Kept(
        "systemd",
        path,
        0o644,
        text,
        after=(("systemctl", "daemon-reload"), ("systemctl", "enable", "--now", name)),
        before_removal=(("systemctl", "disable", "--now", name),),
        linked_from=(f"{path.rpartition('/')[0]}/{device}.wants",),
    )


def device_unit(dev: str) -> str:
    """The unit of a network device, escaped as systemd-escape does."""
    return f"sys-subsystem-net-devices-{dev.replace('-', chr(92) + 'x2d')}.device"
