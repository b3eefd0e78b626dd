"""Benches of a lab that labgrid keeps: found by tag, reserved, acquired, looked into, released.

Speaks through `labgrid-client` (labgrid 26), the interface that its people use: no labgrid is imported here.
The coordinator has no authentication: any client that reaches its port may take every bench (labgrid.md).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from offload.cmd import run
from offload.errors import ConfigError, OffloadError, RigError
from offload.paths import PACKAGE

DEFAULT = "127.0.0.1:20408"  # labgrid's own
CLASSES = PACKAGE / "suite/bench/lab/labgrid_ext.py"  # by its path: the client may be of another environment
QUICK, WAIT = 60.0, 24 * 3600.0  # seconds: an answer of the coordinator; a bench that others hold
SWITCH = re.compile("Power|PDUDaemon")  # labgrid's classes of power switches; a GPIO may be anything
CYCLE = 180.0  # seconds: a switch waits between off and on
SERVER = re.compile(r"(?:\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9][A-Za-z0-9._-]{0,252})(?::(\d{1,5}))?")
WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}")
TOKEN = re.compile(r"^  token: ([A-Z0-9]{4,32})$", re.M)
MOST = 1 << 20  # bytes of an answer


@dataclass(frozen=True)
class Place:
    """A bench as the coordinator knows it; `taken`: by whom, or ''."""

    name: str
    tags: Mapping[str, str]
    taken: str


class Grid:
    """One coordinator, by its client program."""

    def __init__(self, coordinator: str = "", program: str = "") -> None:
        """`coordinator` as HOST:PORT ($LG_COORDINATOR, or labgrid's own). ConfigError without labgrid."""
        self.coordinator = coordinator or os.environ.get("LG_COORDINATOR", "") or DEFAULT
        if not (found := SERVER.fullmatch(self.coordinator)) or int(found[1] or 1) > 65535:
            raise ConfigError(f"no coordinator {printable(self.coordinator)!r}", "HOST:PORT of labgrid's")
        local = Path(sys.executable).with_name("labgrid-client")  # that of our own environment first
        self._program = program or (str(local) if local.exists() else shutil.which("labgrid-client") or "")
        if not self._program:
            raise ConfigError("labgrid-client is not installed", "pip install 'ktls-offload[lab]'")

    def _ask(self, *words: str, token: str = "", timeout: float = QUICK) -> str:
        """Run the client; RigError with its own words if it fails."""
        env = {"LG_COORDINATOR": self.coordinator, "LG_TOKEN": token, "LG_ENV": ""}
        rc, out, err, _ = run([self._program, *words], env=env, timeout=timeout)
        if rc != 0:
            said = (err or out).decode("utf-8", "replace").strip()
            if (
                "Traceback (most recent" in said
            ):  # of labgrid's, and of use to its makers; the last line says why
                said = said.splitlines()[-1]
            said = " ".join(said.split())
            raise RigError(
                f"labgrid at {self.coordinator}: {printable(said)[-300:] or f'exit code {rc}'}",
                "is labgrid-coordinator running, and is --coordinator right?",
            )
        return out[:MOST].decode("utf-8", "replace")

    def places(self) -> list[Place]:
        """Every bench, by name."""
        return list(parsed(self._ask("--verbose", "places")))

    def matching(self, tags: Mapping[str, str]) -> list[Place]:
        """Benches that have all these tags. ConfigError if there are none."""
        every = self.places()
        found = [place for place in every if tags.items() <= {**place.tags, "name": place.name}.items()]
        if not found:
            wanted = " ".join(f"{key}={value}" for key, value in tags.items())
            known = "; ".join(f"{p.name}: {words(p.tags)}" for p in every) or "none"
            raise ConfigError(f"no bench with {wanted}", f"benches at {self.coordinator}: {known}")
        return found

    @contextmanager
    def held(self, name: str, wait: float = WAIT) -> Iterator[dict[str, Any]]:
        """Reserve a bench, wait for it, acquire it; yields its resources, and gives it back whatever happens.

        RigError if it is not free after `wait` seconds, or the coordinator goes away.
        """
        shown = self._ask("reserve", f"name={name}")
        found = TOKEN.search(shown)
        if not found:
            raise RigError(f"labgrid at {self.coordinator}: no token in {printable(shown)[:80]!r}")
        token = found[1]
        try:
            if "\n  state: allocated\n" not in shown:
                self._ask("wait", token, timeout=wait)
            self._ask("--place", f"+{token}", "acquire")
            try:
                yield resources(self._ask("--place", name, "env"), name)
            finally:
                self._ask("--place", name, "release")
        finally:
            with suppress(OffloadError):  # a token that ran out is gone already
                self._ask("cancel-reservation", token)

    def cycle(self, name: str, found: Mapping[str, Any]) -> str:
        """Power-cycle every switch among the resources of a held place; why one was not, or ''."""
        switches = [label for kind, _, label in (key.partition(":") for key in found) if SWITCH.search(kind)]
        try:
            for label in switches:
                self._switch(name, label)
        except OffloadError as exc:
            return str(exc).partition("\n")[0]
        return "" if switches else "the place has no power switch"

    def _switch(self, name: str, label: str) -> None:
        """Cycle one. The client makes objects of all resources: an option names our classes."""
        with tempfile.NamedTemporaryFile("w", prefix="ktls-offload-", suffix=".yaml") as config:
            json.dump({"imports": [str(CLASSES)]}, config)
            config.flush()
            words = ["--config", config.name, "--place", name, "power", "cycle", "--name", label]
            self._ask(*words, timeout=CYCLE)


def parsed(text: str) -> Iterator[Place]:
    """The places in `labgrid-client --verbose places`; lines that are not known are passed over."""
    name, tags, taken = "", dict[str, str](), ""
    for line in [*text.splitlines(), "Place ''"]:
        if line.startswith("Place '"):
            if WORD.fullmatch(name):
                yield Place(name, tags, taken)
            name, tags, taken = line[7:].rstrip(":").rstrip("'"), {}, ""
        elif line.startswith("  tags: "):
            tags = dict(pair.strip().partition("=")[::2] for pair in line[8:].split(","))
        elif line.startswith("  acquired: "):
            taken = line[12:].strip().removesuffix("None")


def resources(text: str, place: str) -> dict[str, Any]:
    """Return what `labgrid-client env` prints of a place: fields by class and name, as `OffloadVm:vm`."""
    try:
        found = yaml.safe_load(text)["targets"][place]["resources"]
        each = [(kind, dict(fields)) for entry in found for kind, fields in entry.items()]
        return {f"{kind}:{fields.pop('name', '')}": fields for kind, fields in each}
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError):
        raise RigError(
            f"labgrid says of place {place} what cannot be read: {printable(text)[:120]!r}"
        ) from None


def tags(given: Sequence[str]) -> dict[str, str]:
    """KEY=VALUE words, with blanks or commas between them. ConfigError for anything else."""
    pairs = [pair for text in given for pair in re.split(r"[,\s]+", text) if pair]
    for pair in pairs:
        key, found, value = pair.partition("=")
        if not (found and WORD.fullmatch(key) and WORD.fullmatch(value)):
            raise ConfigError(f"--all-benches: {pair!r}", "KEY=VALUE, a tag of the places, as nic=cx6dx")
    if not pairs:
        raise ConfigError("--all-benches: no tag given", "KEY=VALUE, a tag of the places, as nic=cx6dx")
    return dict(pair.split("=", 1) for pair in pairs)


def words(pairs: Mapping[str, str]) -> str:
    """Tags as one types them."""
    return " ".join(f"{printable(key)}={printable(value)}" for key, value in pairs.items())


def printable(text: str) -> str:
    """Text that cannot steer a terminal."""
    return "".join(char if char.isprintable() else " " for char in text)
