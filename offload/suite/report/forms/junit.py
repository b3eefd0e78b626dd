"""The run as JUnit XML, in the form that CI servers read: a suite per promise, and one for the promises."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as ET

from offload.suite.report.forms import cases
from offload.suite.report.forms.cases import Case

# What XML 1.0 (section 2.2) cannot hold, not even escaped.
FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
TAGS = {"fail": "failure", "error": "error", "skip": "skipped", "xfail": "skipped"}


def junit(document: Mapping[str, Any]) -> bytes:
    """Return the document as JUnit XML (the order and attributes of the windyroad JUnit.xsd), UTF-8."""
    groups: dict[str, list[Case]] = {"promises": cases.promises(document)}
    for case in cases.tests(document):
        groups.setdefault(case.group, []).append(case)
    root = ET.Element("testsuites", name=_text(cases.title(document)))
    for number, (name, found) in enumerate(groups.items()):
        root.append(_suite(number, name, found, document))
    ET.indent(root, " ")
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _suite(number: int, name: str, found: Sequence[Case], document: Mapping[str, Any]) -> ET.Element:
    tags = [TAGS.get(case.outcome) for case in found]
    suite = ET.Element(
        "testsuite",
        id=str(number),
        package="ktls-offload",
        name=_text(name),
        timestamp=str(document["started"])[:19] or "1970-01-01T00:00:00",
        hostname="localhost",
        tests=str(len(found)),
        failures=str(tags.count("failure")),
        errors=str(tags.count("error")),
        skipped=str(tags.count("skipped")),
        time=f"{sum(case.seconds for case in found):.3f}",
    )
    properties = ET.SubElement(suite, "properties")
    for key, value in _properties(document).items():
        ET.SubElement(properties, "property", name=_text(key), value=_text(value))
    for case in found:
        suite.append(_case(case))
    ET.SubElement(suite, "system-out")
    ET.SubElement(suite, "system-err")
    return suite


def _properties(document: Mapping[str, Any]) -> dict[str, str]:
    """Return what the run stood on."""
    head = {"verdict": document["verdict"], "profile": document["profile"], "kernel": document["kernel"]}
    simulated = {"simulated": "true" if document["simulated"] else "false"}
    return {**head, **simulated, **{f"rig.{key}": value for key, value in sorted(document["rig"].items())}}


def _case(case: Case) -> ET.Element:
    found = ET.Element(
        "testcase", classname=_text(case.group), name=_text(case.name), time=f"{case.seconds:.3f}"
    )
    tag = TAGS.get(case.outcome)
    if tag == "skipped":
        ET.SubElement(found, tag, message=_text(case.reason or case.outcome))
    elif tag:
        inner = ET.SubElement(found, tag, type=case.outcome, message=_text(case.reason or case.outcome))
        inner.text = _text(case.details)
    return found


def _text(value: object) -> str:
    return FORBIDDEN.sub(" ", cases.cleaned(value))
