"""Two hosts of a rack on this machine: namespaces joined by a cable, each behind an sshd of its own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from offload.host.local import LocalHost
from tests.lib.rig.sshd import Server, serving

LAB = """\
targets:
  dut:
    resources:
      NetworkService: {{address: {a.address}, port: {a.port}}}
      OffloadHost:
        hostkeys: ["{a.hostkeys[0]}"]
        netns: {dut}
      OffloadNic: {{ifname: cable0, profile: connectx-6-dx, v4: 192.0.2.1/24, v6: "fd00:2::1/64"}}
    drivers:
      - SSHDriver: {{keyfile: dut/user}}
  peer:
    resources:
      NetworkService: {{address: {b.address}, port: {b.port}}}
      OffloadHost:
        hostkeys: ["{b.hostkeys[0]}"]
        netns: {peer}
      OffloadNic: {{ifname: cable1, v4: 192.0.2.2/24, v6: "fd00:2::2/64"}}
    drivers:
      - SSHDriver: {{keyfile: peer/user}}
"""


@dataclass
class Rack:
    """What a test may take hold of: the servers, the namespaces' names, the lab file."""

    dut: Server
    peer: Server
    spaces: tuple[str, str]
    file: Path


@contextmanager
def rack(folder: Path) -> Iterator[Rack]:
    """Build it, until the block ends."""
    here, tag = LocalHost(), uuid.uuid4().hex[:6]
    dut, peer = f"kt-d{tag}", f"kt-p{tag}"
    with ExitStack() as undo:
        a = undo.enter_context(serving(folder / "dut", "dut", "127.0.0.11"))
        b = undo.enter_context(serving(folder / "peer", "peer", "127.0.0.12"))
        for name in (dut, peer):
            here.run(["ip", "netns", "add", name])
            undo.callback(here.run, ["ip", "netns", "del", name])
        ends = ["cable0", "netns", dut, "type", "veth", "peer", "name", "cable1", "netns", peer]
        here.run(["ip", "link", "add", *ends])
        for number, name in enumerate((dut, peer)):
            dev, ip = f"cable{number}", ["ip", "-n", name]
            here.run([*ip, "address", "add", f"192.0.2.{number + 1}/24", "dev", dev])
            here.run([*ip, "address", "add", f"fd00:2::{number + 1}/64", "dev", dev, "nodad"])
            here.run([*ip, "link", "set", "lo", "up"])
            here.run([*ip, "link", "set", dev, "up"])
        file = folder / "lab.yaml"
        file.write_text(LAB.format(a=a.login, b=b.login, dut=dut, peer=peer))
        yield Rack(a, b, (dut, peer), file)
