"""Can a page be read aloud, by keyboard, and in any light? A checker of HTML, and of contrast."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "use", "path", "rect", "circle", "br", "line", "polyline", "link", "img", "input"}
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")


@dataclass
class Node:
    """An element with its attributes, its children in order and its own text."""

    tag: str
    attrs: dict[str, str]
    children: list[Node] = field(default_factory=list)
    text: str = ""

    def walk(self) -> Iterator[Node]:
        """Yield it and all below it, in the order of the page."""
        yield self
        for child in self.children:
            yield from child.walk()

    def words(self) -> str:
        """Return all text in it."""
        return "".join(node.text for node in self.walk()).strip()


class Tree(HTMLParser):
    """The page as a tree; `wrong` says which tags do not pair."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.root = Node("", {})
        self.open, self.wrong = [self.root], list[str]()
        self.feed(page)
        self.wrong += [f"{node.tag} is never closed" for node in self.open[1:]]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {key: value or "" for key, value in attrs})
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Node(tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if self.open[-1].tag != tag:
            self.wrong.append(f"{tag} is closed in {self.open[-1].tag}")
        elif tag not in VOID:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].text += data


def problems(page: str) -> list[str]:
    """Return what keeps someone from reading the page; WCAG 2.2 success criteria in brackets."""
    tree = Tree(page)
    nodes = list(tree.root.walk())
    return [
        *tree.wrong,
        *_document(nodes),
        *_headings(nodes),
        *_links(nodes),
        *_tables(nodes),
        *_names(nodes),
    ]


def _document(nodes: list[Node]) -> Iterator[str]:
    """Language, title, landmarks, zoom (3.1.1, 2.4.2, 1.3.1, 1.4.4)."""
    tags = Counter(node.tag for node in nodes if node.tag != "title")
    tags.update(child.tag for node in nodes if node.tag == "head" for child in node.children)
    yield from (f"{tags[tag]} {tag}" for tag in ("main", "h1", "title", "footer") if tags[tag] != 1)
    for node in nodes:
        if node.tag == "html" and not node.attrs.get("lang"):
            yield "no language"
        if node.tag == "title" and not node.words():
            yield "an empty title"
        if node.attrs.get("name") == "viewport" and re.search(
            "user-scalable|maximum-scale", node.attrs["content"]
        ):
            yield "zoom is off"
    ids = Counter(node.attrs["id"] for node in nodes if "id" in node.attrs)
    yield from (f"id {name} is there {count} times" for name, count in ids.items() if count > 1)


def _headings(nodes: list[Node]) -> Iterator[str]:
    """Levels without gaps, none empty (1.3.1, 2.4.6)."""
    level = 0
    for node in nodes:
        if node.tag in HEADINGS:
            now = HEADINGS.index(node.tag) + 1
            if now > level + 1:
                yield f"{node.tag} after h{level}: {node.words()[:40]}"
            if not node.words():
                yield f"an empty {node.tag}"
            level = now


def _links(nodes: list[Node]) -> Iterator[str]:
    """Links have words and lead somewhere; the first skips ahead; no order of their own (2.4.1, 2.4.3)."""
    ids = {node.attrs.get("id") for node in nodes}
    links = [node for node in nodes if node.tag == "a"]
    if not links or "skip" not in links[0].attrs.get("class", ""):
        yield "the first link does not skip ahead"
    for link in links:
        target = link.attrs.get("href", "")
        if not link.words():
            yield f"a link without words to {target}"
        if target.startswith("#") and target[1:] not in ids:
            yield f"a link to {target}, which is not there"
    yield from ("an order of tabs" for node in nodes if node.attrs.get("tabindex", "0") not in ("0", "-1"))


def _tables(nodes: list[Node]) -> Iterator[str]:
    """A caption, a scope for each header cell, a box that the keyboard can scroll (1.3.1, 2.1.1)."""
    for node in nodes:
        if node.tag == "table" and (not node.children or node.children[0].tag != "caption"):
            yield f"a table without caption: {node.words()[:40]}"
        if node.tag == "table" and not any(inner.tag == "th" for inner in node.walk()):
            yield "a table without header cells"
        if node.tag == "th" and node.attrs.get("scope") not in ("row", "col", "rowgroup", "colgroup"):
            yield f"a header cell without scope: {node.words()[:40]}"
        if (
            node.attrs.get("class") == "scroll"
            and not {"role", "tabindex", "aria-labelledby"} <= node.attrs.keys()
        ):
            yield "a box that the keyboard cannot scroll"


def _names(nodes: list[Node]) -> Iterator[str]:
    """Sections, lists of links and pictures have names, and these are there (1.1.1, 4.1.2)."""
    ids = {node.attrs["id"]: node for node in nodes if "id" in node.attrs}
    for node in nodes:
        label = node.attrs.get("aria-labelledby")
        if label is not None and (label not in ids or not ids[label].words()):
            yield f"{node.tag} is named by {label}, which is not there"
        named = bool(node.attrs.get("aria-label") or label)
        if node.tag in ("section", "nav") and not named:
            yield f"a {node.tag} without a name"
        if (
            node.tag == "svg"
            and node.attrs.get("aria-hidden") != "true"
            and not (named and node.attrs.get("role") == "img")
        ):
            yield "a picture without a name"
        if node.tag == "img" and not node.attrs.get("alt"):
            yield "a picture without a name"


def themes(style: str) -> dict[str, dict[str, str]]:
    """Return the colors by theme (light, dark, print) and name, as the style sheet defines them."""
    found = {}
    for name, block in zip(
        ("light", "dark", "print"), re.findall(r":root \{(.*?)\}", style, re.S), strict=True
    ):
        found[name] = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6});", block))
    return found


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colors (WCAG 2.2, relative luminance)."""
    bright, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def _luminance(color: str) -> float:
    digits = color[1:] if len(color) == 7 else "".join(2 * digit for digit in color[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
