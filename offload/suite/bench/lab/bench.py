"""A bench of real hosts that is open: same shape as the lab VM, for the same tests."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from offload.card.nic import look
from offload.errors import ConfigError, OffloadError, RigError, SwitchFailed
from offload.host.base import Bench, Host, Side
from offload.host.local import LocalHost
from offload.host.ssh import Login
from offload.suite.bench.lab import programs, settings
from offload.suite.bench.lab.log import BOOT, Logs
from offload.suite.bench.lab.model import ONE_HOST, ONE_WIRE, LabFile, Target
from offload.suite.bench.lab.reach import Machine
from offload.suite.bench.lab.render import same_machine
from offload.suite.bench.lab.rig import versions
from offload.suite.bench.lab.source import load_any
from offload.switch.enable import identity

Say = Callable[[str], None]
T = TypeVar("T")
NETNS = Path("/run/netns")  # of iproute2
ONE_HOST_HINT = "`ktls-offload lab init --one-host NEAR FAR` recreates it from the ports of the lab file"
RETURN = 60.0  # seconds that a lost host is given to come back, so that its settings can be put back


class Machines:
    """The machines of a bench, one connection each, however many roles they play."""

    def __init__(self) -> None:
        self._open: dict[Login | None, Machine] = {}

    def host(self, target: Target) -> Host:
        """The host of a role."""
        if target.login is None:
            if target.netns and not (NETNS / target.netns).exists():
                hint = ONE_HOST_HINT if target.netns in (ONE_HOST, ONE_WIRE) else "ip netns list"
                raise ConfigError(f"no network namespace {target.netns!r} here", hint)
            host = LocalHost(target.netns or None)
            host.name = target.role
            return host
        key = replace(target.login, name="")
        if key not in self._open:
            self._open[key] = Machine(target.login)
        return self._open[key].host(target.netns, target.role)

    def close(self) -> None:
        """Leave all of them."""
        while self._open:
            self._open.popitem()[1].close()


class RealLab:
    """A bench that a lab file describes, reached and checked; `stop` puts back what its NICs were set to.

    The leavings of an unfinished run are put back first; Refused while another run is on. `watch`: then only
    look on, while another process runs the tests: record and send nothing.
    """

    def __init__(self, file: LabFile, say: Say = print, *, watch: bool = False) -> None:
        self.file, self.name, self.kind, self._say = file, file.file, "real", say
        for target in file.targets:
            _keyfile(file, target)
        with ExitStack() as undo:
            claim = undo.enter_context(ExitStack())
            claim.enter_context(settings.claimed(file))
            machines = Machines()
            undo.callback(machines.close)
            bare = {target.role: machines.host(target) for target in file.targets}
            _unfinished(file, bare, say)  # before the look at the ports: they may lack an address
            hosts = {t.role: bare[t.role] if watch else settings.noted(bare[t.role], t) for t in file.targets}
            dut, peer = (_side(hosts[target.role], file, target) for target in (file.dut, file.peer))
            apart(dut.host, peer.host, f"{file.where(file.peer, 'resources')}: ")
            self.root, ends = hosts["dut"], {"dut": dut, "peer": peer}
            self.rig = versions(dut.host, peer.host, dut.dev) | {"transport": _transport(file)}
            simulated = look(dut.host, dut.dev).driver == "nicsim"
            ports = file.wire.wire if file.wire else ()
            shared = same_machine(file.dut, file.peer)
            self.bench = Bench(dut, peer, hosts.get("wire"), ports, simulated, self.rig, shared)
            if watch:
                claim.close()  # for the process that runs the tests
            else:
                undo.enter_context(_kept(file, bare, ends))
                for host in hosts.values():
                    undo.enter_context(programs.provided(host))
            self._logs = Logs(hosts)
            undo.callback(self._logs.close)
            if self._logs.silent:
                self.rig["log"] = f"not readable on {', '.join(self._logs.silent)}"
            self._undo = undo.pop_all()

    @classmethod
    def open(cls, path: Path, say: Say = print) -> RealLab:
        """Read a lab file, a net.config or (`env`) the environment, and open its bench.

        ConfigError, Refused, NoPermission or RigError if not."""
        began = time.monotonic()
        lab = cls(load_any(path), say)
        say(f"bench {path}: {lab.rig['kernel']}, reached in {time.monotonic() - began:.1f} s")
        return lab

    def console_mark(self) -> int:
        """A mark in the kernel logs."""
        return self._logs.mark()

    def console_faults(self, since: int) -> list[str]:
        """Lines of the kernel logs since a mark that mean a broken rig."""
        return self._logs.faults(since)

    def console_text(self, since: int) -> str:
        """Return what the kernels said since a mark."""
        return "\n".join(f"{name}:\n{text}" for name, text in self._logs.since(since).items())

    def fate(self) -> str:
        """Return what became of hosts behind lost connections: '' if all run on by their boot ids. A
        minute each."""
        for target in (target for target in self.file.targets if target.login):
            try:
                boot = _anew(replace(target, netns=""), lambda host: host.read(BOOT))
            except RigError as exc:
                return f"the state of {target.place} is unknown: {exc.args[0]}"
            if boot != self._logs.boots[target.role]:
                return f"{target.place} rebooted during the test"
        return ""

    def stop(self) -> None:
        """Put back, and leave."""
        self._undo.close()

    def __enter__(self) -> RealLab:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


def _keyfile(file: LabFile, target: Target) -> None:
    """ConfigError for a key file that is not there: ssh would only say that it is not let in."""
    if target.login and target.login.keyfile and not Path(target.login.keyfile).is_file():
        where = file.where(target, "drivers.SSHDriver.keyfile")
        raise ConfigError(f"{where}: no file {target.login.keyfile}", "ssh-keygen makes one")


def _transport(file: LabFile) -> str:
    """How the hosts are reached."""
    return ", ".join(dict.fromkeys("ssh" if target.login else "local" for target in file.targets))


def _side(host: Host, file: LabFile, target: Target) -> Side:
    """One end; ConfigError if its interface or one of its addresses is not there."""
    port = target.port
    assert port is not None
    done = host.run(["ip", "-j", "address", "show"])
    rows = {row.get("ifname"): row for row in json.loads(done.text or "[]")}
    if not port.ifname:  # net.config names the peer by its addresses only
        port = replace(port, ifname=_owner(rows, port.v4) or f"with {port.v4}")
    if port.ifname not in rows:
        where = file.where(target, "resources.OffloadNic.ifname")
        raise ConfigError(f"{where}: no interface {port.ifname!r} on {target.place}", _known(rows))
    have = [a.get("local", "") for a in rows[port.ifname].get("addr_info", [])]
    for name, address in (("v4", port.v4), ("v6", port.v6)):
        if address not in have:
            where = file.where(target, f"resources.OffloadNic.{name}")
            raise ConfigError(
                f"{where}: {address} is not on {port.ifname} of {target.place}",
                f"it has {', '.join(have) or 'none'}; ip address add {address}/... dev {port.ifname}",
            )
    return Side(host, port.ifname, port.v4, port.v6)


def apart(dut: Host, peer: Host, where: str = "") -> None:
    """ConfigError if both ends are in one network namespace: its kernel delivers past the cards."""
    if identity(dut) == identity(peer):
        hint = "`ktls-offload lab init --one-host NEAR FAR`, typed there, moves the peer's port to its own"
        raise ConfigError(f"{where}DUT and peer are in one network namespace: no frame would leave it", hint)


def _owner(rows: dict[str, Any], address: str) -> str:
    """The interface that has an address, or ''."""
    for name, row in rows.items():
        if any(a.get("local") == address for a in row.get("addr_info", [])):
            return str(name)
    return ""


def _known(rows: dict[str, object]) -> str:
    return f"there are: {', '.join(str(name) for name in rows)}"


@contextmanager
def _kept(file: LabFile, hosts: dict[str, Host], sides: dict[str, Side]) -> Iterator[None]:
    """Note what the cards are set to, and put that and each change back at the end."""
    for target in (file.dut, file.peer):
        settings.note(sides[target.role], target)
    try:
        yield
    finally:
        stuck = [problem for target in file.targets if (problem := _settle(hosts[target.role], target))]
        if stuck:
            raise RigError("; ".join(stuck), f"the next run with {file.file} puts it back first")


def _unfinished(file: LabFile, hosts: dict[str, Host], say: Say) -> int:
    """Put back what a former run left on the hosts: how many settings. SwitchFailed if one stays."""
    every = 0
    for target in file.targets:
        count = settings.put_back(hosts[target.role], target, _named(target, say))
        if count:
            say(f"{target.place}: {count} settings of an unfinished run were put back")
        every += count
    return every


def _named(target: Target, say: Say) -> Say:
    return lambda line: say(f"{target.place}: {line}")


def restore(file: LabFile, say: Say) -> None:
    """Put back what an unfinished run left on the hosts; their ports need not be as the file says.

    Refused while a run is on.
    """
    with settings.claimed(file), closing(Machines()) as machines:
        hosts = {target.role: machines.host(target) for target in file.targets}
        if not _unfinished(file, hosts, say):
            say("nothing to put back")


def _settle(host: Host, target: Target) -> str:
    """Put a port's settings back, over a new connection if the old one was lost; '' or what is wrong."""
    try:
        settings.put_back(host, target, lambda line: None)
        return ""
    except SwitchFailed as exc:
        return f"{target.place}: {exc.args[0]}"
    except (RigError, OSError):
        pass  # the connection was lost
    try:
        _anew(target, lambda host: settings.put_back(host, target, lambda line: None))
        return ""
    except RigError as exc:
        return f"settings of {target.place} not put back: {exc.args[0]}"


def _anew(target: Target, do: Callable[[Host], T]) -> T:
    """Do something over a new connection; a host that was lost is given time to return, else RigError."""
    deadline, problem = time.monotonic() + RETURN, "lost"
    while target.login is not None and time.monotonic() < deadline:
        machines = Machines()
        try:
            return do(machines.host(target))
        except (OffloadError, OSError) as exc:
            problem = str(exc).partition("\n")[0]
            time.sleep(1)
        finally:
            machines.close()
    raise RigError(problem)
