"""The stream goes through stunnel: its own process, whose plain side is a unix socket in our hand."""

from __future__ import annotations

import os
import re
import select
import socket
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass

from offload.connect.policy import Policy, Target, for_stunnel

PLACES = ("/usr/bin/stunnel4", "/usr/bin/stunnel")
SHAKEN = re.compile(r" (TLSv1\.[23])? ?ciphersuite: (\S+)")
# [!]: said before its log is set up
TROUBLE = re.compile(r"^(?:\[(!)\]|.* LOG[0-4]\[(ui)?[^]]*\]:) (.*)", re.MULTILINE)


class Failed(Exception):
    """Why it did not work, in words."""


@dataclass(frozen=True)
class Carried:
    """The plain side, the process that carries it, and what was negotiated: a line as of ktls-handoff."""

    sock: socket.socket
    process: subprocess.Popen[bytes]
    line: dict[str, object]


def program(wanted: str = "") -> str:
    """Return the stunnel to use; Failed if there is none."""
    found = next((p for p in ([wanted] if wanted else PLACES) if os.access(p, os.X_OK)), "")
    if not found:
        raise Failed(f"no stunnel ({wanted or ', '.join(PLACES)})")
    return found


def carry(target: Target, policy: Policy, wanted: str = "") -> Carried:
    """Connect by a new stunnel and wait until its handshake is done; Failed with its reason."""
    path = program(wanted)
    with ExitStack() as undo:
        try:
            ours, process = _started(path, for_stunnel(target, policy), undo)
        except OSError as exc:
            raise Failed(f"{path}: {exc.strerror}") from None
        line = _shaken(process, 2 * policy.seconds())
        assert process.stderr is not None
        process.stderr.close()
        undo.pop_all()
    return Carried(ours, process, line | {"peer": f"{target.host}:{target.port}"})


def _started(path: str, text: str, undo: ExitStack) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """A stunnel with this configuration, and its plain side."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    undo.callback(ours.close)
    with theirs, os.fdopen(os.memfd_create("stunnel.conf"), "wb+") as conf:
        conf.write(text.encode("utf-8", "surrogateescape"))
        conf.seek(0)
        fds = {"stdin": theirs, "stdout": theirs, "stderr": subprocess.PIPE, "pass_fds": [conf.fileno()]}
        process = subprocess.Popen([path, "-fd", str(conf.fileno())], **fds)  # type: ignore[call-overload]
    undo.callback(_end, process)
    return ours, process


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a stunnel that is of no use, and reap it."""
    process.kill()
    assert process.stderr is not None
    process.stderr.close()
    process.wait()


def _shaken(process: subprocess.Popen[bytes], seconds: float) -> dict[str, object]:
    """Follow the log until the handshake is done; Failed with the trouble it tells, or after `seconds`."""
    assert process.stderr is not None
    until, text, log = time.monotonic() + seconds, b"", process.stderr.fileno()
    while True:
        left = until - time.monotonic()
        if left <= 0 or not select.select([log], [], [], left)[0]:
            raise Failed(f"stunnel: no TLS connection within {seconds:g} s")
        part = os.read(log, 4096)
        text += part
        whole = text.decode("utf-8", "replace")
        if (said := SHAKEN.search(whole)) and "\n" in whole[said.end() :]:
            version = "1.3" if said[1] == "TLSv1.3" else "1.2"
            known = {"ok": True, "via": "stunnel", "version": version, "cipher": said[2]}
            return known | {"kernel_cipher": None, "tx": "none", "rx": "none", "tx_by": None, "rx_by": None}
        if not part:
            raise Failed(f"stunnel: {_trouble(whole)}")


def _trouble(log: str) -> str:
    """The first trouble of the connection, or else the first before it: later lines follow from the first."""
    said = TROUBLE.findall(log)
    first = said[0][2] if said else "it ended without a message"
    return next((text for early, ui, text in said if not early and not ui), first)
