"""`probe --try`: what the card takes, asked of the card instead of guessed."""

from __future__ import annotations

import json

from offload.card.counters import driver_stats
from offload.card.nic import Nic
from offload.card.profile import CIPHERS, DIRECTIONS, FEATURES, VERSIONS, Cell
from offload.errors import NoPermission, Refused, RigError
from offload.host.base import Host
from offload.paths import PACKAGE
from offload.probe.look import Trial

PROGRAM = PACKAGE / "probe/offer.py"
PYTHON = ("/usr/bin/python3", "-I", "-S", "-")


def offered(host: Host, nic: Nic) -> Trial:
    """Offer each kind of connection in the directions that are on.

    Refused: no direction is on, or the interface is down. NoPermission: not root. RigError: no ss.
    """
    on = [d for d in DIRECTIONS if (f := nic.feature(d)) and f.active]
    off = [d for d in DIRECTIONS if (f := nic.feature(d)) and not f.active and not f.fixed]
    switch = "; ".join(f"ethtool -K {nic.dev} {FEATURES[d]} on" for d in off)
    if not nic.up:
        raise Refused(
            f"{nic.dev} is down: a card accepts connections only while it is up", f"ip link set {nic.dev} up"
        )
    if not on:
        raise Refused(
            f"{nic.dev}: no direction is on, so there is nothing to test",
            switch or f"ktls-offload doctor {nic.dev}",
        )
    before = driver_stats(host, nic.dev)[0]
    found = _ask(host, nic.dev)
    after = driver_stats(host, nic.dev)[0]
    took = {
        Cell(d, v, c): found.get(f"{v} {c}", {}).get(d) == "hw" for d in on for v in VERSIONS for c in CIPHERS
    }
    moved = tuple(n for n in after if "tls" in n.lower() and after[n] != before.get(n, 0))
    return Trial(took, f"off, so not tested; {switch}" if off else "not tried", moved)


def _ask(host: Host, dev: str) -> dict[str, dict[str, str]]:
    """Return what the program on the host found."""
    done = host.run([*PYTHON, dev], input=PROGRAM.read_bytes(), check=False, timeout=180)
    try:
        found = json.loads(done.text)
        error = str(found.get("error", ""))
    except (ValueError, AttributeError):
        raise RigError(
            f"--try: no answer from {dev}: {done.stderr.decode('utf-8', 'replace')[-300:]}"
        ) from None
    if "not permitted" in error:
        raise NoPermission("--try needs root to create its sockets", "run it as root")
    if error:
        raise RigError(f"--try on {dev}: {error}", "omit --try to get a draft with guesses instead")
    return {str(kind): dict(rows) for kind, rows in found.items()}
