"""How is a bench written down? As a lab file, and as net.config for upstream's selftests."""

from __future__ import annotations

import json
import shlex

from offload.errors import ConfigError
from offload.suite.bench.lab.model import LabFile, Target

HEAD = """\
# A bench of ktls-offload, in labgrid's environment format; docs/certify/the-lab.md says what each key means.
"""
KEYS = """\
# Compare the host keys below with the hosts' own (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub):
# a host that shows another key is refused.
"""
KINDS = ("net.config", "env", "lab.yaml")


def quote(text: str) -> str:
    """A scalar that every YAML reader takes as text: JSON's strings are YAML's (YAML 1.2, 1.3)."""
    return json.dumps(text)


def as_lab(lab: LabFile, notes: tuple[str, ...] = ()) -> str:
    """The lab file; `notes` are comments for the person, at its head."""
    head = HEAD + (KEYS if any(target.login for target in lab.targets) else "")
    lines = [*head.splitlines(), *(f"# {note}" for note in notes), "targets:"]
    for target in lab.targets:
        lines += [f"  {target.role}:", "    resources:", *_resources(target)]
        if target.login and target.login.keyfile:
            lines += ["    drivers:", f"      - SSHDriver: {{keyfile: {quote(target.login.keyfile)}}}"]
    return "\n".join(lines) + "\n"


def _resources(target: Target) -> list[str]:
    """Return what a role has, each value quoted."""
    lines, login, port = [], target.login, target.port
    if login:
        where = f"address: {quote(login.address)}, username: {quote(login.user)}, port: {login.port}"
        lines += [f"      NetworkService: {{{where}}}"]
    if login or target.netns:
        lines += ["      OffloadHost:"]
    if login:
        lines += ["        hostkeys:", *(f"          - {quote(key)}" for key in login.hostkeys)]
        lines += ["        sudo: on"] if login.sudo else []
    lines += [f"        netns: {quote(target.netns)}"] if target.netns else []
    if port:
        known = {name: value for name, value in vars(port).items() if value}
        lines += ["      OffloadNic:", *(f"        {name}: {quote(value)}" for name, value in known.items())]
    if target.wire:
        lines += [f"      OffloadWire: {{ports: [{', '.join(quote(name) for name in target.wire)}]}}"]
    return lines


def pairs(lab: LabFile) -> dict[str, str]:
    """Return what upstream's selftests, run on the DUT, want to know (selftests/drivers/net/README.rst).

    ConfigError if their REMOTE_ARGS cannot say how the peer is reached.
    """
    dut, peer = lab.dut.port, lab.peer.port
    assert dut is not None and peer is not None
    kind, args = _remote(lab)
    found = {"NETIF": dut.ifname, "LOCAL_V4": dut.v4, "LOCAL_V6": dut.v6}
    return found | {"REMOTE_V4": peer.v4, "REMOTE_V6": peer.v6, "REMOTE_TYPE": kind, "REMOTE_ARGS": args}


def _remote(lab: LabFile) -> tuple[str, str]:
    """How the DUT reaches the peer: a namespace of the same machine, or ssh to another one."""
    peer, where = lab.peer, f"{lab.file}:{lab.peer.line}: targets.peer"
    if same_machine(lab.dut, peer):
        if peer.netns:
            return "netns", peer.netns
        raise ConfigError(f"{where}: on the DUT's machine without a netns", "REMOTE_TYPE wants netns or ssh")
    if peer.login is None or peer.netns:
        raise ConfigError(
            f"{where}: the DUT cannot reach {peer.place} by ssh alone", "no REMOTE_TYPE for that"
        )
    if peer.login.port != 22:
        hint = "upstream's ssh knows no port: give it a Host entry in the DUT's ~/.ssh/config"
        raise ConfigError(f"{where}.resources.NetworkService.port: {peer.login.port}", hint)
    return "ssh", f"{peer.login.user}@{peer.login.address}"


def same_machine(one: Target, other: Target) -> bool:
    """Say whether two roles are played by one machine."""
    if one.login is None or other.login is None:
        return one.login is other.login
    return (one.login.address, one.login.port) == (other.login.address, other.login.port)


def export(lab: LabFile, kind: str) -> str:
    """The bench as one of KINDS. Values go out bare: upstream takes everything behind `=` as it stands."""
    if kind == "lab.yaml":
        return as_lab(lab)
    if kind == "net.config":
        return "".join(f"{name}={value}\n" for name, value in pairs(lab).items())
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in pairs(lab).items())
