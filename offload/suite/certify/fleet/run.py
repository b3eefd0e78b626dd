"""`ktls-offload certify --all-benches TAG=VALUE`: every bench of a lab at once, one merged report.

Each bench is a place of labgrid's coordinator with the tag. It is reserved, acquired, certified by a process
of its own into OUT/PLACE, and released. One that breaks or hangs is void; the others go on.
"""

from __future__ import annotations

import html
import json
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from offload.errors import RigError
from offload.suite.certify.fleet.bench import Bench, Result, command
from offload.suite.certify.fleet.grid import Grid, printable, words

SCHEMA = "ktls-offload/benches/1"
ORDER = ("void", "failed", "incomplete", "certified with limitations", "certified")  # the first message
EXIT = {"certified": 0, "certified with limitations": 0, "failed": 20, "incomplete": 21, "void": 22}
Say = Callable[[str], None]
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
:root {{ color-scheme: light dark }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }}
table {{ border-collapse: collapse; width: 100% }}
th, td {{ text-align: left; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid #8888 }}
</style></head><body><main><h1>{title}</h1><p>{words}</p><table>
<thead><tr>{head}</tr></thead>
<tbody>
{rows}</tbody></table></main></body></html>
"""


def run_all(
    grid: Grid,
    tags: Mapping[str, str],
    out: Path,
    options: Sequence[str],
    say: Say,
    *,
    wait: float,
    hang: float,
) -> int:
    """Certify all matching benches side by side; the exit code of the worst verdict.

    `options` of certify go to each; `wait` and `hang` in seconds. ConfigError if no bench has the tags.
    """
    places = [place.name for place in grid.matching(tags)]
    count = f"{len(places)} bench{'es' if len(places) != 1 else ''}"
    say(f"{count} with {words(tags)}: {', '.join(places)}; results go to {out}\n")
    benches = [Bench(grid, name, out / name, command(options), hang) for name in places]
    with ending(benches):
        results = gathered(benches, say, wait)
    document = merged(tags, results)
    write(document, out)
    say(summary(document, out))
    return EXIT.get(str(document["verdict"]), 22)


def gathered(benches: Sequence[Bench], say: Say, wait: float) -> list[Result]:
    """Run them, a line for each thing that happens; results in order of their names."""
    lock, found = threading.Lock(), []

    def tell(line: str) -> None:
        with lock:
            say(f"{printable(line)}\n")

    with ThreadPoolExecutor(len(benches)) as pool:
        for each in as_completed([pool.submit(bench.run, tell, wait) for bench in benches]):
            result = each.result()
            found.append(result)
            tell(f"{result.place}: {result.word.upper()} after {result.seconds:.0f} s: {result.reason}")
    return sorted(found, key=lambda result: result.place)


@contextmanager
def ending(benches: Sequence[Bench]) -> Iterator[None]:
    """On Ctrl-C and SIGTERM each bench ends with its undos and is given back; then the signal counts."""
    got: list[int] = []

    def stop(number: int, _: object) -> None:
        got.append(number)
        for bench in benches:
            bench.stop()

    held = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
    if got:
        raise KeyboardInterrupt


def merged(tags: Mapping[str, str], results: Sequence[Result]) -> dict[str, Any]:
    """All results in one document; its verdict is the worst of them, as ORDER has them."""
    known = [word for word in ORDER if any(result.word == word for result in results)]
    return {
        "schema": SCHEMA,
        "tags": dict(tags),
        "verdict": known[0] if known else "void",
        "benches": [result.json() for result in results],
    }


def write(document: Mapping[str, Any], out: Path) -> None:
    """Leave benches.json and benches.html in the folder. RigError if the disk refuses; the reports stay."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "benches.json").write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
        (out / "benches.html").write_text(page(document, out))
    except OSError as exc:
        raise RigError(f"cannot write {exc.filename or out}: {exc.strerror}") from None


def page(document: Mapping[str, Any], out: Path) -> str:
    """The page: a line per bench, linked with its report."""
    rows = ""
    for bench in document["benches"]:
        name = html.escape(bench["place"])
        if bench["report"]:
            link = Path(bench["report"]).relative_to(out).as_posix()
            name = f'<a href="{html.escape(link)}">{name}</a>'
        cells = (html.escape(bench["word"]), html.escape(bench["reason"]), f"{bench['seconds']:.0f}")
        rows += f'<tr><th scope="row">{name}</th><td>{"</td><td>".join(cells)}</td></tr>\n'
    title = f"Benches with {html.escape(words(document['tags']))}"
    head = "".join(f'<th scope="col">{name}</th>' for name in ("bench", "verdict", "why", "s"))
    return PAGE.format(
        title=title, head=head, words=f"Together: {html.escape(document['verdict'])}.", rows=rows
    )


def summary(document: Mapping[str, Any], out: Path) -> str:
    """The last words on the terminal."""
    lines = [
        f"  {b['place']:<20} {b['word']:<28} {printable(b['reason'])[:100]}" for b in document["benches"]
    ]
    head = f"\ntogether: {str(document['verdict']).upper()}"
    names = ("benches.html", "benches.json", "manifest.json")  # certify writes the last one
    return "\n".join([head, *lines, "files:", *(f"  {out / name}" for name in names), ""])
