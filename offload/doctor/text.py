"""A diagnosis for people: short, the worst first; each finding with what was seen, so what, what to do."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from offload.card.profile import CIPHERS, VERSIONS, WORDS, near
from offload.doctor.examine import NOT_PROMISED, READY, Device, Diagnosis
from offload.doctor.reasons import LEVELS, Finding, load, plain, printable
from offload.doctor.table import HW, NONE, Verdict
from offload.errors import ConfigError

COLORS = {
    "ready": "32",
    "hw": "32",
    "never": "31",
    "off": "33",
    "unknown": "35",
    "risk": "33",
    "note": "36",
    "not promised": "2",
}
WIDTH = 100


class Page:
    """Lines of text; color only if asked for."""

    def __init__(self, color: bool, width: int) -> None:
        self.color, self.width, self.lines = color, min(max(width, 60), WIDTH), list[str]()

    def paint(self, text: str, word: str) -> str:
        """Text in the color of a word."""
        code = COLORS.get(word)
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and code else text

    def strong(self, text: str) -> str:
        """Text that stands out."""
        return f"\x1b[1m{text}\x1b[0m" if self.color else text

    def wrapped(self, head: str, text: str, bare: int | None = None) -> None:
        """A line that goes on below its own beginning; `bare` is the head's length without color."""
        indent = len(head) if bare is None else bare
        rows = textwrap.wrap(printable(text), self.width - indent, break_on_hyphens=False) or [""]
        self.lines.append(head + rows[0])
        self.lines += [" " * indent + row for row in rows[1:]]

    def command(self, head: str, text: str) -> None:
        """A remedy: one line, however long, so that it can be copied; a long remark goes below it."""
        if len(head) + len(text) <= self.width or " # " not in text:
            self.lines.append(head + text)
            return
        command, _, remark = text.partition(" # ")
        self.lines.append(head + command)
        self.wrapped(" " * len(head), f"# {remark}")

    def block(self, finding: Finding, verbose: bool) -> None:
        """Evidence, consequence and remedy."""
        self.wrapped("    seen  ", finding.evidence)
        self.wrapped("    so    ", finding.consequence)
        for line in finding.detail if verbose else ():
            self.wrapped("          - ", line)
        self.command("    do    ", finding.remedy)
        self.lines.append("")


def as_text(diagnosis: Diagnosis, color: bool = False, width: int = WIDTH, verbose: bool = False) -> str:
    """The whole answer."""
    page = Page(color, width)
    for device in diagnosis.devices:
        _device(page, device)
        for row in device.tools if verbose else ():
            page.wrapped(f"  {row.tool:<13} ", str(row))
    page.lines += [""] if diagnosis.devices else []
    _findings(page, diagnosis, verbose)
    if any(cell.who != NONE for device in diagnosis.devices for cell in device.cells):
        _table(page, diagnosis.devices)
    _fine(page, diagnosis)
    for warning in diagnosis.warnings:
        page.wrapped("warning ", warning)
    return "\n".join(page.lines).rstrip() + "\n"


def _device(page: Page, device: Device) -> None:
    """Title, and a line per direction."""
    nic, found = device.nic, device.found
    title = found.profile.title() if found.profile else nic.kind or f"driver {nic.driver or 'unknown'}"
    simulated = f", SIMULATED by {nic.driver}" if found.simulated else ""
    facts = [f"driver {nic.driver}"] if nic.driver and found.profile and not found.simulated else []
    facts += [f"firmware {nic.firmware}"] if nic.firmware else []
    page.lines.append(plain(f"{nic.dev}: {title}{simulated}" + "".join(f", {fact}" for fact in facts)))
    page.lines[-1] = page.strong(page.lines[-1])
    for direction, (state, code) in device.states.items():
        said = f"{code} {load()[code].name}" if code else ""
        if state == READY:
            said = found.profile.offloads(direction) if found.profile else "what the driver accepts"
            said = f"new connections: {said}"
        if state == NOT_PROMISED:
            said = found.profile.why_no_direction(direction) if found.profile else ""
        head = f"  {WORDS[direction]:<9} {state:<13}"
        page.wrapped(head.replace(state, page.paint(state, state), 1), said, len(head))


def _findings(page: Page, diagnosis: Diagnosis, verbose: bool) -> None:
    """Whole blocks for what is wrong, the worst first; a line for what is only worth knowing."""
    lone = diagnosis.devices[0].nic.dev if len(diagnosis.devices) == 1 else ""
    found = every(diagnosis)
    for finding in found:
        whole = verbose or finding.level != "note"
        if finding.code == "D211" and not verbose:
            continue  # the direction's own line says it
        head = f"{finding.level:<8}{finding.code}  "
        whose = f"{finding.dev}: " if finding.dev not in ("", lone) else ""
        page.wrapped(page.paint(head, finding.level), whose + finding.what, len(head))
        if whole:
            page.block(finding, verbose)
    page.lines += [""] if page.lines and page.lines[-1] else []


def every(diagnosis: Diagnosis) -> list[Finding]:
    """Every finding of host and devices once, the worst first."""
    of_devices = (finding for device in diagnosis.devices for finding in device.findings)
    found = dict.fromkeys([*diagnosis.findings, *of_devices])
    return sorted(found, key=lambda f: (LEVELS.index(f.level), f.code))


def _table(page: Page, devices: Iterable[Device]) -> None:
    """Table of who does the work, per version and cipher; the reasons below."""
    page.lines.append("who does it  " + "".join(f"{f'TLS {v}':<39}" for v in VERSIONS).rstrip())
    page.lines.append(" " * 13 + "".join(f"{c:<13}" for _ in VERSIONS for c in map(_short, CIPHERS)).rstrip())
    reasons: dict[str, int] = {}
    several = len(list(devices)) > 1
    for device in devices:
        for direction in device.states:
            cells = [c for c in device.cells if c.cell.direction == direction]
            name = f"{device.nic.dev[:9]} {direction}" if several else WORDS[direction]
            row = "".join(_who(page, cell, reasons) for cell in cells)
            page.lines.append(f"{name:<13}{row}".rstrip())
    for why, number in reasons.items():
        page.wrapped(f"  {number}  ", f"{why} above" if why in load() else why)
    page.lines.append("")


def _short(cipher: str) -> str:
    return "chacha20" if cipher.startswith("chacha20") else cipher


def _who(page: Page, cell: Verdict, reasons: dict[str, int]) -> str:
    """A cell of the table, with the number of its reason."""
    mark = f"{cell.who} {reasons.setdefault(cell.why, len(reasons) + 1)}" if cell.why else cell.who
    return page.paint(mark, HW if cell.who == HW else "") + " " * (13 - len(mark))


def _fine(page: Page, diagnosis: Diagnosis) -> None:
    """One paragraph with everything that is as it should be."""
    good = [f"Linux {diagnosis.machine.kernel}"]
    good += [text for device in diagnosis.devices for text in device.fine if text not in good]
    page.wrapped("fine    ", "; ".join([*good, *diagnosis.fine]))
    others = ", ".join(f"{n.dev} ({n.kind or n.driver or '-'})" for n in diagnosis.rest)
    if others and diagnosis.devices:
        page.wrapped("others  ", others)
    if found := every(diagnosis):
        page.lines.append(f"more    ktls-offload doctor --explain {found[0].code}; --verbose: notes in full")


def general(text: str) -> str:
    """A reason's sentence without what one finding fills in: {release} is RELEASE, as in a synopsis."""
    if re.fullmatch(r"\W*(\{\w+\}\W*)+", text):
        return "depends on the finding; `ktls-offload doctor` prints it where it applies"
    shown = re.sub(r"\{(\w+)\}", lambda found: found[1].upper().replace("_", "-"), text)
    return shown.replace("{{", "{").replace("}}", "}")


def explain(code: str, width: int = WIDTH) -> str:
    """The page of one code. ConfigError with the nearest code for one that is none."""
    reasons = load()
    wanted = (
        code.upper()
        if code.upper() in reasons
        else next((c for c, r in reasons.items() if r.name == code), "")
    )
    if not wanted:
        names = [*reasons, *(r.name for r in reasons.values())]
        raise ConfigError(
            f"no reason {plain(code)!r}{near(code, names)}", "docs/reference/reasons.md lists them"
        )
    reason, page = reasons[wanted], Page(False, width)
    page.lines += [f"{wanted} {reason.name} ({reason.level})", ""]
    for head, text in (("what", reason.what), ("so", reason.so), ("do", reason.do)):
        page.wrapped(f"  {head:<6}", general(text))
    page.lines.append("")
    page.wrapped("  ", general(reason.about))
    page.wrapped("  source: ", reason.source)
    return "\n".join(page.lines) + "\n"
