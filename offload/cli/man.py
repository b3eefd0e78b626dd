"""The man page, made from the parser: `python -m offload.cli.man FILE` writes it.

Why not argparse-manpage? Version 4.8 prints each verb's help well. Its page would still need our sections
for files, variables and examples, and completion needs the tree of verbs anyway.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from offload import __version__
from offload.cli.examples import EXAMPLES
from offload.cli.main import EPILOG, whole
from offload.cli.tree import Command, Option, Value

DATE = "2026-11-21"  # of these words; nothing of the build is in the page: so packages are reproducible
DESCRIPTION = """\
A network card with TLS offload encrypts and decrypts the records of a kernel TLS socket. ktls-offload
reports whether that happens here and why not (`doctor`, `status`, `ls`). It switches offload on and
off, and undoes its changes (`enable`, `disable`, `restore`). It measures what offload saves
(`measure`), and tests a card against the promises of its profile (`certify`). The default card is a
simulated one in a virtual machine.

The verbs `status`, `doctor`, `ls`, `enable`, `disable`, `restore`, `probe` and `completion` need
Python and PyYAML only. The others report what they need if it is missing.

Use --json for output that programs read: its key `schema` is the version, and later releases only add
keys. Only terminals get colored output.
"""
ENVIRONMENT = {
    "KTLS_OFFLOAD_STATE": "Folder of the journal, instead of /var/lib/ktls-offload.",
    "NO_COLOR": "If set and not empty: no color, even on a terminal.",
    "XDG_CACHE_HOME": "Folder for the lab's downloads and built modules (in ktls-offload below it).",
}
FILES = {
    "/var/lib/ktls-offload": "The journal: each value before its first change.",
    "/usr/share/ktls-offload/nic-profiles": "The profiles of known cards, in the Debian package.",
}
SEE = ("ethtool(8)", "ip(8)", "ss(8)", "devlink(8)", "modprobe(8)")


def page(root: Command) -> str:
    """The whole page, for groff and mandoc."""
    lines = [
        ".\\\" Made by `python -m offload.cli.man`: do not edit, change the parser's words instead.",
        f'.TH KTLS\\-OFFLOAD 1 "{DATE}" "ktls\\-offload {__version__}" "User Commands"',
        ".nh",  # a verb or a path broken by a hyphen cannot be copied
        ".ad l",
        ".SH NAME",
        "ktls\\-offload \\- use, trust and certify TLS offload in a network card",
        ".SH SYNOPSIS",
        ".B ktls\\-offload",
        "\\fIVERB\\fR [\\fIoptions\\fR] ...",
        ".SH DESCRIPTION",
        *prose(DESCRIPTION),
        ".SH VERBS",
    ]
    for command in root.walk():
        lines += _verb(command) if command.path else []
    codes, _, journal = EPILOG.partition("\n\n")
    lines += [".SH EXIT STATUS", *prose(codes.partition("\n")[2]), ".SH JOURNAL", *prose(journal)]
    lines += [".SH EXAMPLES", *prose("".join(f"  {row}\n" for row in EXAMPLES[""].splitlines()))]
    lines += [".SH ENVIRONMENT", *_table(ENVIRONMENT), ".SH FILES", *_table(FILES)]
    see = [f".BR {_code(name)} ({rest}" for name, _, rest in (s.partition("(") for s in SEE)]
    return "\n".join([*lines, ".SH SEE ALSO", *(f"{s} ," for s in see[:-1]), see[-1]]) + "\n"


def prose(text: str) -> Iterator[str]:
    """Paragraphs, filled; lines that begin with a blank stay as they are."""
    plain, first = False, True
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        yield from () if first else (".PP",)
        first = False
        for line in block.splitlines():
            if line.startswith(" ") != plain:
                plain = not plain
                yield ".nf" if plain else ".fi"
            yield _code(line) if plain else _text(line)
        if plain:
            plain = False
            yield ".fi"


def _text(line: str) -> str:
    """Running text: `quoted` is bold; nothing in it is a request."""
    parts = line.split("`")
    shown = [f"\\fB{_code(part)}\\fR" if n % 2 else _escaped(part) for n, part in enumerate(parts)]
    return _guarded(re.sub(r"\*(\w+)\*", r"\\fI\1\\fR", "".join(shown)))


def _code(text: str) -> str:
    """Return what a person may copy: every sign as it is typed."""
    text = _escaped(text).replace("-", "\\-").replace("^", "\\(ha").replace("~", "\\(ti")
    return _guarded(text.replace("`", "\\(ga").replace("'", "\\(aq"))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\e")


def _guarded(line: str) -> str:
    """A line that begins as a request does is none."""
    return f"\\&{line}" if line.startswith((".", "'")) else line


def _verb(command: Command) -> list[str]:
    """Name, how it is called, what it says, its options."""
    about = command.description.partition("\n")
    body = (
        about[2] if about[0].rstrip(".?").startswith(command.help[:20].rstrip(".?")) else command.description
    )
    lines = [f'.SS "{_code(command.words)}"', _synopsis(command)]
    if command.help:
        lines += [".PP", _text(f"{command.help[0].upper()}{command.help[1:]}".rstrip("?.") + ".")]
    lines += [".PP", *prose(body)] if body.strip() else []
    for argument in command.arguments:
        lines += [".TP", f"\\fI{_code(argument.value.name)}\\fR", _text(argument.help)]
    for option in command.options:
        if "--help" not in option.names:
            lines += [".TP", _names(option), _text(option.help)]
    return [*lines, ".PP", *prose(command.epilog)] if command.epilog.strip() else lines


def _names(option: Option) -> str:
    """An option by all its names, with what it takes."""
    names = ", ".join(f"\\fB{_code(name)}\\fR" for name in option.names)
    return f"{names} {_taken(option.value)}" if option.value else names


def _taken(value: Value) -> str:
    """A value as in a synopsis."""
    name = f"\\fI{_code(value.name)}\\fR" + ("..." if value.many else "")
    return f"[{name}]" if value.optional else name


def _synopsis(command: Command) -> str:
    """One line: verb, options, arguments."""
    parts = [f"\\fB{_code(f'ktls-offload {command.words}')}\\fR"]
    for option in command.options:
        text = f"\\fB{_code(option.names[-1])}\\fR" + (f" {_taken(option.value)}" if option.value else "")
        parts += [] if "--help" in option.names else [text if option.required else f"[{text}]"]
    parts += [_taken(argument.value) for argument in command.arguments]
    return " ".join([*parts, "\\fIVERB\\fR ..."] if command.verbs else parts)


def _table(rows: dict[str, str]) -> list[str]:
    """Names with a sentence each."""
    return [line for name, text in rows.items() for line in (".TP", f"\\fB{_code(name)}\\fR", _text(text))]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(whole()))
