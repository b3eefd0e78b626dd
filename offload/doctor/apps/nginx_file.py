"""nginx.conf as nginx reads it: directives, blocks and included files, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from offload.doctor.apps.files import Files, Place, entering

MAX_WORDS, MAX_NESTED = 200_000, 100
# a word as ngx_conf_read_token takes it; ${x} is part of a word, # begins a comment only before one
TOKEN = re.compile(
    r"""(?P<space>\s+)|(?P<comment>\#[^\n]*)|(?P<mark>[;{}])
      |"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'
      |(?P<word>(?:\$\{[^}]*\}|\\.|[^\s;{}\\])+)|(?P<odd>.)""",
    re.X | re.S,
)


@dataclass
class Directive:
    """One directive with its words; `block` has what is inside its braces; `end` is the last line of it."""

    name: str
    words: list[str]
    at: Place
    block: list[Directive] = field(default_factory=list)
    whole: bool = False

    def all(self, name: str) -> list[Directive]:
        """The directives of this name directly inside."""
        return [d for d in self.block if d.name == name]

    def last(self, name: str) -> Directive | None:
        """The last directive of this name directly inside."""
        found = self.all(name)
        return found[-1] if found else None


class Parser:
    """One configuration; what is wrong with it is in `files.problems`."""

    def __init__(self, files: Files, main: str) -> None:
        self.files, self.prefix, self.words = files, main.rpartition("/")[0], 0
        self.ended = Place(main, 1)  # the last } of a block
        self.root = Directive("main", [], Place(main, 1), whole=True)
        self._read(main, self.root, (), "", 0)

    def _read(self, path: str, into: Directive, stack: tuple[str, ...], asked: object, depth: int) -> None:
        text = entering(self.files, stack, path, asked)
        if text is None:
            return
        tokens = self._tokens(text, path)
        if self._block(tokens, into, (*stack, path), depth):
            self.files.problem(self.ended, "a } without a {: ignored the rest")

    def _tokens(self, text: str, path: str) -> Iterator[tuple[str, str, Place]]:
        """Kind (word, ;, { or }), text and place of each token."""
        line = 1
        for match in TOKEN.finditer(text):
            kind, token, at = match.lastgroup or "", match[0], Place(path, line)
            line += token.count("\n")
            self.words += 1
            if self.words > MAX_WORDS:
                self.files.problem(at, f"more than {MAX_WORDS} words: ignored the rest")
                return
            if kind == "mark":
                yield token, token, at
            elif kind in ("double", "single", "word"):
                yield "word", match[kind], at
            elif kind == "odd":
                self.files.problem(at, f"an unterminated quote: {text[match.start() :][:40]}")
                return

    def _block(
        self, tokens: Iterator[tuple[str, str, Place]], into: Directive, stack: tuple[str, ...], depth: int
    ) -> bool:
        """Read directives until the block ends; say whether a brace ended it."""
        words: list[str] = []
        at = into.at
        for kind, text, place in tokens:
            if kind == "word":
                at = at if words else place
                words.append(text)
            elif kind == ";":
                self._directive(words, at, into, stack, depth)
                words = []
            elif kind == "{":
                self._open(tokens, Directive(words[0] if words else "", words[1:], at), into, stack, depth)
                words = []
            else:
                self.ended = place
                return True
        if words:
            self.files.problem(at, f"{words[0]}: no ; at the end")
        return False

    def _open(
        self,
        tokens: Iterator[tuple[str, str, Place]],
        made: Directive,
        into: Directive,
        stack: tuple[str, ...],
        depth: int,
    ) -> None:
        """The lines inside braces."""
        into.block.append(made)
        if made.name.endswith("_by_lua_block"):
            made.whole = self._skip(tokens)
        elif depth >= MAX_NESTED:
            self.files.problem(made.at, f"more than {MAX_NESTED} blocks deep")
            made.whole = self._skip(tokens)
        else:
            made.whole = self._block(tokens, made, stack, depth + 1)
        if not made.whole:
            self.files.problem(made.at, f"{made.name} {{ has no }}")

    def _skip(self, tokens: Iterator[tuple[str, str, Place]]) -> bool:
        """Leave out what is inside braces."""
        depth = 1
        for kind, _, _ in tokens:
            depth += {"{": 1, "}": -1}.get(kind, 0)
            if not depth:
                return True
        return False

    def _directive(
        self, words: list[str], at: Place, into: Directive, stack: tuple[str, ...], depth: int
    ) -> None:
        """Keep one, or read what it includes."""
        if not words:
            return
        if words[0] != "include" or len(words) < 2:
            into.block.append(Directive(words[0], words[1:], at))
            return
        pattern = words[1] if words[1].startswith("/") else f"{self.prefix}/{words[1]}"
        for path in self.files.matching(pattern):
            self._read(path, into, stack, at, depth)
