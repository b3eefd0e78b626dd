"""From a login to hosts that can be used: the connection, the agent at its other end, and what it may do."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress
from itertools import accumulate

from offload.errors import ConfigError, NoPermission, OffloadError, RigError
from offload.host.ssh import Login, Master, SshHost, explain
from offload.paths import ROOT
from offload.suite.bench.vm.client import Client

MODULES = (
    "offload.suite.bench.vm.guest.port",
    "offload.suite.bench.vm.guest.spaces",
    "offload.suite.bench.vm.guest.direct",
    "offload.suite.bench.vm.guest.growth",
    "offload.suite.bench.vm.guest.job",
    "offload.suite.bench.vm.guest.agent",
    "offload.suite.bench.lab.remote",
)
PYTHON = (
    "/usr/bin/python3"  # the distribution's, as in traffic/drive.py: what a log-in shell finds may be any
)
# reads this many bytes of its input, makes modules of them, and runs the last one
STUB = """\
import json,os,sys,types
n=int(sys.argv[1]);d=b""
while len(d)<n:
    p=os.read(0,n-len(d))
    if not p: sys.exit("the connection ended")
    d+=p
for k,s in json.loads(d):
    m=types.ModuleType(k);m.__path__=[];sys.modules[k]=m;exec(compile(s,k,"exec"),m.__dict__)
m.main()
"""
HELLO = 180.0  # seconds until the agent answers: Python must start there


def parcel() -> bytes:
    """The agent's modules by name, in the order in which they need one another."""
    sources = [(name, (ROOT / f"{name.replace('.', '/')}.py").read_text()) for name in MODULES]
    above = {part for name in MODULES for part in accumulate(name.split(".")[:-1], "{}.{}".format)}
    return json.dumps([(name, "") for name in sorted(above)] + sources).encode()


class Machine:
    """One machine of a bench over ssh; `host()` and `host("NETNS")` are what tests and verbs use.

    Refused, NoPermission and RigError as Master; RigError too if there is no Python on it.
    """

    def __init__(self, login: Login) -> None:
        self.login, self._master = login, Master(login)
        try:
            self._client, self._child = self._begin()
        except BaseException:
            self._master.close()
            raise
        self._spaces: set[str] = set()

    def _begin(self) -> tuple[Client, subprocess.Popen[bytes]]:
        """Send the agent, wait for its answer, and ask who it is."""
        data = parcel()
        sock, child = self._master.session([PYTHON, "-I", "-S", "-c", STUB, str(len(data))])
        client = None
        try:
            with suppress(BrokenPipeError, ConnectionResetError):
                sock.sendall(data)
            client = Client(sock, self._last_words, what=f"the connection to {self.login.shown}")
            client.hello(HELLO)
            _root(self.login, SshHost(client, self.login.name))
            return client, child
        except OffloadError as exc:
            if client:
                client.close()
            with suppress(subprocess.TimeoutExpired):
                child.wait(5)
            child.kill()
            raise (exc if isinstance(exc, NoPermission) else self._no_agent(exc)) from None

    def _last_words(self) -> str:
        """Nothing: that the line is lost is known already, and ssh's words add nothing."""
        return ""

    def _no_agent(self, exc: OffloadError) -> OffloadError:
        """Why the agent did not start."""
        said = self._master.said()
        if not self._master.alive():
            return explain(self.login, said)
        if "sudo:" in said:
            return NoPermission(f"{self.login.shown}: {said}", "sudo has to work there without a password")
        if "not found" in said or "No such file" in said:
            return RigError(f"{self.login.shown} has no {PYTHON}: {said}", "apt install python3")
        return RigError(f"no agent on {self.login.shown}: {said or exc}")

    def host(self, netns: str = "", name: str = "") -> SshHost:
        """The machine, or one of its network namespaces, called `name`; ConfigError if there is none."""
        if netns and netns not in self._spaces:
            try:
                self._client.call("namespaces", names=[netns])
            except OSError as exc:
                raise ConfigError(
                    f"no network namespace {netns!r} on {self.login.shown}: {exc.strerror}", "ip netns list"
                ) from None
            self._spaces.add(netns)
        return SshHost(self._client, name or self.login.name, netns)

    def alive(self) -> bool:
        """Say whether it still answers."""
        with suppress(RigError, OSError):
            return self.host().run(["true"], timeout=10, check=False).rc == 0
        return False

    def close(self) -> None:
        """Leave: what we started there ends, then the connection."""
        self._client.close()
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(5)
        self._child.kill()
        self._child.wait()
        self._master.close()


def _root(login: Login, host: SshHost) -> None:
    """NoPermission unless the agent is root: every check of the suite needs it."""
    user = host.run(["id", "-u"]).text.strip()
    if user != "0":
        hint = "log in as root, or write `sudo: on` in the lab file"
        raise NoPermission(f"{login.shown}: user {login.user} is not root", hint)
