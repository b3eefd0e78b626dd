"""What errata.yaml must look like: reads it into errata and notes every problem with file, line and key."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from offload.errata_kernel import Series, series_of, version
from offload.errors import ConfigError

KINDS = ("bug", "behaviour")
PARTS = ("device", "software", "qdisc", "bonding", "mlx5", "ch_ktls")
DIRECTIONS = ("tx", "rx")
CVE = r"CVE-\d{4}-\d{4,7}"
SPAN = ("fixed", "has", "lacks", "unknown")
REQUIRED = (
    "id", "kind", "title", "part", "directions", "feature", "kernels", "symptom", "do", "source",
)  # fmt: skip
KNOWN = (*REQUIRED, "driver", "cve", "commit", "onward", "pattern", "test")


@dataclass(frozen=True)
class Span:
    """What is known of one series. `fixed`: the first Debian package with the fix, by its changelog;
    `has`, `lacks`: a version seen with or without it; `unknown`: why neither can be said."""

    fixed: str = ""
    has: str = ""
    lacks: str = ""
    unknown: str = ""


@dataclass(frozen=True)
class Erratum:
    """One known bug, or behaviour that looks like one. `onward`: the series from which all have the fix;
    `pattern`: a regular expression for the failures it may explain; `test`: what they were testing."""

    id: str
    kind: str
    title: str
    part: str
    directions: tuple[str, ...]
    feature: str
    symptom: str
    do: str
    source: str
    driver: str = ""
    cve: tuple[str, ...] = ()
    commit: str = ""
    kernels: tuple[tuple[Series, Span], ...] = ()
    onward: Series | None = None
    pattern: str = ""
    test: str = ""


@dataclass
class Reader:
    """Takes YAML nodes apart; what is wrong with them is noted, so that all of it can be told at once."""

    file: str
    problems: list[tuple[int, str]] = field(default_factory=list)

    def bad(self, node: yaml.Node, key: str, problem: str) -> None:
        """Note `file:line: key: problem`."""
        line = node.start_mark.line + 1
        self.problems.append((line, f"{self.file}:{line}: {key}: {problem}".replace(": : ", ": ")))

    def fields(
        self, node: yaml.Node, key: str, known: Iterable[str], required: Iterable[str] = ()
    ) -> dict[str, yaml.Node]:
        """The values of a mapping by key; unknown, repeated and missing keys are noted."""
        known, found = tuple(known), {}
        if not isinstance(node, yaml.MappingNode):
            self.bad(node, key, f"{_shown(node)}, wanted a mapping with {', '.join(known)}")
            return {}
        for name, value in node.value:
            word = str(name.value) if isinstance(name, yaml.ScalarNode) else ""
            if word in found:
                self.bad(name, key, f"key {_shown(name)} given twice")
            elif word not in known:
                self.bad(name, key, f"unknown key {_shown(name)}{_near(word, known)}")
            else:
                found[word] = value
        for name in required:
            if name not in found:
                self.bad(node, key, f"key {name} is missing")
        return found

    def items(self, node: yaml.Node, key: str) -> list[tuple[yaml.Node, str]]:
        """The entries of a list that has some, each with its key."""
        if isinstance(node, yaml.SequenceNode) and node.value:
            return [(entry, f"{key}[{at}]") for at, entry in enumerate(node.value)]
        self.bad(node, key, f"{_shown(node)}, wanted a list with entries")
        return []

    def text(self, node: yaml.Node, key: str, wanted: str = "text", pattern: str = ".+") -> str:
        """A scalar that fits the pattern; '' and a note if it does not."""
        odd = not isinstance(node, yaml.ScalarNode) or node.tag.endswith((":null", ":bool"))
        value = "" if odd else " ".join(str(node.value).split())
        if value and value.isprintable() and re.fullmatch(pattern, value):
            return value
        self.bad(node, key, f"{_shown(node)}, wanted {wanted}")
        return ""

    def choice(self, node: yaml.Node, key: str, choices: tuple[str, ...]) -> str:
        """A scalar that is one of these."""
        value = self.text(node, key, f"one of {', '.join(choices)}")
        if value and value not in choices:
            self.bad(node, key, f"{_shown(node)}, wanted one of {', '.join(choices)}{_near(value, choices)}")
        return value


def _shown(node: yaml.Node) -> str:
    """What was there, in a few words."""
    if isinstance(node, yaml.ScalarNode):
        return repr(str(node.value)[:60])
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"


def _near(word: str, choices: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(choices), 1)
    return f" (did you mean {close[0]}?)" if close else ""


def read(path: Path) -> tuple[Erratum, ...]:
    """The errata of a file, in its order. ConfigError with every problem as `file:line: key: ...`."""
    reader = Reader(path.name)
    try:
        root = yaml.compose(path.read_text("utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except OSError as exc:
        raise ConfigError(f"{path.name}: cannot read: {exc.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as exc:
        line = mark.line + 1 if (mark := getattr(exc, "problem_mark", None)) else 1
        raise ConfigError(f"{path.name}:{line}: not YAML: {' '.join(str(exc).split())[:200]}") from None
    if root is None:
        raise ConfigError(f"{path.name}:1: empty file, wanted errata")
    have = reader.fields(root, "", ("schema", "errata"), ("schema", "errata"))
    if "schema" in have:
        reader.text(have["schema"], "schema", "1 (the only schema so far)", "1")
    entries = reader.items(have["errata"], "errata") if "errata" in have else []
    found = tuple(_erratum(reader, node, key) for node, key in entries)
    _unique(reader, entries, found)
    if reader.problems:
        raise ConfigError("\n".join(text for _, text in sorted(reader.problems)))
    return found


def _unique(reader: Reader, entries: list[tuple[yaml.Node, str]], found: tuple[Erratum, ...]) -> None:
    """Note an id that is given twice."""
    ids = [erratum.id for erratum in found]
    for at, (node, key) in enumerate(entries):
        if ids[at] and ids[at] in ids[:at]:
            reader.bad(node, f"{key}.id", f"{ids[at]!r} given twice")


def _erratum(reader: Reader, node: yaml.Node, key: str) -> Erratum:
    """One erratum; what is wrong is noted."""
    have = reader.fields(node, key, KNOWN, REQUIRED)

    def text(name: str, wanted: str = "text", pattern: str = ".+") -> str:
        return reader.text(have[name], f"{key}.{name}", wanted, pattern) if name in have else ""

    def choice(name: str, choices: tuple[str, ...]) -> str:
        return reader.choice(have[name], f"{key}.{name}", choices) if name in have else ""

    def entries(name: str) -> list[tuple[yaml.Node, str]]:
        return reader.items(have[name], f"{key}.{name}") if name in have else []

    onward = text("onward", "a series as in 6.12", r"\d+\.\d+")
    cves = [reader.text(n, k, "a number as in CVE-2026-52974", CVE) for n, k in entries("cve")]
    found = Erratum(
        text("id", "a short name in lower case", r"[a-z0-9][a-z0-9-]{2,63}"),
        choice("kind", KINDS), text("title"), choice("part", PARTS),
        tuple(reader.choice(n, k, DIRECTIONS) for n, k in entries("directions")),
        text("feature"), text("symptom"), text("do"), text("source"),
        text("driver", "a driver name", r"[a-z0-9_]+"), tuple(cves),
        text("commit", "7 to 40 hexadecimal digits", r"[0-9a-f]{7,40}"),
        _kernels(reader, have["kernels"], f"{key}.kernels") if "kernels" in have else (),
        series_of(onward), text("pattern"), text("test"),
    )  # fmt: skip
    for name in {"pattern", "test"} & have.keys():
        _expression(reader, have[name], f"{key}.{name}")
    if found.onward and found.kernels and found.kernels[-1][0] >= found.onward:
        reader.bad(have["onward"], f"{key}.onward", f"{onward}, wanted a series after those of kernels")
    return found


def _expression(reader: Reader, node: yaml.Node, key: str) -> None:
    """Note a regular expression that is none, or that fits everything: it would explain any failure."""
    try:
        if re.search(str(node.value), ""):
            reader.bad(node, key, f"{_shown(node)}, wanted an expression that does not fit an empty text")
    except re.error as exc:
        reader.bad(node, key, f"{_shown(node)}, wanted a regular expression ({exc})")


def _kernels(reader: Reader, node: yaml.Node, key: str) -> tuple[tuple[Series, Span], ...]:
    """What is known per series; a version has to be one of its series, and not fixed before it lacks."""
    known = [str(name.value) for name, _ in node.value] if isinstance(node, yaml.MappingNode) else []
    found: dict[Series, Span] = {}
    for name, value in reader.fields(node, key, dict.fromkeys(known)).items():
        series, at = series_of(name), f"{key}.{name}"
        if series is None:
            reader.bad(value, at, f"{name!r:.60}, wanted a series as in 6.12")
            continue
        found[series] = _span(reader, value, at, series)
    return tuple(sorted(found.items()))


def _span(reader: Reader, node: yaml.Node, key: str, series: Series) -> Span:
    have = reader.fields(node, key, SPAN)
    said = {name: reader.text(value, f"{key}.{name}") for name, value in have.items()}
    numbers = {name: version(text) for name, text in said.items() if name != "unknown" and text}
    for name, number in numbers.items():
        if number is None or number[:2] != series:
            wanted = f"a version of {series[0]}.{series[1]}, as in {series[0]}.{series[1]}.9-1"
            reader.bad(have[name], f"{key}.{name}", f"{said[name]!r:.60}, wanted {wanted}")
    lacks, fixed = numbers.get("lacks"), numbers.get("fixed") or numbers.get("has")
    if lacks and fixed and lacks >= fixed:
        reader.bad(node, key, f"{said['lacks']} cannot lack what an older version has")
    if not said or ("unknown" in said and len(said) > 1):
        reader.bad(node, key, "wanted unknown alone, or some of fixed, has, lacks")
    return Span(**said)
