"""docs/use/cards.md, made from the profiles: `python -m offload.card.cards_page > docs/use/cards.md`."""

from __future__ import annotations

import sys

from offload.card.cards import kernels, real
from offload.card.profile import DIRECTIONS, WORDS, Profile
from offload.card.profile_ids import IN_WORDS, undescribed

HEAD = """# Which cards?

`ktls-offload cards` prints the same on a host, `cards --json` for programs. On a host with a card,
`ktls-offload doctor` says what that card can do now.

**Nobody has run this suite on a real card.** This page is taken from the drivers' source in Linux 7.3.4.
`make check-profiles` compares it with Debian's source of 6.1, 6.12 and 7.2. The PCI id does not show
whether a card has crypto: part number and firmware do. Kernels up to 7.3 offload TLS 1.2 only, so TLS
1.3 is always done in software.
"""

TAIL = """## Where this page comes from

It is made from `nic-profiles/*.yaml`, `profile_ids.yaml` and `cards.yaml` of `offload/card/`. Edit
them, not this page, and then run:

```
.venv/bin/python -m offload.card.cards_page > docs/use/cards.md
```"""


def page() -> str:
    """The whole page."""
    cards = real()
    parts = [_what(cards), _where(cards), _sources(), _others(), _needs(cards)]
    return "\n\n".join("\n".join(lines) for lines in ([HEAD[:-1]], *parts, [TAIL])) + "\n"


def _what(cards: tuple[Profile, ...]) -> list[str]:
    """Return what each card offloads."""
    head = [
        "## What they offload",
        "",
        "| card | driver | transmit | receive | on at start | counters that it lacks |",
        "|---|---|---|---|---|---|",
    ]
    return head + [_row(profile) for profile in cards]


def _row(profile: Profile) -> str:
    on = ", ".join(WORDS[d] for d in DIRECTIONS if profile.default(d)) or "nothing"
    absent = ", ".join(f"`{name}`" for d in DIRECTIONS for name in profile.counters.absent(d)) or "-"
    does = " | ".join(profile.offloads(d) or "no" for d in DIRECTIONS)
    return f"| {profile.title()} | {profile.driver} | {does} | {on} | {absent} |"


def _where(cards: tuple[Profile, ...]) -> list[str]:
    """Which kernels have a card's TLS offload compiled in."""
    titles = " | ".join(f"{k.name} ({k.kernel})" for k in kernels())
    head = [
        "## Which kernels have it compiled in",
        "",
        f"| driver | {titles} |",
        "|---|" + "---|" * len(kernels()),
    ]
    drivers = {profile.driver: profile for profile in cards}
    rows = []
    for driver, profile in drivers.items():
        said = [k.answer(profile) + "".join(f"<br>{o}" for o in k.lacks(profile) or ()) for k in kernels()]
        rows.append(f"| {driver} | {' | '.join(said)} |")
    advice = "For Debian, [`ktls-offload driver`](driver.md) builds mlx5_core and cxgb4 with it."
    return [
        *head,
        *rows,
        "",
        f"*no*: the option below it is not set; *unknown*: it was not looked at. {advice}",
    ]


def _sources() -> list[str]:
    """Where the configurations were read."""
    return ["Read in:", "", *(f"- {k.name}: {k.source}" for k in kernels())]


def _others() -> list[str]:
    """Cards without a profile."""
    head = [
        "## Cards without a profile",
        "",
        "| card | driver | PCI id | what is known |",
        "|---|---|---|---|",
    ]
    rows = [f"| {c.name} | {c.driver} | {c.ids} | {IN_WORDS[c.tls]} |" for c in undescribed()]
    return [*head, *rows]


def _needs(cards: tuple[Profile, ...]) -> list[str]:
    """Ids, part and firmware of each card, and its known weaknesses."""
    lines = ["## Part, firmware, and what is known of each"]
    for profile in cards:
        ids = ", ".join(f"{ids} {ids.name}" for ids in profile.pci)
        lines += ["", f"### {profile.title()}", "", f"- Profile: `{profile.id}`; PCI id: {ids}"]
        lines += [f"- Card: {profile.sku.need}", f"- Firmware: {profile.firmware.need}"]
        known = [(one.id, one.what) for one in profile.limitations] + [(n.id, n.what) for n in profile.notes]
        lines += [f"- {ident}: {what}" for ident, what in known]
    return lines


if __name__ == "__main__":
    sys.stdout.write(page())
