"""`lab init` and `lab import`: from the names of hosts to a lab file that has been looked at on the spot."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from offload.card.nic import look, match
from offload.card.profile import load_all
from offload.cmd import run
from offload.errors import ConfigError, RigError
from offload.host.base import Host
from offload.host.ssh import Login
from offload.paths import expanded
from offload.suite.bench.lab.bench import Machines, apart
from offload.suite.bench.lab.cables import heard, pairs, ports
from offload.suite.bench.lab.file import ADDRESS, NETNS, USER, key_problem
from offload.suite.bench.lab.model import LabFile, Port, Target

Say = Callable[[str], None]
PLACE = re.compile(
    rf"(?:(?P<user>{USER})@)?(?P<host>{ADDRESS}?)(?::(?P<port>\d{{1,5}}))?(?:/(?P<netns>{NETNS}))?"
)
PROPOSED = {"dut": ("192.0.2.1", "fd00:2::1"), "peer": ("192.0.2.2", "fd00:2::2")}  # RFC 5737, RFC 4193


def place(role: str, text: str, keyfile: str = "") -> Target:
    """[USER@]HOST[:PORT][/NETNS], or `here[/NETNS]` for this machine. ConfigError for anything else."""
    found = PLACE.fullmatch(text)
    if not found or (found["port"] and not 1 <= int(found["port"]) <= 65535):
        raise ConfigError(f"--{role} {text!r}", "[USER@]HOST[:PORT][/NETNS], or here[/NETNS]")
    netns = found["netns"] or ""
    if found["host"] == "here" and not found["user"]:
        return Target(role, None, netns)
    path = str(expanded(keyfile).absolute()) if keyfile else ""
    if path and not Path(path).is_file():
        raise ConfigError(f"{keyfile}: no such key file", "ssh-keygen makes one")
    login = Login(role, found["host"], (), found["user"] or "root", int(found["port"] or 22), path)
    return Target(role, login, netns)


def with_keys(target: Target, say: Say) -> Target:
    """The target with the host keys that it shows now; it prints their fingerprints, for comparison."""
    if target.login is None or target.login.hostkeys:
        return target
    login = target.login
    argv = ["ssh-keyscan", "-T", "10", "-t", "ed25519,ecdsa,rsa", "-p", str(login.port), "--", login.address]
    _, out, err, _ = run(argv, timeout=60)
    rows = [line.split()[1:3] for line in out.decode("utf-8", "replace").splitlines() if line[:1] != "#"]
    keys = tuple(" ".join(row) for row in rows if not key_problem(row))
    if not keys:
        lines = [" ".join(line.split()) for line in err.decode("utf-8", "replace").splitlines()]
        why = "; ".join(dict.fromkeys(lines))[-200:] or "it presents no host key"
        raise RigError(f"cannot reach {login.shown}: {why}", "is it running, and is the address right?")
    for key in keys:
        _, shown, _, _ = run(["ssh-keygen", "-lf", "-"], input=key.encode() + b"\n")
        say(f"{target.role}: {' '.join(shown.decode('utf-8', 'replace').split()[1:2])} {key.split()[0]}")
    return replace(target, login=replace(login, hostkeys=keys))


def survey(dut: Target, peer: Target, say: Say) -> tuple[LabFile, tuple[str, ...]]:
    """Go there, find the cable, and return the bench with what the person should know."""
    with closing(Machines()) as machines:
        hosts = [machines.host(target) for target in (dut, peer)]
        apart(hosts[0], hosts[1])
        found = [ports(host) for host in hosts]
        for target, seen in zip((dut, peer), found, strict=True):
            for dev, why in seen.left_out.items():
                say(f"{target.role}: {dev} is skipped: {why}")
            if not seen.usable:
                raise RigError(f"{target.place} has no usable port", "ip link set DEV up, on both ends")
        cabled = pairs(heard(hosts[0], hosts[1], found[0].usable, found[1].usable))
        rated = sorted(cabled, key=lambda pair: not _profile(hosts[0], pair[0]))
        ends = [_end(h, t, dev) for h, t, dev in zip(hosts, (dut, peer), rated[0], strict=True)]
    notes = [note for _, more in ends for note in more]
    notes += [f"also cabled: {a} of the DUT to {b} of the peer" for a, b in rated[1:]]
    return LabFile("lab.yaml", Path("lab.yaml"), ends[0][0], ends[1][0]), tuple(notes)


def _profile(host: Host, dev: str) -> str:
    """The id of the profile that fits a port, or ''."""
    found = match(look(host, dev), load_all())
    return found.plays or (found.profile.id if found.profile else "")


def _end(host: Host, target: Target, dev: str) -> tuple[Target, list[str]]:
    """One end with its port, and what is still to be done there."""
    notes = []
    rows = json.loads(host.run(["ip", "-j", "address", "show", "dev", dev]).text)
    have = [
        a.get("local", "") for row in rows for a in row.get("addr_info", []) if a.get("scope") == "global"
    ]
    v4, v6 = ([a for a in have if ipaddress.ip_address(a).version == version] for version in (4, 6))
    proposed = PROPOSED[target.role]
    for addresses, own, length in ((v4, proposed[0], 24), (v6, proposed[1], 64)):
        if not addresses:
            notes.append(f"to do on the {target.role}: ip address add {own}/{length} dev {dev}")
    port, more = described(host, target.role, dev, (v4 or [proposed[0]])[0], (v6 or [proposed[1]])[0])
    return replace(target, port=port), notes + more


def described(host: Host, role: str, dev: str, v4: str, v6: str) -> tuple[Port, list[str]]:
    """A port with these addresses, and a note if it is the DUT's and no profile fits it."""
    nic, notes = look(host, dev), []
    profile = _profile(host, dev) if role == "dut" else ""
    if role == "dut" and not profile:
        drafts = "`ktls-offload probe` drafts one, and `profile:` may name its file (add-a-nic.md)"
        notes.append(f"no profile fits {dev} (driver {nic.driver or 'none'}): {drafts}")
    pci = nic.bus if re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", nic.bus) else ""
    return Port(dev, v4, v6, profile, pci), notes
