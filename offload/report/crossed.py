"""Which conditions the scenarios of a run have crossed: pairs and triples, covered, possible, impossible."""

from __future__ import annotations

import re

SCENARIO = re.compile(r"\[(seed=\d+(?:,[^\[\],= ]+=[^\[\],= ]+)*)\]\Z")


def scenario_of(test: str) -> str:
    """The line of the scenario that a test ran, from its id; empty for any other test."""
    found = SCENARIO.search(test)
    return found[1] if found else ""
