"""The criteria: the shipped file is sound, and a wrong one is answered with the place and the key."""

import re
from pathlib import Path

import pytest

from offload.errors import ConfigError
from offload.suite.report import promises_page
from offload.suite.report.criteria import load

ROOT = Path(__file__).parents[4]
IDS = [
    "payload.tx",
    "payload.rx",
    "wire.records",
    "wire.stream",
    "wire.where",
    "wire.frames",
    "wire.forged",
    "cpu.write",
    "enable.switch",
    "enable.four-corners",
    "enable.restore",
    "enable.refuse",
    "enable.honest",
    "counters.zero-when-off",
    "counters.move-when-on",
    "contexts.balance",
    "fallback.expected",
    "payload.many",
    "interop.tx",
    "interop.rx",
    "interop.card",
    "sizes.tx",
    "sizes.rx",
    "resync.tx",
    "resync.rx",
    "resync.loss",
    "shapes.tx",
    "shapes.odd",
    "shapes.rx",
    "lifecycle.link-down",
    "lifecycle.toggle",
    "lifecycle.close",
    "lifecycle.route",
    "lifecycle.stack",
    "lifecycle.many",
    "lifecycle.bond",
    "lifecycle.unload",
    "conditions.crossed",
    "cpu.saving",
    "cpu.cost",
    "tools.honest",
    "rig.clean-log",
]


def test_shipped_criteria() -> None:
    """Every promise is there, in order, as the end of a sentence."""
    promises = load().promises
    assert list(promises) == IDS
    assert all(p.title[0].islower() and not p.title.endswith(".") for p in promises.values())
    assert all(p.fault and p.fault[0].islower() and p.fault[-1] != "." for p in promises.values())
    assert [(p.id, p.proof) for p in promises.values() if p.proof not in ("A", None)] == [
        ("wire.records", "B"),
        ("wire.stream", "C"),
        ("wire.where", "where"),
        ("resync.tx", "B"),
        ("shapes.tx", "B"),
    ]


def test_every_bar_has_a_reason_and_a_source() -> None:
    """Each promise says why it is asked, and which kernel document says so; pages that it names are there."""
    said = [p.why for p in load().promises.values()]
    assert all(len(why) > 20 for why in said) and len(set(said)) == len(said)
    for promise in load().promises.values():
        assert promise.spec.kernel, promise.id
        for page in re.findall(r"docs/[a-z/-]+\.md", " ".join(promise.spec.also)):
            assert (ROOT / page).is_file(), f"{promise.id}: {page}"


def test_bytes_follow_an_rfc() -> None:
    """A promise with a proof of bytes names the RFC; frames and their segments name OCP's core features."""
    promises = load().promises
    assert all(
        p.spec.rfc for p in promises.values() if p.proof in ("A", "B", "C") and p.cells != "unpromised"
    )
    assert promises["wire.frames"].spec.ocp == ("checksum offload", "TCP segmentation offload")


def test_the_page_is_made_from_the_data() -> None:
    """docs/reference/promises.md has each promise with its spec: the command in the page makes it anew."""
    page = promises_page.page()
    assert page == (ROOT / "docs/reference/promises.md").read_text(), "run the command at its end"
    section = page.partition("## wire.frames\n")[2].partition("\n## ")[0]
    for part in (
        "Kernel: Documentation/networking/tls-offload.rst",
        "RFC: RFC 9293 ",
        "OCP: checksum offload",
    ):
        assert f"- {part}" in section


def test_unknown_promise_names_the_nearest() -> None:
    """A mistyped promise id is answered with the right one."""
    with pytest.raises(ConfigError, match=r"'payload\.xt' \(did you mean payload\.tx\?\)"):
        load().check("payload.xt")
    assert load().level("counters.move-when-on", "offloaded_bytes_percent").min == 90
    with pytest.raises(ConfigError, match="no level 'x'"):
        load().level("payload.tx", "x")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", r"^wrong.yaml:\d: not YAML"),
        ("[]", "^wrong.yaml:1: a list, wanted a mapping with schema"),
        ("schema: 2\npromises: {}", "^wrong.yaml:1: schema: '2', wanted 1"),
        ("schema: 1\npromises: {a: 3}", "^wrong.yaml:2: promises.a: '3', wanted a mapping"),
        ("schema: 1\npromises: {a: {title_: x}}", "did you mean title"),
        ("schema: 1\npromises: {a: {}}", "title"),
        ("schema: 1\npromises: {a: {title: t, blocker: 1}}", "true or false"),
        ("schema: 1\npromises: {a: {title: t, applies: tz}}", "always"),
        ("schema: 1\npromises: {a: {title: t, applies: [tx]}}", "always"),
        ("schema: 1\npromises: {a: {title: t, why: 3}}", "a sentence"),
        ("schema: 1\npromises: {a: {title: t, tests: 0}}", "from 1"),
        ("schema: 1\npromises: {a: {title: t, cells: all}}", "unpromised"),
        ("schema: 1\npromises: {a: {title: t, proof: D}}", "A, B, C, where"),
        ("schema: 1\npromises: {a: {title: t, unproved: is fine}}", "blocks, limits"),
        ("schema: 1\npromises: {a: {title: t, crossed: {slow: {pairs: 3}}}}", "one of quick, standard, deep"),
        ("schema: 1\npromises: {a: {title: t, crossed: {quick: {pears: 3}}}}", r"crossed\.quick"),
        ("schema: 1\npromises: {a: {title: t, crossed: {quick: {pairs: 101}}}}", r"crossed\.quick"),
        ("schema: 1\npromises: {a: {title: t, levels: {x: 3}}}", r"levels\.x"),
        ("schema: 1\npromises: {a: {title: t, levels: {x: {min: b}}}}", r"levels\.x"),
    ],
)
def test_wrong_criteria(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=why):
        load(path)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("RFC 5246", r"promises\.a\.spec: 'RFC 5246', wanted a mapping"),
        ("{}", "key kernel is missing"),
        ("{kernel: []}", r"spec\.kernel: a list, wanted a list with entries"),
        ("{kernel: [tls.rst]}", r"spec\.kernel\[0\]: 'tls.rst', wanted a file of the kernel"),
        ("{kernel: [net/x.c], rfc: [RFC 1]}", "as in RFC 5246 section"),
        ("{kernel: [net/x.c], ocp: [TSO]}", "wanted one of checksum offload"),
        ("{kernel: [net/x.c], ietf: [x]}", "unknown key 'ietf'"),
    ],
)
def test_wrong_spec(tmp_path: Path, spec: str, why: str) -> None:
    """A promise that names no kernel document, or something that is no RFC section, is refused."""
    path = tmp_path / "wrong.yaml"
    path.write_text(f"schema: 1\npromises: {{a: {{title: t, spec: {spec}}}}}")
    with pytest.raises(ConfigError, match=why):
        load(path)
