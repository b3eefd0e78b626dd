"""The entries of docs/reference/promises.md, made from criteria.yaml; offload/cli/pages.py puts them in."""

from __future__ import annotations

import re

from offload.suite.report.criteria import Criterion, load

ASKED = {
    "always": "always",
    "tx": "if the profile promises transmit",
    "rx": "if the profile promises receive",
    "unpromised": "if the profile leaves a cipher or version out",
}
NAMES = {"kernel": "Kernel", "rfc": "RFC", "ocp": "OCP", "also": "See also"}


def entries() -> str:
    """The sections of the page, one an entry."""
    return "\n".join(_section(promise) for promise in load().promises.values())


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
