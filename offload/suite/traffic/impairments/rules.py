"""Which impairments a test asks for: chosen frames and random chance, as values and as wirebox's words."""

from __future__ import annotations

from dataclasses import dataclass

from offload.errors import ConfigError, Refused

DIRECTIONS = {"to-peer": "a>b", "to-dut": "b>a", "both": "both"}  # wire port a is the one at the DUT
NUMBERED = ("header", "inside", "tag", "offset", "frame")
PLACES = (*NUMBERED, "first", "last")
RECORDS = ("header", "inside", "tag")
ACTIONS = ("drop", "delay", "duplicate", "flip", "mark")


def _one_of(what: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigError(f"{what} {value!r}", f"one of {', '.join(known)}")


def _within(what: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ConfigError(f"{what} is {value}", f"it must be {low} to {high}")


def _port(port: int) -> str:
    _within("port", port, 0, 65535)
    return f" port {port}" if port else ""


def _percent(what: str, value: float) -> str:
    """A share in percent with up to four decimals; ConfigError for one that is none or would be cut to 0."""
    if not 0 <= value <= 100 or (value and value < 0.0001):
        raise ConfigError(f"{what} of {value} %", "a share in percent: 0, or 0.0001 to 100")
    return f"{what} {value:.4f}%"


@dataclass(frozen=True)
class Chosen:
    """One exact frame of every flow that fits, and what is done to it; `text` is wirebox's line for it.

    `place`: header, inside or tag of record `number`; first, last; offset or frame `number`
    (native/wirebox/README.md says what each is). Records count from 0 in their direction; with `data` only
    those with application data. `action`: drop, delay (behind the next `behind` frames), duplicate, flip
    (`bit` of byte `at` of the frame's payload, by default the byte that the place is about; the checksum is
    made right if `repaired`), mark (CE, where the sender listens). `times`: also the next times - 1 frames
    that carry that byte again. `port`: a TCP port of the flow, 0 for any. ConfigError, naming the value, if
    something makes no sense.
    """

    place: str
    number: int = 0
    action: str = "drop"
    direction: str = "to-peer"
    data: bool = False
    port: int = 0
    behind: int = 3
    at: int | None = None
    bit: int = 0
    repaired: bool = True
    times: int = 1

    def __post_init__(self) -> None:
        _one_of("place", self.place, PLACES)
        _one_of("action", self.action, ACTIONS)
        _one_of("direction", self.direction, ("to-peer", "to-dut"))
        _within("number", self.number, 0, 1 << 40)
        if self.number and self.place not in NUMBERED:
            raise ConfigError(
                f"{self.place} {self.number}", f"{self.place} is a single frame and takes no number"
            )
        if self.data and self.place not in RECORDS:
            raise ConfigError(
                f"{self.place} does not count records", f"data=True applies to {', '.join(RECORDS)}"
            )
        _within("behind", self.behind, 1, 1000)
        _within("bit", self.bit, 0, 7)
        _within("times", self.times, 1, 100)
        if self.at is not None:
            _within("at", self.at, -65535, 65535)
        _port(self.port)

    @property
    def text(self) -> str:
        """One line for wirebox."""
        number = f" {'+' if self.data else ''}{self.number}" if self.place in NUMBERED else ""
        where = f"{DIRECTIONS[self.direction]}{_port(self.port)} {self.place}{number}"
        return f"{where} {self._action()}" + (f" times {self.times}" if self.times > 1 else "")

    def _action(self) -> str:
        if self.action == "delay":
            return f"delay {self.behind}"
        if self.action != "flip":
            return self.action
        at = "" if self.at is None else f" at {self.at}"
        return f"flip{at} bit {self.bit} {'repaired' if self.repaired else 'noise'}"


@dataclass(frozen=True)
class RandomImpairment:
    """Chance for every TCP frame: shares in percent, `jitter` in milliseconds (it reorders); seeded.

    `reorder`: this many come behind the next `depth` frames. `corrupt`: one bit of the payload, with the
    checksum made right if `repaired` (an attacker), else noise that TCP drops. `port`: a TCP port of the
    flow, 0 for any. A frame's fate depends on the seed, its direction and its number, and on nothing else.
    ConfigError, naming the value, if something makes no sense.
    """

    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    corrupt: float = 0.0
    jitter: float = 0.0
    seed: int = 1
    direction: str = "both"
    depth: int = 3
    repaired: bool = False
    port: int = 0

    def __post_init__(self) -> None:
        _one_of("direction", self.direction, tuple(DIRECTIONS))
        for what in ("loss", "duplicate", "reorder", "corrupt"):
            _percent(what, getattr(self, what))
        _within("seed", self.seed, 0, (1 << 64) - 1)
        _within("depth", self.depth, 1, 1000)
        _within("jitter in microseconds", round(self.jitter * 1000), 0, 1_000_000)
        _port(self.port)

    @property
    def text(self) -> str:
        """One line for wirebox."""
        words = [f"impair {DIRECTIONS[self.direction]}{_port(self.port)} seed {self.seed}"]
        words += [
            _percent(what, getattr(self, what)) for what in ("loss", "duplicate") if getattr(self, what)
        ]
        if self.reorder:
            words.append(f"{_percent('reorder', self.reorder)} depth {self.depth}")
        if self.corrupt:
            words.append(f"{_percent('corrupt', self.corrupt)} {'repaired' if self.repaired else 'noise'}")
        if self.jitter:
            words.append(f"jitter {round(self.jitter * 1000)}")
        return " ".join(words)


Rule = Chosen | RandomImpairment | str  # str: a line as wirebox takes it, for instance of a Record


def text_of(rule: Rule) -> str:
    """The rule as one line; ConfigError for text that is more or less than one."""
    text = rule if isinstance(rule, str) else rule.text
    if not text.strip() or "\n" in text:
        raise ConfigError(f"{text!r} is not a rule", "native/wirebox/README.md lists the keywords")
    return text


def check_directions(rules: list[str], offloads: tuple[str, ...]) -> None:
    """Refused for impairments of what a card receives if it offloads only transmit, or the other way round.

    Impairing both directions is allowed: transmit meets lost acknowledgements too.
    """
    one_way = {"tx": ("to-dut", "b>a", "receives"), "rx": ("to-peer", "a>b", "sends")}
    for only, (name, arrow, verb) in one_way.items():
        heads = ([word for word in text.split() if word != "impair"][:1] for text in rules)
        if offloads == (only,) and [arrow] in heads:
            raise Refused(
                f"impairments of what the DUT {verb} say nothing about a card that offloads {only} only",
                f"{name} impairs that direction: choose the other one, or both",
            )
