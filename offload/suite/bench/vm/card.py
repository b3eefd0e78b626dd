"""The profile of the card that the simulated NIC emulates, as one word of a module parameter."""

from __future__ import annotations

from collections.abc import Iterator

from offload.card.profile import DIRECTIONS, Profile, find
from offload.errors import ConfigError

PLAIN = "plain"  # a card without TLS offload
BITS = {"aes-gcm-128": "128", "aes-gcm-256": "256"}
LIMITS = {  # limitations that the simulated card has, too, and its word for each
    "mlx5-rx-toggle-drops-rules": "drops-rules",
    "mlx5-resync-ip-options": "no-resync-behind-options",
}
LONGEST = 1024  # of one word, by the kernel's param_set_charp()


def parameter(pair: str) -> str:
    """The parameter for two names, "dut,peer"; ConfigError for a card without a profile."""
    return ",".join(PLAIN if name == PLAIN else word(find(name)) for name in pair.split(","))


def word(profile: Profile) -> str:
    """ID/tx:128:256:tls13:on/COUNTER/COUNTER:NAME/...: directions, ciphers, defaults, counters.

    NAME is the kernel's name of what the counter counts, 0 for one that never moves. ConfigError for a
    profile that has more to say than fits.
    """
    limits = [LIMITS[one.id] for one in profile.limitations if one.id in LIMITS]
    parts = [profile.id, *_directions(profile), *limits, *dict.fromkeys(_counters(profile))]
    said = "/".join(parts)
    if len(said) > LONGEST:
        raise ConfigError(f"{profile.id}: too many counters to play: {len(said)} of {LONGEST} characters")
    return said


def _directions(profile: Profile) -> Iterator[str]:
    """Each direction that is promised, with its key lengths, and whether it is on at start."""
    for direction in profile.directions():
        bits = [n for cipher, n in BITS.items() if profile.promised(direction, "1.2", cipher)]
        newer = ["tls13"] if any(profile.on(True).promised(direction, "1.3", c) for c in BITS) else []
        yield ":".join([direction, *bits, *newer, *(["on"] if profile.default(direction) else [])])


def _counters(profile: Profile) -> Iterator[str]:
    """Each counter that the driver shows."""
    for direction in DIRECTIONS:
        lists = profile.counters.of(direction)
        for kernel, driver in lists.names:
            yield driver if driver == kernel else f"{driver}:{kernel}"
        yield from (f"{name}:0" for name in lists.dead)
        yield from lists.own
