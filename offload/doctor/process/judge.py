"""Why is a connection of this process not under kernel TLS, or not on a card? Its library, then its route."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from offload.card.profile import DIRECTIONS, Cell
from offload.card.profile_model import TLS13_COUNTER
from offload.connections.look import Inspector, Line
from offload.doctor.examine import NEVER, NOT_PROMISED, OFF, READY, UNKNOWN, Device, Doctor
from offload.doctor.library import Trial
from offload.doctor.process.look import GNUTLS_CONFIG, GO, Library, Process, look
from offload.doctor.reasons import LEVELS, Finding, Notes
from offload.doctor.versions import copies, dots
from offload.host.base import Host

ORDER = (OFF, UNKNOWN, NEVER, READY)
OLDEST = {"OpenSSL": (3, 0), "GnuTLS": (3, 7, 3)}  # openssl CHANGES 3.0; gnutls NEWS 3.7.3 ([global] ktls)
WITHOUT = {"NSS", "Mbed TLS", "Java", GO}
ABLE = {"OpenSSL", "GnuTLS", "s2n-tls"}
MOVES = ("stunnel", "haproxy")  # programs that set SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
RX13 = (3, 2)


@dataclass(frozen=True)
class Connection:
    """Connections of one kind: an example, how many there are, and per direction state and code."""

    line: Line
    count: int
    states: Mapping[str, tuple[str, str]]

    def state(self) -> str:
        """The worst direction in one word."""
        words = [word for word, _ in self.states.values() if word != NOT_PROMISED]
        return next((word for word in ORDER if word in words), NEVER)


@dataclass(frozen=True)
class Answer:
    """The whole answer; `others`: local ports of TCP connections that are not under kernel TLS."""

    process: Process
    connections: tuple[Connection, ...]
    others: tuple[int, ...]
    findings: tuple[Finding, ...]

    def state(self) -> str:
        """The worst connection in one word; without any the surest finding."""
        words = [one.state() for one in self.connections]
        if words:
            return next(word for word in ORDER if word in words)
        levels = [f.level for f in self.findings]
        return next((word for word in (OFF, NEVER) if word in levels), UNKNOWN)


def ask(host: Host, pid: int, directions: Sequence[str] = DIRECTIONS) -> Answer:
    """The answer about a process. ConfigError if there is none with this number."""
    return Judge(host, look(host, pid), directions).answer()


@dataclass
class Judge:
    """What stays the same for every connection of a process."""

    host: Host
    process: Process
    directions: Sequence[str] = DIRECTIONS
    notes: Notes = field(default_factory=Notes)
    devices: dict[tuple[int, str], Device] = field(default_factory=dict)

    def answer(self) -> Answer:
        """Judge library and connections."""
        listing = Inspector(self.host).look()
        lines = [one for one in listing.lines if one.socket.inode in self.process.inodes]
        known = {one.socket.inode for one in lines}
        others = tuple(port for inode, port in self.process.tcp.items() if inode not in known)
        found = self._kinds(lines)
        if not listing.found.root or self.process.hidden:
            what = self.process.hidden or "kernel TLS of its connections"
            self.notes.add("D901", what, name=self.process.title, what=what)
        elif others:
            self._others(others, bool(lines))
        elif not lines:
            self.notes.add("D902", "no established TCP connection", name=self.process.title)
        self._libraries(bool(others))
        rows = sorted(self.notes.findings, key=lambda f: (LEVELS.index(f.level), f.code))
        return Answer(self.process, found, others, tuple(rows))

    def _kinds(self, lines: Sequence[Line]) -> tuple[Connection, ...]:
        """The connections, those of one kind together."""
        kinds: dict[tuple[object, ...], Line] = {}
        count: Counter[tuple[object, ...]] = Counter()
        for line in lines:
            one = line.socket
            words = tuple(line.word(d) for d in self.directions)
            kind = (line.space.inode, one.device, one.version, one.cipher, *words)
            kinds.setdefault(kind, line)
            count[kind] += 1
        return tuple(
            Connection(line, count[kind], {d: self._state(line, d) for d in self.directions})
            for kind, line in kinds.items()
        )

    def _state(self, line: Line, direction: str) -> tuple[str, str]:
        """How a direction stands, and the code of the reason."""
        one, (doubt, why) = line.socket, line.doubts[direction]
        if doubt:
            self.notes.add("D702", why, [direction], stale=1)
            return (OFF if doubt == "stale" else UNKNOWN), "D702"
        if one.conf(direction) == "hw":
            return READY, ""
        if one.conf(direction) == "none":
            return self._one_way(line, direction)
        if one.device == "lo":
            return self._add(NEVER, "D910", one.peer, direction)
        if one.version != "1.2" and TLS13_COUNTER not in (line.space.tls_stat or {}):
            return self._add(OFF, "D908", f"TLS {one.version}, {one.cipher}", direction, version=one.version)
        return self._on_device(line, direction)

    def _one_way(self, line: Line, direction: str) -> tuple[str, str]:
        """A direction that the program keeps, though the other one is under kernel TLS."""
        old = [x for x in self.process.libraries if x.name == "OpenSSL" and () < x.version < RX13]
        if direction == "rx" and line.socket.version == "1.3" and old:
            self.notes.add("D813", str(old[0]), ["rx"], name=self.process.title, library=str(old[0]))
            return OFF, "D813"
        return self._add(OFF, "D911", f"{direction}: not under kernel TLS", direction)

    def _on_device(self, line: Line, direction: str) -> tuple[str, str]:
        """A connection in software: the device of its route says why, or nothing does."""
        one = line.socket
        if one.device in ("", "?"):
            return UNKNOWN, ""
        device = self._device(line)
        state, code = device.states.get(direction, (UNKNOWN, ""))
        profile = device.found.profile
        if state != READY:
            self.notes.findings += [
                f for f in device.findings if f.code == code and f not in self.notes.findings
            ]
            return state, code
        cell = Cell(direction, one.version, one.cipher)
        if why := profile.reason(*cell) if profile else "":
            return self._add(OFF, "D909", why, direction, cipher=one.cipher, dev=one.device)
        return self._add(OFF, "D912", f"{one.device} is ready", direction, dev=one.device)

    def _device(self, line: Line) -> Device:
        """Return what the doctor says of the device that a connection's route leads through."""
        key = (line.space.inode, line.socket.device)
        if key not in self.devices:
            doctor = Doctor(line.space.host(self.host), self.directions, trial=Trial(why="not asked"))
            self.devices[key] = doctor.diagnose([line.socket.device]).devices[0]
        return self.devices[key]

    def _add(self, state: str, code: str, seen: str, direction: str, **values: object) -> tuple[str, str]:
        """Note a reason for one direction."""
        self.notes.add(code, seen, [direction], (), name=self.process.title, **values)
        return state, code

    def _others(self, ports: Sequence[int], some: bool) -> None:
        """Note connections that are not under kernel TLS."""
        shown = ", ".join(map(str, sorted(set(ports))[:8]))
        but = "; others of its connections are" if some else ""
        seen = f"{len(ports)} established TCP connections, local port {shown}{but}"
        self.notes.add("D907", seen, name=self.process.title, count=len(ports))

    def _libraries(self, waits: bool) -> None:
        """Note the part of its TLS libraries; `waits`: some connections are not in the kernel."""
        process, notes = self.process, self.notes
        if not process.libraries and not process.hidden and waits:
            notes.add("D903", process.exe or process.name, name=process.title)
        for one in process.libraries:
            if one.replaced:
                notes.add("D913", f"{one.path} (deleted)", name=process.title, library=one.name)
            if waits and not any(map(self._may, process.libraries)):
                self._unable(one)
            if one.name == "OpenSSL" and not copies(one.version):
                code = "D829" if process.name.startswith(MOVES) else "D504"
                notes.add(code, f"{one.path}: {one}", ["tx"], name=process.title, library=str(one))

    def _may(self, one: Library) -> bool:
        """Say whether a program can have kernel TLS from this library just by asking."""
        old = () < one.version < OLDEST.get(one.name, ())
        return one.name in ABLE and not old and (one.name != "GnuTLS" or self.process.gnutls)

    def _unable(self, one: Library) -> None:
        """Note a library that has no kernel TLS, or waits for a setting."""
        name, oldest = self.process.title, OLDEST.get(one.name)
        if one.name in WITHOUT:
            self.notes.add("D904", one.path, name=name, library=str(one))
        elif one.name not in ABLE:
            self.notes.add("D903", one.path, name=name)
        elif oldest and () < one.version < oldest:
            self.notes.add("D905", one.path, name=name, library=str(one), oldest=dots(oldest))
        elif one.name == "GnuTLS" and not self.process.gnutls:
            self.notes.add("D906", f"{GNUTLS_CONFIG}: no ktls = true", name=name, library=str(one))
