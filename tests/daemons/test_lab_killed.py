"""What tests changed on a bench is put back after a kill at any step, and nothing else is.

Real ports of a kernel, one host as the bench with a wire; rings are those of a stand-in for ethtool.
"""

from __future__ import annotations

import datetime
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lib.rig.ports import Machine, cabled_over_a_wire, two_ports

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
DRIVER = Path(__file__).with_name("lab_killed_driver.py")
ROUTES = (
    "ip route add 10.20.0.0/16 via 192.0.2.2 dev dut0 metric 5; ip address add 10.21.0.1/24 brd + dev dut0"
)
# counts commands that change something and kills the caller at one; the change is made after that
WRAPPER = """\
#!{sh}
case "{tool} $*" in
*"link set"*|*"link add"*|*"link del"*|*"netns add"*|*"netns del"*|*"address add"*|*" replace "*|\\
*"route add"*|*"route del"*|*"sysctl -qw"*|*"ethtool -G"*)
    echo >>"$STEPS"
    [ "$(wc -l <"$STEPS")" = "$AT" ] && kill -KILL "$PPID" ;;
esac
case "{tool} $1" in
"ethtool -G") echo "$4" >"$RINGS"; exit ;;
"ethtool -g") printf 'RX: 4096\\nCurrent hardware settings:\\nRX: %s\\n' "$(cat "$RINGS")"; exit ;;
esac
exec {real} "$@"
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Machine]:
    """A bench of one host, with its lab file."""
    with two_ports(tmp_path) as made:
        done = made.lab("init", "--one-host", *cabled_over_a_wire(made))
        assert done.returncode == 0, done.stderr
        made.sh(f"mount -t sysfs none /sys; {ROUTES}")
        file = made.folder / "lab.yaml"
        file.write_text(file.read_text().replace('"dut0"', '"dut0"\n        profile: connectx-6-dx'))
        (made.folder / "rings").write_text("1024\n")
        yield made


def env(server: Machine, at: int) -> dict[str, str]:
    """The environment in which the command that makes change number `at` kills its caller."""
    folder, steps = server.folder / "bin", server.folder / "steps"
    folder.mkdir(exist_ok=True)
    for tool in ("ip", "ethtool", "sysctl"):
        text = WRAPPER.format(sh=shutil.which("sh"), tool=tool, real=shutil.which(tool))
        (folder / tool).write_text(text)
        (folder / tool).chmod(0o755)
    steps.write_text("")
    path = {"PATH": f"{folder}:{os.environ['PATH']}", "RINGS": str(server.folder / "rings")}
    return {**path, "STEPS": str(steps), "AT": str(at)}


def killed(server: Machine, *changes: str) -> None:
    """Make changes through a bench, and be killed before they are undone."""
    script = """
import os, signal, sys
from pathlib import Path
from offload.suite.bench.lab.bench import RealLab
lab = RealLab.open(Path("lab.yaml"), lambda line: None)
for words in sys.argv[1:]:
    lab.bench.dut.host.run(words.split())
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = server.run([sys.executable, "-c", script, *changes])
    assert done.returncode in (-9, 137), done.stderr


@pytest.mark.turns("killed at any step")
def test_killed_at_any_step(server: Machine) -> None:
    """All that a run changed is put back after a kill, at each fifth change by the day."""
    first = datetime.datetime.now(datetime.UTC).date().toordinal() % 5 + 1
    done = server.run([sys.executable, str(DRIVER), str(first), "5"], **env(server, 0))
    assert done.returncode == 0, done.stdout + done.stderr
    steps = int(done.stdout.split()[-1])
    assert steps > 25, "the commands that change something are counted wrongly"


def test_check_and_restore_say_what_they_put_back(server: Machine) -> None:
    """Each verb names what it puts back, leaves what somebody else set, and is done once."""
    shown = "ip -o link show dev dut0; sysctl net.ipv4.tcp_sack net.ipv4.tcp_ecn;"
    shown += "ip -o -6 address show dev dut0 scope global"
    before = server.sh(shown)
    killed(server, "sysctl -qw net.ipv4.tcp_sack=0 net.ipv4.tcp_ecn=0", "ip link set dut0 mtu 1200")
    assert " mtu 1200 " in server.sh(shown) and "fd00:2::1" not in server.sh(shown)
    server.sh("sysctl -qw net.ipv4.tcp_ecn=1")
    done = server.lab("restore", "lab.yaml")
    assert done.returncode == 0, done.stderr
    assert "here: dut0 mtu: 1500, as before (was 1200)\n" in done.stdout
    assert "here: dut0 address fd00:2::1/64: present, as before (was absent)\n" in done.stdout
    left = "net.ipv4.tcp_ecn: 1 is not of a test: left alone; `sysctl -qw net.ipv4.tcp_ecn=2` restores 2"
    assert left in done.stdout and "tcp_ecn = 1" in server.sh(shown)
    server.sh("sysctl -qw net.ipv4.tcp_ecn=2")
    assert server.sh(shown) == before
    assert server.lab("restore", "lab.yaml").stdout == "nothing to put back\n"
    killed(server, "ip link set dut0 down")
    done = server.lab("check", "lab.yaml", "--device-info")
    assert done.returncode == 0 and ",UP" in server.sh(shown) and "fd00:2::1" in server.sh(shown), done.stderr
    assert "10.20.0.0/16" in server.sh("ip route"), "the route was lost with the link"


def test_the_testbed_ends_after_a_kill(server: Machine) -> None:
    """`lab restore` puts the settings back before it brings the ports home."""
    killed(server, "sysctl -qw net.ipv4.tcp_sack=0")
    done = server.lab("restore")
    assert done.returncode == 0 and "tcp_sack: 1, as before (was 0)" in done.stdout, done
    assert "tcp_sack = 1" in server.sh("sysctl net.ipv4.tcp_sack") and not server.noted


def test_what_cannot_be_put_back_is_named(server: Machine) -> None:
    """The command to type stands in the message, and the note stays until all is as found."""
    (server.folder / "rings").write_text("1024\n")
    killed(server, "ip link set dut0 mtu 1400")
    (server.folder / "bin").mkdir()
    tool = server.folder / "bin" / "ip"
    tool.write_text(
        f'#!{shutil.which("sh")}\ncase "$*" in *"mtu 1500") exit 3 ;; esac\nexec {shutil.which("ip")} "$@"\n'
    )
    tool.chmod(0o755)
    done = server.lab("restore", "lab.yaml", PATH=f"{tool.parent}:{os.environ['PATH']}")
    words = "dut0 mtu not put back (exit 3); type: ip link set dev dut0 mtu 1500"
    assert done.returncode == 6 and words in done.stderr and "Traceback" not in done.stderr, done
    server.sh("ip link set dev dut0 mtu 1500")
    assert server.lab("restore", "lab.yaml").stdout == "nothing to put back\n"
