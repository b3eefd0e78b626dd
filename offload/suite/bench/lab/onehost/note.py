"""What was there before this host became a bench? On disk, next to the journal of `restore`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from offload.errors import ConfigError
from offload.suite.bench.lab.model import ONE_HOST, ONE_WIRE
from offload.suite.bench.lab.onehost.port import Found
from offload.switch.journal import Journal, durable

NAME = "one-host.json"


@dataclass(frozen=True)
class Before:
    """The ports as they were: DUT's, peer's, two of the wire or none; `added`: our addresses of the DUT."""

    boot: str
    netns: str
    ports: tuple[Found, ...]
    added: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Their interfaces."""
        return tuple(port.dev for port in self.ports)

    @property
    def moved(self) -> Mapping[str, str]:
        """Which of them goes into which namespace: all but the DUT's."""
        return dict(zip(self.names[1:], (ONE_HOST, ONE_WIRE, ONE_WIRE), strict=False))

    @property
    def spaces(self) -> tuple[str, ...]:
        """The namespaces of this bench."""
        return tuple(dict.fromkeys(self.moved.values()))


def write(journal: Journal, before: Before) -> None:
    """Put it on disk; RigError if that fails."""
    durable(journal.place / NAME, json.dumps({"schema": 1, **asdict(before)}, indent=1) + "\n")


def forget(journal: Journal) -> None:
    """Nothing is to be put back any more."""
    (journal.place / NAME).unlink(missing_ok=True)


def read(journal: Journal) -> Before | None:
    """Return what is on disk; None if nothing is. ConfigError if it is damaged."""
    file = journal.place / NAME
    try:
        row = json.loads(file.read_text())
        if row["schema"] != 1 or len(row["ports"]) not in (2, 4):
            raise ValueError("another schema")
        ports = tuple(_port(port) for port in row["ports"])
        return Before(str(row["boot"]), str(row["netns"]), ports, tuple(map(str, row["added"])))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, TypeError, KeyError, AttributeError) as exc:
        hint = f"look at it, then move it away; `ip -n {ONE_HOST} link` shows the peer's port"
        raise ConfigError(f"{file}: damaged: {' '.join(str(exc).split())[:120]}", hint) from None


def _port(row: dict[str, Any]) -> Found:
    """A port of the journal: texts become parts of commands, so lists of texts they must be."""
    lists = {name: tuple(tuple(map(str, words)) for words in row[name]) for name in ("addresses", "routes")}
    sysctls = {str(name): str(value) for name, value in row["sysctls"].items()}
    if any(".." in Path(name).parts or name.startswith("/") for name in sysctls):
        raise ValueError("a sysctl elsewhere")
    return Found(str(row["dev"]), row["up"] is True, sysctls=sysctls, **lists)
