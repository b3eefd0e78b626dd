"""How wide the person's terminal is, and text that fits it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

# where an entry goes on: below its last column, and a command's comment below itself
ENTRY = re.compile(r" +\S+(?: \S+)* {2,}")
COMMAND = re.compile(r"(?P<command> *\S.*?) +# (?P<words>.*)")
LEAST = 24  # columns: a narrower last one would be a word a line


def columns(otherwise: int = 80) -> int:
    """As shutil.get_terminal_size has it; importing that one takes longer than all else of a parser."""
    with suppress(KeyError, ValueError):
        if (said := int(os.environ["COLUMNS"])) > 0:
            return said
    with suppress(OSError):
        return os.get_terminal_size(1).columns or otherwise
    return otherwise


def shown(text: str, out: Any) -> str:
    """Return text as a person sees it best: in lines of the terminal; any other reader gets its own lines."""
    return fitted(text, columns()) if out.isatty() else text


def fitted(text: str, width: int) -> str:
    """Return text in lines of a width: paragraphs flow, an indented line goes on below its last column.

    An indented line without a second column stays whole: it may be a command, which people copy.
    """
    return "".join(f"{line}\n" for block in _blocks(text) for line in _lines(block, width))


def _blocks(text: str) -> Iterator[list[str]]:
    """Each paragraph, which is lines without an indent, and each other line alone."""
    block: list[str] = []
    for line in text.splitlines():
        if line[:1].strip():
            block.append(line)
            continue
        if block:
            yield block
        block = []
        yield [line]
    if block:
        yield block


def _lines(block: list[str], width: int) -> list[str]:
    """The lines of a block: as they are, if they fit."""
    if max(map(len, block)) <= width:
        return block
    from textwrap import wrap

    text, first, then = " ".join(block), "", ""
    if text.startswith(" "):
        if found := COMMAND.fullmatch(text):
            first = found["command"].ljust(min(text.index("# "), width - LEAST) - 1) + " # "
            text, then = found["words"], "# ".rjust(len(first))
        elif found := ENTRY.match(text):
            first, text = found[0], text[found.end() :]
            then = " " * min(len(first), width - LEAST)
        else:
            return block
    return wrap(text, width, initial_indent=first, subsequent_indent=then, break_on_hyphens=False)
