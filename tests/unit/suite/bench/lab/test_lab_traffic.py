"""`lab traffic` says what it makes, how much moves, and why a connection ended."""

from __future__ import annotations

import re
import shlex
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from offload.cli import main as cli
from offload.errors import ConfigError, OffloadError, RigError
from offload.suite.bench.lab import traffic
from offload.suite.bench.lab.traffic import Flow, Pair, Wish, follow, needed
from offload.suite.traffic import drive

PAGE = Path(__file__).parents[5] / "docs" / "use" / "play-in-the-lab.md"


class End:
    """One end of a connection; `error` None: it goes on."""

    def __init__(self, error: str | None = None) -> None:
        self.error, self.given_up = error, False

    def over(self) -> bool:
        """Whether it has ended."""
        return self.error is not None

    def report(self) -> Any:
        """What it saw."""
        return SimpleNamespace(error=self.error)

    def give_up(self) -> None:
        """End it."""
        self.given_up = True


class Taps:
    """A pump whose transfers have taken ever more: 3 MiB a second each."""

    def __init__(self) -> None:
        self.at = 0.0

    def count(self, transfers: list[Any]) -> Any:
        """How far they are."""
        self.at += 1
        return SimpleNamespace(at=self.at, taken=int(self.at * 3 * (1 << 20) * len(transfers)))


def flow(*pairs: Pair) -> Flow:
    """Connections that somebody has made."""
    made = object.__new__(Flow)
    made.pairs, made.near, made.far = list(pairs), Taps(), Taps()  # type: ignore[assignment]
    return made


def pair(side: str, near: str | None = None, far: str | None = None) -> Any:
    """A connection, with what its ends saw."""
    return Pair(End(near), End(far), side)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time passes by sleeping only."""
    now = [100.0]
    sleep = lambda seconds: now.append(now[-1] + seconds)  # noqa: E731
    monkeypatch.setattr(traffic, "time", SimpleNamespace(monotonic=lambda: now[-1], sleep=sleep))


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (Wish("tx", 0, 0), "--streams 0"),
        (Wish("tx", 1001, 0), "--streams 1001"),
        (Wish("tx", 1, -1), "--seconds -1"),
        (Wish("tx", 1, float("nan")), "--seconds nan"),
        (Wish("tx", 1, 1e9), "--seconds"),
    ],
)
def test_wish_that_makes_no_sense(wish: Wish, words: str) -> None:
    """A count or a time that makes no sense is refused with what is wanted."""
    with pytest.raises(ConfigError, match=words):
        wish.checked()
    assert Wish("both", 1, 0).checked().sides() == ("tx", "rx")


def test_rates_are_reported_by_direction() -> None:
    """Each line says how much arrived in a second, each way that there is."""
    said: list[str] = []
    follow(flow(pair("tx"), pair("tx"), pair("rx")), 12, said.append)
    assert said == ["transmit 6.00 MiB/s,  receive 3.00 MiB/s"] * 3
    said.clear()
    follow(flow(pair("rx")), 12, said.append)
    assert said == ["receive 3.00 MiB/s"] * 3


def test_end_of_a_connection_is_reported_with_its_reason() -> None:
    """A connection that ends is named once, with why; the last one ends all."""
    dead, shut, alive = pair("tx", "timed out"), pair("rx", far=""), pair("tx")
    said: list[str] = []
    made = flow(dead, shut, alive)
    follow(made, 12, said.append)
    reported = [line for line in said if "ended" in line]
    assert reported == [
        "a connection has ended (transmit): timed out",
        "a connection has ended (receive): the other end closed it",
    ]
    assert made.pairs == [alive] and dead.far.given_up and shut.near.given_up
    with pytest.raises(OffloadError, match="no connection is left"):
        follow(flow(pair("tx", "reset")), 0, said.append)


class Bare:
    """A host without these programs."""

    def __init__(self, *missing: str) -> None:
        self.missing = missing

    def run(self, argv: list[str], check: bool = True) -> Any:
        """`test` and `which`."""
        return SimpleNamespace(rc=int(argv[0] in self.missing))


@pytest.mark.parametrize(("lacks", "hint"), [("test", "make build"), ("which", "apt install stunnel4")])
def test_missing_program_is_named(lacks: str, hint: str) -> None:
    """What is not built or not installed is said with the line to type."""
    with pytest.raises(RigError) as caught:
        needed(Bare(lacks), Bare(lacks))  # type: ignore[arg-type]
    assert re.search(re.escape(hint), caught.value.hint)


def test_every_line_of_the_page_can_be_typed() -> None:
    """The tour of the lab names only verbs and options that there are, inside the lab, too."""
    parser, lines = cli.parser(cli.VERBS), re.findall(r"^(ktls-offload .*)$", PAGE.read_text(), re.M)
    inner = [line.partition(" -- ")[2] for line in lines]
    typed = [*lines, *(line for line in inner if line.startswith("ktls-offload "))]
    reported = {" ".join(shlex.split(line)[1:3]) for line in typed}
    for line in typed:
        parser.parse_args(shlex.split(line)[1:])
    assert {"lab up", "lab traffic", "lab shell", "ls --watch", "lab run", "lab down"} <= reported


def test_who_types_in_the_lab_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pumps are nice: with one core between them `ls` waited for minutes."""
    started: list[list[str]] = []
    process = SimpleNamespace(stdin=lambda data: None, stdin_end=lambda: None)
    host = SimpleNamespace(run=lambda *a, **k: None, write=lambda *a: None)
    host.start = lambda argv: started.append(argv) or process
    monkeypatch.setattr(traffic.certs, "placed", lambda *a: nullcontext())
    monkeypatch.setattr(drive.Pump, "ready", lambda self: None)
    monkeypatch.setattr(drive.Pump, "stop", lambda self: None)
    with ExitStack() as undo:
        object.__new__(Flow)._end(SimpleNamespace(host=host), None, undo)  # type: ignore[arg-type]
    assert started[0][:4] == ["nice", "-n", "19", "/usr/bin/python3"]
