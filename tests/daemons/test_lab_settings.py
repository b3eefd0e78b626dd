"""Each setting that a test may change on a real host comes back, on the kernel's own ports."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lib.rig.ports import Machine, two_ports

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
BEFORE = """\
ip link add br0 type bridge
ip link add spare0 type veth peer name spare1
ip link set spare0 master br0
ip address add fd00:9::77/64 dev far0 nodad
ip route add 10.12.0.0/16 dev far0 metric 9
ip route add 10.12.0.0/16 via 10.9.0.2 dev far0 metric 3
ip link set spare1 up; ip link set spare1 down
ip netns add other; ip netns set other 7
"""
MORE = """\
tc qdisc show
ethtool -k far0 2>&1 | grep -E '^(tcp-seg|generic)' || true
sysctl net.ipv4.tcp_sack net.ipv4.tcp_ecn
"""
CHANGE = """\
import sys
from pathlib import Path
from offload.host.local import LocalHost
from offload.suite.bench.lab.changes.noted import NotedHost
from offload.switch.journal import Journal
host = NotedHost(LocalHost(), Journal(Path("noted")))
for words in sys.argv[1:]:
    if words.startswith("&"):
        assert host.start(words[1:].split()).wait(timeout=600).rc == 0
    else:
        host.run(words.split())
"""
PUT_BACK = """\
from pathlib import Path
from offload.host.local import LocalHost
from offload.suite.bench.lab.changes.put_back import put_back
from offload.switch.journal import Journal
print(put_back(LocalHost(), Journal(Path("noted")), print))
"""
EACH = {
    "mtu that costs IPv6": ["ip link set far0 mtu 1200", "ip link set far0 mtu 1100"],
    "a new namespace": ["ip netns add ours"],
    "link down": ["ip link set dev far0 down"],
    "link up": ["ip link set spare1 up"],
    "master": ["ip link set spare1 master br0"],
    "no master": ["ip link set spare0 nomaster"],
    "namespace": ["ip link set far0 netns other"],
    "device with all that it has": [
        "ip link add kv0 type veth peer name kv1",
        "ip link set kv0 mtu 1300 up",
        "ip address add 10.40.0.1/24 dev kv0",
        "ip route add 10.41.0.0/16 via 10.40.0.2 dev kv0",
        "tc qdisc add dev kv0 root pfifo limit 9",
    ],
    "new addresses": [
        "ip address add 10.50.0.1/24 dev far0",
        "ip -6 address add fd00:50::1/64 dev far0 nodad",
    ],
    "address gone": ["ip address del fd00:9::77/64 dev far0"],
    "new routes": [
        "ip route add 10.60.0.0/16 dev far0",
        "ip route add 10.61.0.0/16 via 10.9.0.2 dev far0 metric 7 table 78",
        "ip -6 route add fd00:60::/64 via fd00:9::2 dev far0",
        "ip route add fd00:61::1/128 dev far0",
        "ip route add 10.62.0.7/32 dev far0",
    ],
    "routes gone": [
        "ip route del 10.12.0.0/16 dev far0 metric 9",
        "ip route del 10.11.0.0/16 dev far0 table 77",
        "ip -6 route del fd00:10::/64 via fd00:9::2 dev far0",
    ],
    "route replaced": ["ip route replace 10.12.0.0/16 via 10.9.0.9 dev far0 metric 3"],
    "sysctls": ["sysctl -qw net.ipv4.tcp_sack=0 net.ipv4.tcp_ecn=1 net.ipv4.conf.far0.rp_filter=0"],
    "qdisc": ["tc qdisc replace dev far0 root pfifo limit 9", "tc qdisc add dev far0 clsact"],
    "features": ["ethtool -K far0 tso off gro on gso off"],
    "in the background": ["&ip link set far0 mtu 1300"],
}


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A host with two ports, a bridge, and routes of one target by two ways."""
    with two_ports(tmp_path) as made:
        made.sh(BEFORE)
        yield made


def more(machine: Machine) -> str:
    """What `ip` does not show; a port that moved away and back is listed last."""
    return "\n".join(sorted(machine.sh(MORE).splitlines()))


@pytest.mark.parametrize("kind", EACH)
def test_each_setting_comes_back(kind: str, machine: Machine) -> None:
    """`ip`, `tc`, `ethtool` and `sysctl` show what they showed before the change, and no note is left."""
    before, rest = machine.seen(), more(machine)
    done = machine.run([sys.executable, "-c", CHANGE, *EACH[kind]])
    assert done.returncode == 0, done.stderr
    assert (machine.seen(), more(machine)) != (before, rest), "nothing was changed"
    done = machine.run([sys.executable, "-c", PUT_BACK])
    assert done.returncode == 0 and done.stdout.endswith(", [])\n"), done
    assert "left alone" not in done.stdout and "not on this host" not in done.stdout, done.stdout
    assert machine.is_as(before), done.stdout
    assert more(machine) == rest, done.stdout
    assert not (machine.folder / "noted" / "changes.json").exists()
