"""The space of conditions: what conditions.yaml says is sound, and a wrong file or line names its mistake."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offload.card.profile import find
from offload.card.profile_model import Cell
from offload.errors import ConfigError
from tests.lib.scenario.space import SEEDS, Scenario, Space, load

CARDS = ("connectx-6-dx", "chelsio-t6", "nicsim")
MORE = "name: {}, why: w, words: o, source: s"
HEAD = "schema: 1\ntriples: []\ndimensions:\n"
SIZE = f"  - {{name: size, why: w, values: [{{{MORE.format('a')}}}, {{{MORE.format('b')}}}]}}\n"


def space(card: str = CARDS[0]) -> Space:
    return load(find(card))


def file(tmp_path: Path, value: str, more: str = "") -> Path:
    """A file with one dimension of two values, and another whose second value is `value`."""
    plain = f"{{{MORE.format('plain')}}}"
    other = f"  - {{name: kind, why: w, values: [{plain}, {{{MORE.format('on-it')}{value}}}]}}\n"
    path = tmp_path / "conditions.yaml"
    path.write_text(HEAD + SIZE + other + more)
    return path


def test_every_condition_has_its_reason_and_the_plain_one_is_made() -> None:
    """Each value says why it is there and who says so, and the plainest scenario is allowed."""
    whole = load()
    values = [value for part in whole.parts for value in part.values]
    assert len(values) > 70 and all(value.why and value.source for value in values)
    assert len({value.why for value in values}) > len(values) - 5, "reasons are copied"
    assert all(len(part.values) > 1 and part.why for part in whole.parts)
    for card in CARDS:
        assert space(card).allows(space(card).parse("seed=1")), card


def test_a_profile_keeps_only_what_it_promises() -> None:
    """A card that only sends AES-128 is asked nothing else."""
    one = space("chelsio-t6").dimensions
    assert (one["direction"], one["cell"]) == (("tx",), ("1.2-aes-gcm-128",))
    cells = frozenset({Cell("tx", "1.2", "aes-gcm-128"), Cell("rx", "1.2", "aes-gcm-256")})
    mixed = load(replace(find("connectx-6-dx"), promises=cells))
    why = mixed.barred[("direction", "rx"), ("cell", "1.2-aes-gcm-128")]
    assert "does not promise rx" in why
    assert {mixed.draw(seed)["cell"] for seed in range(60) if mixed.draw(seed)["direction"] == "rx"} == {
        "1.2-aes-gcm-256"
    }


# a busy machine makes any example slow
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)
@given(st.integers(0, SEEDS - 1), st.sampled_from(CARDS))
def test_a_seed_draws_what_its_line_says(seed: int, card: str) -> None:
    """A seed draws the same allowed scenario each time, and its line is parsed to it."""
    on = space(card)
    drawn = on.draw(seed)
    assert on.allows(drawn) and on.draw(seed) == drawn
    assert on.parse(drawn.line()) == drawn and " " not in drawn.line()
    assert on.parse(str(seed)) == drawn


@pytest.mark.parametrize("card", CARDS)
def test_what_can_be_is_what_can_be_completed(card: str) -> None:
    """The short answer for a part of a scenario is that of the whole search, be it yes or no."""
    on, dice, said = space(card), Random(card), Counter[bool]()
    for _ in range(500):
        names = dice.sample(list(on.made), dice.randint(0, len(on.made)))
        chosen = {name: dice.choice(on.made[name]) for name in names}
        said[on.can(chosen)] += 1
        assert on.can(chosen) == (on.complete(chosen) is not None), chosen
    assert min(said[True], said[False]) > 50, said


def test_every_value_that_is_made_is_drawn() -> None:
    """No value of the space is out of reach."""
    on = space()
    drawn = {one for seed in range(2000) for one in on.draw(seed).values}
    assert drawn == {(name, value) for name, values in on.made.items() for value in values}


def test_a_plainer_scenario_has_a_shorter_line() -> None:
    """A scenario loses a condition at a time, down to its seed."""
    on = space()
    one = on.parse("seed=7,direction=rx,trouble=lost-tag")
    assert one.plainer("trouble").line() == "seed=7,direction=rx"
    assert one.plainer("trouble").plainer("direction").line() == "seed=7"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("direction=rxx", r"no value 'rxx' \(did you mean rx\?\)"),
        ("directoin=rx", r"no dimension 'directoin' \(did you mean direction\?\)"),
        ("rx", "'rx' is not a condition"),
        ("", "is not a condition"),
        ("direction=", "is not a condition"),
        ("seed=7,seed=8", "seed is given twice"),
        ("seed=-1", "wanted a number"),
        ("seed=x", "wanted a number"),
        ("seed=99999999999", "wanted a number"),
        ("trouble=forged-version", "not made together: of what the DUT sends"),
        ("number=past-4-gib", "not made: an emulated card takes hours"),
        ("event=pcie-error", "not made: no virtual machine"),
        ("mtu=600,ip=v6", "not made together: IPv6 wants 1280"),
        ("trouble=forged-tag", "not made together"),
        ("record=1,call=more", "not made together: one byte"),
        ("direction=rx\x1b[31m", "no value"),
        ("=".join(["x" * 9000] * 2), "no dimension"),
    ],
)
def test_a_wrong_line_names_its_mistake(line: str, why: str) -> None:
    """A line that is no scenario is refused in a sentence."""
    with pytest.raises(ConfigError, match=why) as caught:
        space().parse(line)
    assert len(str(caught.value)) < 700 and str(caught.value).replace("\n", " ").isprintable()


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (", needs: [{size: [c], because: x}]", r"'c', wanted one of a, b"),
        (", needs: [{sizes: [a], because: x}]", r"unknown key 'sizes' \(did you mean size\?\)"),
        (", needs: [{size: [a]}]", "because is missing"),
        (", needs: [{because: x}]", "one other dimension"),
        (", excludes: [{size: [], because: x}]", "no value is listed"),
        (", excludes: [{kind: [off], because: x}]", "unknown key 'kind'"),
        (", not_jet: x", r"unknown key 'not_jet' \(did you mean not_yet\?\)"),
        (", name: again", "given twice"),
        (", lab: false", "unknown key 'lab'"),
    ],
)
def test_a_wrong_value_names_file_line_and_key(tmp_path: Path, value: str, why: str) -> None:
    """A mistake in conditions.yaml is answered with its place."""
    with pytest.raises(ConfigError, match=rf"conditions\.yaml:\d+: .*{why}"):
        load(path=file(tmp_path, value))


def test_a_wrong_file_names_all_its_mistakes(tmp_path: Path) -> None:
    """A name with blanks, a dimension twice, a plain value that is not made: all are named."""
    twice = "  - {name: size, why: w, values: [{name: 'a b', why: w, words: o, source: s, not_yet: n}]}\n"
    with pytest.raises(ConfigError) as caught:
        load(path=file(tmp_path, "", twice))
    for words in ("named twice", "'a b'", "the plain one"):
        assert words in str(caught.value), words
    path = tmp_path / "conditions.yaml"
    path.write_text("schema: 2\ntriples: [[a]]\ndimensions: []\n")
    with pytest.raises(ConfigError, match="wanted 1"):
        load(path=path)


def test_what_a_needed_value_excludes_is_known(tmp_path: Path) -> None:
    """`needs` bars the values that it does not name, and `excludes` those that it names."""
    needs = load(path=file(tmp_path, ", needs: [{size: [a], because: x}]"))
    assert needs.barred == {(("size", "b"), ("kind", "on-it")): "x"}
    path = file(tmp_path, ", excludes: [{size: [a], because: x}]")
    load.cache_clear()  # the same path again
    excludes = load(path=path)
    assert excludes.barred == {(("size", "a"), ("kind", "on-it")): "x"}
    both = Scenario(1, (("size", "a"), ("kind", "on-it")))
    assert not excludes.allows(both) and needs.allows(both)
