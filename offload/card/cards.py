"""`ktls-offload cards`: which cards offload TLS, by their profiles, and which kernels have it compiled in."""

from __future__ import annotations

import argparse
import json
import sys
from functools import cache
from typing import Any, NamedTuple

from offload.card.profile import DIRECTIONS, WORDS, Profile, load_all
from offload.card.profile_ids import IN_WORDS, Undescribed, undescribed
from offload.host.terminal import shown
from offload.paths import PACKAGE
from offload.yamlfile import SCHEMA, fields, listed, mapped, read_yaml, record, text

FILE = PACKAGE / "card/cards.yaml"
OPTIONS = (
    "CONFIG_TLS",
    "CONFIG_TLS_DEVICE",
    "CONFIG_MLX5_CORE",
    "CONFIG_MLX5_CORE_EN",
    "CONFIG_MLX5_EN_TLS",
    "CONFIG_CHELSIO_T4",
    "CONFIG_CHELSIO_INLINE_CRYPTO",
    "CONFIG_CHELSIO_TLS_DEVICE",
    "CONFIG_NFP",
    "CONFIG_FUN_ETH",
)
HELP = """\
Lists every card with a profile: what it offloads, the driver's defaults, which distributions'
kernels include its TLS offload, and what it needs of part and firmware. It does not access any card;
`status` and `doctor` examine those of this host. No real card has been tested yet: docs/use/cards.md.
"""


class Kernel(NamedTuple):
    """A distribution's kernel: the options that were looked at, and where."""

    name: str
    kernel: str
    source: str
    sets: dict[str, str]

    def lacks(self, profile: Profile) -> tuple[str, ...] | None:
        """The options of a profile that are not set; None if one of them was not looked at."""
        lacking = [k for k in profile.kconfig if not k.met_by(self.sets.get(k.symbol, ""))]
        if any(k.symbol not in self.sets for k in lacking):
            return None
        return tuple(k.symbol for k in lacking)

    def answer(self, profile: Profile) -> str:
        """`yes`, `no` or `unknown`: is the card's TLS offload compiled in?"""
        lacking = self.lacks(profile)
        return "unknown" if lacking is None else "no" if lacking else "yes"


KERNEL = {
    "name": text(),
    "kernel": text(),
    "source": text(),
    "sets": mapped(text(choices=("y", "m", "n")), OPTIONS, what="option"),
}


@cache
def kernels() -> tuple[Kernel, ...]:
    """Every kernel of cards.yaml. ConfigError with every problem in it."""
    root = read_yaml(FILE, FILE.name, "list of kernels")
    rows = {"schema": SCHEMA, "kernels": listed(record(Kernel, KERNEL), least=1)}
    found: tuple[Kernel, ...] = fields(root, rows)[1]["kernels"]
    root.log.check()
    return found


def real() -> tuple[Profile, ...]:
    """The profiles of cards that one can buy, in the order of their names."""
    return tuple(sorted((p for p in load_all() if not p.plays), key=Profile.title))


def add_parser(verbs: Any) -> None:
    """The command line of `cards`."""
    words = "list the cards that offload TLS, and in which kernels"
    layout = argparse.RawDescriptionHelpFormatter
    parser = verbs.add_parser(
        "cards", help=words, description=f"{words[0].upper()}{words[1:]}.\n\n{HELP}", formatter_class=layout
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def main(args: argparse.Namespace) -> int:
    """Print them."""
    sys.stdout.write(as_json() if args.json else shown(as_text(), sys.stdout))
    return 0


def as_text() -> str:
    """For people: a few lines a card, then the cards of which nothing is known."""
    parts = [_card(profile) for profile in real()]
    rows = [f"  {card.name} ({card.ids})" for card in undescribed() if card.tls == "unknown"]
    return "\n\n".join([*parts, "\n".join([f"without a profile: {IN_WORDS['unknown']}", *rows])]) + "\n"


def _card(profile: Profile) -> str:
    rows = {WORDS[d]: profile.offloads(d) or "no" for d in DIRECTIONS}
    on = [WORDS[d] for d in DIRECTIONS if profile.default(d)]
    rows["on at start"] = " and ".join(on) or "nothing"
    for word, answer in (("compiled in", "yes"), ("left out", "no")):
        rows[word] = ", ".join(k.name for k in kernels() if k.answer(profile) == answer) or "none of these"
    rows |= {"card": profile.sku.need, "firmware": profile.firmware.need}
    lines = [f"  {word:12} {said}" for word, said in rows.items()]
    return "\n".join([f"{profile.title()} ({profile.id}): driver {profile.driver}", *lines])


def as_json() -> str:
    """For programs; keys are only ever added to schema 1."""
    found = [{"name": k.name, "kernel": k.kernel, "source": k.source} for k in kernels()]
    cards = [_document(profile) for profile in real()]
    document = {
        "schema": 1,
        "kernels": found,
        "cards": cards,
        "undescribed": [_other(c) for c in undescribed()],
    }
    return json.dumps(document) + "\n"


def _document(profile: Profile) -> dict[str, Any]:
    """A card as plain values; in `kernels`: whether it is compiled in, and the options that are missing."""
    compiled = [
        {"name": k.name, "compiled": k.answer(profile), "missing": list(k.lacks(profile) or ())}
        for k in kernels()
    ]
    return {
        "id": profile.id,
        "name": profile.title(),
        "driver": profile.driver,
        "pci": [{"id": str(ids), "name": ids.name} for ids in profile.pci],
        "promises": [cell._asdict() for cell in profile.cells() if cell in profile.promises],
        "defaults": {d: profile.default(d) for d in DIRECTIONS},
        "absent": [name for d in DIRECTIONS for name in profile.counters.absent(d)],
        "card": profile.sku.need,
        "firmware": profile.firmware.need,
        "kernels": compiled,
    }


def _other(card: Undescribed) -> dict[str, str]:
    return {"name": card.name, "driver": card.driver, "pci": str(card.ids), "tls": card.tls}
