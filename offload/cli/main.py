"""`ktls-offload`: a table of verbs; the rooms behind them are opened only when called."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from offload import __version__
from offload.cli.streams import settle
from offload.cmd import signals_interrupt
from offload.errors import ConfigError, OffloadError, RigError
from offload.host.terminal import columns, fitted
from offload.paths import PACKAGE, ROOT

if TYPE_CHECKING:
    from offload.cli.tree import Command

EPILOG = """\
exit codes:
  0    success, also if there was nothing to do
  1    an error without a code of its own; report VERB --help has its meaning
  2    wrong usage, profile or configuration
  3    no such interface
  4    no permission: run it as root
  5    refused: card, profile or kernel cannot do it; nothing changed
  6    switching a device failed; its changes were undone, or the message says so
  7    the rig broke: a missing program, the lab, a download, the disk
  10, 11, 12  doctor: off (with a remedy), never (no setting helps), unknown
  20, 21, 22  certify: failed, incomplete, void; wire: different, inconclusive
  130  interrupted; all changes were undone
  141  the output pipe was closed (SIGPIPE)

A journal records every change before ktls-offload makes it. `ktls-offload
restore` uses it to put everything back, even after kill -9. It is in
$KTLS_OFFLOAD_STATE or /var/lib/ktls-offload.
"""


class Verb(NamedTuple):
    """A verb, where it is listed, the module that does it and the extra that the module needs."""

    name: str
    group: str
    module: str
    help: str
    extra: str = ""


HOST, LAB, REPORT = "host: use TLS offload here", "lab: test a card", "report: check results"
VERBS = (
    Verb("status", HOST, "switch.verbs", "show what each card supports, and what is on"),
    Verb("doctor", HOST, "doctor.verbs", "find out why TLS is not offloaded here, and what to do"),
    Verb("ls", HOST, "connections.verbs", "list kernel TLS connections, and whether a card handles them"),
    Verb("connect", HOST, "connect.verbs", "open a kernel TLS connection (or stunnel) and pass it on"),
    Verb("enable", HOST, "switch.verbs", "switch TLS offload on, as the card's profile says"),
    Verb("disable", HOST, "switch.verbs", "switch TLS offload off"),
    Verb("restore", HOST, "switch.verbs", "put back what was set before enable and disable"),
    Verb("driver", HOST, "driver.verbs", "build a driver with TLS offload for a Debian kernel"),
    Verb("cards", HOST, "card.cards", "list the cards that offload TLS, and in which kernels"),
    Verb("probe", HOST, "probe.verbs", "draft a profile for a card that has none"),
    Verb("completion", HOST, "cli.completion", "print a completion script for your shell"),
    Verb("lab", LAB, "suite.bench.lab.verbs", "run a lab in a VM, or set up one of real hosts", "test"),
    Verb("certify", LAB, "suite.certify.verbs", "test a card and write a report", "report,test,wire"),
    Verb("measure", LAB, "suite.measure.verbs", "measure the CPU cost of TLS, and what offload saves"),
    Verb("report", REPORT, "suite.report.verbs", "show, check, sign and compare reports", "report"),
    Verb("wire", REPORT, "suite.wire.verbs", "capture frames and verify every TLS record in them", "wire"),
)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)  # the disk is full, or mounted read-only
HINTS = {"persist": "ktls-offload enable DEV --persist keeps offload on over reboots"}
OPERATOR = ("status", "enable", "disable", "restore")
NEWER = (3, 11)  # of Python, for the suite; the operator's verbs run on 3.9, which RHEL 9 has
NEED_CHECKOUT = ("certify", "lab up", "lab traffic", "lab fetch", "wire capture")
PACKAGED = ("cryptography", "jinja2")  # modules that Debian and RHEL have as python3-MODULE
SUITE = ("driver", "lab", "certify", "measure", "report", "wire")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; the exit code. Never a traceback for something that a person can correct."""
    settle()
    try:
        with signals_interrupt():
            code = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return code
    except OffloadError as exc:
        usage = exc.usage if isinstance(exc, Misused) else ""
        print(f"{usage}ktls-offload: error: {_harmless(str(exc))}", file=sys.stderr)
        return exc.exit_code
    except KeyboardInterrupt:
        print("ktls-offload: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # the reader of a pipe left; without this Python complains again at exit. Not 0: nobody saw the result
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as exc:
        if exc.errno not in FULL:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(
            f"ktls-offload: error: cannot write {exc.filename or 'the output'}: {exc.strerror}",
            file=sys.stderr,
        )
        return RigError.exit_code


def _harmless(text: str) -> str:
    """Return text that may quote any program's output, without what a terminal would obey."""
    return "".join(c if c.isprintable() or c == "\n" else " " if c == "\t" else "?" for c in text)


def _run(argv: list[str]) -> int:
    """Parse and call; argparse ends with 2 on bad usage and 0 after --help."""
    name = next((a for a in argv if not a.startswith("-")), "")
    verb = next((v for v in VERBS if v.name == name), None)
    try:
        return _called(_parsed(name, verb, argv))
    except SystemExit as exc:
        return exc.code if isinstance(exc.code, int) else 2
    except ModuleNotFoundError as exc:
        if verb is None or (not verb.extra and not (exc.name or "").startswith("yaml")):
            raise
        raise _without(verb, exc.name or "?") from None


def _parsed(name: str, verb: Verb | None, argv: list[str]) -> argparse.Namespace:
    """Return what was typed; ConfigError, as a document too if --json was among it."""
    try:
        if name and verb is None:
            raise ConfigError(
                f"no verb {name!r}{_near(name)}", HINTS.get(name, "ktls-offload --help lists them")
            )
        if verb and verb not in here():
            raise _not_installed([word for word in argv if not word.startswith("-")])
        _new_enough(name)
        shown = [verb] if verb and argv[0] == verb.name else here()  # no help of this call lists the others
        top = parser([verb] if verb else [], shown)
        args, rest = top.parse_known_args(argv)
        if rest:
            top.verbs.get(name, top).error(f"unrecognized arguments: {' '.join(rest)}")
        if verb is None:
            raise ConfigError("which verb?", "ktls-offload --help lists them")
        return args
    except ConfigError as exc:
        if "--json" in argv:
            _document(name, exc)
        raise


def _document(name: str, exc: OffloadError) -> None:
    """Print the error for a program."""
    from offload.cli.document import failed

    print(failed(name, exc))


def _not_installed(words: Sequence[str]) -> ConfigError:
    """Return what to install for a verb of the suite: its package, or a checkout where that would not do."""
    if words[0] == "certify" or " ".join(words[:2]) in (*NEED_CHECKOUT, "measure"):
        return _only_in_a_checkout(words[:1] if words[0] == "certify" else words[:2])
    message = f"`ktls-offload {words[0]}` is part of the certification suite, which is not installed"
    return ConfigError(message, "in a checkout: make deb && apt install ./build/ktls-offload-suite_*.deb")


def _new_enough(name: str) -> None:
    """ConfigError for a verb of the suite on an older Python than it needs."""
    if name in SUITE and sys.version_info < NEWER:
        python = ".".join(map(str, sys.version_info[:2]))
        others = ", ".join(verb.name for verb in here() if verb.name not in SUITE)
        message = f"`ktls-offload {name}` needs Python 3.11 or newer; this is {python}"
        raise ConfigError(message, f"run here: {others}")


def _called(args: argparse.Namespace) -> int:
    """Call the verb. With --json its error is a document too; enable and its like have theirs already."""
    try:
        _checkout(args)
        return int(args.func(args))
    except OffloadError as exc:
        if getattr(args, "json", False) and args.verb not in OPERATOR[1:]:
            _document(args.verb, exc)
        raise


def _checkout(args: argparse.Namespace) -> None:
    """ConfigError, before anything is downloaded, for what needs more of the project than is installed."""
    words = [args.verb, *(word for word in [getattr(args, f"{args.verb}_verb", "")] if word)]
    in_a_vm = args.verb == "measure" and (not args.dev or args.cost)
    needs = " ".join(words) in NEED_CHECKOUT or in_a_vm
    if needs and not _in_checkout():
        raise _only_in_a_checkout(words)


def _only_in_a_checkout(words: Sequence[str]) -> ConfigError:
    """The line to type in a checkout."""
    verb = f"ktls-offload {' '.join(words)}"
    line = "make certify" if verb == "ktls-offload certify" else f"make build && .venv/bin/{verb}"
    return ConfigError(
        f"`{verb}` needs a source checkout, not only the installed package", f"in a checkout: {line}"
    )


def _in_checkout() -> bool:
    """Say whether what must be built is here, too, and not only what a package installs."""
    return (ROOT / "native/nicsim").is_dir()


def _near(name: str) -> str:
    """The verb that was probably meant."""
    import difflib

    close = [] if name in HINTS else difflib.get_close_matches(name, [v.name for v in here()], n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _without(verb: Verb, module: str) -> ConfigError:
    """Return what to install for a verb whose module is not there."""
    if not verb.extra:
        return ConfigError(
            "PyYAML is not installed", "apt install python3-yaml, or: dnf install python3-pyyaml"
        )
    message = f"`ktls-offload {verb.name}` needs more than this installation has (no module {module})"
    if module in PACKAGED and not _in_checkout() and sys.prefix == sys.base_prefix:
        return ConfigError(message, f"apt install python3-{module}, or: dnf install python3-{module}")
    return ConfigError(message, f"pip install 'ktls-offload[{verb.extra}]'")


class Misused(ConfigError):
    """An option or argument that the verb does not take; `usage`: the lines of those that it takes."""

    def __init__(self, message: str, hint: str, usage: str) -> None:
        super().__init__(message, hint)
        self.usage = usage


class Columns(argparse.RawDescriptionHelpFormatter):
    """The list of verbs by group, in two columns: argparse counts the longest verb without its indent."""

    def __init__(self, prog: str, width: int | None = None) -> None:
        super().__init__(prog, width=width)
        self._action_max_length = 4 + max(len(verb.name) for verb in VERBS)

    def _format_action(self, action: argparse.Action) -> str:
        """The verbs below the name of their group; anything else as argparse does."""
        if not isinstance(action, argparse._SubParsersAction):
            return super()._format_action(action)
        lines: list[str] = []
        self._indent()
        for group in (HOST, LAB, REPORT):
            mine = [v.name for v in VERBS if v.group == group]
            rows = [self._format_action(a) for a in action._get_subactions() if a.dest in mine]
            lines += [f"  {group}\n", *rows] if rows else []
        self._dedent()
        return "".join(lines)


class Parser(argparse.ArgumentParser):
    """As argparse's, which makes a formatter for each argument, and imports shutil for the width of one."""

    verbs: Mapping[str, Parser] = {}

    def error(self, message: str) -> NoReturn:
        """Raise, for main() to print; argparse would print and end."""
        raise Misused(message, f"{self.prog} --help", self.format_usage())

    def _get_formatter(self) -> argparse.HelpFormatter:
        return self.formatter_class(prog=self.prog, width=columns() - 2)  # type: ignore[call-arg]

    def format_help(self) -> str:
        """Descriptions and examples are laid out for 111 columns: narrower terminals have them wrapped."""
        return fitted(super().format_help(), columns())


def here() -> Sequence[Verb]:
    """The verbs that are installed: the host tool may be here without the suite."""
    suite = (PACKAGE / "suite").is_dir()
    return [verb for verb in VERBS if suite or not verb.module.startswith("suite.")]


def parser(opened: Sequence[Verb], shown: Sequence[Verb] = VERBS) -> Parser:
    """The parser; only these verbs' modules are opened: the others cost nothing and may be missing."""
    from offload.cli.examples import show

    top = Parser(
        prog="ktls-offload",
        description="Use, trust and certify TLS offload in a network card on Linux.",
        epilog=EPILOG,
        formatter_class=Columns,
    )
    top.add_argument("--version", action="version", version=f"ktls-offload {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    for verb in shown:
        if verb not in opened:
            verbs.add_parser(verb.name, help=verb.help)
        else:
            module = importlib.import_module(f"offload.{verb.module}")
            add = getattr(module, f"add_{verb.name}", None) or module.add_parser
            add(verbs)
            verbs.choices[verb.name].set_defaults(func=module.main)
            verbs._choices_actions[-1].help = verb.help
    show(top, "")
    top.verbs = verbs.choices
    return top


def whole() -> Command:
    """The command with every verb that this installation can open, as a tree."""
    from offload.cli.tree import tree

    opened = []
    for verb in here():
        with suppress(ModuleNotFoundError, ConfigError):
            _new_enough(verb.name)
            importlib.import_module(f"offload.{verb.module}")
            opened.append(verb)
    return tree(parser(opened, here()))
