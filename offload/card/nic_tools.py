"""What do a card's own tools report? devlink, and the maker's where they are installed; they only read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from offload.card.nic import PCI_ADDRESS, Nic
from offload.errors import TimedOut
from offload.host.base import Host

# mst programs read a card by writing an address into its configuration space: no other maker's card is asked
MELLANOX = "15b3"
WAIT = 20.0  # seconds; a query of a healthy card takes one or two
LONGEST, MANY = 240, 40  # of a value, and of values of one tool
# devlink-info.rst: `fixed` versions of the board and `running` ones of the firmware
VERSIONS = ("board.id", "fw.psid", "fw", "fw.mgmt", "fw.version")
FLASH = ("FW Version", "Product Version", "PSID", "Part Number", "Description", "Security Attributes")
BOARD = ("Device type", "Name", "Description")
# settings of the card that change who encrypts, or where (mlxconfig_host.db of mstflint)
SETTINGS = re.compile(r"\w*(?:TLS|CRYPTO)\w*|UCTX_EN|SRIOV_EN|INTERNAL_CPU_OFFLOAD_ENGINE|LINK_TYPE_P\d")
LINK = ("State", "Physical state", "Speed", "Width", "FEC", "Auto Negotiation")


class Answer(NamedTuple):
    """What a tool says, by its own names; `why` it says nothing ('' if it does)."""

    tool: str
    said: Mapping[str, str]
    why: str = ""

    def __str__(self) -> str:
        return self.why or ", ".join(f"{name} {value}" for name, value in self.said.items())


class Tool(NamedTuple):
    """A tool: its programs (Debian's name first), what they are asked, whose cards, and its reader."""

    name: str
    programs: tuple[str, ...]
    words: tuple[str, ...]
    vendor: str
    read: Callable[[str, str], dict[str, str]]


def ask(host: Host, nic: Nic, names: Sequence[str] = ()) -> tuple[Answer, ...]:
    """Return what the tools (all, or those of these names) say of an interface's card; nothing for no PCI
    card."""
    if not PCI_ADDRESS.fullmatch(nic.bus):
        return ()
    vendor = nic.pci.partition(":")[0]
    asked = [tool for tool in TOOLS if tool.vendor in ("", vendor) and (not names or tool.name in names)]
    return tuple(_ask(host, tool, nic.bus) for tool in asked)


def _ask(host: Host, tool: Tool, bus: str) -> Answer:
    """One tool's answer, by the first of its programs that is installed."""
    words = [word.format(bus=bus) for word in tool.words]
    for program in tool.programs:
        try:
            done = host.run([program, *words], check=False, timeout=WAIT)
        except TimedOut:
            return Answer(tool.name, {}, f"{program} gave no answer in {WAIT:.0f} s")
        if done.rc == 127:
            continue
        if done.rc != 0:
            text = done.stderr.decode("utf-8", "replace").strip() or done.text.strip()
            return Answer(
                tool.name, {}, plain(f"{program}: {text.partition(chr(10))[0] or f'exit {done.rc}'}")
            )
        said = {plain(name): plain(value) for name, value in tool.read(done.text, bus).items()}
        return Answer(tool.name, said, "" if said else f"the output of {program} is not recognizable")
    return Answer(tool.name, {}, f"{tool.programs[0]} is not installed")


def plain(text: str) -> str:
    """One line that is safe for a terminal, of a bounded length."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * LONGEST]).split())
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."


def _info(text: str, bus: str) -> dict[str, str]:
    """`devlink -j dev info`; a stored version is named where another one runs: it waits for a reset."""
    versions = below(answer(text), "info", f"pci/{bus}", "versions")
    found = {**below(versions, "fixed"), **below(versions, "running")}
    stored = below(versions, "stored")
    said = {name: found[name] for name in VERSIONS if isinstance(found.get(name), str)}
    waits = {
        f"stored {n}": stored[n] for n in said if isinstance(stored.get(n), str) and stored[n] != said[n]
    }
    return said | waits


def _params(text: str, bus: str) -> dict[str, str]:
    """`devlink -j dev param show`: the first value of each parameter."""
    rows = below(answer(text), "param").get(f"pci/{bus}")
    said = {}
    for row in rows[:MANY] if isinstance(rows, list) else ():
        values = row.get("values") if isinstance(row, dict) else None
        first = values[0] if isinstance(values, list) and values else None
        if isinstance(first, dict) and isinstance(first.get("value"), (str, int)):
            said[str(row.get("name", ""))] = json.dumps(first["value"]).strip('"')
    return said


def _lines(text: str) -> dict[str, str]:
    """`Name:  value` by name, the first of each: below comes a table whose head is a second Description."""
    said: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and name[:1].isalpha() and value.strip():
            said.setdefault(name.strip(), value)
    return said


def _flash(text: str, bus: str) -> dict[str, str]:
    """`mstflint query full`. `UID ... GuidsNumber` is the head of a table, of a card that names no part."""
    said = _lines(text)
    if said.get("Description", "").split()[:1] == ["UID"]:
        del said["Description"]
    return {name: said[name] for name in FLASH if name in said}


def _config(text: str, bus: str) -> dict[str, str]:
    """`mstconfig query`: the board, and the settings that matter here, as they are from the next boot on."""
    head, _, table = text.partition("\nConfigurations:")
    rows = re.findall(r"^[* ]?(?:RO)?[ \t]+([A-Z][A-Z0-9_]{0,63})[ \t]+(\S+)", table, re.M)
    settings = [row for row in rows if SETTINGS.fullmatch(row[0])]
    said = _lines(head)
    return {name: said[name] for name in BOARD if name in said} | dict(settings[:MANY])


def _link(text: str, bus: str) -> dict[str, str]:
    """`mstlink --json`: the link, and what its firmware recommends."""
    output = below(answer(text), "result", "output")
    link, trouble = below(output, "Operational Info"), below(output, "Troubleshooting Info")
    said = {name: link[name] for name in LINK if isinstance(link.get(name), str)}
    advice = trouble.get("Recommendation")
    return said | ({"Recommendation": advice} if isinstance(advice, str) and advice.strip() else {})


def answer(text: str) -> dict[str, Any]:
    """A JSON object; empty for anything else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def below(tree: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """The object below these keys; empty if there is none."""
    found: Any = tree
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


TOOLS = (
    Tool("devlink", ("devlink",), ("-j", "dev", "info", "pci/{bus}"), "", _info),
    Tool("devlink-param", ("devlink",), ("-j", "dev", "param", "show", "pci/{bus}"), "", _params),
    Tool("mstflint", ("mstflint", "flint"), ("-d", "{bus}", "query", "full"), MELLANOX, _flash),
    Tool("mstconfig", ("mstconfig", "mlxconfig"), ("-d", "{bus}", "query"), MELLANOX, _config),
    Tool("mstlink", ("mstlink", "mlxlink"), ("-d", "{bus}", "--json"), MELLANOX, _link),
)
