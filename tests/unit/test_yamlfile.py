"""A table says what a file must hold; what is wrong is told with its line, key, what was there and wanted."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from offload.errors import ConfigError
from offload.yamlfile import Kind, fields, flag, listed, mapped, number, parse, record, text

Problem = list[str]


def read(kind: Kind, words: str) -> tuple[Any, Problem]:
    """What a kind makes of the value of the key `a`, and what it says of it without the file's name."""
    root = parse(f"a: {words}\n".encode(), "f.yaml", "test")
    found = fields(root, {"a": kind})[1]["a"]
    return found, [line.removeprefix("f.yaml:1: ") for _, line in root.log.lines]


PAIR = record(lambda **said: tuple(said.values()), {"x": text(), "y": number().optional(7)})
ONE = record(dict, {"x": text()}, lambda item, have, found: item.bad("odd") if found["x"] == "b" else None)


@pytest.mark.parametrize(
    ("kind", "words", "expected"),
    [
        (text(), "b  c", "b c"),
        (text(), "3", "3"),
        (text(choices=("b", "c")), "c", "c"),
        (flag(), "on", True),
        (flag(), "No", False),
        (number(), "0.5", 0.5),
        (number(), "-3", -3),
        (number("x", 1, 3, whole=True), "3", 3),
        (listed(text()), "[b, c]", ("b", "c")),
        (listed(text()), "[]", ()),
        (mapped(number()), "{b: 1, c: 2}", {"b": 1, "c": 2}),
        (PAIR, "{x: b}", ("b", 7)),
        (PAIR, "{y: 1, x: b}", ("b", 1)),
        (ONE, "{x: c}", {"x": "c"}),
        (listed(text().once()), "[b, c]", ("b", "c")),
    ],
)
def test_a_good_value_is_taken(kind: Kind, words: str, expected: object) -> None:
    """Each kind gives the value of its type, and says nothing."""
    assert read(kind, words) == (expected, [])


@pytest.mark.parametrize(
    ("kind", "words", "expected"),
    [
        (text("a name"), "[b]", "a: a list, wanted a name"),
        (text(), "null", "a: 'null', wanted text"),
        (text(), "yes", "a: 'yes', wanted text"),
        (text(), f"'{'b' * 601}'", f"a: '{'b' * 57}...', wanted text"),
        (text(pattern="b+"), "c", "a: 'c', wanted text"),
        (text(), '"\\e[2J"', "a: '\\x1b[2J', wanted text"),
        (text(choices=("bee", "sea")), "beee", "a: 'beee', wanted one of bee, sea (did you mean bee?)"),
        (flag(), "1", "a: '1', wanted on or off"),
        (flag("true or false"), "{}", "a: a mapping, wanted true or false"),
        (number(), "b", "a: 'b', wanted a number"),
        (number(), "'3'", "a: '3', wanted a number"),
        (number(), ".nan", "a: '.nan', wanted a number"),
        (number(), "1:30", "a: '1:30', wanted a number"),
        (number("a number from 1", 1), "0", "a: '0', wanted a number from 1"),
        (number("a number from 1", 1, whole=True), "1.5", "a: '1.5', wanted a number from 1"),
        (listed(text()), "b", "a: 'b', wanted a list"),
        (listed(text(), 1), "[]", "a: a list, wanted a list with entries"),
        (listed(text()), "[b, []]", "a[1]: a list, wanted text"),
        (listed(text().once()), "[b, b]", "a[1]: 'b' given twice"),
        (mapped(text()), "[]", "a: a list, wanted a mapping"),
        (mapped(number()), "{b: c}", "a.b: 'c', wanted a number"),
        (mapped(text(), ("bee",), what="arm"), "{bea: 1}", "a: unknown arm 'bea' (did you mean bee?)"),
        (mapped(text(), ("bee",), ("bee",), what="arm"), "{}", "a: arm bee is missing"),
        (mapped(text()), "{[b]: 1}", "a: unknown key a list, wanted a name"),
        (PAIR, "{y: 1}", "a: key x is missing"),
        (PAIR, "{x: b, x: c}", "a: key 'x' given twice"),
        (PAIR, "{x: b, z: c}", "a: unknown key 'z', wanted one of x, y"),
        (PAIR, "3", "a: '3', wanted a mapping with x, y"),
        (ONE, "{x: b}", "a: odd"),
    ],
)
def test_a_wrong_value_is_reported(kind: Kind, words: str, expected: str) -> None:
    """One line: the key, what was there, what was wanted."""
    assert read(kind, words)[1] == [expected]


def test_a_missing_key_has_an_empty_value() -> None:
    """Checks that compare keys run even where one is missing: what stands in for it is of its type."""
    root = parse(b"{}", "f.yaml", "test")
    rows = {"a": text(), "b": number(), "c": listed(text()), "d": mapped(text()), "e": flag(), "f": PAIR}
    assert fields(root, rows)[1] == {"a": "", "b": 0, "c": (), "d": {}, "e": False, "f": ("", 7)}
    with pytest.raises(ConfigError) as caught:
        root.log.check()
    assert str(caught.value).splitlines() == [f"f.yaml:1: key {key} is missing" for key in rows]


def test_no_value_makes_a_kind_fall() -> None:
    """Whatever YAML stands there, a kind takes it or says what is wrong: it never ends in a traceback."""
    words = ["", "~", "0x1f", "1_0", "0o7", "-.inf", "2026-11-23", "=", "<<", "[[]]", "{[]: 1}", "{? {} : 1}"]
    kinds = [text(), text(choices=("b",)), flag(), number(), listed(number(), 1), mapped(flag()), PAIR, ONE]
    for kind, word in itertools.product(kinds, words):
        found, problems = read(kind, word)
        assert problems or found not in ("", ()), (kind, word)
