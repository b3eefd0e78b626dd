"""persist: each manager's own programs take the file, only ours is touched, and a failure leaves nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from offload.card.nic import links
from offload.errors import OffloadError, Refused, SwitchFailed
from offload.host.base import Completed
from offload.host.local import LocalHost
from offload.switch.enable import Wish, planned
from offload.switch.journal import Journal
from offload.switch.persist import decide, each, kept_by, persist, remove_all
from offload.switch.persist_files import MANAGERS, device_unit, made, path_of
from tests.unit.switch.fake_bench import FakeMachine

ETHTOOL = [["/usr/sbin/ethtool", "-K", "eth0", "tls-hw-tx-offload", "on"]]
FOLDERS = ("etc/systemd/system", "etc/NetworkManager/dispatcher.d", "etc/network/if-up.d")


class Rooted(LocalHost):
    """This machine with /etc and /run/systemd of its own; what the managers are asked is answered here."""

    def __init__(self, root: Path, **says: tuple[int, str]) -> None:
        super().__init__()
        self.root, self.says, self.asked = root, says, []  # type: ignore[var-annotated]
        for folder in FOLDERS:
            (root / folder).mkdir(parents=True)

    def _own(self, path: str) -> str:
        return str(self.root) + path if path.startswith(("/etc/", "/run/systemd")) else path

    def run(self, argv: Sequence[str], **more: Any) -> Completed:
        """Answer for the managers, really run the rest."""
        if argv[0] in ("systemctl", "nmcli", "ifquery"):
            self.asked.append(" ".join(argv))
            rc, text = self.says.get(argv[0], (127, ""))
            done = Completed(tuple(argv), rc, text.encode(), b"no", 0.0)
            return done.checked() if more.get("check", True) else done
        if argv[:2] == ["test", "-d"] and self._own(argv[2]) != argv[2]:
            return Completed(tuple(argv), 0 if Path(self._own(argv[2])).is_dir() else 1, b"", b"", 0.0)
        return super().run([self._own(word) for word in argv], **more)

    def read(self, path: str) -> bytes:
        """Return a file's bytes."""
        return super().read(self._own(path))

    def write(self, path: str, data: bytes, mode: int = 0o600) -> None:
        """Create or replace a file."""
        super().write(self._own(path), data, mode)

    def files(self) -> dict[str, str]:
        """Every file that is there."""
        return {f"/{p.relative_to(self.root)}": p.read_text() for p in self.root.rglob("*") if p.is_file()}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    return FakeMachine(tmp_path, monkeypatch)


@pytest.fixture
def root(tmp_path: Path, machine: FakeMachine) -> Path:
    """A place for /etc."""
    return tmp_path / "root"


def keep(
    host: Rooted, how: str, dev: str = "eth0", *, on: bool = True, dry: bool = False, **more: Any
) -> str:
    """`enable DEV --persist HOW`; what it said."""
    said: list[str] = []
    each(host, [Wish(dev, on, dry_run=dry, **more)], how, Journal(), said.append)
    return "\n".join(said)


@pytest.mark.parametrize("manager", MANAGERS)
def test_written_shown_and_removed(root: Path, manager: str) -> None:
    """The file is written as shown, and removed without a trace, any number of times."""
    host = Rooted(root, systemctl=(0, ""))
    for _ in range(2):
        said = keep(host, manager)
        assert list(host.files()) == [path_of(manager, "eth0")]
        text = host.files()[path_of(manager, "eth0")]
        assert all(f"  | {line}" in said for line in text.splitlines())
        assert "-K eth0 tls-hw-tx-offload on" in text
        assert "  remove it: ktls-offload enable eth0 --persist none" in said
    assert kept_by(host, "eth0") == [path_of(manager, "eth0")]
    for wanted in ("removed", "no file persists"):
        assert wanted in keep(host, "none")
        assert not host.files()


@pytest.mark.parametrize(
    ("says", "folders", "wanted"),
    [
        ({"nmcli": (0, "100 (connected)\n"), "ifquery": (0, "")}, (), "networkmanager"),
        ({"nmcli": (0, "10 (unmanaged)\n"), "ifquery": (0, "")}, (), "ifupdown"),
        ({"nmcli": (8, ""), "ifquery": (1, ""), "systemctl": (0, "")}, ("run/systemd/system",), "systemd"),
    ],
)
def test_auto_takes_who_has_the_device(
    root: Path, says: Mapping[str, tuple[int, str]], folders: Sequence[str], wanted: str
) -> None:
    """`auto` takes the manager that really has the device."""
    host = Rooted(root, **says)
    for folder in folders:
        (root / folder).mkdir(parents=True)
    keep(host, "auto")
    assert list(host.files()) == [path_of(wanted, "eth0")]


def test_changing_the_manager_leaves_one_file(root: Path) -> None:
    """Another manager's file replaces the first one: one keeper is enough."""
    host = Rooted(root, systemctl=(0, ""))
    keep(host, "systemd")
    assert "removed: only one manager may own the setting" in keep(host, "ifupdown")
    assert list(host.files()) == [path_of("ifupdown", "eth0")]
    assert "systemctl disable --now ktls-offload-eth0.service" in host.asked


def test_off_is_kept_too(root: Path) -> None:
    """`disable --persist` keeps off what a driver starts with on."""
    host = Rooted(root)
    keep(host, "ifupdown", on=False)
    assert "tls-hw-tx-offload off tls-hw-rx-offload off" in host.files()[path_of("ifupdown", "eth0")]


def test_module_comes_first(root: Path, machine: FakeMachine) -> None:
    """A T6's file loads its module before it switches."""
    host = Rooted(root)
    keep(host, "ifupdown", "cx0", dry=False)
    lines = host.files()[path_of("ifupdown", "cx0")].splitlines()
    assert [line.partition(" ")[0].rpartition("/")[2] for line in lines[-2:]] == ["modprobe", "ethtool"]


def test_dry_run_writes_nothing(root: Path, machine: FakeMachine) -> None:
    """--dry-run shows the file and leaves everything as it is."""
    host, before = Rooted(root), machine.machine()
    assert "#!/bin/sh" in keep(host, "ifupdown", dry=True)
    assert (host.files(), machine.machine()) == ({}, before)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("auto", "neither NetworkManager nor ifupdown"),
        ("netplan", "no key for TLS offload"),
        ("ifupdown", "no ifupdown here"),
    ],
)
def test_refusal_changes_nothing(root: Path, machine: FakeMachine, how: str, why: str) -> None:
    """What cannot be kept is refused before anything is switched."""
    host, before = Rooted(root), machine.machine()
    shutil.rmtree(root / "etc/network")
    with pytest.raises(Refused, match=why):
        keep(host, how, directions=("rx",))
    assert (host.files(), machine.machine()) == ({}, before)


def test_somebody_elses_file_is_left_alone(root: Path) -> None:
    """A file that we did not write is neither replaced nor removed."""
    host, path = Rooted(root), path_of("ifupdown", "eth0")
    host.write(path, b"#!/bin/sh\nmine\n")
    with pytest.raises(Refused, match="did not write it"):
        keep(host, "ifupdown")
    assert "no file persists" in keep(host, "none")
    assert host.files() == {path: "#!/bin/sh\nmine\n"}


def test_manager_that_refuses_it_gets_it_back(root: Path) -> None:
    """A unit that systemd does not take is removed again; an older one comes back."""
    host = Rooted(root, systemctl=(1, ""))
    (root / "run/systemd/system").mkdir(parents=True)
    with pytest.raises(SwitchFailed, match="did not accept"):
        keep(host, "systemd")
    assert not host.files()
    host.says["systemctl"] = (0, "")
    keep(host, "systemd")
    before = host.files()
    host.says["systemctl"] = (1, "")
    with pytest.raises(SwitchFailed, match="did not accept"):
        keep(host, "systemd", directions=("rx",))
    assert host.files() == before


def test_second_device_that_is_refused_changes_nothing(root: Path, machine: FakeMachine) -> None:
    """All that are refused are listed before any device is switched, and nothing is."""
    before, wishes = machine.machine(), [Wish(dev, True, ("rx",)) for dev in ("eth0", "cx0", "eth9")]
    with pytest.raises(Refused) as caught:
        each(Rooted(root), wishes, None, Journal(), print)
    said = str(caught.value)
    assert "2 of 3 devices refused; nothing was changed\n  cx0: Chelsio T6 has no receive" in said
    assert "eth9: no interface" in said and "only the others: ktls-offload enable eth0" in said
    assert machine.machine() == before and not machine.journal.exists()


def test_second_device_that_fails_leaves_the_first(root: Path, machine: FakeMachine) -> None:
    """The first of two devices stays as asked when the second fails, and that is said."""
    host, said = Rooted(root), []  # type: ignore[var-annotated]
    real = host.run

    def run(argv: Sequence[str], **more: Any) -> Completed:
        lame = list(argv[:3]) == ["ethtool", "-K", "sim0"]
        return Completed(tuple(argv), 0, b"", b"", 0.0) if lame else real(argv, **more)

    host.run = run  # type: ignore[method-assign]
    with pytest.raises(SwitchFailed, match="everything was put back"):
        each(host, [Wish("eth0", True), Wish("sim0", True)], None, Journal(), said.append)
    assert said[-1] == "eth0: done before the error, not undone"
    assert machine.state()["devices"]["eth0"]["features"]["tls-hw-rx-offload"]["active"]


def test_device_that_has_gone_can_be_forgotten(root: Path, machine: FakeMachine) -> None:
    """The file of a device that is no longer there can be removed by the name it had."""
    host = Rooted(root)
    keep(host, "ifupdown")
    devices = machine.state()["devices"]
    del devices["eth0"]
    machine.set(devices=devices)
    assert "removed" in keep(host, "none")
    assert not host.files()


@pytest.mark.parametrize("dev", ["a b", "eth0;id", "$(id)", "eth0.5", "../x", "-x", "a" * 16, "é"])
def test_odd_names_never_reach_a_script(root: Path, dev: str) -> None:
    """A name that a script or a path could stumble over is refused, or is no device at all."""
    host = Rooted(root)
    with pytest.raises(OffloadError):
        keep(host, "ifupdown", dev)
    assert not host.files()
    assert kept_by(host, dev) == []


@pytest.mark.parametrize(
    ("manager", "env", "argv", "runs"),
    [
        ("ifupdown", {"IFACE": "eth0"}, (), True),
        ("ifupdown", {"IFACE": "eth1"}, (), False),
        ("networkmanager", {}, ("eth0", "up"), True),
        ("networkmanager", {}, ("eth0", "down"), False),
        ("networkmanager", {}, ("eth1", "up"), False),
    ],
)
def test_script_runs_for_its_device_only(
    tmp_path: Path, manager: str, env: Mapping[str, str], argv: tuple[str, ...], runs: bool
) -> None:
    """A real shell runs the script's commands when its device comes up, and only then."""
    script, mark = tmp_path / "ktls-offload-eth0", tmp_path / "ran"
    kept = made(manager, "eth0", "enable", [["touch", str(mark)], ["true"]])
    script.write_text(kept.text)
    script.chmod(kept.mode)
    done = subprocess.run([script, *argv], env={**os.environ, **env}, check=False)
    assert (done.returncode, mark.exists()) == (0, runs)


def test_script_fails_when_a_step_fails(tmp_path: Path) -> None:
    """A step that fails is not hidden by the next one: the manager's log has it."""
    script = tmp_path / "x"
    script.write_text(made("ifupdown", "eth0", "enable", [["false"], ["true"]]).text)
    done = subprocess.run(["sh", script], env={**os.environ, "IFACE": "eth0"}, check=False)
    assert done.returncode == 1


@pytest.mark.skipif(not shutil.which("run-parts"), reason="run-parts (debianutils) is not installed")
def test_real_run_parts_takes_it_and_not_the_unfinished_one(tmp_path: Path) -> None:
    """Debian's run-parts finds the script, and skips the name it has while it is written."""
    for name in ("ktls-offload-eth0", ".ktls-offload-eth0.new"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(["run-parts", "--list", tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(tmp_path / "ktls-offload-eth0")]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_real_systemd_takes_the_unit(tmp_path: Path) -> None:
    """systemd's own check has nothing to say of the unit, and something of a broken one."""
    unit = tmp_path / "ktls-offload-my-eth0.service"
    good = made("systemd", "my-eth0", "enable", [["/bin/true", "-K", "my-eth0", "on"]]).text
    said = {}
    for name, text in (("good", good), ("bad", re.sub("Type=oneshot", "Type=sometimes", good))):
        unit.write_text(text)
        argv = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        said[name] = [line for line in done.stderr.splitlines() if unit.name in line]
    assert said["good"] == []
    assert any("sometimes" in line for line in said["bad"]), "this check sees nothing"


@pytest.mark.skipif(not shutil.which("systemd-escape"), reason="systemd-escape is not installed")
@pytest.mark.parametrize("dev", ["eth0", "my-eth0", "a_b", "enp3s0f0np0"])
def test_real_systemd_escapes_so(dev: str) -> None:
    """The unit of a device is called as systemd itself calls it."""
    argv = ["systemd-escape", "--path", "--suffix=device", f"/sys/subsystem/net/devices/{dev}"]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip() == device_unit(dev)


@pytest.mark.parametrize("step", range(1, 10))
def test_interrupted_at_any_step_leaves_all_or_nothing(root: Path, step: int) -> None:
    """A Ctrl-C at any step of writing leaves no half of a file, and `none` cleans up."""
    host, left = Rooted(root, systemctl=(0, "")), [step]
    real = host.run

    def run(argv: Sequence[str], **more: Any) -> Completed:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return real(argv, **more)

    host.run = run  # type: ignore[method-assign]
    wish = Wish("eth0", True, ("rx",))
    with suppress(KeyboardInterrupt):
        kept = decide(host, planned(host, wish, links(host)), "systemd")
        persist(host, wish, kept, Journal(), lambda line: None)
    reached, host.run = left[0] <= 0, real  # type: ignore[method-assign]
    whole = made("systemd", "eth0", "enable", []).text.splitlines()[-1]
    assert all(text.splitlines()[-1] == whole for text in host.files().values())
    assert reached, "fewer steps than thought: what is tested?"
    remove_all(host, wish, links(host), Journal(), lambda line: None)
    assert not host.files()


def test_command_line(machine: FakeMachine) -> None:
    """Several devices are several words, and a keeper that is none is refused with the list."""
    assert machine.call("enable", "eth0", "cx0", "eth0", "--dry-run") == 0, machine.said
    assert machine.said.count("nothing to do") + machine.said.count("nothing was done") == 2
    assert machine.call("enable", "eth0", "--persist", "cron") == 2
    assert "networkmanager" in machine.said
    assert machine.call("enable", "eth0", "--persist", "netplan") == 5
    assert "no key for TLS offload" in machine.said


def test_persist_alone_switches_nothing(root: Path, machine: FakeMachine) -> None:
    """Writing the file changes no feature: that is enable's matter."""
    host, before = Rooted(root), machine.machine()
    wish = Wish("eth0", True, ("rx",))
    kept = decide(host, planned(host, wish, links(host)), "ifupdown")
    persist(host, wish, kept, Journal(), lambda line: None)
    assert machine.machine() == before
