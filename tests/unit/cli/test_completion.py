"""completion: real shells are asked what they would offer, with the script that the command prints."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from offload.cli.main import VERBS, whole
from offload.cli.shell import script

ROOT = Path(__file__).parents[3]
PROFILES = ("chelsio-t6", "connectx-6-dx")
DEVICES = {p.name for p in Path("/sys/class/net").iterdir()}
CASES = [
    ("ktls-offload ", {v.name for v in VERBS}),
    ("ktls-offload en", {"enable"}),
    ("ktls-offload enable ", DEVICES),
    ("ktls-offload enable --p", {"--persist", "--profile"}),
    ("ktls-offload enable eth0 --profile conn", {"connectx-6-dx"}),
    (
        "ktls-offload lab ",
        {
            "up",
            "run",
            "shell",
            "status",
            "traffic",
            "down",
            "fetch",
            "init",
            "check",
            "import",
            "export",
            "restore",
        },
    ),
    ("ktls-offload lab run -n lab --in ", {"root", "dut", "wire", "peer"}),
    ("ktls-offload doctor --explain D30", {f"D30{n}" for n in range(1, 6)}),
    ("ktls-offload lab up --kernel 7", {"7.2"}),
    ("ktls-offload certify --kernel de", {"debug"}),
    ("ktls-offload enable eth0 --profile che", {"chelsio-t6"}),
    ("ktls-offload certify --nic chel", {"chelsio-t6"}),
    ("ktls-offload wire verify READ", {"README.md"}),
    ("ktls-offload report show doc", {"docs"}),
    ("ktls-offload completion ", {"bash", "zsh", "fish"}),
]


def installed(shell: str) -> str:
    """The program of a shell; the test is skipped without it."""
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    return found


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The three scripts as files."""
    folder, root = tmp_path_factory.mktemp("completion"), whole()
    found = {shell: folder / f"ktls-offload.{shell}" for shell in ("bash", "zsh", "fish")}
    for shell, path in found.items():
        path.write_text(script(shell, root, PROFILES))
    return found


def bash(path: Path, line: str) -> set[str]:
    """What bash offers for a line: its own words, as readline splits them, given to the function."""
    ask = (
        f"source {path}\n"
        "complete -p ktls-offload >/dev/null || exit 9\n"
        'COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _ktls_offload\n'
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    words = line.replace("=", " = ").split(" ")
    argv = [installed("bash"), "--norc", "-uc", ask, "bash", *words]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(("line", "wanted"), CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_bash_offers(scripts: dict[str, Path], line: str, wanted: set[str]) -> None:
    """bash completes verbs, options, words, interfaces, profiles and files."""
    assert bash(scripts["bash"], line) == wanted


@pytest.mark.parametrize(
    "line", ["ktls-offload enable eth0 --persist=if", "ktls-offload enable --persist if"]
)
def test_bash_takes_both_forms_of_a_value(scripts: dict[str, Path], line: str) -> None:
    """bash completes a value after a blank and after a sign, which it takes for a word."""
    assert bash(scripts["bash"], f"ktls-offload {line}") == {"ifupdown"}


def test_bash_completes_the_command_in_a_lab(scripts: dict[str, Path]) -> None:
    """What stands behind `--` is a command of its own, whatever it looks like."""
    assert "bash" in bash(scripts["bash"], "ktls-offload lab run --in dut -- bas")
    assert "enable" in bash(scripts["bash"], "ktls-offload lab run -- enab") or not shutil.which("enable")


def test_bash_script_is_clean(scripts: dict[str, Path]) -> None:
    """shellcheck has nothing to say about the bash script."""
    argv = [installed("shellcheck"), "-s", "bash", scripts["bash"]]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("line", "wanted"), CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_fish_offers(scripts: dict[str, Path], line: str, wanted: set[str]) -> None:
    """fish completes as bash does; beside a profile's id it offers files too."""
    argv = [installed("fish"), "--no-config", "-c", f"source {scripts['fish']}; complete -C '{line}'"]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    offered = {row.split("\t")[0].rstrip("/") for row in done.stdout.splitlines()}
    assert offered == wanted or (wanted <= offered and "--" in line)


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_releases_are_those_with_modules(scripts: dict[str, Path], shell: str, tmp_path: Path) -> None:
    """`driver --kernel` offers the kernels that have modules here."""
    (tmp_path / "modules/6.1.0-56-amd64").mkdir(parents=True)
    path, line = tmp_path / shell, "ktls-offload driver build mlx5 --kernel 6"
    path.write_text(scripts[shell].read_text().replace("/lib/modules", f"{tmp_path}/modules"))
    if shell == "bash":
        assert bash(path, line) == {"6.1.0-56-amd64"}
    else:
        argv = [installed("fish"), "--no-config", "-c", f"source {path}; complete -C '{line}'"]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert [row.split()[0] for row in done.stdout.splitlines()] == ["6.1.0-56-amd64"], done.stderr


def zsh(path: Path, lines: dict[str, str]) -> str:
    """All that an interactive zsh shows: a person types lines, and waits after TAB for what each wants."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb", "LISTMAX": "0"})
    begin = f"autoload -Uz compinit; compinit -D -u; source {path}; echo RE''ADY\n"
    try:
        shown = ask(fd, begin, b"READY", 60)
        for line, wanted in lines.items():
            shown += ask(fd, f"{line}\t\t", wanted.encode(), 60) + ask(fd, "\x15", b"", 0.2)
        return shown.decode("utf-8", "replace")
    finally:
        os.close(fd)
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def ask(fd: int, text: str, until: bytes, seconds: float) -> bytes:
    """Type a text; what is shown until a word comes (no word: until the time is up)."""
    os.write(fd, text.encode())
    shown, deadline = b"", time.monotonic() + seconds
    while time.monotonic() < deadline and not (until and until in shown):
        if select.select([fd], [], [], 0.1)[0]:
            shown += os.read(fd, 65536)
    return shown


def test_zsh_offers(scripts: dict[str, Path]) -> None:
    """An interactive zsh completes a word of an option, a profile and a verb's verbs."""
    installed("zsh")
    lines = {
        "ktls-offload lab run --in p": "--in peer",
        "ktls-offload enable --profile conn": "--profile connectx-6-dx",
        "ktls-offload wire comp": "wire compare",
    }
    shown = zsh(scripts["zsh"], lines)
    for word in lines.values():
        assert word in shown, shown


def test_the_command_prints_them() -> None:
    """`completion SHELL` prints the script with the profiles here; another shell is exit 2."""
    argv = [sys.executable, "-m", "offload", "completion"]
    done = subprocess.run([*argv, "bash"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0 and "connectx-6-dx" in done.stdout
    done = subprocess.run([*argv, "tcsh"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2 and "invalid choice: 'tcsh'" in done.stderr
