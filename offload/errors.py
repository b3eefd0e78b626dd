"""What can go wrong, and which exit code says so.

OffloadError                 1  something went wrong that has no better name
├── ConfigError              2  usage, profile or configuration: the person can correct it
├── NoDevice                 3  there is no such interface
├── NoPermission             4  needs root (or CAP_NET_ADMIN)
├── Refused                  5  the card, its profile or the kernel cannot do what was asked
├── SwitchFailed             6  a switch failed half-way; what was changed has been put back
└── RigError                 7  the rig broke: a host, the lab VM, a download, the disk
    ├── CommandFailed        7  a command that had to succeed did not
    └── TimedOut             7  something did not come, or did not end, in the time that it was given

Every error is one line for a person, with an optional hint that says what to do next.
"""

from __future__ import annotations


class OffloadError(Exception):
    """A message for a person; `hint` is what they can do about it; `exit_code` ends the command."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class ConfigError(OffloadError):
    """Usage, profile or configuration is wrong."""

    exit_code = 2


class NoDevice(OffloadError):
    """There is no such network interface."""

    exit_code = 3


class NoPermission(OffloadError):
    """The caller may not do this."""

    exit_code = 4


class Refused(OffloadError):
    """The card, its profile or the kernel cannot do what was asked; nothing was changed."""

    exit_code = 5


class SwitchFailed(OffloadError):
    """A switch failed half-way; what was changed has been put back."""

    exit_code = 6


class RigError(OffloadError):
    """The rig broke: says nothing about the card."""

    exit_code = 7


class CommandFailed(RigError):
    """A command that had to succeed did not: shows command, exit code and both outputs."""

    def __init__(self, argv: list[str], rc: int, stdout: bytes, stderr: bytes, where: str = "here") -> None:
        out = stdout.decode("utf-8", "replace").strip()[-2000:]
        err = stderr.decode("utf-8", "replace").strip()[-2000:]
        super().__init__(
            f"command failed ({where}), exit {rc}: {' '.join(argv)}\n  stdout: {out}\n  stderr: {err}"
        )
        self.argv, self.rc, self.stdout, self.stderr = argv, rc, stdout, stderr


class TimedOut(RigError):
    """Something did not come, or did not end, in the time that it was given."""
