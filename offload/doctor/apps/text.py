"""The answer about a program, for people: each service with its state, then what was found and what to do."""

from __future__ import annotations

from offload.card.profile import VERSIONS, WORDS
from offload.doctor.apps.judge import Answer, Ruling
from offload.doctor.examine import NOT_PROMISED, READY
from offload.doctor.reasons import LEVELS, load, plain
from offload.doctor.table import HW
from offload.doctor.text import WIDTH, Page

SHOWN = 60  # services


def as_text(answer: Answer, color: bool = False, width: int = WIDTH, verbose: bool = False) -> str:
    """The whole answer."""
    page = Page(color, width)
    _head(page, answer)
    for ruling in answer.rulings[:SHOWN]:
        _service(page, ruling)
    if left := len(answer.rulings) - SHOWN:
        page.lines += [f"{left} more: see --json"] if left > 0 else []
    page.lines += [""] if page.lines[-1] else []
    _findings(page, answer, verbose)
    dev = answer.device.nic.dev if answer.device else ""
    page.wrapped("more    ", f"ktls-offload doctor {plain(dev)} (the card itself); --verbose: notes in full")
    return "\n".join(page.lines).rstrip() + "\n"


def _head(page: Page, answer: Answer) -> None:
    """Program, library, files, and the card that it was judged for."""
    app, device = answer.app, answer.device
    library = f", {app.library}" if app.library and app.name != "openssl" else ""
    page.lines.append(page.strong(plain(f"{app.shown}{library}")))
    read = app.files.read if app.files else []
    page.wrapped("  read     ", ", ".join(read[:6]) + (f" and {len(read) - 6} more" if len(read) > 6 else ""))
    card = "no device here may offload (D201)"
    if device:
        profile = device.found.profile
        card = f"{device.nic.dev}, {profile.title() if profile else device.nic.driver or device.nic.kind}"
    page.wrapped("  card     ", card)
    page.lines.append("")


def _service(page: Page, ruling: Ruling) -> None:
    """Title, a line per direction, and who does what."""
    page.lines.append(page.strong(ruling.service.title()) + f"  {ruling.service.where}")
    for direction, (state, code) in ruling.states.items():
        said = (
            f"{code} {load()[code].name}; " if code in load() and state not in (READY, NOT_PROMISED) else ""
        )
        head = f"  {WORDS[direction]:<9} {state:<13}"
        page.wrapped(
            head.replace(state, page.paint(state, state), 1), said + _work(ruling, direction), len(head)
        )


def _work(ruling: Ruling, direction: str) -> str:
    """`hw: TLS 1.2 aes-gcm-128; user: TLS 1.3 ...`."""
    parts = []
    for who in (HW, "sw", "user", "?"):
        cells = [w.cell for w in ruling.cells if (w.cell.direction, w.who) == (direction, who)]
        names = [
            f"TLS {v} {', '.join(c.cipher for c in cells if c.version == v)}"
            for v in VERSIONS
            if any(c.version == v for c in cells)
        ]
        parts += [f"{who}: {' and '.join(names)}"] if names else []
    return "; ".join(parts) or "-"


def _findings(page: Page, answer: Answer, verbose: bool) -> None:
    """The worst first; whole blocks for what is wrong, for a risk the first of its kind."""
    found = [*answer.findings, *(f for r in answer.rulings for f in r.findings)]
    seen: set[str] = set()
    for finding in sorted(dict.fromkeys(found), key=lambda f: (LEVELS.index(f.level), f.code)):
        head = f"{finding.level:<8}{finding.code}  "
        page.wrapped(page.paint(head, finding.level), finding.what, len(head))
        again = finding.level == "risk" and finding.code in seen
        seen.add(finding.code)
        if verbose or (finding.level != "note" and not again):
            page.block(finding, verbose)
    page.lines += [""] if found and page.lines[-1] else []
