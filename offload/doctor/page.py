"""docs/reference/reasons.md, made from reasons.yaml: `python -m offload.doctor.page > reasons.md`."""

from __future__ import annotations

import re
import sys

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
HEAD = """# Why is TLS not offloaded? Every reason code

`ktls-offload doctor` prints these codes, `ktls-offload doctor --explain D301` one section. A code never
changes its meaning, and no other reason ever gets it. Doctor replaces words in {braces} with what it found.

| level | means | so `doctor` exits with |
|---|---|---|
| never | no setting here makes it possible, only another kernel, driver (as in D104) or card | 11 |
| off | offload is possible but not active now; the remedy activates it | 10 |
| unknown | doctor could not find out | 12 |
| risk | new connections are offloaded, but some are not, or they may break | 0 |
| note | worth knowing; `--verbose` prints it in full | 0 |

With several devices, the best one sets the exit code. With several directions, `off` ranks before `unknown`,
and `unknown` before `never`; a direction that the card's profile does not promise does not count. Findings
about the TLS library or a server (5xx, 6xx) do not change the exit code: they do not affect the device.
`doctor --app` ([apps.md](../use/apps.md)) reports 8xx, and its exit code is that of the worst service.
`doctor --pid` reports 9xx, and its exit code is that of the worst connection.

*Source* names lines of the kernel's source (7.2:500 is line 500 in Linux 7.2), a manual, a public page, or
what a run of this project showed. *Test* says how a test makes the condition:
*for real* in the lab's VM, or *recorded* where only hardware can make it, or a lab cannot.
"""
TAIL = """## Where this page comes from

It is made from [`reasons.yaml`](../../offload/doctor/reasons.yaml). Edit that, not this page, and then run:

```
.venv/bin/python -m offload.doctor.page > docs/reference/reasons.md
```
"""


def page() -> str:
    """The whole page."""
    reasons = list(load().values())
    lines = [HEAD]
    for digit, heading in HEADINGS.items():
        mine = [r for r in reasons if r.code[1] == digit]
        lines += [f"## {heading}", "| code | name | level |", "|---|---|---|"]
        lines += [f"| [{r.code}](#{r.code.lower()}) | {r.name} | {r.level} |" for r in mine]
        lines.append("")
        lines += [_section(reason) for reason in mine]
    return "\n".join([*lines, TAIL])


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


if __name__ == "__main__":
    sys.stdout.write(page())
