"""`make example`: one certified and one failed report, from real runs of the lab, with pictures of both.

usage: python -m tests.lib.catalogue.example_runs FOLDER [--kernel SERIES] [--jobs N]
       [--only certified|failed] [--pictures] [--show DOCS]

FOLDER/certified is the whole suite against a good card, in N labs, FOLDER/failed the tests that see the
defect of a bad card of the catalogue. FOLDER/pictures: the card of each report as SVG and, where a Chromium
is, the top of each page as PNG in light, dark and 400 pixels wide, and the whole page on A4. --pictures makes
only these again. --show copies those that README and docs/ show, light and dark, to the folder DOCS.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

from offload.debian.kernels import fetch
from offload.suite.bench.cards.knobs import turn
from offload.suite.bench.vm.lab import Lab
from offload.suite.report.forms import pdf
from offload.suite.report.render import card
from tests.lib.catalogue import browser
from tests.lib.catalogue import rows as catalogue
from tests.lib.catalogue.run import PEER

BAD = "tx-ooo-leak"  # of the catalogue: it sends lost segments again, in plaintext
ASKED = "test_30_resync"  # the tests of the failed run; some of them see the defect
ENDS = {"certified": 0, "failed": 20}
LOOKS = {"light": (1280, 800), "dark": (1280, 800), "narrow": (400, 1600)}  # pixels of each picture of a page


def certify(folder: Path, card_id: str, kernel: str, *more: str) -> int:
    """Run `ktls-offload certify` into a folder, which is made again; return its exit code."""
    shutil.rmtree(folder, ignore_errors=True)
    argv = [sys.executable, "-m", "offload", "certify", "--nic", card_id, "--kernel", kernel, *more]
    return subprocess.run([*argv, "--out", str(folder)], check=False).returncode


def certified(folder: Path, kernel: str, jobs: int | None) -> int:
    """Certify the good card: every test, as `make certify`."""
    return certify(folder, catalogue.CARDS[0], kernel, *(["--jobs", str(jobs)] if jobs else []))


def failed(folder: Path, kernel: str, _: int | None) -> int:
    """Certify a bad card of the catalogue by tests that see its defect: few, in one lab."""
    (row,) = (row for row in catalogue.load() if row.id == BAD)
    with Lab.boot(fetch(kernel), personality=f"{row.card},{PEER}") as lab:
        turn(lab.root, row.knobs)
        return certify(folder, row.card, kernel, "--attach", lab.name, "--only", ASKED)


RUNS = {"certified": certified, "failed": failed}


def pictures(folder: Path) -> None:
    """Make the pictures of each report that is there."""
    place, program = folder / "pictures", browser.had()
    place.mkdir(parents=True, exist_ok=True)
    for name in RUNS:
        run = folder / name
        if not (run / "report.json").is_file():
            continue
        document = json.loads((run / "report.json").read_text())
        (place / f"{name}-card.svg").write_text(card.svg(document) + "\n")
        if program:
            _look(program, run / "report.html", place, name)
    if not program:
        sys.stdout.write(f"no pictures of pages: {browser.ABSENT}\n")


def _look(program: str, page: Path, place: Path, name: str) -> None:
    """Make every picture of a page, and its A4 pages."""
    for look, (width, height) in LOOKS.items():
        out = (place / f"{name}-{look}.png").resolve()
        browser.picture(program, page.resolve(), out, width, height, look == "dark")
    (place / f"{name}.pdf").write_bytes(pdf.pdf(page.read_text("utf-8"), program))


def show(folder: Path, docs: Path) -> None:
    """Copy the pictures that README and docs/ show. SystemExit if they are not all there."""
    found = [folder / "pictures" / f"{name}-{look}.png" for name in RUNS for look in ("light", "dark")]
    if missing := [path.name for path in found if not path.is_file()]:
        raise SystemExit(f"{folder} lacks {', '.join(missing)}: run `make example` and `make pictures` first")
    for path in found:
        shutil.copyfile(path, docs / f"report-{path.name}")


def main(argv: list[str]) -> int:
    """Make what was asked for; exit 1 if a run did not end as it must."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kernel", default=catalogue.KERNELS[0])
    parser.add_argument("--jobs", type=int, metavar="N")
    parser.add_argument("--only", choices=RUNS)
    parser.add_argument("--pictures", action="store_true")
    parser.add_argument("--show", type=Path, metavar="DOCS")
    args = parser.parse_args(argv)
    names = [] if args.pictures else [args.only] if args.only else [*RUNS]
    wrong = 0
    for name in names:
        code = RUNS[name](args.folder / name, args.kernel, args.jobs)
        wrong += code != ENDS[name]
        page = args.folder / name / "report.html"
        sys.stdout.write(f"{name}: {page} (certify ended with {code}, wanted {ENDS[name]})\n")
    pictures(args.folder)
    if args.show:
        show(args.folder, args.show)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
