"""`ktls-offload measure`: how many cores TLS takes, arm by arm, and how many offload saves."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from offload.errors import ConfigError
from offload.suite.measure.plan import ARMS, DIRECTIONS, ESP_ARMS, add_arguments, chosen, names, parts, whole

if TYPE_CHECKING:
    from offload.suite.measure.testbed import Testbed

KERNEL, NIC = "6.1", "connectx-6-dx"
HELP = """\
Measure how much CPU TLS takes, and how much of it offload saves.
Without DEV: a short run on a simulated card in a VM, labeled SIMULATED.
With DEV: the card of this host; this needs root and a peer."""
EPILOG = """\
The simulated run shows what is measured, and proves that each arm uses the path
that it names. An emulated CPU's time says nothing about a card; --cost counts
instructions there instead (docs/reference/cost-mode.md).

With DEV, the peer is a network namespace of this host with a second, cabled
port (--peer netns:NAME). For --workload iperf3 it can be any host that runs
`build/iperf3-tls -s` (--peer ADDRESS). Measure switches TLS offload,
segmentation offload and the CPU governor for each arm, and restores them at the
end or on Ctrl-C. After kill -9, `ktls-offload restore` restores the offloads.

arms, the configurations that take turns:
  user   TLS in user space (stunnel; OpenSSL for iperf3 and nginx)
  sw     kernel TLS in software          hw     kernel TLS on the card
  hw-zc  the card, zero-copy sendfile    plain  TCP without TLS
  esp-null, esp-128, esp-256, esp-128-hw, esp-256-hw
         TCP in IPsec ESP, transport mode: without a cipher or with AES-GCM,
         in software or on the card (docs/use/ipsec.md)
  ipsec  short for plain, sw, hw and all esp arms

exit codes: 1 an arm did not use the path that it names, or payload was lost;
5 no arm can run here; others: see ktls-offload --help.
"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `measure`; nothing heavy is imported for it."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = verbs.add_parser(
        "measure",
        usage="%(prog)s [DEV] [options]",
        help="",
        description=HELP,
        epilog=EPILOG,
        formatter_class=layout,
    )
    add = parser.add_argument
    add("dev", nargs="?", metavar="DEV", help="interface (default: simulated, in a VM)")
    add("--peer", metavar="WHERE", help="with DEV: netns:NAME, or an IPv4 address")
    add("--cost", action="store_true", help="in the VM: count instructions per byte")
    more = parser.add_argument_group("more options")
    add_arguments(parser, more)
    add("--json", action="store_true", help="print JSON instead of a table")
    add = more.add_argument
    add("--boots", metavar="N", help="with --cost: number of boots (default 3)")
    add("--vm", action="store_true", help="measure the simulated card (the default without DEV)")
    add("--kernel", metavar="SERIES|PATH", help=f"in the VM: Debian's kernel, or your own (default {KERNEL})")
    add("--modules", metavar="DIR", help="with --kernel PATH: its lib/modules/RELEASE")
    add("--nic", metavar="ID", help=f"in the VM: the profile that the card emulates (default {NIC})")
    add("--attach", metavar="NAME", help="in the VM: use the running lab of this name")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    """Measure and print. Every OffloadError is a sentence for a person."""
    check(args)
    found = cost(args) if args.cost else timed(args)
    if args.json:
        sys.stdout.write(json.dumps(found, indent=1) + "\n")
        return 0
    if args.cost and esp(args):
        from offload.suite.measure.cost.ipsec import text
    elif args.cost:
        from offload.suite.measure.cost.figures import text
    else:
        from offload.suite.measure.table import text
    sys.stdout.write(text(found))
    return 0


def check(args: argparse.Namespace) -> None:
    """ConfigError for options that do not go together."""
    given = [o for o in ("vm", "kernel", "nic", "attach", "cost", "boots") if getattr(args, o)]
    if args.dev and given:
        raise ConfigError(
            f"--{given[0]} is only for the simulated bench, but {args.dev} is a card of this host"
        )
    if args.peer and not args.dev:
        raise ConfigError("--peer needs DEV: the simulated bench has its own peer")
    if args.boots and not args.cost:
        raise ConfigError("--boots needs --cost")
    if args.kernel == "":
        raise ConfigError("--kernel is empty", "leave it out, or say what it is")
    fixed = [o for o in ("size", "close", "seconds", "rounds") if getattr(args, o)]
    fixed += [o for o in ("workload", "streams", "direction") if getattr(args, o) and args.cost and esp(args)]
    if args.cost and fixed:
        unless = " and ESP or --segmentation" if fixed[0] in ("workload", "streams", "direction") else ""
        raise ConfigError(
            f"--{fixed[0]} has no effect with --cost{unless}",
            "omit it: the load is fixed, so that results repeat",
        )
    if args.attach and (args.kernel or args.nic or args.cost):
        raise ConfigError("--attach uses a running lab as it is: omit --kernel, --nic and --cost")


def esp(args: argparse.Namespace) -> bool:
    """Whether ESP or the segmentation offloads are asked for: with --cost an image of its own."""
    return args.segmentation != "on" or any(arm in ESP_ARMS for arm in chosen(args.arm))


def booted(args: argparse.Namespace) -> str:
    """The kernel to boot: a series, or the name of one's own, which the cache has from now on."""
    if not args.modules:
        return args.kernel or KERNEL
    from offload.debian.kernels import fetch

    return fetch(args.kernel or KERNEL, say=say, modules=args.modules).series


def cost_esp(args: argparse.Namespace) -> dict[str, Any]:
    """Count instructions in ESP and its counterparts: the document."""
    from offload.card.profile import find
    from offload.suite.measure.cost.ipsec import ARMS, measure
    from offload.suite.measure.cost.run import MOST_BOOTS

    profile = find(args.nic or NIC)
    return measure(
        booted(args),
        boots=whole(args.boots, "--boots", 1, MOST_BOOTS),
        arms=chosen(args.arm) if args.arm else ARMS,
        parts=parts(args.segmentation),
        personality=profile.id,
        offers=profile.directions(),
        say=say,
    )


def cost(args: argparse.Namespace) -> dict[str, Any]:
    """Count instructions in the VM: the document."""
    if esp(args):
        return cost_esp(args)
    from offload.card.profile import find
    from offload.suite.measure.cost.plan import CHANNELS, LOADS
    from offload.suite.measure.cost.run import BOOTS, MOST_BOOTS, measure

    profile = find(args.nic or NIC)
    return measure(
        booted(args),
        boots=whole(args.boots, "--boots", BOOTS, MOST_BOOTS),
        arms=names(args.arm, "--arm", ARMS, ARMS),
        directions=names(args.direction, "--direction", DIRECTIONS, DIRECTIONS),
        channels=[int(n) for n in names(args.streams, "--streams", [*map(str, CHANNELS)], ("1",))],
        loads=names(args.workload, "--workload", LOADS, LOADS[:1]),
        offers=profile.directions(),
        personality=profile.id,
        say=say,
    )


def timed(args: argparse.Namespace) -> dict[str, Any]:
    """Measure by time: the document."""
    from offload.suite.measure.plan import plan
    from offload.suite.measure.run import measure
    from offload.suite.measure.switch import steady
    from offload.suite.measure.testbed import local
    from offload.suite.measure.window import Live

    wanted = plan(args, short=not args.dev)
    with ExitStack() as undo:
        testbed = local(args.dev, args.peer or "", undo) if args.dev else simulated(args, undo)
        testbed.about["governor"], warning = undo.enter_context(steady(testbed.dut.host))
        testbed.add(warning)
        if args.dev:
            testbed.count_cycles()
        live = Live(testbed.dut.host, testbed.meter, testbed.carried) if sys.stderr.isatty() else None
        return measure(testbed, wanted, live)


def simulated(args: argparse.Namespace, undo: ExitStack) -> Testbed:
    """The bench in a VM, booted for this run or attached."""
    from offload.card.profile import find, near
    from offload.debian.kernels import SERIES, fetch
    from offload.debian.own import is_path
    from offload.suite.bench.vm.lab import Lab
    from offload.suite.measure.vm import testbed

    if args.attach:
        return testbed(undo.enter_context(Lab.attach(args.attach)), undo)
    series, profile = args.kernel or KERNEL, find(args.nic or NIC)
    if series not in SERIES and not is_path(series):
        raise ConfigError(
            f"no kernel series {series!r}{near(series, SERIES)}",
            f"choose one of {', '.join(SERIES)}, or name a path",
        )
    kernel = fetch(series, say=say, modules=args.modules or "")
    lab = Lab.boot(kernel, "nicsim", f"{profile.id},connectx-6-dx", say=say)
    return testbed(undo.enter_context(lab), undo)


def say(line: str) -> None:
    """A line of progress, next to the result."""
    sys.stderr.write(line + "\n")
