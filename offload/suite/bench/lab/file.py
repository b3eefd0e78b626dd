"""What does a lab file (labgrid's environment format, one bench) say, or what is wrong with it, and where?"""

from __future__ import annotations

import base64
import binascii
import ipaddress
from pathlib import Path

import yaml

from offload.card.profile import find
from offload.errors import ConfigError
from offload.host.ssh import Login
from offload.paths import expanded
from offload.suite.bench.lab.model import LabFile, Port, Target
from offload.yamlfile import Item, quoted, read_yaml

TOP = ("targets", "options", "imports")
ROLES = ("dut", "peer", "wire")
TARGET = ("resources", "features", "drivers")
# labgrid's own resource, and ours: a class that labgrid does not know is passed through by its exporter
RESOURCES = ("NetworkService", "OffloadHost", "OffloadNic", "OffloadWire")
KEYTYPES = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")
IFNAME = r"[^\s/:]{1,15}"  # dev_valid_name(), net/core/dev.c
ADDRESS = r"[A-Za-z0-9][A-Za-z0-9_.:%-]{0,252}"  # never begins as an option of ssh does
USER = r"[a-z_][a-z0-9_-]{0,31}"
NETNS = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
PCI = r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"


def load(path: Path) -> LabFile:
    """The bench that a lab file describes. ConfigError `file:line: key: ...`, every problem at once."""
    root = read_yaml(path, str(path), "lab file")
    targets = root.fields(TOP, ("targets",)).get("targets")
    roles = targets.fields(ROLES, ("dut", "peer"), what="target") if targets else {}
    found = {role: _target(item, role, path) for role, item in roles.items()}
    root.log.check()
    return LabFile(str(path), path, found["dut"], found["peer"], found.get("wire"))


def _target(item: Item, role: str, path: Path) -> Target:
    fields = item.fields(TARGET, ("resources",))
    keyfile = _keyfile(fields["drivers"], path) if "drivers" in fields else ""
    wanted = ("OffloadWire",) if role == "wire" else ("OffloadNic",)
    found = fields["resources"].fields(RESOURCES, wanted, what="resource") if "resources" in fields else {}
    if role == "wire" and "OffloadNic" in found:
        found["OffloadNic"].bad("the wire has no port under test: its two ports are in OffloadWire")
    service, host = found.get("NetworkService"), found.get("OffloadHost")
    more = host.fields(("hostkeys", "netns", "sudo"), what="key") if host else {}
    login = _login(service, more, role, keyfile, path) if service else None
    if login is None and "hostkeys" in more:
        more["hostkeys"].bad("without a NetworkService the target is this machine, and has no host key")
    return Target(
        role,
        login,
        more["netns"].text("the name of a network namespace", NETNS) if "netns" in more else "",
        _port(found["OffloadNic"], role, path) if role != "wire" and "OffloadNic" in found else None,
        _wire(found["OffloadWire"]) if "OffloadWire" in found else (),
        item.line,
    )


def _login(service: Item, more: dict[str, Item], role: str, keyfile: str, path: Path) -> Login | None:
    """How the host is reached; its key must be there."""
    fields = service.fields(("address", "username", "port", "password"), ("address",))
    if "password" in fields:
        fields["password"].bad("passwords are not accepted: use a key file in SSHDriver, or the SSH agent")
    keys = [_hostkey(k) for k in _each(more["hostkeys"])] if "hostkeys" in more else []
    if not keys:
        where = more.get("hostkeys", service)
        where.bad(f"no host key: OffloadHost wants hostkeys (`ktls-offload lab init` writes them) for {role}")
    return Login(
        role,
        fields["address"].text("a host name or an address", ADDRESS) if "address" in fields else "",
        tuple(keys),
        fields["username"].text("a user name", USER) if "username" in fields else "root",
        _tcp_port(fields["port"]) if "port" in fields else 22,
        keyfile,
        more["sudo"].flag() if "sudo" in more else False,
        str(path),
    )


def _each(item: Item) -> list[Item]:
    """The entries of a list, or of a text with commas: labgrid's exporter passes no lists on."""
    node = item.node
    if not isinstance(node, yaml.ScalarNode) or not node.tag.endswith(":str"):
        return item.items()
    parts = [
        yaml.ScalarNode(node.tag, part, node.start_mark, node.end_mark) for part in node.value.split(",")
    ]
    return [Item(part, f"{item.key}[{at}]", item.log) for at, part in enumerate(parts)]


def _tcp_port(item: Item) -> int:
    text = item.text("a TCP port, 1 to 65535", r"\d{1,5}")
    if text and not 1 <= int(text) <= 65535:
        item.bad(f"{text}, wanted a TCP port, 1 to 65535")
    return int(text or 22)


def _hostkey(item: Item) -> str:
    """A public key as in /etc/ssh/ssh_host_*.pub: its type and base64; a comment is dropped."""
    words = item.text("a public host key, as in /etc/ssh/ssh_host_ed25519_key.pub").split()
    problem = key_problem(words)
    if words and problem:
        item.bad(f"{quoted(' '.join(words))}: {problem}")
    return " ".join(words[:2])


def key_problem(words: list[str]) -> str:
    """Why this is no public key, or ''. Its base64 begins with the type once more (RFC 4253, 6.6)."""
    if len(words) < 2 or words[0] not in KEYTYPES:
        return f"wanted one of {', '.join(KEYTYPES)} and its base64"
    try:
        raw = base64.b64decode(words[1], validate=True)
    except (binascii.Error, ValueError):
        return "the key is not base64: was it cut off?"
    kind = words[0].encode()
    return "" if raw[4 : 4 + len(kind)] == kind and len(raw) > 40 else f"the base64 is not of type {words[0]}"


def _keyfile(drivers: Item, path: Path) -> str:
    """The key file of labgrid's SSHDriver, relative to the lab file; what else stands there is labgrid's."""
    listed = isinstance(drivers.node, yaml.SequenceNode)
    for driver in drivers.items() if listed else [drivers]:
        for item in _named(driver, "SSHDriver"):
            for found in _named(item, "keyfile"):
                text = found.text("a file's path")
                return _relative(found, path, text) if text else ""
    return ""


def _relative(item: Item, path: Path, text: str) -> str:
    """A file's path, relative to the lab file; nothing, and a note, if it begins with no home folder."""
    try:
        return str(path.parent.joinpath(expanded(text)).absolute())
    except ConfigError as exc:
        item.bad(str(exc.args[0]))
        return ""


def _named(item: Item, name: str) -> list[Item]:
    """The entry of that name, if the item is a mapping that has one."""
    rows = item.node.value if isinstance(item.node, yaml.MappingNode) else ()
    return [Item(value, f"{item.key}.{name}", item.log) for key, value in rows if key.value == name]


def _port(item: Item, role: str, path: Path) -> Port:
    """The interface under test."""
    need = ("ifname", "v4", "v6", *(("profile",) if role == "dut" else ()))
    fields = item.fields(("ifname", "pci", "profile", "v4", "v6", "link"), need)
    return Port(
        fields["ifname"].text("an interface", IFNAME) if "ifname" in fields else "",
        _address(fields["v4"], 4) if "v4" in fields else "",
        _address(fields["v6"], 6) if "v6" in fields else "",
        _profile(fields["profile"], path) if "profile" in fields else "",
        fields["pci"].text("a PCI address such as 0000:3b:00.0", PCI) if "pci" in fields else "",
    )


def _profile(item: Item, path: Path) -> str:
    """The id of a profile that there is, or the file of one: ID.yaml, relative to the lab file."""
    text = item.text("a profile's id, or its file ID.yaml", r"[a-z0-9][a-z0-9-]*|.*\.yaml")
    named = _relative(item, path, text) if text.endswith(".yaml") else text
    try:
        return named if named and find(named) else ""
    except ConfigError as exc:
        item.bad(str(exc.args[0]))
        return ""


def _address(item: Item, version: int) -> str:
    """An IP address; a prefix length may stand behind it and is not kept."""
    text = item.text(f"an IPv{version} address")
    try:
        found = ipaddress.ip_interface(text)
        if text and found.version == version:
            return str(found.ip)
    except ValueError:
        pass
    if text:
        item.bad(f"{quoted(text)}, wanted an IPv{version} address")
    return ""


def _wire(item: Item) -> tuple[str, ...]:
    """The two ports of a wire box."""
    ports = item.fields(("ports",), ("ports",)).get("ports")
    names = tuple(p.text("an interface", IFNAME) for p in _each(ports)) if ports else ()
    if ports and len(set(names)) != 2:
        ports.bad(f"{len(set(names))} interfaces, wanted two: towards the DUT, towards the peer")
    return names
