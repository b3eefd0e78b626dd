"""What the lab's agent answers by itself is what the program prints."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from offload.suite.bench.vm.guest.agent import BASE_ENV
from offload.suite.bench.vm.guest.known import Known


@pytest.fixture(autouse=True)
def words_of_the_lab(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Programs speak the language that they speak in the lab."""
    monkeypatch.setenv("LC_ALL", "C")
    return


def printed(argv: list[str]) -> tuple[int, bytes]:
    """Exit code and output of the program itself."""
    done = subprocess.run(
        argv, capture_output=True, env={**os.environ, "PATH": BASE_ENV["PATH"]}, check=False
    )
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    "argv",
    [
        "cat /proc/version /proc/sys/kernel/ostype",
        "grep -sH NOTHING /proc/sys/kernel/ostype /proc/version FILE.not",
        "grep -sH NOTHING /proc/self/mounts /proc/sys/kernel/ostype",
        "grep -sH NOTHING FILE.empty",
        "grep -sH NOTHING FILE.text FILE.empty",
        "stat -c %s FILE",
        "sysctl -n kernel.ostype kernel.threads-max",
        "test -e FILE",
        "test -e FILE.not",
        "uname -r -v",
        "uname -m -r",
    ],
)
def test_it_says_what_the_program_says(argv: str, tmp_path: Path) -> None:
    """Exit code and output are those of the program."""
    file = tmp_path / "file"
    file.write_bytes(bytes(range(250)))
    (tmp_path / "file.empty").write_bytes(b"")
    (tmp_path / "file.text").write_bytes(b"\none\n\nthe last has no end")
    words = ["" if word == "NOTHING" else word for word in argv.replace("FILE", str(file)).split()]
    assert Known(BASE_ENV["PATH"]).answer(words) == printed(words)


@pytest.mark.parametrize(
    "argv",
    [
        "cat FILE.not",
        "cat FIFO",
        "cat -n FILE",
        "cat",
        "rm FILE",
        "rm -f FOLDER",
        "rm -f -r FOLDER",
        "stat FILE",
        "ip link set no-such-port mtu 1400",
        "ip link set lo mtu -1",
        "ip link set lo mtu",
        "ip link set lo up",
        "ip -j address",
        "ethtool -K lo gro maybe",
        "ethtool -K no-such-port gro off",
        "ethtool -K lo rx off",
        "sysctl kernel.ostype",
        "sysctl -n",
        "sysctl -n no.such.name",
        "sysctl -n kernel/ostype",
        "sysctl -n kernel..ostype",
        "sysctl -n kernel",
        "sysctl -qw kernel.ostype",
        "sysctl -qw kernel.ostype=Other",
        "test FILE",
        "uname -a",
        "ethtool -S lo",
        "ethtool -k a-name-that-is-too-long",
        "sleep 9",
    ],
)
def test_what_is_not_plain_is_left_to_the_program(argv: str, tmp_path: Path) -> None:
    """No other form, and no error, is answered for a program; nothing is done for it either."""
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    for name in ("file", "folder", "fifo"):
        argv = argv.replace(name.upper(), str(tmp_path / name))
    assert Known(BASE_ENV["PATH"]).answer(argv.split()) is None
    assert (tmp_path / "file").exists() and (tmp_path / "folder").exists()


def test_files_are_removed(tmp_path: Path) -> None:
    """`rm -f` removes what is there, and does not mind what is not."""
    (tmp_path / "a").touch()
    assert Known(BASE_ENV["PATH"]).answer(["rm", "-f", f"{tmp_path}/b", f"{tmp_path}/a"]) == (0, b"")
    assert not (tmp_path / "a").exists()


def test_a_program_that_was_taken_away_says_nothing(tmp_path: Path) -> None:
    """Nothing is said for a program that is not there, or not there any more."""
    known = Known(str(tmp_path))
    assert known.answer(["uname", "-r"]) is None
    (tmp_path / "uname").touch()
    assert known.answer(["uname", "-r"]) is not None
    (tmp_path / "uname").rename(tmp_path / "gone")
    assert known.answer(["uname", "-r"]) is None


@pytest.mark.skipif(not shutil.which("ethtool", path=BASE_ENV["PATH"]), reason="no ethtool here")
def test_features_are_remembered_as_they_were_printed() -> None:
    """`ethtool -k` is answered from what it printed when the kernel said the same."""
    known, argv = Known(BASE_ENV["PATH"]), ["ethtool", "--json", "-k", "lo"]
    assert known.answer(argv) is None
    key = known.key(argv)
    assert key is not None
    known.learn(argv, (key[0], b"what the kernel said before somebody changed it"), b"old")
    assert known.answer(argv) is None
    known.learn(argv, key, printed(argv)[1])
    assert known.answer(argv) == printed(argv)
    assert known.answer(["ethtool", "-k", "lo"]) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_settings_are_made_as_the_programs_make_them() -> None:
    """MTU, GRO and TCP's settings of a network namespace are what was asked for, without a word."""
    asked = [
        ["ip", "link", "set", "lo", "mtu", "1400"],
        ["ethtool", "-K", "lo", "gro", "off"],
        ["sysctl", "-qw", "net.ipv4.tcp_sack=0", "net.ipv4.tcp_rmem=4096 5000 6000"],
    ]
    script = f"""
import subprocess
from offload.suite.bench.vm.guest.agent import BASE_ENV
from offload.suite.bench.vm.guest.known import Known
for words in {asked!r}:
    assert Known(BASE_ENV["PATH"]).answer(words) == (0, b""), words
said = Known(BASE_ENV["PATH"]).answer(["sysctl", "-n", "net.ipv4.tcp_sack", "net.ipv4.tcp_rmem"])
assert said == (0, b"0\\n4096\\t5000\\t6000\\n"), said
assert open("/sys/class/net/lo/mtu").read() == "1400\\n"
features = subprocess.run(["ethtool", "-k", "lo"], capture_output=True, text=True, env=BASE_ENV).stdout
assert "generic-receive-offload: off" in features
"""
    inside = ["unshare", "--net", "--mount", "sh", "-c", 'mount -t sysfs s /sys && exec "$0" -c "$1"']
    done = subprocess.run([*inside, sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
