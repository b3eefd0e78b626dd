"""How is the peer verified and what is offered to it? A piece of a stunnel configuration, or one file."""

from __future__ import annotations

import hashlib
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from offload.errors import ConfigError

KEYS = (
    "sslVersion",
    "ciphers",
    "ciphersuites",
    "curves",
    "CAfile",
    "verifyChain",
    "verifyPeer",
    "checkHost",
    "checkIP",
    "sni",
    "TIMEOUTconnect",
    "client",
)
WORDS = {
    "sslVersion": ("TLSv1.2", "TLSv1.3"),
    "verifyChain": ("yes", "no"),
    "verifyPeer": ("yes", "no"),
    "client": ("yes",),
}
NAMES = ("checkHost", "checkIP")
DEFAULTS = {
    "sslVersion": "TLSv1.2",
    "ciphers": "ECDHE-RSA-AES256-GCM-SHA384",
    "ciphersuites": "TLS_AES_256_GCM_SHA384",
    "TIMEOUTconnect": "10",
}
MOST = 16384  # bytes of a policy


@dataclass(frozen=True)
class Target:
    """Where to; `name`: whom the certificate must name and the SNI asks for, if that is not the host.

    ConfigError for a host or port that cannot be one.
    """

    host: str
    port: int
    name: str = ""

    def __post_init__(self) -> None:
        for word in (self.host, self.name or "-"):
            if not word.isascii() or not word.isprintable() or not 0 < len(word) <= 253 or " " in word:
                raise ConfigError(f"{word!r} is not a host name", "ASCII, up to 253 characters, no blank")
            if word.startswith("--"):
                raise ConfigError(f"{word!r} is not a host name")
        if not 0 < self.port < 65536:
            raise ConfigError(f"port {self.port}", "1 to 65535")

    def __str__(self) -> str:
        return f"{self.host} port {self.port}"


@dataclass(frozen=True)
class Policy:
    """A file of stunnel's keys, or a CA bundle, or one pinned certificate; `timeout` in seconds per step.

    Exactly one of the three.
    """

    file: str = ""
    ca: str = ""
    pin: str = ""
    timeout: float | None = None

    def options(self) -> list[str]:
        """Return the same for ktls-handoff."""
        named = {"--policy": self.file, "--ca": self.ca, "--pin": self.pin}
        given = [word for name, value in named.items() if value for word in (name, value)]
        return given + ([] if self.timeout is None else ["--timeout", f"{self.timeout:g}"])

    def values(self) -> dict[str, str]:
        """Return key -> value, defaults included. ConfigError, by line, for what ktls-handoff refuses too."""
        if (bool(self.file), bool(self.ca), bool(self.pin)).count(True) != 1:
            raise ConfigError("give exactly one of --policy, --ca, --pin", "docs/use/connect.md")
        given = _of_file(self.file) if self.file else {"CAfile": self.ca or self.pin}
        if self.ca or self.pin:
            given["verifyChain" if self.ca else "verifyPeer"] = "yes"
        return DEFAULTS | given

    def digest(self) -> str:
        """Return what a resident must have for its own policy; ConfigError if CAfile cannot be read.

        SHA-256 over lines of KEY=VALUE, as in ktls-handoff.8: what is offered, and who is trusted.
        """
        values = self.values()
        keys = {"peer": "verifyPeer", "chain": "verifyChain"}
        verify = next((name for name, key in keys.items() if values.get(key) == "yes"), "no")
        said = {
            "sslVersion": values["sslVersion"],
            "ciphers": values["ciphers" if values["sslVersion"] == "TLSv1.2" else "ciphersuites"],
            "curves": values.get("curves"),
            "verify": verify,
            "name": values.get("checkHost") or values.get("checkIP"),
            "sni": values.get("sni"),
            "CAfile": None if verify == "no" else _sha256(values["CAfile"]),
        }
        text = "".join(f"{key}={value}\n" for key, value in said.items() if value is not None)
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()

    def seconds(self) -> float:
        """Return how long one step may take."""
        return self.timeout if self.timeout is not None else float(self.values()["TIMEOUTconnect"])


def _sha256(path: str) -> str:
    """The digest of a file of certificates."""
    try:
        if Path(path).stat() and Path(path).is_file():
            return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as exc:
        raise ConfigError(f"CAfile {path}: {exc.strerror}") from None
    raise ConfigError(f"CAfile {path}: not a regular file")


def _of_file(path: str) -> dict[str, str]:
    """The keys of a policy file."""
    try:
        raw = Path(path).read_bytes()
    except OSError as exc:
        raise ConfigError(f"policy {path}: {exc.strerror}") from None
    if len(raw) > MOST or b"\0" in raw:
        raise ConfigError(f"policy {path}: longer than {MOST} bytes, or not text")
    found: dict[str, str] = {}
    for number, line in enumerate(raw.decode("utf-8", "surrogateescape").split("\n"), 1):
        words = line.strip(" \t\r")
        if words and words[0] not in ";#":
            key, value = _pair(words, f"{path}:{number}")
            if key in NAMES and found.keys() & set(NAMES):  # stunnel would take either
                raise ConfigError(f"{path}:{number}: more than one name to check: {value!r}")
            found[key] = value
    return _judged(found, path)


def _pair(line: str, where: str) -> tuple[str, str]:
    """KEY = VALUE of one line."""
    key, equals, value = (part.strip(" \t\r") for part in line.partition("="))
    if line[0] == "[" or not equals or any(c < " " and c != "\t" or c == "\x7f" for c in line):
        raise ConfigError(f"{where}: KEY = VALUE expected, without sections: {line!r}")
    if key not in KEYS:
        raise ConfigError(f"{where}: unknown key {key!r}", f"keys of a policy: {' '.join(KEYS)}")
    if not value and key != "sni":
        raise ConfigError(f"{where}: {key} without a value")
    if key in WORDS and value not in WORDS[key]:
        raise ConfigError(f"{where}: {key} must be {' or '.join(WORDS[key])}, not {value!r}")
    digits = value.isascii() and value.isdigit()
    if key == "TIMEOUTconnect" and not (digits and 0 < int(value) <= 3600):
        raise ConfigError(f"{where}: {key} must be 1 to 3600 seconds, not {value!r}")
    return key, value


def _judged(found: dict[str, str], path: str) -> dict[str, str]:
    """The keys together: silence is no way to verify."""
    chain, peer = found.get("verifyChain"), found.get("verifyPeer")
    if chain == peer == "yes":
        raise ConfigError(
            f"{path}: verifyChain and verifyPeer: use only one of them", "verifyPeer pins a certificate"
        )
    if "yes" not in (chain, peer) and chain != "no":
        raise ConfigError(
            f"{path}: neither verifyChain nor verifyPeer is set", "set one of them to `yes`, and set CAfile"
        )
    if "yes" in (chain, peer) and "CAfile" not in found:
        raise ConfigError(f"{path}: verification needs CAfile")
    if chain != "yes" and {"checkHost", "checkIP"} & set(found):
        raise ConfigError(f"{path}: only verifyChain checks a name")
    return found


def is_ip(host: str) -> bool:
    """Say whether it is an address and no name."""
    try:
        return bool(ipaddress.ip_address(host))
    except ValueError:
        return False


def for_stunnel(target: Target, policy: Policy) -> str:
    """Return the configuration of a stunnel for this one connection: inetd mode, log on standard error."""
    values = policy.values() | {"client": "yes", "connect": f"{target.host}:{target.port}"}
    values["TIMEOUTconnect"] = f"{max(1, round(policy.seconds()))}"
    values.pop("ciphersuites" if values["sslVersion"] == "TLSv1.2" else "ciphers")
    said = [values.pop(key, "") for key in ("checkHost", "checkIP")]
    named = next(name for name in (target.name, *said, target.host) if name)
    values.setdefault("sni", "" if is_ip(named) else named)
    if values.get("verifyChain") == "yes":
        values["checkIP" if is_ip(named) else "checkHost"] = named
    values = {"foreground": "yes", "syslog": "no", "debug": "info"} | values
    return "".join(f"{key} = {value}\n" for key, value in values.items())
