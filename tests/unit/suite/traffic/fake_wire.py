"""Plays a host on the wire: ip, ethtool, tc, sysfs and wirebox, from a state; keeps every command."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from offload.host.base import Bench, Completed, Side

READS = ("ip -j", "grep -sH", "ethtool -k", "tc -j", "tc -s")
ROOT = "0000003fffffffff"


class FakeProcess:
    """wirebox: says ready, takes rules, and ends with a summary."""

    def __init__(self, host: FakeWire, argv: tuple[str, ...]) -> None:
        self.host, self.argv, self.pid, self.rc = host, argv, 7, 0
        self.alive = not host.dies
        self.err = b"port: broken\n" if host.dies else b""
        self.said = [] if host.dies else [{"ready": True}]
        if not host.dies and "--bridge" in argv:
            for port in argv[1:3]:
                host.ports[port]["master"] = ""

    def running(self) -> bool:
        """Say whether it was not ended."""
        return self.alive

    def stdin(self, data: bytes, *, eof: bool = False) -> None:
        """Take a rule; one with `wrong` in it is refused."""
        text = data.decode().strip()
        number = sum("added" in line for line in self.said) + 1
        answer = {"error": "no such word", "line": 1} if "wrong" in text else {"added": number, "text": text}
        self.said.append(answer)

    def output(self) -> tuple[bytes, bytes]:
        """What it has said, the last line half."""
        return b"".join(json.dumps(line).encode() + b"\n" for line in self.said) + b'{"half', self.err

    def news(self, patience: float) -> tuple[bytes, bytes]:
        """All that it has to say is said at once."""
        return self.output()

    def kill(self, signal: int = 15) -> None:
        """End it: the ports go back into the bridge, unless it is said to forget that."""
        if self.alive:
            self.said.append({"summary": {"a>b": {"tcp": 3, "missed": 0}, "b>a": {"tcp": 2}, "flows": 1}})
            for port in self.argv[1:3]:
                if "--bridge" in self.argv and not self.host.forgets:
                    self.host.ports[port]["master"] = self.argv[-1]
                    self.host.files[f"/sys/class/net/{port}/brport/learning"] = "1"
        self.alive = False

    def wait(self, timeout: float) -> Completed:
        """Return the end."""
        out = b"".join(json.dumps(line).encode() + b"\n" for line in self.said)
        return Completed(self.argv, 1 if self.host.dies else self.rc, out, self.err, 0.0)


class FakeWire:
    """The host; `ports`, `files`, `qdisc` are its state, `did` every command that it ran."""

    def __init__(self, name: str = "wire") -> None:
        self.name = name
        self.dies = self.forgets = self.knows_seed = self.forbids = False
        self.did: list[str] = []
        plain = {"flags": ["UP"], "mtu": 1500, "master": "br0", "gro": True, "lro": "off [fixed]"}
        self.ports: dict[str, dict[str, Any]] = {"w0": dict(plain), "w1": dict(plain)}
        self.bridge = {"br0": "bridge"}
        self.files = {"/proc/self/status": f"Name:\tgrep\nCapEff:\t{ROOT}"}
        self.files["/sys/class/net/br0/bridge/vlan_filtering"] = "0"
        for port in self.ports:
            self.files |= {
                f"/sys/class/net/{port}/brport/{n}": v for n, v in (("learning", "0"), ("state", "3"))
            }
        self.qdisc: dict[str, Any] = {"kind": "fq_codel", "handle": "0:", "root": True}
        self.process: FakeProcess | None = None

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes = b"",
        timeout: float = 60.0,
        check: bool = True,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Play a command."""
        words = [str(word) for word in argv]
        self.did.append(" ".join(words))
        rc, out, err = getattr(self, "_" + words[0].rpartition("/")[2].lower())(words[1:], input)
        done = Completed(tuple(words), rc, out.encode(), err.encode(), 0.0, self.name)
        return done.checked() if check else done

    def changes(self) -> list[str]:
        """The commands that changed something."""
        return [line for line in self.did if not line.startswith(READS) and " --check" not in line]

    def start(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> FakeProcess:
        self.did.append(" ".join(argv))
        self.process = FakeProcess(self, tuple(argv))
        return self.process

    def read(self, path: str) -> bytes:
        """Nobody should: another namespace's /sys is not ours."""
        raise AssertionError(path)

    def write(self, path: str, data: bytes, mode: int = 0o600) -> None:
        """Nobody should."""
        raise AssertionError(path)

    def _ip(self, words: list[str], _: bytes) -> tuple[int, str, str]:
        if words[0] == "-j":
            rows = [{"ifname": name, "linkinfo": {"info_kind": kind}} for name, kind in self.bridge.items()]
            rows += [{"ifname": name, **row} for name, row in self.ports.items()]
            return 0, json.dumps([{k: v for k, v in row.items() if v != ""} for row in rows]), ""
        port, master = words[2], words[4]
        self.ports[port]["master"] = master
        return 0, "", ""

    def _test(self, words: list[str], _: bytes) -> tuple[int, str, str]:
        *_, bridge, _, port = words[1].split("/")
        return int(self.ports[port]["master"] != bridge), "", ""

    def _grep(self, words: list[str], _: bytes) -> tuple[int, str, str]:
        lines = [f"{p}:{line}" for p in words[2:] for line in self.files.get(p, "").splitlines()]
        return 0, "\n".join(lines), ""

    def _tee(self, words: list[str], input: bytes) -> tuple[int, str, str]:
        self.files[words[0]] = input.decode().strip()
        return 0, "", ""

    def _ethtool(self, words: list[str], _: bytes) -> tuple[int, str, str]:
        port = self.ports[words[1]]
        if words[0] == "-K":
            port["gro"] = words[words.index("gro") + 1] == "on"
        gro = "on" if port["gro"] else "off"
        return 0, f"generic-receive-offload: {gro}\nlarge-receive-offload: {port['lro']}\n", ""

    def _program(self, words: list[str], input: bytes) -> tuple[int, str, str]:
        wrong = b"nonsense" in input
        return (2, "", "wirebox: rules:1: 'nonsense' is not a direction") if wrong else (0, "", "")

    def _missing(self, words: list[str], input: bytes) -> tuple[int, str, str]:
        return 127, "", "missing: No such file"

    def _tc(self, words: list[str], _: bytes) -> tuple[int, str, str]:
        if "show" in words:
            return 0, json.dumps([self.qdisc]), ""
        if "del" in words:
            self.qdisc = {"kind": "fq_codel", "handle": "0:", "root": True}
        elif self.forbids:
            return 2, "", "RTNETLINK answers: Operation not permitted\n"
        elif "seed" in words and not self.knows_seed:
            return 1, "", 'What is "seed"?\n'
        elif self.qdisc.get("lacking"):
            return 2, "", "Error: Specified qdisc kind is unknown.\n"
        else:
            seed = {"seed": int(words[-1])} if "seed" in words else {}
            self.qdisc = {"kind": "netem", "handle": "8001:", "root": True, "options": seed, "packets": 9}
        return 0, "", ""


def bench(wire: Any, ports: tuple[str, ...] = ("w0", "w1")) -> Bench:
    dut, peer = FakeWire("dut"), FakeWire("peer")
    return Bench(Side(dut, "eth0", "192.0.2.1", ""), Side(peer, "eth1", "192.0.2.2", ""), wire, ports)
