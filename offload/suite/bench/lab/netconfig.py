"""What does a net.config, or the environment of upstream's selftests, say of a bench?"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from pathlib import Path

from offload.card.profile import find
from offload.errors import ConfigError
from offload.host.ssh import Login
from offload.suite.bench.lab.file import ADDRESS, IFNAME, NETNS, USER, key_problem
from offload.suite.bench.lab.model import LabFile, Port, Target
from offload.suite.bench.lab.text import bounded
from offload.yamlfile import near, quoted

MAX_BYTES = 64 * 1024
# tools/testing/selftests/drivers/net/README.rst; the last three are ours
NEEDED = ("NETIF", "LOCAL_V4", "LOCAL_V6", "REMOTE_V4", "REMOTE_V6", "REMOTE_TYPE", "REMOTE_ARGS")
OURS = ("REMOTE_HOSTKEY", "REMOTE_KEYFILE", "OFFLOAD_PROFILE")
WORDS = {  # what a lab file's keys are called here; the peer's interface is the one with its address
    ("dut", "ifname"): "NETIF",
    ("dut", "v4"): "LOCAL_V4",
    ("dut", "v6"): "LOCAL_V6",
    ("peer", "ifname"): "REMOTE_V4",
    ("peer", "v4"): "REMOTE_V4",
    ("peer", "v6"): "REMOTE_V6",
    ("peer", "keyfile"): "REMOTE_KEYFILE",
}


def read(path: Path) -> dict[str, tuple[str, int]]:
    """The pairs of a net.config with their lines, as upstream reads it: no quotes, # begins a comment."""
    found: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(bounded(path, MAX_BYTES, "net.config").splitlines(), 1):
        pair = line.partition("#")[0].strip()
        name, equals, value = pair.partition("=")
        if pair and not equals:
            raise ConfigError(f"{path}:{number}: {quoted(pair)}, wanted NAME=VALUE")
        if pair:
            found[name] = (value, number)
    return found


def from_file(path: Path) -> LabFile:
    """The bench of a net.config. ConfigError `file:line: key: ...`."""
    return bench(read(path), str(path), path)


def from_environment(env: Mapping[str, str]) -> LabFile:
    """The bench of the environment. ConfigError if it names none, or half of one."""
    found = {name: (env[name], 0) for name in (*NEEDED, *OURS) if name in env}
    return bench(found, "environment", Path("environment"))


def bench(pairs: Mapping[str, tuple[str, int]], file: str, path: Path) -> LabFile:
    """DUT is this machine; the peer a namespace of it, or a host behind ssh that shows REMOTE_HOSTKEY."""
    missing = [name for name in NEEDED if not pairs.get(name, ("", 0))[0]]
    if missing:
        _misspelt(pairs, file)
        raise ConfigError(
            f"{file}: {', '.join(missing)} missing", "the suite uses IPv4 and IPv6 of both ends"
        )

    def at(name: str) -> str:
        line = pairs.get(name, ("", 0))[1]
        return f"{file}:{line}: {name}" if line else f"{file}: {name}"

    def get(name: str, pattern: str, wanted: str) -> str:
        value = pairs.get(name, ("", 0))[0]
        if not re.fullmatch(pattern, value):
            raise ConfigError(f"{at(name)}: {quoted(value)}, wanted {wanted}")
        return value

    def address(name: str, version: int) -> str:
        value = get(name, r"[0-9a-fA-F:.]{2,45}", f"an IPv{version} address")
        try:
            if ipaddress.ip_address(value).version == version:
                return str(ipaddress.ip_address(value))
        except ValueError:
            pass
        return get(name, r"(?!)", f"an IPv{version} address")

    words = {key: at(name) for key, name in WORDS.items()}
    profile = _known(get("OFFLOAD_PROFILE", r"[a-z0-9-]*", "a profile's id"), at("OFFLOAD_PROFILE"))
    dev = get("NETIF", IFNAME, "an interface")
    dut = Target("dut", None, "", Port(dev, address("LOCAL_V4", 4), address("LOCAL_V6", 6), profile))
    # upstream leaves the peer's interface to be found by its address, and so do we
    port = Port("", address("REMOTE_V4", 4), address("REMOTE_V6", 6))
    if get("REMOTE_TYPE", "ssh|netns", "ssh or netns") == "netns":
        space = get("REMOTE_ARGS", NETNS, "the name of a network namespace")
        return LabFile(file, path, dut, Target("peer", None, space, port), words=words)
    user, _, host = get("REMOTE_ARGS", rf"({USER}@)?{ADDRESS}", "[USER@]HOST").rpartition("@")
    key = get("REMOTE_HOSTKEY", r"\S+ \S+.*", "the peer's public host key: `ssh-keyscan HOST` shows it")
    if problem := key_problem(key.split()):
        get("REMOTE_HOSTKEY", r"(?!)", problem)
    keyfile = pairs.get("REMOTE_KEYFILE", ("", 0))[0]
    login = Login("peer", host, (" ".join(key.split()[:2]),), user or "root", keyfile=keyfile, source=file)
    return LabFile(file, path, dut, Target("peer", login, "", port), words=words)


def _known(profile: str, where: str) -> str:
    """The id of a profile that there is, or ''."""
    try:
        return find(profile).id if profile else ""
    except ConfigError as exc:
        raise ConfigError(f"{where}: {exc.args[0]}", exc.hint) from None


def _misspelt(pairs: Mapping[str, tuple[str, int]], file: str) -> None:
    """ConfigError for the first name that is nearly one of those that we read."""
    known = (*NEEDED, *OURS)
    for name, (_, line) in pairs.items():
        close = "" if name in known else near(name.removeprefix("export ").strip("\ufeff \t"), known)
        if close:
            raise ConfigError(f"{file}:{line}: unknown name {quoted(name)}{close}", "each line is NAME=VALUE")
