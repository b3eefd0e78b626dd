"""What does the lab file of a one-host bench say, and does an existing one describe these ports?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from offload.errors import ConfigError
from offload.host.local import LocalHost
from offload.suite.bench.lab.discover import PROPOSED, described
from offload.suite.bench.lab.file import load
from offload.suite.bench.lab.model import ONE_HOST, ONE_WIRE, LabFile, Target

KEPT = "init keeps a lab file that is there: complete it, or --out FILE writes another one"


def known(path: Path, ports: Sequence[str]) -> bool:
    """Say whether a lab file of these ports is there: it outlives a boot, and `lab restore`.

    ConfigError if it is of another bench.
    """
    if not path.exists():
        return False
    try:
        lab = load(path)
    except ConfigError as exc:
        raise ConfigError(str(exc.args[0]), KEPT) from None
    ends = [(t.login, t.netns, t.port.ifname if t.port else "") for t in (lab.dut, lab.peer)]
    wire = (lab.wire.login, lab.wire.netns, *lab.wire.wire) if lab.wire else ()
    wanted = [(None, "", ports[0]), (None, ONE_HOST, ports[1])]
    if ends != wanted or wire != ((None, ONE_WIRE, *ports[2:]) if ports[2:] else ()):
        raise ConfigError(
            f"{path} already exists and describes another bench", "--out FILE writes another one"
        )
    return True


def described_here(path: Path, ports: Sequence[str]) -> tuple[LabFile, tuple[str, ...]]:
    """The bench of these ports, all but the first in their namespaces, and what the person should know."""
    notes, ends = list[str](), []
    for role, dev, netns in (("dut", ports[0], ""), ("peer", ports[1], ONE_HOST)):
        port, more = described(LocalHost(netns or None), role, dev, *PROPOSED[role])
        ends.append(Target(role, None, netns, port))
        notes += more
    wire = Target("wire", None, ONE_WIRE, None, tuple(ports[2:])) if ports[2:] else None
    return LabFile(str(path), path, ends[0], ends[1], wire), tuple(notes)
