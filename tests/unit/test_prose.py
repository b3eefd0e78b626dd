"""ci/prose: each rule refuses its bad sentences and accepts its good ones, in all texts that it reads."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
RULES = yaml.safe_load((ROOT / "ci/prose.yaml").read_text())["rules"]
CASES = [
    (name, kind, text) for name, rule in RULES.items() for kind in ("bad", "good") for text in rule[kind]
]


def linter() -> Any:
    """The program as a module."""
    loader = SourceFileLoader("prose", str(ROOT / "ci/prose"))
    spec = spec_from_loader("prose", loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules["prose"] = module  # NamedTuple looks there
    loader.exec_module(module)
    return module


PROSE = linter()


@pytest.mark.parametrize(("rule", "kind", "text"), CASES, ids=[f"{r}-{k}-{t[:25]}" for r, k, t in CASES])
def test_each_rule_tells_good_from_bad(rule: str, kind: str, text: str) -> None:
    """A bad sentence is refused by its rule; a good one by none."""
    found = [problem.split()[0] for problem in PROSE.problems(text, *PROSE.load())]
    assert rule in found if kind == "bad" else found == []


@pytest.mark.parametrize(("words", "wrong"), [(30, 0), (31, 1)])
def test_a_sentence_has_at_most_30_words(words: int, wrong: int) -> None:
    """Thirty words are fine, thirty-one are not; a full stop or a list item begins a new sentence."""
    text = "Short. " + " ".join(["Word"] * words) + ".\n\n- Another one."
    assert len(list(PROSE.problems(PROSE.page(text), *PROSE.load()))) == wrong


def test_code_and_tables_are_no_prose() -> None:
    """Markup, code and tables of a page are left out; the words of a link stay."""
    text = "# Crowd\n| crowd |\n```\ncrowd\n```\nSee [the `crowd` page](crowd.html).\n"
    assert PROSE.page(text).split() == ["See", "the", "X", "page."]


@pytest.mark.parametrize(
    "place",
    [
        "README.md",
        "ktls-offload certify --help",
        "criteria.yaml: payload.tx.title",
        "reasons.yaml: D301.so",
        "errata.yaml: shown-as-hw.symptom",
        "docs/reference/wire.md",
    ],
)
def test_it_reads_what_users_read(place: str) -> None:
    """README, --help and the data files are among the texts."""
    assert any(found.endswith(place) and text.strip() for found, text in PROSE.texts([]))


def test_a_bad_page_is_exit_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code and the line name place, rule and advice."""
    page = tmp_path / "page.md"
    page.write_text("Nothing is said\nof the card.\n")
    assert PROSE.main([str(page)]) == 1
    said = capsys.readouterr().out
    assert f"{page}: told (is said): name the agent" in said and "1 sentences and names to rewrite" in said
    page.write_text("The report omits the card.\n")
    assert PROSE.main([str(page)]) == 0


def test_docstrings_are_read() -> None:
    """The linter reads the docstrings of the package and of the hardware tests, without their code."""
    for folder in ("offload/cli", "offload/suite/report", "tests/hw"):
        assert any(text for _, text in PROSE.docstrings((folder,)))
        assert folder.startswith(PROSE.DOCSTRINGS)
    assert PROSE.docstrings.__defaults__ == (PROSE.DOCSTRINGS,)


def test_a_docstring_may_define(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class may say what it is in a fragment; a function and any later sentence may not begin so."""
    monkeypatch.setattr(PROSE, "ROOT", tmp_path)
    monkeypatch.setattr(PROSE, "texts", lambda paths: [])
    code = 'class Run:\n    """What a run is.{}"""\n\n    def end(self):\n        """{} was begun."""\n'
    (tmp_path / "offload").mkdir()
    for late, head, wrong in (
        ("", "Return what", 0),
        (" What it says counts.", "End what", 1),
        ("", "What", 1),
    ):
        (tmp_path / "offload/run.py").write_text(code.format(late, head))
        assert PROSE.main([]) == wrong, (late, head)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("offload/a.py", "x = 1  # seen beside {}\n"),
        ("offload/a.sh", "# seen\n# beside {}\n"),
        ("native/b/a.c", 'char *s = "/* beside";\n/* seen\n * beside {} */\n'),
        ("native/b/a.h", "int a; // seen beside {}\n"),
        ("ci/run", "#!/bin/sh\n# seen beside {}\n"),
    ],
)
def test_comments_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    """A homely word in a comment is refused once in each language; strings and quoted code are no comment."""
    monkeypatch.setattr(PROSE, "ROOT", tmp_path)
    monkeypatch.setattr(PROSE, "texts", lambda paths: [])
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(text.format("the card"))
    assert PROSE.main([]) == 1 and len(list(PROSE.comments())) == 1
    path.write_text(text.format("it").replace("beside it", "with `beside`"))
    assert PROSE.main([]) == 0


@pytest.mark.parametrize(
    ("name", "text", "wrong"),
    [
        ("offload/a.py", "told = 1\n", 1),
        ("offload/a.py", "class WiresTold:\n    both_ways = TOLD = 1\n", 3),
        ("offload/a.py", 'one_way, always, embed = "told", 1, {}  # told\n', 0),
        ("native/b/a.c", "/* told\n */\nint e_ways = told(e->way, beside_it);\n", 4),
        ("native/b/a.h", 'int away; // told\nchar *x = "told ways";\n', 0),
    ],
)
def test_homely_names_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, wrong: int
) -> None:
    """A homely word as a part of a name is refused, once a name; in strings and comments it is no name."""
    monkeypatch.setattr(PROSE, "ROOT", tmp_path)
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    found = list(PROSE.homely())
    assert len(found) == wrong and all(place.startswith(f"{name}:") for place, _ in found)
