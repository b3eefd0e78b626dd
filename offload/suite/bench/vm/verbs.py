"""`ktls-offload lab`: the embedded lab for people: up, shell, run, status, down, fetch."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from typing import TypeAlias

from offload.errors import ConfigError, RigError

PLACES = ("root", "dut", "wire", "peer")
DEFAULT = "lab"
KIND = ("--kind", "--card")  # `certify` says --card
RUN_EXIT = """\
Exits with the command's own exit code (128 + n if signal n ended it), or 7 if the lab broke.
"""


Parsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_parser(verbs: Parsers) -> Parsers:
    """Add `lab` with its verbs; what takes more of them (offload/suite/bench/lab adds its own)."""
    parser = verbs.add_parser("lab", help="run a lab in a VM: a stock kernel with a simulated NIC")
    inner = parser.add_subparsers(dest="lab_verb", metavar="VERB", required=True)
    _add_up(inner)
    for name, words in (
        ("run", "run a command in a lab, return its exit code"),
        ("shell", "open a shell in a lab"),
    ):
        verb = inner.add_parser(name, help=words, epilog=RUN_EXIT)
        verb.add_argument("-n", "--name", default="", help="name of the lab, if several are running")
        verb.add_argument(
            "--in", dest="place", default="root", choices=PLACES, help="namespace (default: root)"
        )
        if name == "run":
            verb.add_argument(
                "--timeout",
                type=float,
                default=600.0,
                metavar="S",
                help="seconds until it is killed (default: 600)",
            )
            verb.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- CMD", help="the command")
    look = inner.add_parser("status", help="list the running labs")
    look.add_argument("--json", action="store_true", help="print JSON, for programs")
    down = inner.add_parser("down", help="stop a lab, and clean up after dead ones")
    down.add_argument("name", nargs="?", default="", help="name of the lab, if several are running")
    down.add_argument("-n", dest="also", default="", metavar="NAME", help="the same, as for run and shell")
    down.add_argument("--all", action="store_true", help="stop every lab of this user")
    get = inner.add_parser("fetch", help="download kernels and QEMU, build the module")
    get.add_argument("kernel", nargs="*", metavar="SERIES", help="series, or debug (default: all series)")
    get.add_argument("--newest", action="store_true", help="look for kernels newer than the cached ones")
    get.add_argument(
        *KIND, default="nicsim", help="mlx5: also its QEMU, and the real driver, built (100 s a kernel)"
    )
    parser.set_defaults(func=main)
    return inner


def _add_up(inner: Parsers) -> None:
    up = inner.add_parser("up", help="boot a lab that runs until `lab down`")
    up.add_argument(
        "--kernel", default="6.1", metavar="SERIES|PATH", help="6.1 (default), 6.12, 7.2, debug, or your own"
    )
    up.add_argument(
        "--modules", default="", metavar="DIR", help="with --kernel PATH: its lib/modules/RELEASE"
    )
    up.add_argument(
        *KIND, default="nicsim", help="nicsim (default); veth: no offload NIC; mlx5: the real driver"
    )
    up.add_argument(
        "--personality", default="connectx-6-dx", metavar="P", help="card to emulate, or DUT,PEER"
    )
    up.add_argument("--cpus", type=int, metavar="N", help="vCPUs (default: LAB_CPUS, or 1)")
    up.add_argument(
        "--ssh", action="store_true", help="run an sshd in each namespace, like real hosts; writes a lab file"
    )
    up.add_argument(
        "--idle", type=float, default=0, metavar="MIN", help="stop the lab after MIN minutes without use"
    )
    up.add_argument("--name", default=DEFAULT, help=f"name of the lab (default: {DEFAULT})")


def main(args: argparse.Namespace) -> int:
    """Run one of the verbs; its exit code."""
    verbs = {verb.__name__: verb for verb in (up, run, shell, status, down, fetch)}
    return verbs[args.lab_verb](args)


def say(text: str) -> None:
    """One line for the person, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def up(args: argparse.Namespace) -> int:
    """Boot a lab that outlives this command."""
    from offload.debian.kernels import fetch as fetch_kernel
    from offload.suite.bench.vm.lab import Lab
    from offload.suite.bench.vm.recipe import cpus_wanted
    from offload.suite.bench.vm.rundir import check_name
    from offload.suite.bench.vm.topology import check_kind, check_personality

    check_kind(args.kind)
    check_personality(args.personality)
    check_name(args.name)
    cpus_wanted(args.cpus)
    if args.idle < 0:
        raise ConfigError(f"--idle {args.idle:g}", "minutes, more than 0")
    began = time.monotonic()
    kernel = fetch_kernel(args.kernel, say, modules=args.modules)
    lab = Lab.boot(kernel, args.kind, args.personality, args.name, say, True, args.cpus, ssh=args.ssh)
    for key in ("qemu", "accelerator", "vm"):
        say(f"  {key}: {lab.rig[key]}")
    if args.idle:
        lab.end_when_idle(args.idle * 60)
        say(f"  it stops after {args.idle:g} minutes without use")
    lab.detach()
    say(f"lab {args.name} is up after {time.monotonic() - began:.1f} s in total; shared folder: {lab.out}")
    say(f"try: ktls-offload lab run -n {args.name} --in dut -- ip -br address")
    return 0


def chosen(name: str) -> str:
    """The lab meant: the one named, or the only one."""
    from offload.suite.bench.vm.rundir import names

    running = names()
    if name or len(running) == 1:
        return name or running[0]
    if not running:
        raise ConfigError("no lab is running", "ktls-offload lab up")
    raise ConfigError(f"several labs are running: {', '.join(running)}", "name one with -n")


def run(args: argparse.Namespace) -> int:
    """Run a command in a lab, its outputs as they come."""
    from offload.suite.bench.vm.lab import Lab

    argv = args.argv[1:] if args.argv[:1] == ["--"] else args.argv
    if not argv:
        raise ConfigError("which command?", "ktls-offload lab run --in dut -- ip -br address")
    lab = Lab.attach(chosen(args.name))
    try:
        return follow(getattr(lab, args.place).start(as_here(argv)), args.timeout)
    except (FileNotFoundError, PermissionError, NotADirectoryError) as exc:
        sys.stderr.write(f"{argv[0]}: {exc.strerror}\n")
        return 127
    finally:
        lab.detach()


def as_here(argv: list[str]) -> list[str]:
    """A command as this process would start it: the guest's PATH does not have our own."""
    return [sys.executable, "-m", "offload", *argv[1:]] if argv[0] == "ktls-offload" else argv


def follow(process: object, timeout: float) -> int:
    """Copy a process's outputs to ours until it ends; its exit code as a shell gives it."""
    from offload.host.vm import VmProcess

    assert isinstance(process, VmProcess)
    process.stdin(b"", eof=True)
    deadline, shown = time.monotonic() + timeout, (0, 0)
    try:
        while True:
            running = process.running()
            shown = _copy(process.output(), shown)
            if not running:
                rc = process.wait(5).rc
                return 128 - rc if rc < 0 else rc
            if time.monotonic() > deadline:
                raise RigError(f"timed out after {timeout:g} s", "use a larger --timeout")
            time.sleep(0.05)
    finally:
        process.kill(9)


def _copy(outputs: tuple[bytes, bytes], shown: tuple[int, int]) -> tuple[int, int]:
    for stream, data, at in zip((sys.stdout, sys.stderr), outputs, shown, strict=True):
        stream.buffer.write(data[at:])
        stream.flush()
    return len(outputs[0]), len(outputs[1])


def shell(args: argparse.Namespace) -> int:
    """A shell in a lab: on a terminal as usual, else the commands of standard input."""
    from offload.suite.bench.vm.lab import Lab
    from offload.suite.bench.vm.shell import interact

    lab = Lab.attach(chosen(args.name))
    try:
        host = getattr(lab, args.place)
        if sys.stdin.isatty():
            return interact(lab, args.place)
        done = host.run(["bash"], input=sys.stdin.buffer.read(), timeout=3600, check=False)
        _copy((done.stdout, done.stderr), (0, 0))
        return 128 - done.rc if done.rc < 0 else int(done.rc)
    finally:
        lab.detach()


def status(args: argparse.Namespace) -> int:
    """One line per lab, or one document (offload/suite/bench/schema/lab-status-1.schema.json)."""
    from offload.debian.cache import read_json
    from offload.suite.bench.vm.rundir import base, names, sweep

    swept = sweep()
    found = {name: read_json(base() / name / "lab.json") for name in names()}
    if args.json:
        labs = [for_programs(name, state) for name, state in found.items()]
        say(json.dumps({"schema": 1, "labs": labs, "removed": swept}))
        return 0
    for name, state in found.items():
        if state:
            say(f"{name}: {state['kernel']}, {state['kind']} ({state['personality']}), pid {state['pid']}")
        else:
            say(f"{name}: booting")
    if swept:
        say(f"cleaned up after dead labs: {', '.join(swept)}")
    if not found:
        say("no lab is up")
    return 0


def for_programs(name: str, state: Mapping[str, str] | None) -> dict[str, object]:
    """A lab as `status --json` has it; of one that still boots only the name is known."""
    row: dict[str, object] = {"name": name, "up": state is not None}
    row |= {key: state[key] if state else None for key in ("kernel", "kind", "personality")}
    return {**row, "pid": int(state["pid"]) if state else None}


def down(args: argparse.Namespace) -> int:
    """End labs."""
    from offload.suite.bench.vm.rundir import end, names, sweep

    sweep()
    if args.also and args.name:
        raise ConfigError(f"give one name, not {args.also} and {args.name}")
    wanted = args.also or args.name
    if args.all and wanted:
        raise ConfigError("give either a name or --all")
    for name in names() if args.all else [chosen(wanted)]:
        if not end(name):
            raise ConfigError(f"no lab named {name!r} is up", "ktls-offload lab status")
        say(f"lab {name} is down")
    return 0


def fetch(args: argparse.Namespace) -> int:
    """Fill the cache ahead of a run, so that it needs no network."""
    from offload.debian.kernels import SERIES
    from offload.debian.kernels import fetch as fetch_kernel
    from offload.suite.bench.cards.module import build_nicsim
    from offload.suite.bench.vm import cards, qemu_cards
    from offload.suite.bench.vm.qemu import find
    from offload.suite.bench.vm.topology import check_kind

    check_kind(args.kind)
    say(f"QEMU {find(say).version}")
    if args.kind == "mlx5":
        say(f"QEMU {qemu_cards.find(say).version} for cards of another process")
    for series in args.kernel or SERIES:
        kernel = fetch_kernel(series, say, args.newest)
        build_nicsim(kernel, say)
        say(f"kernel {series}: {kernel.release} ({kernel.version})")
        if args.kind == "mlx5":
            say(f"mlx5_core for {kernel.release}: {cards.driver(kernel, say)}")
    return 0
