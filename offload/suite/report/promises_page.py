"""docs/reference/promises.md, made from criteria.yaml: `python -m offload.suite.report.promises_page`."""

from __future__ import annotations

import re
import sys

from offload.suite.report.criteria import Criterion, load

HEAD = """# Every promise, and where it comes from

A promise completes the sentence "this NIC ...". `certify` tests each promise that the card's profile makes.
[Reading the report](../certify/reading-the-report.md#the-verdict) has the rule for every verdict.
[The lab](../certify/the-lab.md#the-wire-box) lists the promises that need a wire box.

| part | meaning |
|---|---|
| required | no certificate without it: broken, the verdict is *failed*; not proved, it is *incomplete* |
| optional | broken, it limits the certificate; skipped, because the rig lacks something, it has no effect |
| asked | always, or only of a card that promises transmit, receive, or not every cipher |
| kernel | the kernel's document or source file; `7.2:413-427` means these lines in Linux 7.2 |
| RFC | the section that the bytes must follow |
| OCP | the core feature of OCP's specification that the promise tests under TLS, in our words |

We know the title and the address of OCP's specification, and have not read its checklist: [*OCP Server
NIC SW Specification: Core Features*](https://www.opencompute.org/w/index.php?title=Core_Offloads). So the
OCP entries name the usual feature, not a row of that list; compare them with your copy. The specification
covers core offloads of every server NIC, so most promises of TLS offload have no entry.
"""
TAIL = """## Where this page comes from

It is made from [`criteria.yaml`](../../offload/suite/report/criteria.yaml). Edit that, not this
page, and then run:

```
.venv/bin/python -m offload.suite.report.promises_page > docs/reference/promises.md
```
"""
ASKED = {
    "always": "always",
    "tx": "if the profile promises transmit",
    "rx": "if the profile promises receive",
    "unpromised": "if the profile leaves a cipher or version out",
}
NAMES = {"kernel": "Kernel", "rfc": "RFC", "ocp": "OCP", "also": "See also"}


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(_section(promise) for promise in load().promises.values()), TAIL])


def _section(promise: Criterion) -> str:
    """One promise. Its heading is the id alone, so that links to it stay."""
    needed = "Required" if promise.required else "Optional"
    if promise.blocker and not promise.required:
        needed = "Optional, but broken, the verdict is *failed*; too few conditions limit the certificate"
    parts = promise.spec.tree().items()
    return "\n".join(
        [
            f"## {promise.id}",
            f"This NIC {promise.title}.",
            "",
            f"- Why: {promise.why}",
            f"- {needed}; asked {ASKED[promise.applies]}",
            *(f"- {NAMES[name]}: {_linked('; '.join(found))}" for name, found in parts),
            "",
        ]
    )


def _linked(text: str) -> str:
    """Other pages of docs/ as links from docs/reference."""
    return re.sub(r"docs/(?:reference/([\w-]+\.md)|(\w+/[\w-]+\.md))", _link, text)


def _link(found: re.Match[str]) -> str:
    return f"[{found[0].removeprefix('docs/')}]({found[1] or '../' + found[2]})"


if __name__ == "__main__":
    sys.stdout.write(page())
