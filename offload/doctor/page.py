"""The entries of docs/reference/reasons.md, made from reasons.yaml; offload/cli/pages.py puts them in."""

from __future__ import annotations

import re

from offload.doctor.reasons import Reason, load

HEADINGS = {
    "1": "1xx: the kernel",
    "2": "2xx: the device and its card",
    "3": "3xx: switches",
    "4": "4xx: what stands around the device",
    "5": "5xx: the TLS library",
    "6": "6xx: programs",
    "7": "7xx: is it used?",
    "8": "8xx: how a program is configured",
    "9": "9xx: a process and its connections",
}


def entries() -> str:
    """The sections of the page, one an entry."""
    reasons = list(load().values())
    lines = []
    for digit, heading in HEADINGS.items():
        mine = [r for r in reasons if r.code[1] == digit]
        lines += [f"## {heading}", "| code | name | level |", "|---|---|---|"]
        lines += [f"| [{r.code}](#{r.code.lower()}) | {r.name} | {r.level} |" for r in mine]
        lines.append("")
        lines += [_section(reason) for reason in mine]
    return "\n".join(lines)


def _section(reason: Reason) -> str:
    """One code. Its heading is the code alone, so that links to it stay."""
    rows = [
        f"### {reason.code}",
        f"**{reason.name}** ({reason.level}): {escaped(reason.what)}.",
        "",
        f"{escaped(reason.about)}",
        "",
        f"- So: {escaped(reason.so)}",
        f"- Do: {command(reason.do)}",
        f"- Source: {escaped(reason.source)}",
        f"- Test: {escaped(reason.test)}",
        "",
    ]
    return "\n".join(rows)


def command(text: str) -> str:
    """A remedy: as code if it is a command, with its remark as text."""
    do, _, remark = text.partition("  # ")
    if not re.match(r"(ktls-offload|modprobe|ip|ethtool|tc|devlink|grep|apt|ss|openssl) ", do):
        return escaped(text)
    return f"`{do}`" + (f" ({escaped(remark)})" if remark else "")


def escaped(text: str) -> str:
    """Text that Markdown leaves as it is, except between backquotes."""
    parts = text.split("`")
    return "`".join(
        re.sub(r"([_*<>])", r"\\\1", part) if at % 2 == 0 else part for at, part in enumerate(parts)
    )
