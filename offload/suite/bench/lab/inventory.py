"""What does an Ansible inventory (INI or YAML) say of a bench? Groups dut, peer, wire with one host each."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from offload.errors import ConfigError
from offload.host.ssh import Login
from offload.suite.bench.lab.file import ADDRESS, IFNAME, NETNS, PCI, ROLES, USER
from offload.suite.bench.lab.model import Port, Target
from offload.suite.bench.lab.text import bounded
from offload.yamlfile import quoted

MAX_BYTES = 256 * 1024
MOST_GROUPS = 1000
PORT = "a TCP port, 1 to 65535"
VARIABLES = {  # what each may look like, if it is there; the bench itself says whether it is so
    "offload_ifname": (f"({IFNAME})?", "an interface"),
    "offload_v4": (r"([0-9.]+(/\d{1,2})?)?", "an IPv4 address"),
    "offload_v6": (r"([0-9a-fA-F:.]+(/\d{1,3})?)?", "an IPv6 address"),
    "offload_profile": (r"([a-z0-9][a-z0-9-]*|.*\.yaml)?", "a profile's id, or its file ID.yaml"),
    "offload_pci": (f"({PCI})?", "a PCI address such as 0000:3b:00.0"),
    "offload_netns": (f"({NETNS})?", "the name of a network namespace"),
}


@dataclass
class Group:
    """One group: its hosts with their variables, variables for all of them, and its child groups."""

    hosts: dict[str, dict[str, str]] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    children: list[str] = field(default_factory=list)


def read(path: Path) -> dict[str, Target]:
    """The roles that an inventory names; their host keys have still to be asked for.

    ConfigError `file: ...` if a role is missing, has two hosts, or one of its values makes no sense.
    """
    text = bounded(path, MAX_BYTES, "inventory for a bench")
    groups = _yaml(text, path) if path.suffix in (".yaml", ".yml") else _ini(text, path)
    found: dict[str, Target] = {}
    for role in ROLES:
        hosts = _members(groups, role, ())
        if len(hosts) > 1:
            raise ConfigError(f"{path}: group {role} has {len(hosts)} hosts ({', '.join(hosts)}), wanted one")
        if not hosts and role != "wire":
            raise ConfigError(
                f"{path}: no host in group {role}", "a bench has one host in each of dut and peer"
            )
        for name, values in hosts.items():
            found[role] = _target(role, name, values, path)
    return found


def _ini(text: str, path: Path) -> dict[str, Group]:
    """Ansible's INI: `[group]` with hosts, `[group:vars]`, `[group:children]`; a host may carry variables."""
    groups, name, kind = {"ungrouped": Group()}, "ungrouped", ""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if not words or words[0] in "#;":
            continue
        if head := re.fullmatch(r"\[([A-Za-z0-9_.-]+)(?::(vars|children))?\]\s*(?:[#;].*)?", words):
            name, kind = head[1], head[2] or ""
            groups.setdefault(name, Group())
            continue
        try:
            _ini_line(groups[name], kind, words)
        except ValueError as exc:
            raise ConfigError(f"{path}:{number}: {quoted(words)}: {exc}") from None
    return groups


def _ini_line(group: Group, kind: str, words: str) -> None:
    """One line below a head. ValueError in words if it is none."""
    if kind == "vars":
        key, equals, value = words.partition("=")
        if not equals:
            raise ValueError("wanted NAME=VALUE")
        group.variables[key.strip()] = value.strip().strip("'\"")
        return
    if words.startswith("["):
        raise ValueError("wanted [GROUP], [GROUP:vars] or [GROUP:children]")
    first, *rest = shlex.split(words, comments=True)
    if kind == "children":
        group.children.append(first)
        return
    pairs = [word.partition("=") for word in rest]
    if not all(equals for _, equals, _ in pairs):
        raise ValueError("wanted HOST NAME=VALUE ...")
    if "[" in first:
        raise ValueError("a range of hosts is not a single host")
    name, colon, port = first.rpartition(":")
    values = {key: value for key, _, value in pairs}
    if colon and ":" not in name:  # HOST:PORT; an IPv6 address has more colons
        first, values = name, {"ansible_port": port, **values}
    group.hosts[first] = values


def _yaml(text: str, path: Path) -> dict[str, Group]:
    """Ansible's YAML: groups with `hosts`, `vars` and `children`."""
    try:
        root = yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise ConfigError(f"{path}: not YAML: {' '.join(str(exc).split())[:200]}") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deep for an inventory") from None
    groups: dict[str, Group] = {}
    _yaml_groups(root, groups, path, [])
    return groups


def _yaml_groups(found: Any, groups: dict[str, Group], path: Path, seen: list[str], depth: int = 0) -> None:
    """Take in the groups of one level and those below; `seen`: each as often as it is met, by aliases too."""
    if depth > 8:
        raise ConfigError(f"{path}: groups nested deeper than 8")
    for name, body in _mapping(found, "groups", path):
        if len(seen) > MOST_GROUPS:
            raise ConfigError(f"{path}: more than {MOST_GROUPS} groups: this is not an inventory for a bench")
        seen.append(name)
        group = groups.setdefault(name, Group())
        for key, value in _mapping(body, name, path):
            if key == "hosts":
                group.hosts |= {h: _texts(v, h, path) for h, v in _mapping(value, f"{name}.hosts", path)}
            elif key == "vars":
                group.variables |= _texts(value, f"{name}.vars", path)
            elif key == "children":
                group.children += [child for child, _ in _mapping(value, f"{name}.children", path)]
                _yaml_groups(value, groups, path, seen, depth + 1)


def _mapping(found: Any, where: str, path: Path) -> Iterable[tuple[str, Any]]:
    if found is None:
        return ()
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: {where}: wanted a mapping")
    return [(str(key), value) for key, value in found.items()]


def _texts(found: Any, where: str, path: Path) -> dict[str, str]:
    """Variables as text; lists and mappings are none of ours."""
    return {k: str(v) for k, v in _mapping(found, where, path) if isinstance(v, str | int | bool)}


def _members(groups: dict[str, Group], name: str, above: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """The hosts of a group and of its children, each with its variables; the nearer one wins."""
    group = groups.get(name)
    if group is None or name in above:
        return {}
    found: dict[str, dict[str, str]] = {}
    for child in group.children:
        found |= _members(groups, child, (*above, name))
    found |= {host: {**found.get(host, {}), **values} for host, values in group.hosts.items()}
    common = {**groups.get("all", Group()).variables, **group.variables}
    own = {h: v for g in groups.values() for h, v in g.hosts.items() if v}
    return {host: {**common, **own.get(host, {}), **values} for host, values in found.items()}


def _target(role: str, name: str, values: dict[str, str], path: Path) -> Target:
    """One host. Secrets in an inventory are refused, so that nobody thinks that they are used."""
    where = f"{path}: {name}"
    for key in ("ansible_password", "ansible_ssh_pass", "ansible_become_password", "ansible_become_pass"):
        if key in values:
            raise ConfigError(
                f"{where}: {key}: passwords are not accepted", "use a key file, or the SSH agent"
            )

    def get(key: str, default: str, pattern: str, wanted: str) -> str:
        value = values.get(key, default)
        if not re.fullmatch(pattern, value):
            raise ConfigError(f"{where}: {key}: {quoted(value)}, wanted {wanted}")
        return value

    address = get("ansible_host", name, ADDRESS, "a host name or an address")
    user = get("ansible_user", "root", USER, "a user name")
    port = int(get("ansible_port", "22", r"\d{1,5}", PORT))
    if not 1 <= port <= 65535:
        raise ConfigError(f"{where}: ansible_port: {port}, wanted {PORT}")
    sudo = values.get("ansible_become", "").lower() in ("true", "yes", "1", "on")
    keyfile = values.get("ansible_ssh_private_key_file", "")
    known = {key.removeprefix("offload_"): get(key, "", *wanted) for key, wanted in VARIABLES.items()}
    login = None
    if values.get("ansible_connection") != "local":
        login = Login(role, address, (), user, port, keyfile, sudo, str(path))
    nic = Port(known["ifname"], known["v4"], known["v6"], known["profile"], known["pci"])
    ports = tuple(values.get("offload_wire", "").replace(",", " ").split()) if role == "wire" else ()
    return Target(role, login, known["netns"], None if role == "wire" else nic, ports)
