"""Makes each kind of change to a one-host bench, is killed at one change after the other, and puts it back.

usage: lab_killed_driver.py FIRST STRIDE: at which changes; the last line says how many there are at least.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from offload.cmd import settles
from offload.suite.bench.lab import bench
from offload.suite.bench.lab.source import load_any
from tests.lib.impair import link, paths, shapes_path

FILE = Path("lab.yaml")
SPACES = ((), ("ip", "netns", "exec", "ktls-peer"), ("ip", "netns", "exec", "ktls-wire"))


def changes() -> None:
    """What tests do to the hosts, each undone as they do it."""
    with bench.RealLab.open(FILE, lambda line: None) as lab:
        dut, wire = lab.bench.dut, lab.bench.wire
        with shapes_path.tcp_settings(lab.bench, sack=0), shapes_path.path_mtu(lab.bench, 1200):
            pass
        route = ["192.0.2.2/32", "dev", dut.dev, "metric", "7"]
        dut.host.run(["ip", "route", "add", *route])
        link.bounce(dut)
        dut.host.run(["ip", "route", "del", *route], check=False)  # the port took it along
        for state in ("down", "up"):
            wire.run(["ip", "link", "set", lab.bench.wire_ports[0], state])
        for length in ("512", "1024"):
            dut.host.run(["ethtool", "-G", dut.dev, "rx", length])
        dut.host.run(["ip", "link", "add", "name", "kbridge", "type", "bridge"])
        dut.host.run(["ip", "link", "set", dut.dev, "master", "kbridge"])
        dut.host.run(["ip", "link", "set", dut.dev, "nomaster"])
        dut.host.run(["ip", "link", "del", "kbridge"])
        paths.move_away_and_back(dut, os.getpid())


def says(*argv: str) -> str:
    """The output of a command."""
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def seen() -> list[object]:
    """What each part of the bench is set to."""
    names = [line.split()[0] for line in says("ip", "netns").splitlines()]  # the kernel gives them ids late
    found: list[object] = [names, Path("rings").read_text()]
    for space in SPACES:
        for row in json.loads(says(*space, "ip", "-j", "-d", "address")):
            own = [(a["local"], a["prefixlen"]) for a in row["addr_info"] if a["scope"] == "global"]
            found += [row["ifname"], row["mtu"], "UP" in row["flags"], row.get("master"), sorted(own)]
        for family in ("-4", "-6"):
            rows = json.loads(says(*space, "ip", family, "-j", "-d", "route", "show", "table", "all") or "[]")
            found += sorted(str(row) for row in rows if row["protocol"] not in ("kernel", "ra"))
        found.append(says(*space, "sysctl", "net.ipv4.tcp_sack"))
    return found


def forked(do: Callable[[], object]) -> int:
    """The exit code of a function in a process of its own."""
    if not (pid := os.fork()):
        try:
            do()
        except BaseException as exc:
            sys.stdout.write(f"{exc!r}\n")
            sys.stdout.flush()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def noted() -> int:
    """How many hosts have settings noted for the next run."""
    return len(list(Path("state/benches").glob("*/changes.json")))


def main() -> None:
    """Count the changes that were killed."""
    before, at, ended = seen(), int(sys.argv[1]) - int(sys.argv[2]), -9
    while ended == -9:
        at += int(sys.argv[2])
        Path(os.environ["STEPS"]).write_text("")
        os.environ["AT"] = str(at)
        ended = forked(changes)
        assert ended in (0, -9) and (ended == 0) == (not noted()), (at, ended, noted())
        os.environ["AT"] = "0"
        said: list[str] = []
        bench.restore(load_any(FILE), said.append)
        same = settles(lambda: seen() == before, 60, 0.2)
        assert same, (at, said, [pair for pair in zip(before, seen(), strict=False) if pair[0] != pair[1]])
        assert not noted() and said, (at, said)
    sys.stdout.write(f"steps {at}\n")


if __name__ == "__main__":
    main()
