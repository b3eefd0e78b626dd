"""JUnit as CI servers read it: the rules of the common schema, and no run that looks better than it was."""

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from offload.suite.report.forms.junit import junit
from tests.unit.suite.report import report_whole as made
from tests.unit.suite.report.render.test_report_render import EVIL
from tests.unit.suite.report.render.test_report_render import document as small

# windyroad/JUnit-Schema, JUnit.xsd: what an element must have, and its children in order.
NEEDS = {
    "testsuite": "id package name timestamp hostname tests failures errors time",
    "testcase": "name classname time",
    "property": "name value",
    "failure": "type",
    "error": "type",
}
CHILDREN = {
    "testsuites": ["testsuite"],
    "testsuite": ["properties", "testcase", "system-out", "system-err"],
    "properties": ["property"],
    "testcase": ["skipped", "error", "failure"],
}


def problems(root: ET.Element) -> list[str]:
    """Return where a tree breaks a rule of the schema."""
    found = []
    for element in root.iter():
        tags = [child.tag for child in element]
        wanted = CHILDREN.get(element.tag, [])
        missing = set(NEEDS.get(element.tag, "").split()) - element.attrib.keys()
        found += [f"{element.tag} without {name}" for name in sorted(missing)]
        found += [f"{tag} in {element.tag}" for tag in tags if tag not in wanted]
        if [tag for tag in wanted if tag in tags] != list(dict.fromkeys(tags)):
            found.append(f"children of {element.tag} out of order")
        if element.tag == "testcase" and len(tags) > 1:
            found.append("more than one outcome")
        if element.tag == "testsuite":
            found += [
                f"{name} is wrong"
                for name, count in counts(element).items()
                if element.get(name) != str(count)
            ]
            found += (
                []
                if tags[:1] == ["properties"] and tags[-2:] == ["system-out", "system-err"]
                else ["a part is missing"]
            )
    return found


def counts(suite: ET.Element) -> dict[str, int]:
    """What a suite has to say of its cases."""
    words = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    return {"tests": len(suite.findall("testcase"))} | {
        name: len(suite.findall(f"testcase/{tag}")) for name, tag in words.items()
    }


@pytest.mark.parametrize("worst", ["pass", "fail", "xfail", "skip", "error"])
def test_tree_keeps_the_rules(worst: str) -> None:
    """junit.xml has the parts, the order and the sums of the common schema."""
    tree = made.document(worst=worst)
    root = ET.fromstring(junit(tree))
    assert problems(root) == []
    cases = root.findall("testsuite/testcase")
    asked = [promise for promise in tree["promises"] if promise["state"] != "not promised"]
    assert len(cases) == len(tree["tests"]) + len(asked) + 1
    seconds = sum(float(case.attrib["time"]) for case in cases)
    assert seconds == pytest.approx(sum(test["seconds"] for test in tree["tests"]))


@pytest.mark.parametrize(
    ("worst", "tag", "promise"),
    [
        ("fail", "failure", "failure"),
        ("error", "error", "failure"),
        ("skip", "skipped", "failure"),
        ("xfail", "skipped", "skipped"),
    ],
)
def test_bad_run_is_red(worst: str, tag: str, promise: str) -> None:
    """A server that knows only JUnit sees an incomplete or void run as a failed one."""
    root = ET.fromstring(junit(made.document(worst=worst)))
    (case,) = root.findall("testsuite/testcase[@name='test_payload.tx[0]']")
    assert [child.tag for child in case] == [tag] and worst in str(case[0].get("message")) + "xfail"
    (case,) = root.findall("testsuite/testcase[@name='payload.tx']")
    assert [child.tag for child in case] == [promise]
    (case,) = root.findall("testsuite/testcase[@name='certified']")
    assert [child.tag for child in case] == {"xfail": [], "error": ["error"]}.get(worst, ["failure"])


@pytest.mark.parametrize("name", [EVIL, "\x00\x1f\ud800]]>&<!--", "a" * 100_000])
def test_any_text_can_be_held(name: str) -> None:
    """What a test or a card says stays text, and what XML cannot hold is left away."""
    tree: dict[str, Any] = small("fail", name)
    root = ET.fromstring(junit(tree))
    assert problems(root) == [] and len(root.findall("testsuite")) == 2


def test_broken_tree_is_noticed() -> None:
    """The rules themselves find a wrong sum, a missing name and a wrong order."""
    root = ET.fromstring(junit(small("fail")))
    root[0].set("tests", "0")
    del root[0].attrib["hostname"]
    root[0].insert(0, ET.Element("system-out"))
    assert {"tests is wrong", "testsuite without hostname", "children of testsuite out of order"} <= set(
        problems(root)
    )
