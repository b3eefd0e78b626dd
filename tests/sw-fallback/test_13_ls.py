"""Without a NIC that offloads `ls` shows connections as software's, and says what it could not see."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

from offload.connections.look import Inspector
from offload.host.base import Completed, Side
from offload.paths import ROOT
from tests.lib.life.life import KIB, Life
from tests.lib.rig.rig import Rig

pytestmark = pytest.mark.requires("tls")
SIZE = 96 * KIB
# As user nobody, who may not be able to read the checkout: root's home, or a umask of 077.
NOBODY = """
mount -t tmpfs tmpfs /mnt
mkdir /mnt/offload
for part in "$1"/offload/*; do
    [ "${part##*/}" = suite ] || cp -r --preserve=timestamps "$part" /mnt/offload
done
cp -r --preserve=timestamps "$1/nic-profiles" "$2/yaml" /mnt
chmod -R a+rX /mnt
exec setpriv --reuid nobody --regid nogroup --clear-groups -- \\
    env PYTHONPATH=/mnt /usr/bin/python3 -m offload ls --here
"""


def command(side: Side, *words: str) -> Completed:
    """Run `ktls-offload ls` on the DUT."""
    return side.host.run([sys.executable, "-m", "offload", "ls", *words], check=False, timeout=600)


@pytest.mark.promise("counters.zero-when-off")
def test_listed_as_software(life: Life, rig: Rig, dut: Side) -> None:
    """Without a NIC that offloads a connection is shown as software's, for people and for programs."""
    pair = life.open()[0]
    pair.moves("ls", SIZE)
    both = command(dut, "--watch", "--count", "2", "--interval", "0.2", "--json").checked().text.splitlines()
    reported = [json.loads(line) for line in both]
    assert len(reported) == 2
    rows = {row["local"]["port"]: row for row in reported[1]["connections"]}
    row = rows[pair.port]
    assert (row["tx"]["conf"], row["rx"]["conf"], row["device"]) == ("sw", "sw", dut.dev)
    assert (row["version"], row["cipher"]) == ("1.2", "aes-gcm-128")
    assert SIZE < row["sent"] < 1.1 * SIZE
    assert SIZE < row["received"] < 1.1 * SIZE
    assert row["process"]["pid"] == life.near.pid
    there = [r for r in reported[1]["connections"] if r["peer"]["port"] == pair.port]
    assert [r["namespace"] != row["namespace"] for r in there] == [True], (
        "the peer's namespace was not looked at"
    )
    life.close([pair])


@pytest.mark.promise("counters.zero-when-off")
def test_user_learns_what_is_hidden(life: Life, rig: Rig, dut: Side) -> None:
    """Without a NIC that offloads a user who may not see kernel TLS is told how much there is."""
    pair = life.open()[0]
    pair.moves("hidden", SIZE)
    argv = ["unshare", "--mount", "sh", "-ec", NOBODY, "sh", str(ROOT), str(Path(yaml.__file__).parents[1])]
    done = dut.host.run(argv, check=False, timeout=600)
    assert (done.rc, done.stderr) == (0, b""), done.stderr.decode()
    seen = str(pair.port) in done.text
    assert seen or "may not see: run it as root" in done.text, done.text
    assert "python" not in done.text, f"another user's process: {done.text}"
    life.close([pair])


@pytest.mark.promise("contexts.balance")
def test_ended_connection_is_not_listed(life: Life, rig: Rig, dut: Side) -> None:
    """Without a NIC that offloads a connection that has ended is listed no more."""
    pair = life.open()[0]
    pair.moves("ended", SIZE)
    assert pair.port in [
        line.socket.local_port for line in Inspector(dut.host, everywhere=False).look().lines
    ]
    life.close([pair], reset=True)
    assert pair.port not in [
        line.socket.local_port for line in Inspector(dut.host, everywhere=False).look().lines
    ]
