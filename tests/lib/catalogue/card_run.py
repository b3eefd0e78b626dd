"""Certifies the simulated card as each profile that we ship, whole, and keeps a record of the runs.

usage: python -m tests.lib.catalogue.card_run [--kernel K] [--jobs N] [--depth D] [--times N] [CARD ...]
       python -m tests.lib.catalogue.card_run --model mlx5 [--kernel K] [--jobs N] [--depth D] [--times N]
       python -m tests.lib.catalogue.card_run --of DIR ...

Without CARD it takes each profile without a certified run on this kernel on record, so it resumes. A run is
`certify --nic CARD`; its folder is results/card-CARD-KERNEL. --model mlx5 runs `certify --card mlx5`: the
real mlx5_core drives a ConnectX-6 Dx. --depth crosses more conditions (`certify --depth`). --times repeats
each run. --of runs nothing, and takes the runs in these folders. Each run is a line of
benchmarks/results/cards.jsonl, certified or not, and cards.md has the table. Exit 1 if a run is not
certified; a run of changed code, or of a part of the tests, is not recorded.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from offload.card.profile import load_all
from offload.errors import ConfigError, OffloadError, RigError
from offload.suite.report import criteria
from offload.suite.report.verdict import Gap
from tests.lib.catalogue import record
from tests.lib.scenario.array.covering import Depth

ROOT = Path(__file__).parents[3]
RECORD = ROOT / "benchmarks/results/cards.jsonl"
PAGE = RECORD.with_suffix(".md")
KERNELS = ("6.1", "6.12", "7.2")
BEGIN, END = "<!-- made by tests.lib.catalogue.card_run, of cards.jsonl: begin -->", "<!-- end of cards -->"
GOOD = ("certified", "certified with limitations")
FIELDS = ("started", "commit", "card", "kernel", "verdict", "headline", "outcomes", "proved", "asked")
FIELDS += ("seconds", "peak")
LATER = ("driver", "depth", "pairs")  # older runs were all with nicsim, at depth quick
MODELS = {"nicsim": (), "mlx5": ("connectx-6-dx",)}  # what simulates the card: the cards it takes by itself
Json = dict[str, Any]
Key = tuple[str, str, str, str]


def say(line: str) -> None:
    """Tell a person, at once."""
    sys.stdout.write(f"card: {line}\n")
    sys.stdout.flush()


def entry(report: Mapping[str, Any]) -> Json:
    """The line of a run, by its report. ConfigError for one that the record does not take."""
    title = f"the run of {report['profile']} that began at {report['started']}"
    judged = report.get("judged", {})
    if judged.get("dirty", True):
        raise ConfigError(f"{title} is not recorded: the code had changes that are not committed")
    if any(one["gap"] == Gap.LEFT_OUT for one in report["promises"]):
        raise ConfigError(f"{title} is not recorded: a part of the tests ran")
    proved, asked = promises(report["promises"])
    crossed = report["crossed"]
    return {
        "started": report["started"][:16] + "Z",
        "commit": judged["commit"][:10],
        "card": report["profile"],
        "kernel": report["kernel"],
        "verdict": report["verdict"],
        "headline": report["headline"],
        "outcomes": dict(sorted(Counter(test["outcome"] for test in report["tests"]).items())),
        "proved": proved,
        "asked": asked,
        "seconds": round(sum(phase["seconds"] for phase in report["phases"])),
        "peak": report.get("memory", {}).get("peak", 0) >> 20,
        "driver": report["rig"].get("driver", "nicsim"),
        "depth": crossed["depth"],
        "pairs": f"{crossed['pairs']['covered']} of {crossed['pairs']['possible']}",
    }


def promises(found: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """How many of the required promises are proved, and how many are asked of the card."""
    required = {name for name, one in criteria.load().promises.items() if one.required}
    asked = [p for p in found if p["id"] in required and p["state"] != "not promised"]
    return sum(p["state"] in ("kept", "limited") for p in asked), len(asked)


def series(release: str) -> str:
    """The series of a kernel's release: 6.12 of 6.12.95+deb12-amd64."""
    return ".".join(release.split(".")[:2])


def read() -> list[Json]:
    """Every run on record."""
    old = {"driver": "nicsim", "depth": Depth.QUICK.value, "pairs": ""}
    return [{**line, **{k: line[k] or old[k] for k in LATER}} for line in record.read(RECORD, FIELDS, LATER)]


def key_of(line: Json) -> Key:
    """What a run is one of: card, driver, depth and kernel."""
    return line["card"], line["driver"], line["depth"], series(line["kernel"])


def last(lines: Sequence[Json]) -> dict[Key, Json]:
    """The last certified run of each kind; the last run if none was."""
    found: dict[Key, Json] = {}
    for line in lines:
        key = key_of(line)
        if line["verdict"] in GOOD or found.get(key, {}).get("verdict") not in GOOD:
            found[key] = line
    return found


def counts(lines: Sequence[Json], key: Key) -> tuple[int, str]:
    """How many of the newest runs of a kind were certified, one after the other; and how many of all."""
    words = [line["verdict"] in GOOD for line in lines if key_of(line) == key]
    return len(list(takewhile(bool, reversed(words)))), f"{sum(words)} of {len(words)}"


def missing(lines: Sequence[Json], kernel: str) -> list[str]:
    """The profiles without a certified run on this kernel."""
    found = last(lines)
    done = {
        card
        for (card, driver, _, where), line in found.items()
        if (driver, where) == ("nicsim", kernel) and line["verdict"] in GOOD
    }
    return [profile.id for profile in load_all() if profile.id not in done]


def row(line: Json, in_a_row: int, all_of_them: str) -> str:
    """A run's row of the table; how many of its kind were certified in a row, and of all."""
    tests = ", ".join(f"{number} {word}" for word, number in line["outcomes"].items())
    pairs = f", {line['pairs']} pairs" if line["pairs"] else ""
    cells = [line["card"], line["driver"], f"{line['depth']}{pairs}", line["kernel"].removesuffix("-amd64")]
    cells += [line["verdict"], f"{in_a_row} ({all_of_them})", f"{tests}; {line['proved']} of {line['asked']}"]
    cells += [f"{line['seconds']} s, {line['peak']} MiB", f"{line['started']}, {line['commit']}"]
    return f"| {' | '.join(cells)} |\n"


def table(lines: Sequence[Json]) -> str:
    """One row for each card and kernel, and which profiles are missing where."""
    heads = ["card", "driver", "depth", "kernel", "verdict", "in a row", "tests; promises proved"]
    heads += ["time, memory", "when, commit"]
    text = f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n"
    text += "".join(row(line, *counts(lines, key)) for key, line in sorted(last(lines).items()))
    gaps = [(kernel, missing(lines, kernel)) for kernel in KERNELS]
    text += "".join(
        f"\nNo certified run on {kernel}: {', '.join(cards)}.\n" for kernel, cards in gaps if cards
    )
    return text


def keep(report: Mapping[str, Any]) -> Json:
    """Add a run to record and page, unless it is there. ConfigError for one that the record does not take."""
    line = entry(report)
    if line not in read():
        record.append(RECORD, line)
    PAGE.write_text(record.put(PAGE.read_text(), BEGIN, END, table(read())))
    return line


def certified(card: str, kernel: str, jobs: int, model: str = "nicsim", depth: str = Depth.QUICK) -> Path:
    """Run `certify --nic CARD` as a person does; its folder."""
    name = "-".join(
        [card, *([model] if model != "nicsim" else []), *([depth] if depth != Depth.QUICK else [])]
    )
    out = ROOT / "results" / f"card-{name}-{kernel.replace('/', '_')}"
    shutil.rmtree(out, ignore_errors=True)
    argv = [sys.executable, "-m", "offload", "certify", "--nic", card, "--kernel", kernel]
    argv += ["--card", model, "--depth", depth, "--out", str(out)]
    subprocess.run([*argv, *(["--jobs", str(jobs)] if jobs else [])], cwd=ROOT, stdin=subprocess.DEVNULL)
    return out


def report_in(folder: Path) -> Json:
    """The report of a run. RigError if it left none."""
    file = folder / "report.json"
    if not file.exists():
        raise RigError(f"{folder} has no report.json: the run did not get as far as its tests")
    found: Json = json.loads(file.read_text())
    return found


def judged(folder: Path) -> bool:
    """Record one run, say what it came to, and whether it certifies."""
    try:
        line = keep(report_in(folder))
    except OffloadError as exc:
        say(str(exc))
        return False
    what = f"{line['card']} by {line['driver']} on {line['kernel']}, depth {line['depth']}"
    say(f"{what}: {line['verdict']}, {line['headline']}; {line['seconds']} s")
    return line["verdict"] in GOOD


def main() -> int:
    """Certify the cards, or record what was certified; 1 if one was not."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", default="6.1", choices=KERNELS)
    parser.add_argument("--jobs", type=int, default=0, help="labs side by side (default: as certify)")
    parser.add_argument("--model", default="nicsim", choices=MODELS, help="what simulates the card")
    parser.add_argument("--depth", default=Depth.QUICK, choices=[*Depth], help="how much is crossed")
    parser.add_argument("--times", type=int, default=1, help="how often each card is certified")
    parser.add_argument("--of", nargs="+", type=Path, metavar="DIR", help="folders of runs; starts none")
    parser.add_argument("cards", nargs="*", metavar="CARD")
    args = parser.parse_args()
    if args.of:
        return 0 if all([judged(folder) for folder in args.of]) else 1
    cards = [*(args.cards or MODELS[args.model] or missing(read(), args.kernel))] * args.times
    found = [judged(certified(card, args.kernel, args.jobs, args.model, args.depth)) for card in cards]
    say(
        f"{sum(found)} of {len(found)} certified on {args.kernel}"
        if found
        else f"none missing on {args.kernel}"
    )
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
