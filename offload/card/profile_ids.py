"""Which card is this, if no profile describes it? The ids that drivers know, and what is known of them."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from offload.card.profile_model import PciId
from offload.card.profile_schema import MODULE, PCI, pci_id, pci_range
from offload.paths import PACKAGE
from offload.yamlfile import SCHEMA, fields, listed, read_yaml, record, text

FILE = PACKAGE / "card/profile_ids.yaml"
IN_WORDS = {
    "unknown": "the driver knows its id; whether it has TLS crypto is not known",
    "no": "older than TLS offload",
}


class Undescribed(NamedTuple):
    """A card without a profile; `tls` is `unknown` or `no`."""

    driver: str
    ids: PciId
    tls: str

    @property
    def name(self) -> str:
        """Vendor and name."""
        return self.ids.name

    def in_words(self) -> str:
        """Return what is known of it, in a few words."""
        return IN_WORDS[self.tls]


def _card(driver: str, pci: str, name: str, tls: str) -> Undescribed:
    return Undescribed(driver, pci_id(pci, name), tls)


CARD = {
    "driver": text("a driver name", MODULE),
    "pci": text("vendor:device in lower case, as in 15b3:101d", PCI),
    "name": text(),
    "tls": text(choices=tuple(IN_WORDS)),
}


@cache
def undescribed() -> tuple[Undescribed, ...]:
    """Every card of the file. ConfigError with every problem in it."""
    root = read_yaml(FILE, FILE.name, "list of cards")
    rows = listed(record(_card, CARD, lambda item, have, found: pci_range(have["pci"], found.ids)), least=1)
    found: tuple[Undescribed, ...] = fields(root, {"schema": SCHEMA, "cards": rows})[1]["cards"]
    root.log.check()
    return found


def named(driver: str, pci: str) -> Undescribed | None:
    """The card of a driver and a `vvvv:dddd`; None if nothing is known of it."""
    return next((c for c in undescribed() if c.driver == driver and c.ids.covers(pci)), None)
