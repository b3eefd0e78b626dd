"""`ktls-offload lab`: the embedded lab's verbs and `traffic`; of real hosts init, check, import, export."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from offload.card.profile import find
from offload.errors import ConfigError, RigError
from offload.suite.bench.lab.device_info import device_info
from offload.suite.bench.lab.model import LabFile, Target
from offload.suite.bench.lab.render import KINDS, as_lab, export, same_machine
from offload.suite.bench.lab.source import ENVIRONMENT, load_any
from offload.suite.bench.vm import verbs as embedded

OUT = "lab.yaml"
PLACE = "[USER@]HOST[:PORT][/NETNS], or here[/NETNS]"
INIT = """\
Logs in to both hosts, sends a numbered frame from each port of the DUT that has a link, and listens
on the ports of the peer. Then it writes the pair of ports that share a cable to a lab file, with
host keys (compare the printed fingerprints), addresses, PCI address and matching profile. It
changes nothing on the hosts.

With --one-host DEV DEV, two ports of this host become a bench. They must be cabled to each other.
The first port is the DUT, and the second moves into a network namespace. `ktls-offload lab restore`
undoes this, even after a kill. With --wire DEV DEV, two more ports form the wire between them:
connect the first to the DUT's port and the second to the peer's port.
"""
TRAFFIC = """\
Connects the DUT to an unmodified stunnel on the peer, moves the sockets to kernel TLS and sends data
until Ctrl-C or for the given time. It changes no switch: the card offloads the directions that were
on when the connections opened. To watch, run `ktls-offload lab shell --in dut`, then
`ktls-offload ls --watch` in that shell.
"""
DIRECTIONS = ("both", "tx", "rx")
RAW = argparse.RawDescriptionHelpFormatter


def add_parser(verbs: embedded.Parsers) -> None:
    """Add `lab` with the embedded lab's verbs and ours."""
    inner = embedded.add_parser(verbs)
    _add_traffic(inner)
    init = _add_init(inner)
    back = inner.add_parser("restore", help="put back what a killed run or `init --one-host` changed")
    back.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="undo what a killed run left on the hosts of this lab file; without it: undo `init --one-host`",
    )
    check = inner.add_parser(
        "check",
        help="open a lab file's bench, report what it can prove",
    )
    check.add_argument("file", metavar="FILE", help="lab file, net.config, or env")
    check.add_argument(
        "--device-info", action="store_true", help="print only the card data that netdev CI records, as JSON"
    )
    get = inner.add_parser("import", help="write lab.yaml from Ansible, net.config or environment")
    get.add_argument(
        "source", metavar="SOURCE", help="Ansible inventory (INI or .yaml), file that ends in .config, or env"
    )
    for verb in (init, get):
        verb.add_argument("-i", "--keyfile", default="", metavar="KEY", help="private key for the login")
        verb.add_argument("--out", default=OUT, metavar="FILE", help=f"new lab file (default {OUT})")
    give = inner.add_parser("export", help="print a lab file in the form of upstream's selftests")
    give.add_argument("file", metavar="FILE", help="lab file, net.config, or env")
    give.add_argument("--as", dest="kind", default=KINDS[0], choices=KINDS, help=f"form (default {KINDS[0]})")


def _add_traffic(inner: embedded.Parsers) -> None:
    load = inner.add_parser(
        "traffic", help="generate kernel TLS traffic in a lab", description=TRAFFIC, formatter_class=RAW
    )
    load.add_argument("-n", "--name", default="", help="name of the lab, if several are running")
    load.add_argument(
        "--direction",
        default="both",
        choices=DIRECTIONS,
        help="direction from the DUT's side (default: both)",
    )
    load.add_argument("--streams", type=int, default=2, metavar="N", help="connections each way (default: 2)")
    load.add_argument("--seconds", type=float, default=0, metavar="S", help="stop after S seconds")


def _add_init(inner: embedded.Parsers) -> argparse.ArgumentParser:
    init = inner.add_parser(
        "init", help="find the cable between two hosts, write lab.yaml", description=INIT, formatter_class=RAW
    )
    init.add_argument("--dut", metavar="HOST", help=PLACE)
    init.add_argument("--peer", metavar="HOST", help="peer, in the same form")
    init.add_argument(
        "--one-host",
        nargs=2,
        metavar="DEV",
        help="use two ports of this host instead: the DUT's and the peer's",
    )
    init.add_argument(
        "--wire",
        nargs=2,
        metavar="DEV",
        help="with --one-host: two ports in between, the first cabled to the DUT's",
    )
    return init


def main(args: argparse.Namespace) -> int:
    """Run one of the verbs; its exit code."""
    ours = {verb.__name__.strip("_"): verb for verb in (traffic, init, check, import_, export_, restore)}
    return ours.get(args.lab_verb, embedded.main)(args)


def write(path: Path, text: str) -> None:
    """Write a new file; ConfigError if something is there already."""
    try:
        with path.open("x") as out:
            out.write(text)
    except FileExistsError:
        raise ConfigError(f"{path} already exists", "--out FILE writes another one") from None
    except OSError as exc:
        raise RigError(f"cannot write {path}: {exc.strerror}") from None
    embedded.say(f"wrote {path}; `ktls-offload lab check {path}` opens the bench")


def fresh(path: Path) -> Path:
    """The path, if nothing is there: said before anybody is asked."""
    if path.exists():
        raise ConfigError(f"{path} already exists", "--out FILE writes another one")
    return path


def traffic(args: argparse.Namespace) -> int:
    """Make traffic in a lab that is up."""
    from offload.suite.bench.lab.traffic import Wish, make
    from offload.suite.bench.vm.lab import Lab

    wish = Wish(args.direction, args.streams, args.seconds).checked()
    lab = Lab.attach(embedded.chosen(args.name))
    try:
        make(lab, wish, embedded.say)
    finally:
        lab.detach()
    return 0


def init(args: argparse.Namespace) -> int:
    """Find the cable and write the lab file."""
    from offload.suite.bench.lab.discover import place, survey, with_keys

    if args.one_host:
        return one_host(args)
    if args.wire:
        raise ConfigError(
            "--wire needs --one-host", "for ports of another host write OffloadWire into lab.yaml"
        )
    if not (args.dut and args.peer):
        raise ConfigError("lab init needs --dut HOST and --peer HOST", "or --one-host DEV DEV")
    out = fresh(Path(args.out))
    dut, peer = place("dut", args.dut, args.keyfile), place("peer", args.peer, args.keyfile)
    lab, notes = survey(with_keys(dut, embedded.say), with_keys(peer, embedded.say), embedded.say)
    assert lab.dut.port and lab.peer.port
    embedded.say(f"cable: {lab.dut.port.ifname} of the DUT to {lab.peer.port.ifname} of the peer")
    for note in notes:
        embedded.say(note)
    write(out, as_lab(lab, notes))
    return 0


def one_host(args: argparse.Namespace) -> int:
    """Make a bench of two ports of this host, and write its lab file unless there is one of these ports."""
    from offload.suite.bench.lab.onehost import file as onehost_file
    from offload.suite.bench.lab.onehost import run as onehost

    if args.dut or args.peer or args.keyfile:
        raise ConfigError("--one-host excludes --dut, --peer and -i", "this host is both DUT and peer")
    out, ports = Path(args.out), [*args.one_host, *(args.wire or ())]
    known = onehost_file.known(out, ports)
    with onehost.bench(ports, embedded.say) as names:
        lab, notes = onehost_file.described_here(out, names)
        for note in notes:
            embedded.say(note)
        if known:
            embedded.say(f"{out} already describes these ports; it is unchanged")
        else:
            write(out, as_lab(lab, notes))
    return 0


def restore(args: argparse.Namespace) -> int:
    """End the bench of one host, or put back what a killed run left on the hosts of a lab file."""
    from offload.suite.bench.lab import bench
    from offload.suite.bench.lab.onehost import run as onehost

    if args.file:
        bench.restore(load_any(Path(args.file)), embedded.say)
    else:
        onehost.restore(embedded.say)
    return 0


def check(args: argparse.Namespace) -> int:
    """Open the bench and say what it is."""
    from offload.suite.bench.lab.bench import RealLab

    silent: Callable[[str], None] = lambda line: None  # noqa: E731
    file = load_any(Path(args.file))
    with RealLab.open(Path(args.file), silent if args.device_info else embedded.say) as lab:
        dut = lab.bench.dut
        if args.device_info:
            sys.stdout.write(json.dumps(device_info(dut.host, dut.dev), indent=1, sort_keys=True) + "\n")
            return 0
        for name, value in lab.rig.items():
            embedded.say(f"  {name}: {value}")
    for line in [*limits(file), *provable(file, args.file)]:
        embedded.say(line)
    return 0


def limits(file: LabFile) -> list[str]:
    """Return what a bench of one host, or one without a wire box, cannot show whatever its card is."""
    found = []
    if same_machine(file.dut, file.peer):
        found.append("one host: DUT and peer share its CPUs, so CPU figures include both")
    if file.wire is None:
        found.append(
            "no wire box: no captures between the ports, and no loss, reordering or corruption there"
        )
    return found


def provable(file: LabFile, given: str) -> list[str]:
    """Which promises this bench can prove, and what it lacks for the others; or why that cannot be
    determined."""
    from offload.suite.certify.forecast import lines, suite

    card = file.dut.port.profile if file.dut.port else ""
    if not suite() or not card:
        lack = "the DUT has no profile" if suite() else "the tests are not installed; use a checkout"
        return [f"unknown which promises this bench can prove: {lack}"]
    path = given if given == ENVIRONMENT else str(Path(given).absolute())
    return lines(["--lab", path], find(card), card if card.endswith(".yaml") else "")


def import_(args: argparse.Namespace) -> int:
    """Write a lab file from what somebody has already."""
    from offload.suite.bench.lab import inventory
    from offload.suite.bench.lab.discover import with_keys

    out, source = fresh(Path(args.out)), Path(args.source)
    if args.source == ENVIRONMENT or source.suffix == ".config":
        lab = load_any(source)
    else:
        found = {role: with_keys(target, embedded.say) for role, target in inventory.read(source).items()}
        lab = LabFile(str(out), out, found["dut"], found["peer"], found.get("wire"))
    write(out, as_lab(lab, _lacking(lab)))
    return 0


def _lacking(lab: LabFile) -> tuple[str, ...]:
    """Return what a lab file wants and the source did not say, as notes."""

    def of(target: Target) -> list[str]:
        port = target.port
        wanted = {"ifname": port.ifname, "v4": port.v4, "v6": port.v6} if port else {}
        if port and target.role == "dut":
            wanted["profile"] = port.profile
        return [
            f"to do: OffloadNic.{name} of the {target.role}" for name, value in wanted.items() if not value
        ]

    notes = tuple(note for target in lab.targets for note in of(target))
    for note in notes:
        embedded.say(note)
    return notes


def export_(args: argparse.Namespace) -> int:
    """Say the bench in upstream's words."""
    sys.stdout.write(export(load_any(Path(args.file)), args.kind))
    return 0
