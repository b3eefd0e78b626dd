"""A real labgrid coordinator and exporter on loopback, with a place for each lab in a VM."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from offload.cmd import wait_until
from tests.lib.rig.sshd import free_port

TOOLS = Path(sys.executable).parent


def place(name: str, tags: Mapping[str, str]) -> dict[str, object]:
    """A place as the coordinator keeps it: `create`, `add-named-match` and `set-tags` in one."""
    match = {"exporter": "here", "group": name, "cls": "*", "name": None, "rename": None}
    kept = {"aliases": [], "comment": "", "created": 1.0, "changed": 1.0, "matches": [match]}
    return {**kept, "tags": dict(tags)}


def vm(lab: str) -> dict[str, object]:
    """The lab as an exporter's file has it; nothing if there is none."""
    return {"OffloadVm": {"lab": lab}} if lab else {}


@contextmanager
def coordinator(
    folder: Path,
    labs: Mapping[str, str],
    tags: Mapping[str, Mapping[str, str]],
    client: str = str(TOOLS / "labgrid-client"),
    more: Mapping[str, Mapping[str, object]] | None = None,
) -> Iterator[str]:
    """Places by name, each a lab by its name (or ''), each with tags; yields HOST:PORT. `client` is asked.

    `more`: resources that a place has besides its lab, by place and name, as an exporter's file has them.
    """
    address = f"127.0.0.1:{free_port()}"
    (folder / "exporter.yaml").write_text(
        json.dumps({n: {**vm(lab), **(more or {}).get(n, {})} for n, lab in labs.items()})
    )
    (folder / "places.yaml").write_text(json.dumps({name: place(name, tags[name]) for name in labs}))
    programs = (["labgrid-coordinator", "-l", address], ["labgrid-exporter", "-n", "here", "exporter.yaml"])
    env, started = {**os.environ, "LG_COORDINATOR": address}, list[subprocess.Popen[bytes]]()
    try:
        with (folder / "log").open("wb") as log:
            for name, *words in programs:
                argv = [str(TOOLS / name), *words]
                started.append(subprocess.Popen(argv, cwd=folder, env=env, stdout=log, stderr=log))
                wait_until(lambda: listens(address), 120, "the coordinator")  # an exporter without one ends
        wait_until(lambda: exports(client, env, labs), 120, "the exporter", every=0.3)
        yield address
    finally:
        for child in reversed(started):
            ended(child)


def listens(address: str) -> bool:
    """Say whether somebody takes connections there."""
    host, _, port = address.partition(":")
    with socket.socket() as knock:
        return knock.connect_ex((host, int(port))) == 0


def exports(client: str, env: Mapping[str, str], labs: Mapping[str, str]) -> bool:
    """Say whether the coordinator knows every resource."""
    done = subprocess.run([client, "resources"], env=dict(env), capture_output=True)
    return all(f"here/{name}/".encode() in done.stdout for name in labs)


def ended(child: subprocess.Popen[bytes]) -> None:
    """End a program that we started."""
    child.terminate()
    try:
        child.wait(60)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
