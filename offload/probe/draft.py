"""What was seen of a card -> the text of a profile: every value says how it is known, `seen` or `GUESS`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from offload import __version__
from offload.card.profile import CIPHERS, DIRECTIONS, FEATURES, VERSIONS, WORDS, Cell
from offload.card.profile_model import KERNEL_COUNTERS
from offload.probe.look import Seen

# What a verdict can rest on, if the driver shows it: these move on every card of Linux 7.2 that has them
# (shown in docs/reference/counters.md); the rest of the kernel's names moves on some cards only.
BEARING = (
    "tx_tls_encrypted_packets",
    "tx_tls_encrypted_bytes",
    "tx_tls_ctx",
    "tx_tls_del",
    "tx_tls_ooo",
    "tx_tls_drop_no_sync_data",
    "rx_tls_decrypted_packets",
    "rx_tls_decrypted_bytes",
    "rx_tls_ctx",
    "rx_tls_del",
    "rx_tls_resync_req_pkt",
    "rx_tls_resync_res_ok",
    "rx_tls_err",
)
MOST = 64  # of the driver's own counters: what comes from a driver is bounded
DEAD = ("tx_tls_drop_bypass_req",)  # mlx5 and cxgb4 show it, no driver through Linux 7.2 moves it
NEVER = {  # what no card does for kernel TLS, whatever it could
    'version: "1.3"': "the kernel offloads TLS 1.2 only (tls_device.c:1095 and :1202, through Linux 7.3)",
    "cipher: chacha20-poly1305": "the kernel offloads AES-GCM only (tls_main.c:100)",
}
SURE = "aes-gcm-128"  # mlx5, cxgb4, nfp and funeth take it; AES-GCM-256 only mlx5, through Linux 7.2


def draft(seen: Seen, ident: str) -> str:
    """The whole file. Valid by the profile schema, whatever the card's programs said."""
    parts = (
        _head(seen, ident),
        _pci(seen),
        _kconfig(seen),
        _promises(seen),
        _switches(seen),
        _counters(seen),
        _needs(seen),
    )
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def ident(seen: Seen) -> str:
    """An id for it: the name of the PCI list, else driver and device id, else the driver."""
    known = re.sub(r"^.*\[|\].*$", "", seen.names[1])
    _, _, device = seen.nic.pci.partition(":")
    name = known or "-".join(filter(None, (seen.nic.driver, device)))
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "card"


def _q(text: str) -> str:
    """A value or a remark that is safe in the file: printable ASCII, in quotes, 300 characters at most."""
    return json.dumps(_plain(text))


def _plain(text: str) -> str:
    """Printable ASCII on one line."""
    return "".join(c if " " <= c <= "~" else "?" for c in " ".join(text.split()))[:300]


def _guess(why: str) -> str:
    """The mark of a value that nobody has seen."""
    return f"  # GUESS: {_plain(why)}"


def _seen(where: str) -> str:
    """The mark of a value that was seen."""
    return f"  # seen: {_plain(where)}"


def _head(seen: Seen, ident: str) -> list[str]:
    """Title, and what the card is called."""
    nic, (vendor, name) = seen.nic, seen.names
    maker = nic.pci.partition(":")[0]
    lines = [
        f"# DRAFT by ktls-offload {__version__} probe {_plain(nic.dev)}, Linux {_plain(seen.kernel)}:"
        " check each GUESS in the driver's source (docs/contribute/add-a-nic.md)."
    ]
    if seen.found.simulated:
        lines.append(f"# SIMULATED: the card is {_plain(nic.driver)}, firmware {_plain(nic.firmware)}")
    source = _seen("the PCI list") if name else _guess("the PCI list does not have it")
    maker_source = _seen("the PCI list") if vendor else _guess("the PCI list does not have it")
    return [
        *lines,
        "schema: 1",
        f"id: {_q(ident)}" + _guess("a first name; the file has the same name"),
        f"name: {_q(name or f'{nic.driver} {nic.pci or nic.firmware}'.strip())}{source}",
        f"vendor: {_q(vendor or (f'PCI vendor {maker}' if maker else 'unknown'))}{maker_source}",
        f"driver: {_q(nic.driver)}{_seen(f'ethtool -i {nic.dev}')}",
    ]


def _pci(seen: Seen) -> list[str]:
    """The id that the card was found by."""
    if not seen.nic.pci:
        return ["pci: []" + _seen(f"no PCI device behind bus {seen.nic.bus or '-'}")]
    name = _q(seen.names[1] or seen.nic.driver)
    where = _seen(f"/sys/bus/pci/devices/{seen.nic.bus}; more ids: the driver's pci_device_id table")
    return [f"pci:{where}", f'  - {{id: "{seen.nic.pci}", name: {name}}}']


def _kconfig(seen: Seen) -> list[str]:
    """Return what every card needs, and the symbols that this kernel has with TLS in their names, as
    remarks."""
    sure = ("CONFIG_TLS", "CONFIG_TLS_DEVICE")
    lines = [
        "kconfig:" + _guess("that these are all; the driver's own are in its Kconfig, around its TLS file"),
        '  - {symbol: CONFIG_TLS, wanted: m, why: "kernel TLS itself"}',
        '  - {symbol: CONFIG_TLS_DEVICE, wanted: y, why: "the part of it that hands records to a card"}',
    ]
    others = [name for name in seen.options if name not in sure]
    if others:
        lines.append(f"  # set in {_plain(seen.config)} beside them: {_plain(', '.join(others))}")
    return lines


def kept(seen: Seen) -> list[Cell]:
    """Return what the draft promises: what the card took; where nothing was tried the surest cipher.

    A direction without any counter that could prove it is left out.
    """
    cells = [cell for cell, took in seen.trial.took.items() if took]
    cells += [Cell(d, "1.2", SURE) for d in DIRECTIONS if seen.offers(d) and not seen.trial.tried(d)]
    return [cell for cell in cells if mapped(seen, cell.direction)[0]]


def _promises(seen: Seen) -> list[str]:
    """Promises, and a reason for everything else."""
    cells = kept(seen)
    lines = ["promises:" if cells else "promises: {}" + _seen("the kernel shows no offered direction")]
    for direction in DIRECTIONS:
        ours = [c for c in cells if c.direction == direction]
        versions = {v: [c.cipher for c in ours if c.version == v] for v in VERSIONS}
        rows = ", ".join(f'"{v}": [{", ".join(names)}]' for v, names in versions.items() if names)
        if rows:
            lines.append(f"  {direction}: {{{rows}}}{_how(seen, direction)}")
    return [*lines, "", "not_promised:", *_refusals(seen, cells)]


def _how(seen: Seen, direction: str) -> str:
    """How the promises of a direction are known."""
    if seen.trial.tried(direction):
        return _seen("offered to the card, which accepted it (probe --try)")
    return _guess(f"{SURE} is what every driver of Linux 7.2 takes; {seen.trial.why}")


def _refusals(seen: Seen, cells: list[Cell]) -> Iterable[str]:
    """Entries of not_promised: whole directions first, then what no kernel does, then single ciphers."""
    for direction in DIRECTIONS:
        if not any(c.direction == direction for c in cells):
            why = _q(_never(seen, direction))
            yield f"  - {{direction: {direction}, reason: {why}}}{_seen('ethtool -k and -S')}"
    said = [what for what in NEVER if not any(_fits(what, cell) for cell in cells)]
    yield from (f"  - {{{what}, reason: {_q(NEVER[what])}}}" for what in said)
    for cell in (Cell(d, v, c) for d in DIRECTIONS for v in VERSIONS for c in CIPHERS):
        promising = any(c.direction == cell.direction for c in cells)
        if promising and cell not in cells and not any(_fits(what, cell) for what in said):
            yield _refusal(seen, cell)


def _fits(what: str, cell: Cell) -> bool:
    """Say whether a line of NEVER speaks of a cell."""
    return what in (f'version: "{cell.version}"', f"cipher: {cell.cipher}")


def _refusal(seen: Seen, cell: Cell) -> str:
    """The entry of a single cell."""
    why, mark = "not yet tested whether the card accepts it", _guess(seen.trial.why)
    if cell in seen.trial.took:
        why, mark = "the card did not accept it", _seen("offered to the card, which left it to software")
    names = f'direction: {cell.direction}, version: "{cell.version}", cipher: {cell.cipher}'
    return f"  - {{{names}, reason: {_q(why)}}}{mark}"


def _never(seen: Seen, direction: str) -> str:
    """Why a direction promises nothing."""
    feature = seen.nic.feature(direction)
    if feature is None:
        return f"{FEATURES[direction]} is unknown to this kernel"
    if not seen.offers(direction):
        return f"{FEATURES[direction]} is {feature} on this card, driver and kernel"
    if not mapped(seen, direction)[0]:
        return f"the driver has no {WORDS[direction]} counter with a name from the kernel's documentation"
    return "the card accepted none of the offered connections"


def _switches(seen: Seen) -> list[str]:
    """How it is found, and what switches it."""
    directions = [d for d in DIRECTIONS if any(c.direction == d for c in kept(seen))]
    now = {d: bool((f := seen.nic.feature(d)) and f.active) for d in DIRECTIONS}
    words = ", ".join(f"{d}: {'on' if on else 'off'}" for d, on in now.items())
    lines = [f"defaults: {{{words}}}" + _guess("the current state; the driver's default may differ"), ""]
    if not directions:
        return [*lines, "steps: []"]
    lines.append("steps:")
    for module in seen.modules:
        why = _q(f"uses both tls and {seen.nic.driver}, and is loaded here")
        lines += [
            f"  - {{modprobe: {module}, direction: {d}, why: {why}}}" + _guess("it may not be needed")
            for d in directions
        ]
    for direction in directions:
        start = "on now" if now[direction] else "off now"
        lines.append(
            f"  - {{feature: {FEATURES[direction]}, direction: {direction}, why: {_q(start)}}}"
            + _seen("ethtool -k")
        )
    return lines


def mapped(seen: Seen, direction: str) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Counters of a direction: required, optional (kernel's name -> driver's), and the driver's own.

    The driver's name is the kernel's, or ends in it (`sim_tx_tls_del`) if exactly one does.
    """
    prefix = f"{direction}_"
    named: dict[str, str] = {}
    usable = [n for n in seen.counters if re.fullmatch(r"[a-z0-9_]{1,64}", n)]
    for kernel in KERNEL_COUNTERS[direction]:
        ends = [n for n in usable if n.endswith(f"_{kernel}")]
        if kernel in usable:
            named[kernel] = kernel
        elif len(ends) == 1:
            named[kernel] = ends[0]
    required = {k: v for k, v in named.items() if k in BEARING}
    optional = {k: v for k, v in named.items() if k not in BEARING and k not in DEAD}
    taken = {*named.values(), *DEAD}
    other = "rx_" if direction == "tx" else "tx_"
    own = [
        n
        for n in usable
        if n not in taken
        and (
            n.startswith(prefix)
            or f"_{prefix}" in n
            or (direction == "tx" and not n.startswith(other) and f"_{other}" not in n)
        )
    ]
    return required, optional, own[:MOST]


def _counters(seen: Seen) -> list[str]:
    """Return what the driver shows, sorted by what it is good for."""
    lines = [f"counters:  # seen: ethtool -S {_plain(seen.nic.dev)}; GUESS: their names"]
    for direction in DIRECTIONS:
        required, optional, own = mapped(seen, direction)
        if not required:
            continue
        dead = [n for n in DEAD if direction == "tx" and n in seen.counters]
        lines.append(f"  {direction}:")
        lines += _mapping("required", required)
        lines += _mapping("optional", optional)
        lines.append(
            f"    dead: [{', '.join(dead)}]" + (_guess("unused in every driver so far") if dead else "")
        )
        lines.append(f"    own: [{', '.join(own)}]")
    if seen.trial.moved:
        lines.insert(1, f"  # moved during --try: {_plain(', '.join(seen.trial.moved))}")
    return lines if len(lines) > 1 else ["counters: {}" + _seen("ethtool -S has none with TLS in its name")]


def _mapping(key: str, names: dict[str, str]) -> list[str]:
    """A list of names, or name by name where the driver calls one otherwise."""
    if all(kernel == own for kernel, own in names.items()):
        return [f"    {key}: [{', '.join(names)}]"]
    rows = [
        f"      {kernel}: {own}" + ("" if kernel == own else _guess("its name ends so"))
        for kernel, own in names.items()
    ]
    return [f"    {key}:", *rows]


def _needs(seen: Seen) -> list[str]:
    """Part and firmware as they are here: what it takes, one card cannot tell."""
    crypto = "true" if any(seen.offers(d) for d in DIRECTIONS) else "false"
    note = "this draft was made from it"
    row = f"    - {{pattern: {_q(seen.part)}, crypto: {crypto}, note: {_q(note)}}}"
    part = [f"  parts:{_seen('vital product data, and ethtool -k')}", row]
    if not seen.part:
        part = [f"  parts: []{_seen(seen.no_part)}"]
    firmware = f"not known; {seen.nic.firmware} is what this card had" if seen.nic.firmware else "not known"
    return [
        "sku:",
        '  need: "not known"' + _guess("one card does not show which parts support it"),
        *part,
        "  hints: []",
        "",
        "firmware:",
        f"  need: {_q(firmware)}" + _guess("ethtool -i shows the installed version, not the required one"),
        "  hints: []",
        "",
        "limitations: []  # GUESS: none known; write down what the tests find",
        "notes: []  # GUESS: add weaknesses that no test meets",
    ]
