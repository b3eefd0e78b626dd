"""Connect by kernel TLS or else by stunnel, from a program: one call, one socket, at most one warning line.

Standard library only. If anything fails before ktls-handoff's whole answer is here, stunnel takes over.
Only a wrong policy or option is an error. connect.md shows it in use, ktls-handoff.8 has the
protocol.
"""

from __future__ import annotations

import array
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from offload.connect.policy import Policy, Target
from offload.connect.socket import Unfit, taken
from offload.connect.stunnel import Failed, carry
from offload.errors import ConfigError, RigError
from offload.paths import BUILD

__all__ = ["Got", "Policy", "Target", "connect", "helper"]
BUILT = BUILD / "ktls-handoff"
PACKAGE = "ktls-offload-handoff"  # Debian's, by packaging/build-deb-handoff
ANSWER = 8192  # bytes
STRAYS = 16  # descriptors that are noticed, and closed, if somebody sends them
POLICY = "policy"  # cause of a resident that works by another one than ours
USAGE = 1  # exit code of ktls-handoff: the caller's mistake
STEPS = 3  # of a connection: name, connect, handshake
SPARE = 5.0  # seconds more than that, for the helper itself


@dataclass
class Got:
    """A connected socket and what is known of it.

    `line` is ktls-handoff's; `via` in it is ktls or stunnel. `warning`: the line that `connect` printed,
    or ''.
    `process`: the stunnel that carries the stream; it ends with the connection, and is the caller's to reap.
    """

    sock: socket.socket
    line: dict[str, Any]
    warning: str = ""
    process: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        """Give it back, unused."""
        self.sock.close()
        if self.process:
            self.process.kill()
            self.process.wait()


def helper(wanted: str = "") -> str:
    """Return ktls-handoff: what is wanted, or what `make build` made, or what is in PATH. Failed if none."""
    found = wanted or (str(BUILT) if BUILT.exists() else shutil.which("ktls-handoff") or "")
    if not found:
        raise Failed(f"no program ktls-handoff: install {PACKAGE}")
    if not os.access(found, os.X_OK):
        raise Failed(f"no program {found}")
    return found


def connect(
    target: Target,
    policy: Policy,
    *,
    via: str = "",
    program: str = "",
    stunnel: str = "",
    fallback: bool = True,
    warn: Callable[[str], None] | None = None,
) -> Got:
    """Return a socket to the target; plaintext goes in and comes out of it.

    `via`: the socket of a resident; ktls-handoff is started without one, or if its policy is another one.
    `warn` gets the one line of a fallback, else standard error does. ConfigError: the policy is wrong;
    RigError: stunnel did not connect either, or `fallback` is off.
    """
    policy.values()  # what is wrong with it is the person's to correct, whatever else fails
    try:
        got = _by_kernel(target, policy, via, program)
        if got.warning:
            (warn or _say)(got.warning)
        return got
    except Failed as exc:
        why = str(exc)
    if not fallback:
        raise RigError(f"{target}: no kTLS ({why})")
    try:
        carried = carry(target, policy, stunnel)
    except Failed as exc:
        raise RigError(f"{target}: no kTLS ({why}); the fallback failed too: {exc}") from None
    warning = f"{target}: no kTLS ({why}); the stream goes through stunnel"
    (warn or _say)(warning)
    return Got(carried.sock, carried.line, warning, carried.process)


class _Refused(Failed):
    """This resident does not work by our policy, or does not know our request: it may be an older one."""


def _by_kernel(target: Target, policy: Policy, via: str, program: str) -> Got:
    """By the resident, or by a helper of our own; Failed with the reason."""
    if not via:
        line, sock = _started(target, policy, program)
        return Got(sock, line)
    try:
        line, sock = _resident(target, policy, via)
        return Got(sock, line)
    except _Refused as exc:
        refused = str(exc)
    try:
        line, sock = _started(target, policy, program)
    except Failed as exc:
        raise Failed(f"{refused}; {exc}") from None
    return Got(sock, line, f"{target}: {refused}; started a separate ktls-handoff instead")


def _say(warning: str) -> None:
    """One line; that nobody can read it (a closed or full standard error) is no reason to lose the stream."""
    plain = "".join(c if " " <= c <= "~" else "?" for c in warning)
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"ktls-offload: warning: {plain}\n")


def _resident(target: Target, policy: Policy, path: str) -> tuple[dict[str, Any], socket.socket]:
    """Ask a resident; Failed with the reason."""
    words = ["connect", target.host, str(target.port), *(["--name", target.name] if target.name else [])]
    words += [] if policy.timeout is None else ["--timeout", f"{policy.timeout:g}"]
    words += ["--digest", policy.digest()]
    until = time.monotonic() + STEPS * policy.seconds() + SPARE
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
            sock.settimeout(until - time.monotonic())
            sock.connect(path)
            with suppress(BrokenPipeError):  # a client that may not ask gets the refusal first
                sock.send("".join(f"{word}\n" for word in words).encode())
            return answer(sock, until)
    except TimeoutError:
        raise Failed(f"resident {path}: no answer in time") from None
    except OSError as exc:
        raise Failed(f"resident {path}: {exc.strerror or exc}") from None
    except (_Refused, ConfigError) as exc:
        raise _Refused(f"resident {path}: {exc}") from None
    except (_Lost, Unfit) as exc:
        raise Failed(f"resident {path}: {exc}") from None


def _started(target: Target, policy: Policy, program: str) -> tuple[dict[str, Any], socket.socket]:
    """Start ktls-handoff for this one connection; Failed with the reason, ConfigError for a wrong option."""
    path, until = helper(program), time.monotonic() + STEPS * policy.seconds() + SPARE
    try:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    except OSError as exc:
        raise Failed(f"{path}: {exc.strerror}") from None
    argv = [path, "connect", target.host, str(target.port), *policy.options(), "--fd", str(theirs.fileno())]
    argv += ["--name", target.name] if target.name else []
    with ours, theirs:
        try:
            null = subprocess.DEVNULL  # what it says there, its answer says too
            child = subprocess.Popen(argv, pass_fds=[theirs.fileno()], stdin=null, stdout=null, stderr=null)
        except OSError as exc:
            raise Failed(f"{path}: {exc.strerror}") from None
        theirs.close()
        try:
            return answer(ours, until)
        except (OSError, _Lost, Unfit) as exc:
            raise Failed(f"{path}: {exc}") from None
        finally:
            child.kill()  # it has answered, or it will not: its work is done either way
            child.wait()


class _Lost(Exception):
    """The answer did not come, or not as it must be."""


def answer(sock: socket.socket, until: float) -> tuple[dict[str, Any], socket.socket]:
    """Take one answer: the line and the connected socket. Failed: it says why not; _Lost: it is no answer.

    Unfit: no socket with kernel TLS came with it. ConfigError: it says that the caller made a mistake.
    `until`: of the monotonic clock.
    """
    sock.settimeout(max(0.001, until - time.monotonic()))
    try:
        data, control, flags, _ = sock.recvmsg(ANSWER, socket.CMSG_SPACE(4 * STRAYS), socket.MSG_CMSG_CLOEXEC)
    except TimeoutError:
        raise _Lost("no answer in time") from None
    fds = [
        fd
        for level, kind, payload in control
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
        for fd in array.array("i", payload[: len(payload) - len(payload) % 4])
    ]
    try:
        line = _line(data, flags)
        if line["ok"] and len(fds) == 1:
            return line, taken(fds.pop())
        if line["ok"] or fds:
            raise _Lost(f"an answer with {len(fds)} descriptors")
    finally:
        for fd in fds:
            os.close(fd)
    if line.get("exit") == USAGE:
        raise ConfigError(str(line.get("message")))
    raise (_Refused if line.get("cause") == POLICY else Failed)(str(line.get("message")))


def _line(data: bytes, flags: int) -> dict[str, Any]:
    """The JSON of an answer."""
    if not data:
        raise _Lost("it closed the connection without an answer")
    if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC) or not data.endswith(b"\n"):
        raise _Lost("a truncated answer")
    try:
        line = json.loads(data)
    except (ValueError, RecursionError):
        line = None
    if not isinstance(line, dict) or not isinstance(line.get("ok"), bool):
        raise _Lost("an invalid answer")
    return line
