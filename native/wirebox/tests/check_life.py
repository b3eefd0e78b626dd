"""What happens to the cable when its ports go down, go away, or belong to a bridge?"""

from __future__ import annotations

import json
import signal
from pathlib import Path

from rig import Rig, Tcp, links_up, sh

FRAMES = Tcp().cut(bytes(5000))


def masters() -> list[str | None]:
    """The bridges of the two ports."""
    rows = json.loads(sh("ip -j link show"))
    return [next(r.get("master") for r in rows if r["ifname"] == port) for port in ("a0", "b0")]


def check_link_down_and_up(rig: Rig) -> None:
    """A port that goes down and comes back carries again; what came meanwhile is lost, not the program."""
    with rig.box() as box:
        assert rig.through(FRAMES) == FRAMES
        for port in ("a0", "b0"):
            sh(f"ip link set {port} down")
            assert rig.b.one(0.05) is None
            sh(f"ip link set {port} up")
            links_up()
            assert rig.through(FRAMES) == FRAMES
        sh("ip link set b0 down")
        rig.a.send(FRAMES)
        sh("ip link set b0 up")
        links_up()
        assert rig.through(FRAMES)[-5:] == FRAMES
        box.end()


def check_port_goes_away(rig: Rig) -> None:
    """A port that is removed ends the program: exit 1, the reason, and a summary."""
    sh("ip link add c0 type veth peer name c1 && ip link set c0 up && ip link set c1 up")
    child = rig.start(ports=("a0", "c0"))
    assert child.stdout and child.stdout.readline() == b'{"ready":true}\n'
    sh("ip link del c0")
    out, err = child.communicate(timeout=120)
    assert child.returncode == 1 and b"c0: No such device" in err and b'"summary"' in out, (out, err)


def check_bridge_out_and_back(rig: Rig) -> None:
    """--bridge: the ports leave it while the program runs and are in it again after, however it ends."""
    sh("ip link set a0 master br0 && ip link set b0 master br0")
    try:
        for how in (signal.SIGTERM, signal.SIGINT, 0):
            with rig.box("a>b frame 0 drop", args=("--bridge", "br0")) as box:
                assert masters() == [None, None]
                assert rig.through([Tcp().syn(), *FRAMES]) == [Tcp().syn(), *FRAMES[1:]]
                if not how:
                    assert box.child.stdin
                    box.child.stdin.close()
                    box.child.stdin = None
                box.end(how)
            assert masters() == ["br0", "br0"]
        rig.drain()
        assert rig.through(FRAMES) == FRAMES
    finally:
        sh("ip link set a0 nomaster; ip link set b0 nomaster")


def check_bridge_of_one_port_only(rig: Rig) -> None:
    """If only one port is in the bridge nothing stays changed."""
    sh("ip link set a0 master br0")
    try:
        rc, err = rig.refused("--bridge", "br0")
        assert rc == 1 and "b0: cannot be taken out of the bridge" in err
        assert masters() == ["br0", None]
    finally:
        sh("ip link set a0 nomaster")


def check_memory_is_flat(rig: Rig) -> None:
    """Thousands of flows under impairment do not grow the program."""

    def size(pid: int) -> int:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1])

    with rig.box("a>b first drop", "impair both loss 1% reorder 1%") as box:
        sizes = []
        for round in range(4):
            for port in range(1500):
                flow = Tcp(sport=1024 + round * 1500 + port)
                rig.a.send([flow.syn(), flow.frame(0, b"x" * 30)])
            rig.b.until(rig.a.mark())
            sizes.append(size(box.child.pid))
        assert sizes[-1] <= sizes[0] * 1.1 + 300, sizes
        assert box.end()["flows"] == 6000
