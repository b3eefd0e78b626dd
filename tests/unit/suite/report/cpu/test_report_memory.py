"""The report's figures of memory traffic: bytes per byte of payload, or why there are none."""

from __future__ import annotations

from typing import Any

import pytest

from offload.suite.measure.cpu.memory import Memory
from offload.suite.measure.run import EMULATED
from offload.suite.report.cpu import page as cpu_page
from offload.suite.report.cpu.page import ABSENT, MEMORY
from offload.suite.report.render import render
from tests.lib.rig.schemas import checker
from tests.unit.page_check import problems
from tests.unit.suite.report import cpu_documents as made
from tests.unit.suite.report.test_report_impairment import document as report
from tests.unit.suite.report.test_report_impairment import met

COLUMN = ">Memory/byte</th>"


def rows(**more: Any) -> list[dict[str, Any]]:
    """Two arms with two samples each; what is given is in every sample."""
    return [made.row(arm, samples=[made.sample(2, 5, **more)] * 2) for arm in ("sw", "hw")]


def tree(found: list[dict[str, Any]], said: str = "") -> dict[str, Any]:
    """A report on a test that measured these rows; `said`: of memory traffic."""
    about = made.ABOUT | ({MEMORY: said} if said else {})
    document = report(met("a", cpu=made.document(found, about=about, simulated=False)), simulated=False)
    checker("report").validate(document)
    return document


def test_memory_per_byte_stands_next_to_the_cores() -> None:
    """What was counted is shown per byte of payload; an arm that was not counted has a dash."""
    found = rows(memory_bytes=3_750_000_000)  # of 1.25e9 bytes of payload
    assert [arm["memory_per_byte"] for arm in tree(found)["cpu"]["settings"][0]["arms"]] == [3.0, 3.0]
    page = render.html(tree(found, "counted by a made-up controller"))
    assert (
        page.count(COLUMN) == 1
        and page.count('<td class="num">3.00</td>') == 2
        and "per byte of payload:" not in page
    )
    del found[1]["samples"][1]["memory_bytes"]
    assert "memory_per_byte" not in tree(found)["cpu"]["settings"][0]["arms"][1]
    assert render.html(tree(found)).count('<td class="num">3.00</td>') == 1


@pytest.mark.parametrize("value", [True, 0, -1, 1.5, "3", None, 1 << 64, [3]])
def test_a_wrong_count_is_none(value: Any) -> None:
    """A count that cannot be one is left out, and the cores beside it stay."""
    found = [
        made.row(arm, samples=[made.sample(2, 5, memory_bytes=value), made.sample(2, 5, memory_bytes=5)])
        for arm in ("sw", "hw")
    ]
    (setting,) = tree(found)["cpu"]["settings"]
    assert len(setting["arms"]) == 2 and not any("memory_per_byte" in arm for arm in setting["arms"])


@pytest.mark.parametrize("said", [EMULATED, Memory(None, "this kernel has no resctrl").say()])
def test_why_there_is_none_is_reported_once(said: str) -> None:
    """Where the host cannot tell, the page says so with the reason, and has no column."""
    assert said.startswith(ABSENT)
    reported = made.document(rows(), about={MEMORY: said}, simulated=False)
    whole = report(*(met(f"t{n}", cpu=reported) for n in range(3)), simulated=False)
    page = render.html(whole)
    assert page.count(f"per byte of payload: {said}.") == 1 and COLUMN not in page
    assert problems(page) == [] and cpu_page.page(whole["cpu"])["no_memory"] == [said]
    counted = report(met("a", cpu=made.document(made.cost(), "icount", about={MEMORY: said})))
    assert "Memory traffic, in bytes" not in render.html(counted)


def test_columns_agree() -> None:
    """Each row of the table has as many cells as its head, with that column and without."""
    for found, said in ((rows(memory_bytes=5), ""), (rows(), ABSENT), (rows(requests=3, memory_bytes=5), "")):
        assert problems(render.html(tree(found, said))) == []
        page = render.html(tree(found, said))
        table = page[page.index("Everything measured over time") :].partition("</table>")[0]
        head = table.count('<th scope="col"')
        body = table.partition('<th scope="row">sw')[2] or table.partition('<th scope="row">')[2]
        assert f'colspan="{head}"' in table and body.partition("</tr>")[0].count("<td") == head - 1
