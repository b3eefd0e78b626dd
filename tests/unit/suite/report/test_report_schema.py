"""report.json and its schema: every example fits, and each required field is missed if it is not there."""

import json
import math
from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any

import jsonschema
import pytest

from offload.suite.report.render import render
from tests.lib.rig import schemas
from tests.unit.suite.report import report_whole as made

FILE = schemas.ROOT / schemas.OTHERS["report"]
SCHEMA = schemas.schema("report")
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
Place = tuple[str | int, ...]


def required(rule: Any, tree: Any, at: Place = (), seen: str = "") -> Iterator[tuple[str, Place]]:
    """Yield each field that a rule requires: the name of its rule, and its place in `tree`."""
    while "$ref" in rule:
        seen = rule["$ref"]
        rule = SCHEMA["$defs"][seen.removeprefix("#/$defs/")]
    if isinstance(tree, dict):
        yield from ((f"{seen}/{name}", (*at, name)) for name in rule.get("required", ()))
        more = rule.get("additionalProperties")
        for name, value in tree.items():
            inner = rule.get("properties", {}).get(name) or (more if isinstance(more, dict) else {})
            yield from required(inner, value, (*at, name), f"{seen}/{name}")
    elif isinstance(tree, list):
        for number, value in enumerate(tree):
            yield from required(rule.get("items", {}), value, (*at, number), f"{seen}[]")


def rules(rule: Any, name: str = "") -> Iterator[str]:
    """Yield the name of every field that the schema requires anywhere, as `required` names it."""
    yield from (f"{name}/{field}" for field in rule.get("required", ()))
    for key, inner in rule.get("properties", {}).items():
        yield from rules(inner, f"{name}/{key}")
    for key, inner in rule.get("$defs", {}).items():
        yield from rules(inner, f"#/$defs/{key}")
    if isinstance(rule.get("items"), dict):
        yield from rules(rule["items"], f"{name}[]")


def without(tree: Any, place: Place) -> Any:
    copy = inner = deepcopy(tree)
    for step in place[:-1]:
        inner = inner[step]
    del inner[place[-1]]
    return copy


def misses(tree: dict[str, Any], place: Place) -> bool:
    """Whether the schema refuses the tree without one field; it reads only the section that has it."""
    section, inside = place[0], place[1:]
    if not inside:
        return not VALIDATOR.is_valid(without(tree, place))
    rule = VALIDATOR.evolve(schema=SCHEMA["properties"][section])
    return rule.is_valid(tree[section]) and not rule.is_valid(without(tree[section], inside))


@pytest.mark.parametrize("worst", ["pass", "fail", "xfail", "skip", "error"])
def test_every_example_fits(worst: str) -> None:
    """A report with every section fits the schema, whatever the verdict."""
    VALIDATOR.validate(made.document(worst=worst))


def test_each_required_field_is_missed() -> None:
    """A report that lacks any one required field is refused; no required field goes untried."""
    whole, tried = made.document(worst="xfail"), {}
    whole = whole | {"defect": made.document(worst="fail")["defect"]}
    tree = whole | {name: whole[name][:3] for name in ("tests", "promises", "cells", "wire")}
    for name, place in required(SCHEMA, tree):
        tried.setdefault(name, place)
    for name, place in tried.items():
        assert misses(tree, place), f"{name} is required, and {place} is not missed"
    assert set(rules(SCHEMA)) == tried.keys()


def test_next_version_is_not_this_one() -> None:
    """A reader of version 1 refuses another version, and takes keys that it does not know."""
    tree = made.document()
    assert not VALIDATOR.is_valid(tree | {"schema": 1}) and VALIDATOR.is_valid(tree | {"later": 1})
    assert FILE.name == f"report-{tree['schema']}.schema.json" and SCHEMA["$id"].endswith(
        f":{tree['schema']}"
    )


def test_certificate_without_reasons_only() -> None:
    """ "certified" has no reasons, and every other word has some."""
    good, bad = made.document(), made.document(worst="fail")
    assert not VALIDATOR.is_valid(good | {"reasons": ["x"]}) and not VALIDATOR.is_valid(bad | {"reasons": []})


def test_numbers_are_stable() -> None:
    """A number comes back as it was written, the same digits each time."""
    random = Random(1)
    values = [random.uniform(-1, 1) * 10 ** random.randint(-12, 20) for _ in range(2000)]
    once = render.canonical({"values": values})
    assert render.canonical(json.loads(once)) == once and json.loads(once)["values"] == values
    for value in (math.nan, math.inf):
        with pytest.raises(ValueError, match="not JSON compliant"):
            render.canonical({"value": value})
