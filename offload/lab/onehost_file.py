"""What does the lab file of a one-host bench say, and is one that is there already of these ports?"""

from __future__ import annotations

from pathlib import Path

from offload.errors import ConfigError
from offload.host.local import LocalHost
from offload.lab.discover import PROPOSED, described
from offload.lab.file import load
from offload.lab.model import ONE_HOST, LabFile, Target


def known(path: Path, near: str, far: str) -> bool:
    """Say whether a lab file of these two ports is there: the far one left after a boot, or `lab restore`.

    ConfigError if it is of another bench.
    """
    if not path.exists():
        return False
    lab = load(path)
    ends = [(t.login, t.netns, t.port.ifname if t.port else "") for t in (lab.dut, lab.peer)]
    if ends != [(None, "", near), (None, ONE_HOST, far)]:
        raise ConfigError(f"{path} is there already, of another bench", "--out FILE writes another one")
    return True


def described_here(path: Path, near: str, far: str) -> tuple[LabFile, tuple[str, ...]]:
    """The bench of two ports, the far one in its namespace, and what the person should know."""
    notes, ends = list[str](), []
    for role, dev, netns in (("dut", near, ""), ("peer", far, ONE_HOST)):
        port, more = described(LocalHost(netns or None), role, dev, *PROPOSED[role])
        ends.append(Target(role, None, netns, port))
        notes += more
    return LabFile(str(path), path, ends[0], ends[1]), tuple(notes)
