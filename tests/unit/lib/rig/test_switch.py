"""A test's switch stands in its first line, and what was found comes back."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from offload.card.nic import Feature
from offload.card.profile import FEATURES
from tests.lib.rig import switch
from tests.lib.rig.switch import Switch

TESTS = Path(__file__).parents[3]


class Card:
    """A card of which ethtool switches the features; `stuck`: those that do not follow."""

    def __init__(self, tx: bool, rx: bool, stuck: tuple[str, ...] = ()) -> None:
        self.shown, self.stuck, self.asked = {FEATURES["tx"]: tx, FEATURES["rx"]: rx}, stuck, 0
        self.typed: list[list[str]] = []
        self.host, self.dev = self, "eth0"

    def run(self, argv: list[str], check: bool) -> Any:
        """Take `ethtool -K eth0 FEATURE on|off ...`."""
        words = argv[3:]
        self.typed.append(words)
        self.shown |= {
            n: on == "on" for n, on in zip(words[::2], words[1::2], strict=True) if n not in self.stuck
        }
        return SimpleNamespace(stderr=b"")

    def features(self, host: Any, dev: str) -> dict[str, Feature]:
        """What `ethtool -k` shows."""
        self.asked += 1
        return {name: Feature(name, on, False, on) for name, on in self.shown.items()}


def made(monkeypatch: pytest.MonkeyPatch, card: Card, *promised: str) -> Switch:
    monkeypatch.setattr(switch, "features", card.features)
    return Switch(card, promised)  # type: ignore[arg-type]


@pytest.mark.parametrize("found", [(False, False), (True, False), (False, True), (True, True)])
def test_on_gives_what_is_promised_and_what_was_found_comes_back(
    monkeypatch: pytest.MonkeyPatch, found: tuple[bool, bool]
) -> None:
    """What the profile does not promise is off; whoever changed it meanwhile."""
    card = Card(*found)
    one = made(monkeypatch, card, "tx")
    one.on()
    assert tuple(card.shown.values()) == (True, False)
    one.set(rx=True)
    assert tuple(card.shown.values()) == (True, True)
    card.shown[FEATURES["tx"]] = False
    one.restore()
    assert tuple(card.shown.values()) == found


def test_a_switch_that_nobody_set_asks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that takes the fixture and does not use it changes nothing and looks at nothing."""
    card = Card(tx=True, rx=False)
    made(monkeypatch, card, "tx").restore()
    assert card.asked == 0 and tuple(card.shown.values()) == (True, False)


def test_only_what_is_not_so_yet_is_switched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switching a feature to what it is may cost the card something; what is restored is done with."""
    card = Card(tx=True, rx=True)
    one = made(monkeypatch, card, "tx")
    one.on()
    one.on()
    assert card.typed == [[FEATURES["rx"], "off"]]
    one.restore()
    asked, card.shown[FEATURES["tx"]] = card.asked, False
    one.restore()
    assert card.typed[1:] == [[FEATURES["rx"], "on"]] and card.asked == asked


def test_a_card_that_does_not_follow_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the feature's name."""
    one = made(monkeypatch, Card(tx=False, rx=False, stuck=(FEATURES["tx"],)), "tx")
    with pytest.raises(AssertionError, match="tls-hw-tx-offload is .*, asked for on"):
        one.on()


def offloading(path: Path) -> dict[str, str]:
    """The tests of a file that take `offload`, and what each does first."""
    defined = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef))
    tests = (node for node in defined if node.name.startswith("test_"))
    mine = [node for node in tests if "offload" in [argument.arg for argument in node.args.args]]
    return {f"{path.name}::{node.name}": ast.unparse(node.body[1]) for node in mine}


def test_each_test_of_a_card_shows_its_switch() -> None:
    """A test that takes `offload` begins with `offload.on()`: no fixture and no hook switches for it."""
    paths = [p for room in ("hw", "nicsim", "sw-fallback") for p in (TESTS / room).rglob("test_*.py")]
    found = {name: first for path in paths for name, first in offloading(path).items()}
    assert len(found) > 50, "what was read?"
    assert not {name for name, first in found.items() if first != "offload.on()"}
