"""The report as a browser lays it out: how long it is, and what a narrow window cuts off. Needs Chromium."""

from __future__ import annotations

import re
from typing import Any

import pytest

from offload.suite.report.forms import pdf
from offload.suite.report.render import render
from tests.lib.catalogue import browser
from tests.unit.suite.report import report_whole as made

PROGRAM = browser.had()
pytestmark = pytest.mark.skipif(not PROGRAM, reason=browser.ABSENT)
# tables of the appendix with more columns than a telephone has room for: class and section
WIDE = {
    "wire of wire",
    "impairment of impairment",
    " of crossed",
    "cpu of cpu",
    "cpu of migration",
    " of phases",
    "counters of counters",
    " of files",
}
WIDTHS = (400, 1280)
BELOW = ('<nav aria-label="Sections"', '<nav id="below" aria-label="Sections"')
UNFOLDED = ("<details", "<details open")
Seen = dict[tuple[str, int], dict[str, Any]]
SCREEN, SCREENS, PAGES = 800, 3, 4  # pixels of a window 1280 wide; before the appendix
# parts of a real run of `certify --card mlx5` that are longer than those made up here
ESP = (
    "a warning in the kernel's log when IPsec takes an offloaded connection: the driver reads ESP's header as"
)
BUILT = "mlx5_core of Debian's Linux 6.1.192-2, unmodified, built with MLX5_EN_TLS"
MODEL = (
    "simulated by cx6sim; of 75 behaviors of its firmware 18 are guesses, and the others follow the driver's"
)
RIG = {
    "accelerator": "tcg (KVM does not boot a kernel: exit -9 after 5.1 s)",
    "card": f"{MODEL} source (docs/reference/card-model.md)",
    "driver under test": BUILT,
    "firmware": "22.41.1000 (SIM0000000015)",
    "host": "6.18.44-fc-v657 x86_64",
    **dict.fromkeys(("ethtool", "iproute2", "kernel-package", "openssl", "python"), "6.1.192-2"),
    "vm": "1 vCPU, 1024 MiB",
}


@pytest.fixture(scope="module")
def certified() -> str:
    """The page of a run that keeps every promise but for a limitation."""
    return render.html(made.document(worst="xfail"))


@pytest.fixture(scope="module")
def failed() -> str:
    """The page of a run with a broken promise, whose test says much."""
    tree = made.document(worst="fail")
    return render.html(tree | {"defect": tree["defect"] | {"seen": "plaintext at 163,871; " * 20}})


def longest() -> str:
    """The page with the real driver: a long rig, two limitations met, and four that no test covers."""
    tree = made.document(worst="xfail")
    (limit,) = tree["limitations"]
    longer = {
        "rig": tree["rig"] | RIG,
        "limitations": [limit, {**limit, "id": "mlx5-warns-below-esp", "message": f"{ESP} TCP's"}],
        "notes": [{"id": f"mlx5-rx-rule-fails-silently-{n}", "message": ESP} for n in range(4)],
    }
    return render.html({name: part for name, part in tree.items() if name != "replay"} | longer)


@pytest.fixture(scope="module")
def seen(certified: str, failed: str) -> Seen:
    """What each page looks like in a window so wide, all seen by one browser, as its start costs most."""
    pages = {
        ("certified", 1280): certified,
        ("longest", 1280): longest(),
        **{("failed", width): failed.replace(*BELOW) for width in WIDTHS},
        **{("certified, unfolded", width): certified.replace(*UNFOLDED) for width in WIDTHS},
        **{("failed, unfolded", width): failed.replace(*UNFOLDED) for width in WIDTHS},
    }
    found = browser.look(PROGRAM, *((page, width) for (_, width), page in pages.items()))
    return dict(zip(pages, found, strict=True))


@pytest.mark.parametrize("kind", ["certified", "longest"])
def test_certified_report_is_three_screens(kind: str, seen: Seen) -> None:
    """Everything before the appendix fits three screens of 1280 by 800, and nothing is cut off."""
    found = seen[kind, 1280]
    assert found["at"]["appendix"][0] <= SCREENS * SCREEN and found["wide"] == []


def test_certified_report_is_four_pages(certified: str) -> None:
    """On A4 everything before the appendix fits four pages; the appendix follows, unfolded."""
    first = re.sub(r'<section class="appendix".*</main>', "</main>", certified, flags=re.S)
    few, all_ = (_pages(pdf.pdf(page, PROGRAM)) for page in (first, certified))
    folded = _pages(pdf.pdf(re.sub(r"</?details[^>]*>", "", certified), PROGRAM))
    assert few <= PAGES and few < all_ and abs(all_ - folded) <= 2


def _pages(data: bytes) -> int:
    return len(re.findall(rb"/Type /Page\b", data))


def test_failed_report_tells_the_defect_on_the_first_screen(seen: Seen) -> None:
    """What the card does wrong, and how to repeat it, end above the fold."""
    assert seen["failed", 1280]["at"]["below"][0] < SCREEN
    assert seen["failed", 400]["at"]["below"][0] < 2 * SCREEN


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ["certified", "failed"])
def test_nothing_is_cut_off(kind: str, width: int, seen: Seen) -> None:
    """With every part unfolded no text runs out of the window; only wide tables of the appendix scroll."""
    found = seen[f"{kind}, unfolded", width]
    assert found["wide"] == [] and found["width"] <= width
    assert set(found["scrolls"]) <= (WIDE if width < 1280 else set())
