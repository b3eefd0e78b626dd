"""How does OpenSSH's client reach a host? One master connection, its key checked, sessions through it."""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from offload.cmd import kill_group, run, wait_until
from offload.errors import NoPermission, OffloadError, Refused, RigError
from offload.host.base import Completed, Process
from offload.host.vm import Agent, VmHost

CONNECT = 60.0  # seconds for TCP, key exchange and log-in: an emulated host on a busy machine takes its time
ALIVE, MISSED = 10, 6  # a silent host is given up after a minute
FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
# whatever the person's ~/.ssh/config says of the way (jump hosts stay possible): these hold
OPTIONS = {
    "BatchMode": "yes",
    "StrictHostKeyChecking": "yes",
    "GlobalKnownHostsFile": "none",
    "KnownHostsCommand": "none",
    "UpdateHostKeys": "no",
    "VerifyHostKeyDNS": "no",
    "CheckHostIP": "no",
    "NoHostAuthenticationForLocalhost": "no",
    "ClearAllForwardings": "yes",
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "PermitLocalCommand": "no",
    "RequestTTY": "no",
    "LogLevel": "ERROR",
    "ConnectTimeout": f"{CONNECT:g}",
    # AES by the processor's own instructions: 1.5 MB cost an emulated host 0.42 s, by ChaCha20 0.67
    "Ciphers": "^aes128-gcm@openssh.com",
    "ServerAliveInterval": str(ALIVE),
    "ServerAliveCountMax": str(MISSED),
}


@dataclass(frozen=True)
class Login:
    """How a host is reached: `hostkeys`, its public keys (type and base64), are the only ones it may show.

    `keyfile`: the private key to log in with (empty: ssh's own choice, the agent included). `sudo`: become
    root by `sudo -n`. `source`: where this was written down, for messages.
    """

    name: str
    address: str
    hostkeys: tuple[str, ...]
    user: str = "root"
    port: int = 22
    keyfile: str = ""
    sudo: bool = False
    source: str = "the lab file"

    @property
    def shown(self) -> str:
        """Name and way, for messages."""
        return f"{self.name} ({self.user}@{self.address}:{self.port})"

    @property
    def alias(self) -> str:
        """The name under which ssh looks for the host's key: ours, so that no other entry can match."""
        return f"ktls-offload-{self.name}"


def known_hosts(login: Login) -> str:
    """The text of a known_hosts file that knows this host only."""
    return "".join(f"{login.alias} {key}\n" for key in login.hostkeys)


class Master:
    """An OpenSSH master connection; its socket and known_hosts lie in a folder that only we can enter.

    Refused: the host's key is another one. NoPermission: it does not let us in. RigError: out of reach.
    """

    def __init__(self, login: Login) -> None:
        self.login = login
        self._folder = Path(tempfile.mkdtemp(prefix="ktls-ssh-"))  # 0700, see mkdtemp(3)
        with ExitStack() as undo:
            undo.callback(shutil.rmtree, self._folder, ignore_errors=True)
            (self._folder / "known_hosts").write_text(known_hosts(login))
            self._child = undo.enter_context(self._start())
            undo.callback(self._end)
            wait_until(self._ready, CONNECT + 10, f"{login.shown} to accept the login")
            self._undo = undo.pop_all()

    def _argv(self, *more: str) -> list[str]:
        """The ssh command as far as it is the same for master and sessions; nothing in it is secret."""
        login, options = self.login, dict(OPTIONS)
        options |= {"UserKnownHostsFile": str(self._folder / "known_hosts"), "HostKeyAlias": login.alias}
        if login.keyfile:
            options |= {"IdentityFile": login.keyfile, "IdentitiesOnly": "yes"}
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        where = ["-S", str(self._folder / "s"), "-p", str(login.port), "-l", login.user]
        return ["ssh", *words, *where, *more, login.address]

    def _start(self) -> subprocess.Popen[bytes]:
        """The master; it ends with the thread that called, whatever kills that."""
        argv = ["setpriv", "--pdeathsig", "TERM", *self._argv("-M", "-N", "-o", "ControlPersist=no")]
        with (self._folder / "log").open("wb") as log:
            return subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def _ready(self) -> bool:
        if self._child.poll() is not None:
            raise explain(self.login, (self._folder / "log").read_text(errors="replace"))
        return (self._folder / "s").exists()

    def alive(self) -> bool:
        """Say whether the connection still stands."""
        return self._child.poll() is None

    def session(self, argv: Sequence[str]) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        """Start a program there: a socket to its standard input and output, and the ssh process between.

        Without the master there is no session: a second connection is never made behind our back.
        """
        words = ["sudo", "-n", *argv] if self.login.sudo else list(argv)
        ours, theirs = socket.socketpair()
        command = [*self._argv("-o", "ControlMaster=no", "-o", "ProxyCommand=false"), "--", shlex.join(words)]
        with theirs, (self._folder / "session.log").open("wb") as log:
            child = subprocess.Popen(
                command, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=log, start_new_session=True
            )
        return ours, child

    def said(self) -> str:
        """Return what the last session's ssh, shell and program wrote to standard error: its end."""
        text = (self._folder / "session.log").read_text(errors="replace")
        return " ".join(text.split())[-400:]

    def close(self) -> None:
        """End the connection and whatever runs through it; the folder goes too."""
        self._undo.close()

    def _end(self) -> None:
        if self._child.poll() is None:
            with suppress(RigError):
                run(self._argv("-O", "exit"), timeout=10)
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(5)
            kill_group(self._child.pid)


def explain(login: Login, said: str) -> OffloadError:
    """Return what ssh's words mean to the person who wrote the lab file."""
    last = " ".join((said.strip().splitlines() or ["ssh said nothing"])[-1].split())[:300]
    if "Host key verification failed" in said or "IDENTIFICATION HAS CHANGED" in said:
        seen = FINGERPRINT.search(said)
        shows = f" (it shows {seen[0]})" if seen else ""
        return Refused(
            f"the host key of {login.shown} is not the one in {login.source}{shows}",
            "if the host was reinstalled, compare the fingerprint on its console and correct hostkeys there",
        )
    if "Permission denied" in said or "Too many authentication failures" in said:
        hint = f"{login.source} names the key file and the user; `ssh-copy-id` puts a key there"
        return NoPermission(f"{login.shown} refuses the login: {last}", hint)
    return RigError(f"cannot reach {login.shown}: {last}", "is it running, and is the address right?")


class SshHost:
    """A machine at the other end of a Master, or one network namespace of it; see Host for what it does.

    An agent runs there as one ssh session, so that a command costs one round trip and no log-in. Programs
    started there end with the connection. A lost connection is a RigError that says so.
    """

    def __init__(self, agent: Agent, name: str, netns: str = "") -> None:
        self.name, self._inner = name, VmHost(agent, name, netns)

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes = b"",
        timeout: float = 60.0,
        check: bool = True,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run to the end; see Host.run."""
        return self._inner.run(argv, input=input, timeout=timeout, check=check, env=env)

    def start(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> Process:
        """Start in the background; it ends with the connection."""
        return self._inner.start(argv, env=env)

    def read(self, path: str) -> bytes:
        """Return a file's bytes; FileNotFoundError if there is none."""
        return self._inner.read(path)

    def write(self, path: str, data: bytes, mode: int = 0o600) -> None:
        """Create or replace a file with exactly this mode; parent folders are made."""
        self._inner.write(path, data, mode)
