"""Plays ethtool, ip, modprobe, rmmod and test on a state file: as the real ones do; dies or lies on demand.

Copied behavior: ethtool 6.1 (exit codes, texts), netdev_fix_features (checksum), netdev wanted_features.
Faults in the state: {"fault": {"at": N, "kind": KIND}} acts on the Nth call of any of these programs.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path


def fix(features):
    """What the kernel makes of what was asked for: TLS needs its checksum offload."""
    for name, row in features.items():
        if not row["fixed"]:
            row["active"] = row["requested"]
        if name == "tls-hw-tx-offload" and not features["tx-checksum-ip-generic"]["active"]:
            row["active"] = False
        if name == "tls-hw-rx-offload" and not features["rx-checksumming"]["active"]:
            row["active"] = False


def say(text):
    """A line of standard output."""
    sys.stdout.write(text + "\n")


def ethtool(state, args):
    """-i, -k (text or --json), -K, -S."""
    as_json = "--json" in args
    what, dev, *rest = [a for a in args if a != "--json"]
    if dev not in state["devices"]:
        sys.stderr.write("netlink error: No such device\n")
        return 1
    nic = state["devices"][dev]
    if what == "-i":
        say(f"driver: {nic['driver']}\nversion: 6.1")
        say(f"firmware-version: {nic['firmware']}\nbus-info: {nic['bus']}")
    elif what == "-S":
        say("NIC statistics:\n" + "\n".join(f"     {n}: {v}" for n, v in nic.get("stats", {}).items()))
    elif what == "-k":
        return show(state, dev, nic["features"], as_json)
    elif what == "-K":
        return max(switch(state, nic, rest[at : at + 2]) for at in range(0, len(rest), 2))
    return 0


def show(state, dev, features, as_json):
    """`ethtool -k`; an old one does not know --json."""
    if as_json and state.get("no_json"):
        sys.stderr.write("ethtool: bad command line argument(s)\n")
        return 1
    if as_json:
        say(json.dumps([{"ifname": dev, **features}]))
        return 0
    say(f"Features for {dev}:")
    for name, row in features.items():
        note = " [fixed]" if row["fixed"] else ""
        if not note and row["active"] != row["requested"]:
            note = f" [requested {'on' if row['requested'] else 'off'}]"
        say(f"{name}: {'on' if row['active'] else 'off'}{note}")
    return 0


def switch(state, nic, rest):
    """`ethtool -K`: refuses as the kernel does."""
    if state.get("eperm"):
        sys.stderr.write("netlink error: Operation not permitted\n")
        return 92
    name = {"tx": "tx-checksum-ip-generic", "rx": "rx-checksumming"}.get(rest[0], rest[0])
    if name not in nic["features"]:
        sys.stderr.write("netlink error: bit name not found (offset 52)\n")
        return 92
    row = nic["features"][name]
    row["requested"] = row["requested"] if row["fixed"] else rest[1] == "on"
    fix(nic["features"])
    if row["active"] != (rest[1] == "on"):
        say(f"Actual changes:\n{name}: {'on' if row['active'] else 'off'} [requested {rest[1]}]")
        sys.stderr.write("Could not change any device features\n")
        return 1
    return 0


def ip(state, args):
    """`ip -j -d link show`."""
    rows = [
        {
            "ifindex": nic["ifindex"],
            "ifname": name,
            "flags": ["BROADCAST"] + (["UP"] if nic.get("up", True) else []),
            "operstate": "UP",
            "link_type": "ether",
            "address": "02:00:00:00:00:01",
            **nic.get("link", {}),
        }
        for name, nic in state["devices"].items()
    ]
    say(json.dumps(rows))
    return 0


def modprobe(state, args):
    """--show-depends, or load a module (dependencies were loaded before it by name)."""
    name = args[-1]
    depends = {m: [m] for names in state["depends"].values() for m in names} | state["depends"]
    if name not in depends:
        sys.stderr.write(f"modprobe: FATAL: Module {name} not found in directory /lib/modules/6.1\n")
        return 1
    if args[0] == "--show-depends":
        say("\n".join(f"insmod /lib/modules/6.1/{m}.ko.xz " for m in depends[name]))
        return 0
    state["modules"] = sorted({*state["modules"], *depends[name]})
    return 0


def rmmod(state, args):
    """Unload, unless it is in use."""
    if args[0] in state.get("in_use", []):
        sys.stderr.write(f"rmmod: ERROR: Module {args[0]} is in use\n")
        return 1
    state["modules"] = [m for m in state["modules"] if m != args[0]]
    return 0


def test(state, args):
    """`test -d /sys/module/NAME`."""
    return 0 if args[1].rpartition("/")[2] in state["modules"] else 1


def main(file, program, args, parent, nap=time.sleep):
    """Count the call, act, save; with a fault, do what it says. `parent`: who called; `nap`: how to wait."""
    state = json.loads(file.read_text())
    state["calls"] = state.get("calls", 0) + 1
    state.setdefault("log", []).append(f"{program} {' '.join(args)}")
    fault = state.get("fault", {})
    kind = fault.get("kind") if fault.get("at") == state["calls"] else None
    if kind == "kill-before":
        file.write_text(json.dumps(state))
        os.kill(parent, signal.SIGKILL)
        return 0
    if kind == "kill-then-act":
        os.kill(parent, signal.SIGKILL)
        nap(0.3)
        changes = "-K" in args or program == "rmmod" or (program == "modprobe" and len(args) == 1)
        if not changes:
            return 0
        state = json.loads(file.read_text())
    if kind == "ignore":
        file.write_text(json.dumps(state))
        return 0
    if kind == "fail":
        file.write_text(json.dumps(state))
        sys.stderr.write("netlink error: Invalid argument\n")
        return 92
    code = {"ethtool": ethtool, "ip": ip, "modprobe": modprobe, "rmmod": rmmod, "test": test}[program](
        state, args
    )
    file.write_text(json.dumps(state))
    if kind == "kill-after":
        os.kill(parent, signal.SIGKILL)
    if kind == "int-after":
        os.kill(parent, signal.SIGINT)
        nap(5)
    if kind == "term-after":
        os.kill(parent, signal.SIGTERM)
        nap(5)
    return code


if __name__ == "__main__":
    sys.exit(main(Path(os.environ["FAKE_STATE"]), sys.argv[1], sys.argv[2:], os.getppid()))
