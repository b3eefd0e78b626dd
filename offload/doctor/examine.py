"""The decision tree: is TLS offloaded here? Each device, each direction, the first reason that is sure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from offload.card.nic import Match, Nic, links, match, seen
from offload.card.nic_tools import Answer as Said
from offload.card.nic_tools import ask
from offload.card.profile import DIRECTIONS, Profile, load_all
from offload.card.profile_model import TLS13_COUNTER
from offload.doctor import card, cpu, esp, kernel, known, library, programs, surroundings, switches
from offload.doctor.kernel import Machine
from offload.doctor.library import Trial
from offload.doctor.reasons import LEVELS, Finding, Notes, plain
from offload.doctor.table import Verdict, table
from offload.errors import OffloadError, RigError
from offload.host.base import Host

if TYPE_CHECKING:
    from offload.connections.look import Listing

Answer = TypeVar("Answer")
READY, OFF, NEVER, UNKNOWN, NOT_PROMISED = "ready", "off", "never", "unknown", "not promised"
NO_TLS = ("D102", "D106", "D107", "D108", "D112")  # without module tls there is nothing to offload
EXITS = {READY: 0, OFF: 10, NEVER: 11, UNKNOWN: 12}


class Device(NamedTuple):
    """One device: per direction its state and the code of the reason ('' if ready); what was found."""

    nic: Nic
    found: Match
    states: dict[str, tuple[str, str]]
    findings: tuple[Finding, ...]
    fine: tuple[str, ...]
    cells: tuple[Verdict, ...]
    tools: tuple[Said, ...] = ()  # what they say of the card, if they were asked

    def state(self) -> str:
        """The device in one word: ready if every direction that it promises is, else the worst of them."""
        words = [word for word, _ in self.states.values() if word != NOT_PROMISED]
        order = (OFF, UNKNOWN, NEVER, READY)
        return next((word for word in order if word in words), NEVER)


class Diagnosis(NamedTuple):
    """The whole answer; `findings` and `fine` concern the host, `rest` are the devices not looked at."""

    machine: Machine
    trial: Trial
    devices: tuple[Device, ...]
    findings: tuple[Finding, ...]
    fine: tuple[str, ...]
    rest: tuple[Nic, ...] = ()
    warnings: tuple[str, ...] = ()

    def state(self) -> str:
        """The host in one word: the best that one of its devices is."""
        words = [device.state() for device in self.devices]
        return next((word for word in (READY, OFF, UNKNOWN, NEVER) if word in words), NEVER)


@dataclass
class Doctor:
    """What stays the same for every device of a host."""

    host: Host
    directions: Sequence[str] = DIRECTIONS
    profiles: tuple[Profile, ...] = ()
    tools: bool = False  # whether to ask devlink and the maker's tools about each card, which takes seconds
    trial: Trial | None = None  # what was tried before; None: try now
    listed: Listing | None = None  # the connections, once they were looked at
    warnings: list[str] = field(default_factory=list)

    def diagnose(self, wanted: Sequence[str] = ()) -> Diagnosis:
        """Look at the named devices, or at all that may offload. NoDevice if a named one is not there."""
        self.rows = sound(lambda: links(self.host), "ip -j -d link")
        if not self.profiles:
            self._profiles()
        nics = [self._nic(dev) for dev in dict.fromkeys(wanted or self.rows)]
        chosen = [nic for nic in nics if wanted or self._may(nic)]
        self.machine, notes = kernel.look(self.host), Notes()
        tls13 = TLS13_COUNTER in (self.machine.stat or {})
        self.profiles = tuple(profile.on(tls13) for profile in self.profiles)
        kernel.examine(self.machine, notes)
        cpu.examine(self.host, notes)
        self.tried = self.trial or library.attempt(self.host, self.machine)
        if not any(finding.level == NEVER for finding in notes.findings):
            library.examine(self.tried, notes)  # else there is nothing to try, and what was found says why
        programs.examine(self.host, notes, tls13)
        if not chosen:
            names = ", ".join(f"{n.dev} ({n.kind or n.driver or '-'})" for n in nics[:12])
            notes.add("D201", "ip link, ethtool -k", names=names)
        devices = tuple(self._device(nic, notes) for nic in chosen)
        rest = tuple(nic for nic in nics if nic not in chosen)
        return Diagnosis(
            self.machine,
            self.tried,
            devices,
            _sorted(notes),
            tuple(notes.fine),
            rest,
            tuple(self.warnings),
        )

    def _profiles(self) -> None:
        """Read the profiles; a wrong one is a warning."""
        try:
            self.profiles = load_all()
        except OffloadError as exc:
            self.warnings.append(f"profiles not read: {exc}")

    def _nic(self, dev: str) -> Nic:
        """One interface as the kernel shows it."""
        return sound(lambda: seen(self.host, dev, self.rows), f"ip and ethtool about {dev}")

    def _may(self, nic: Nic) -> bool:
        """Say whether a device that nobody named is worth a look."""
        shown = [f for d in DIRECTIONS if (f := nic.feature(d))]
        has = any(f.active or not f.fixed for f in shown)
        return has or bool(match(nic, self.profiles).profile) or nic.driver in kernel.facts()["drivers"]

    def _device(self, nic: Nic, host_notes: Notes) -> Device:
        """One device: the tree for each direction, then what is around it."""
        notes, found = Notes(nic.dev), match(nic, self.profiles)
        if nic.kind == "bond":
            return self._bond(nic, found, notes, host_notes)
        states = {}
        if not card.stands_on_others(nic, notes):
            self._tree(nic, found, notes)
        for direction in self.directions:
            states[direction] = self._state(direction, found, notes, host_notes)
        if any(word == READY for word, _ in states.values()):
            self._used(notes)
        cells = self._table(found.profile, states, host_notes)
        said = ask(self.host, nic) if self.tools and not found.simulated else ()
        return Device(nic, found, states, _sorted(notes), tuple(notes.fine), cells, said)

    def _table(
        self, profile: Profile | None, states: dict[str, tuple[str, str]], host_notes: Notes
    ) -> tuple[Verdict, ...]:
        """The truth table of the directions that were asked for."""
        lacking = [f.code for f in host_notes.findings if f.code in NO_TLS]
        tls13 = TLS13_COUNTER in (self.machine.stat or {})
        return table(profile, states, self.tried, lacking[0] if lacking else "", tls13)

    def _tree(self, nic: Nic, found: Match, notes: Notes) -> None:
        """Kernel and card if a feature is fixed, the switch if not; then what is around the device."""
        card.describe(nic, found, notes)
        wanted = [d for d in self.directions if not (found.profile and found.profile.why_no_direction(d))]
        for direction in wanted:
            feature = nic.feature(direction)
            if feature is not None and feature.fixed and not feature.active:
                card.why_fixed(self.host, self.machine, nic, found, direction, notes)
            else:
                switches.examine(nic, direction, notes)
        possible = [d for d in wanted if (f := nic.feature(d)) and (f.active or not f.fixed)]
        if not possible:
            return
        card.helpers(self.host, nic, found, possible, notes)
        switches.around(nic, self.rows[nic.dev], found, notes)
        surroundings.above(nic, self.rows, notes)
        surroundings.queueing(self.host, nic, notes)
        esp.examine(self.host, nic, notes)
        known.examine(self.machine, nic, possible, notes)

    def _state(self, direction: str, found: Match, notes: Notes, host_notes: Notes) -> tuple[str, str]:
        """How a direction stands, and the code of the worst reason."""
        if found.profile and found.profile.why_no_direction(direction):
            return NOT_PROMISED, "D211"
        mine = [f for f in notes.findings if not f.directions or direction in f.directions]
        # what the host lacks concerns every device; its library and programs are another matter (5xx, 6xx)
        mine += [
            f for f in host_notes.findings if f.code < "D200" and (direction in (f.directions or DIRECTIONS))
        ]
        for level in (NEVER, OFF, UNKNOWN):
            if worst := [f.code for f in mine if f.level == level]:
                return level, worst[0]
        return READY, ""

    def _used(self, notes: Notes) -> None:
        """Note who does the connections that there are, in the words of `ls`."""
        stat = self.machine.stat or {}
        software = max(stat.get("TlsCurrTxSw", 0), stat.get("TlsCurrRxSw", 0))
        called = max(stat.get("TlsCurrTxDevice", 0), stat.get("TlsCurrRxDevice", 0))
        if called:
            self._on_card(called, notes)
        elif software:
            notes.add(
                "D701", f"/proc/net/tls_stat: TlsCurr...Sw {software}, TlsCurr...Device 0", software=software
            )

    def _on_card(self, called: int, notes: Notes) -> None:
        """Ask `ls` which of the connections that the kernel calls a card's are on one: its word is old."""
        from offload.connections.look import Inspector  # only where there are connections

        try:
            listing = self.listed or Inspector(self.host, everywhere=False, profiles=self.profiles).look()
        except OffloadError as exc:
            self.warnings.append(f"could not list connections: {str(exc).splitlines()[0]}")
            return
        self.listed = listing
        if now := listing.on_card():
            notes.ok(f"{now} connections are on a card now")
        if why := listing.doubted():
            notes.add("D702", why[0], stale=len(why))
        if (unseen := called - now - len(why)) > 0:
            notes.ok(f"{unseen} more are on a card according to the kernel; ls could not check them")

    def _bond(self, nic: Nic, found: Match, notes: Notes, host_notes: Notes) -> Device:
        """A bond is what its ports are, if it asks them."""
        asked = surroundings.bond(nic, self.rows, notes)
        ports = [self._device(self._nic(dev), host_notes) for dev in nic.lower] if asked else []
        states = {d: self._state(d, Match(None), notes, host_notes) for d in self.directions}
        for direction, (word, _) in list(states.items()):
            if word == READY:
                states[direction] = self._of_ports(direction, ports, notes)
        of_ports = [f for port in ports for f in port.findings]
        notes.findings += [f for f in of_ports if f not in notes.findings]
        cells = ports[0].cells if ports else self._table(None, states, host_notes)
        return Device(
            nic, ports[0].found if ports else found, states, _sorted(notes), tuple(notes.fine), cells
        )

    def _of_ports(self, direction: str, ports: Sequence[Device], notes: Notes) -> tuple[str, str]:
        """The best that a port is; note those that are less."""
        states = {port.nic.dev: port.states[direction] for port in ports}
        order = (READY, OFF, UNKNOWN, NOT_PROMISED, NEVER)
        best = min(states.values(), key=lambda state: order.index(state[0]))
        less = [f"{dev}: {word} {code}".strip() for dev, (word, code) in states.items() if word != best[0]]
        if less and best[0] == READY:
            ports_text = ", ".join(dev for dev, (word, _) in states.items() if word != READY)
            notes.add("D217", "; ".join(less), [direction], ports=ports_text)
        return best


def sound(call: Callable[[], Answer], what: str) -> Answer:
    """Return what a program's answer means; RigError for one that means nothing (also: nested without
    end)."""
    try:
        return call()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as exc:
        raise RigError(plain(f"the answer of {what} makes no sense: {type(exc).__name__}")) from None


def _sorted(notes: Notes) -> tuple[Finding, ...]:
    """Findings with the worst first, then by code."""
    return tuple(sorted(notes.findings, key=lambda f: (LEVELS.index(f.level), f.code)))
