"""Impairments on the wire of a bench: wirebox in place of its bridge, and a record of all that was done.

Chosen frames and seeded chance are wirebox's; delay and rate in bulk are netem's (impairments/netem.py). Both
stand on the wire ports only: docs/reference/impairment.md says why and which one when.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from offload.cmd import wait_until
from offload.errors import ConfigError, RigError
from offload.host.base import Bench, Completed, Host
from offload.paths import BUILD
from offload.suite.traffic.impairments.netem import Netem, netem
from offload.suite.traffic.impairments.place import Found, put_back, stop_merging, survey
from offload.suite.traffic.impairments.rules import (
    DIRECTIONS,
    Chosen,
    RandomImpairment,
    Rule,
    check_directions,
    text_of,
)

__all__ = ["Action", "Box", "Chosen", "Netem", "Record", "RandomImpairment", "netem", "wirebox"]
PROGRAM = str(BUILD / "wirebox")
SCHEMA = 1
LOOK = 1.0  # seconds that one look for its words waits on the host
HELP = "native/wirebox/README.md lists the keywords"
NAMES = {arrow: name for name, arrow in DIRECTIONS.items()}


@dataclass(frozen=True)
class Action:
    """What was done to one frame (native/wirebox/README.md); `direction` is to-peer or to-dut."""

    rule: int
    frame: int
    direction: str
    flow: str
    length: int
    action: str
    offset: int | None = None
    record: int | None = None
    target: int | None = None
    time: int = 0
    number: int = 0
    behind: int = 0
    at: int = 0
    bit: int = 0
    repaired: bool = False


@dataclass(frozen=True)
class Record:
    """What the impairments were: rules as wirebox takes them, its actions, its counts per direction.

    The first `begun` of the `rules` were there from the start, the others came by `Box.add`. `start` and
    `seed` given to `wirebox` again, and the others added again, make the same impairments: every choice is in
    them.
    """

    seed: int
    rules: tuple[str, ...]
    actions: tuple[Action, ...]
    summary: Mapping[str, Any]
    begun: int = 0

    @property
    def start(self) -> tuple[str, ...]:
        """The rules that `wirebox` was given at the start."""
        return self.rules[: self.begun]

    def json(self) -> dict[str, Any]:
        """Return it for the evidence."""
        actions = [asdict(action) for action in self.actions]
        rules, summary = list(self.rules), dict(self.summary)
        head = {"schema": SCHEMA, "seed": self.seed, "rules": rules, "begun": self.begun}
        return {**head, "actions": actions, "summary": summary}

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Record:
        """Read back what `json` gave; ConfigError for something else."""
        try:
            if found["schema"] != SCHEMA or not all(isinstance(r, str) for r in found["rules"]):
                raise ValueError("schema or rules")
            actions = tuple(_action(action) for action in found["actions"])
            rules, begun = tuple(found["rules"]), int(found.get("begun", _before_clear(found["rules"])))
            if not 0 <= begun <= len(rules):
                raise ValueError(f"{begun} rules at the start, of {len(rules)}")
            return cls(int(found["seed"]), rules, actions, dict(found["summary"]), begun)
        except (KeyError, TypeError, ValueError) as exc:
            raise ConfigError(
                f"this is not an impairment record: {exc}", f"schema {SCHEMA} is required"
            ) from None


def _before_clear(rules: Sequence[str]) -> int:
    """How many rules there were at the start, in a record that does not say so."""
    return next((number for number, text in enumerate(rules) if text == "clear"), len(rules))


def _action(found: Mapping[str, Any]) -> Action:
    """An action of what wirebox or a record says; what may be added later is left out."""
    known = {name: value for name, value in found.items() if name in Action.__dataclass_fields__}
    return Action(**{**known, "direction": NAMES.get(known["direction"], known["direction"])})


class Box:
    """wirebox at work; `wirebox()` makes it."""

    def __init__(self, host: Host, argv: Sequence[str], seed: int, offloads: tuple[str, ...] = ()) -> None:
        self.seed, self._offloads = seed, offloads
        self._process = host.start(argv)
        self._said: list[dict[str, Any]] = []
        self._seen = 0
        self._rules: list[str] = []
        self._begun = 0
        self._ended: Completed | None = None

    @property
    def pid(self) -> int:
        """Its process id on the wire's host."""
        return self._process.pid

    def _read(self, patience: float = 0) -> None:
        """Take in the whole lines that came since the last time; wait `patience` seconds for more."""
        out = self._process.news(patience)[0] if self._ended is None else self._ended.stdout
        end = out.rfind(b"\n") + 1
        if end > self._seen:
            self._said += [json.loads(line) for line in out[self._seen : end].splitlines()]
            self._seen = end

    def _lines(self, key: str) -> list[dict[str, Any]]:
        return [line for line in self._said if key in line]

    def _await(self, keys: tuple[str, ...], count: int, what: str) -> None:
        """Wait for this many lines with one of these keys. RigError with its last words if it ended
        before."""

        def there() -> bool:
            self._read(LOOK)
            if sum(any(key in line for key in keys) for line in self._said) >= count:
                return True
            if not self._process.running():
                said = self._process.output()[1].decode("utf-8", "replace").strip()
                raise RigError(f"wirebox ended before {what}: {said[-500:]}")
            return False

        wait_until(there, 120, what)

    def begin(self, rules: Sequence[str]) -> None:
        """Wait until it carries frames, and give it the rules that are there from the start."""
        self._await(("ready",), 1, "it carried a frame")
        for text in rules:
            self.add(text)
        self._begun = len(rules)

    def add(self, rule: Rule) -> int:
        """Add a rule from now on: its number. ConfigError with wirebox's words if it makes no sense to it.

        Refused for impairments that cannot meet what the card offloads, as `wirebox` does.
        """
        text = text_of(rule)
        check_directions([text], self._offloads)
        before = len(self._lines("added")) + len(self._lines("line"))
        self._process.stdin(text.encode() + b"\n")
        self._await(("added", "line"), before + 1, f"it took {text!r}")
        answer = [line for line in self._said if "added" in line or "line" in line][-1]
        if "line" in answer:
            raise ConfigError(f"{answer['error']}, in {text!r}", HELP)
        self._rules.append(text)
        return int(answer["added"])

    def clear(self) -> None:
        """End all impairments; frames that are held back still come."""
        self.add("clear")

    def actions(self) -> tuple[Action, ...]:
        """Return what it has done so far."""
        self._read()
        return tuple(_action(line) for line in self._lines("action"))

    def acted(self, rule: int, timeout: float = 120) -> Action:
        """Wait until a rule has acted: the first action. RigError if it does not in `timeout` seconds."""
        wait_until(lambda: any(a.rule == rule for a in self.actions()), timeout, f"rule {rule} to act")
        return next(a for a in self.actions() if a.rule == rule)

    @property
    def summary(self) -> Mapping[str, Any]:
        """Counts per direction (to-peer, to-dut) and of all; empty before it has ended."""
        found: dict[str, Any] = next((line["summary"] for line in self._lines("summary")), {})
        return {NAMES.get(name, name): value for name, value in found.items()}

    def record(self) -> Record:
        """Return what the evidence keeps; whole after the end."""
        return Record(self.seed, tuple(self._rules), self.actions(), self.summary, self._begun)

    def stop(self) -> None:
        """End it. RigError if it ended by itself, or was no faithful cable: frames that did not fit."""
        died = not self._process.running()
        self._process.kill()
        self._ended = self._process.wait(20)
        self._read()
        said = self._ended.stderr.decode("utf-8", "replace").strip()
        if died or self._ended.rc != 0:
            raise RigError(f"wirebox ended with exit code {self._ended.rc}: {said[-500:] or 'no message'}")
        trouble = [line["error"] for line in self._lines("error") if "line" not in line]
        if trouble:
            raise RigError(f"the wire did not forward every frame: {'; '.join(trouble)}")


def _check_program(host: Host, program: str, texts: Sequence[str]) -> None:
    """RigError if wirebox is not there; ConfigError with its words for a rule that makes no sense to it."""
    done = host.run([program, "--check"], input="".join(f"{t}\n" for t in texts).encode(), check=False)
    if done.rc == 2:
        raise ConfigError((done.stderr.decode("utf-8", "replace").splitlines() or ["wrong rules"])[0], HELP)
    if done.rc != 0:
        raise RigError(f"{program} does not run on {host.name} (exit {done.rc})", "make build")


@contextmanager
def wirebox(
    bench: Bench,
    rules: Sequence[Rule] = (),
    *,
    seed: int = 1,
    offloads: tuple[str, ...] = (),
    program: str = PROGRAM,
    found: Found | None = None,
    join: bool = False,
) -> Iterator[Box]:
    """Put wirebox in place of the bridge between the wire ports, with these rules; all is put back after.

    `seed`: of random rules that name none. `offloads`: the directions (tx, rx) that the card promises, if
    the impairments test a card. `found`: what `survey` said, if nobody else has changed the wire since.
    `join`: rules also meet a connection that is older, and count its bytes from its first frame here.

    Before anything changes: Refused on an end of the bench (saying why), without a wire, on a bridge that is
    more than a cable, and for impairments that cannot meet what the card offloads. ConfigError for rules or
    ports that make no sense; NoDevice; NoPermission. RigError if it breaks.
    """
    texts = [text_of(rule) for rule in rules]
    check_directions(texts, offloads)
    host, ports, surveyed = bench.wire, bench.wire_ports, found is not None
    found = found or survey(bench)
    assert host is not None
    if texts or not surveyed:
        _check_program(host, program, texts)
    more = ["--bridge", found.bridge] * bool(found.bridge) + ["--join"] * join
    with ExitStack() as undo:
        undo.callback(put_back, host, ports, found)
        stop_merging(host, found)
        box = Box(host, [program, *ports, "--seed", str(seed), *more], seed, offloads)
        undo.callback(box.stop)
        box.begin(texts)
        yield box
