"""Is a connection of this service offloaded? The program's settings first, then the card's own table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from offload.card.profile import CIPHERS, Cell
from offload.card.profile_model import ALL_CELLS
from offload.doctor.apps import known
from offload.doctor.apps.model import DEFAULT, OLDEST, App, Said, Service, only_here
from offload.doctor.examine import NEVER, NOT_PROMISED, OFF, READY, UNKNOWN, Device, Diagnosis
from offload.doctor.library import short
from offload.doctor.reasons import LEVELS, Finding, plain
from offload.doctor.table import HW, SW, table
from offload.doctor.table import UNKNOWN as NOBODY_KNOWS
from offload.host.base import Host

USER, OTHER = "user", "other"
SUITE = {
    "TLS_AES_128_GCM_SHA256": CIPHERS[0],
    "TLS_AES_256_GCM_SHA384": CIPHERS[1],
    "TLS_CHACHA20_POLY1305_SHA256": CIPHERS[2],
}
ENC = {"AESGCM(128)": CIPHERS[0], "AESGCM(256)": CIPHERS[1], "CHACHA20/POLY1305(256)": CIPHERS[2]}
NEWER = {
    "nginx": "nginx 1.21.4 or newer, which also sends files by SSL_sendfile",
    "haproxy": "HAProxy 3.3 or newer, with `ktls on` on bind and server lines",
    "stunnel": "stunnel 5.60 or newer, with OpenSSL 3",
    "openssl": "OpenSSL 3 with enable-ktls",
    "nfs": "Linux 6.5 or newer, with CONFIG_NET_HANDSHAKE",
    "nvme": "Linux 6.7 or newer, with CONFIG_NVME_TCP_TLS (a target: CONFIG_NVME_TARGET_TCP_TLS)",
}
KTLS_LIBRARY, RX13_LIBRARY = (3, 0), (3, 2)
ORDER = (OFF, UNKNOWN, NEVER, READY)


@dataclass(frozen=True)
class Work:
    """Who does the records of one cell: hw, sw, user (the program itself) or ?; and why not hw."""

    cell: Cell
    who: str
    why: str


@dataclass(frozen=True)
class Ruling:
    """One service: per direction its state and the code of the reason; findings; who does what."""

    service: Service
    states: Mapping[str, tuple[str, str]]
    findings: tuple[Finding, ...]
    cells: tuple[Work, ...]

    def state(self) -> str:
        """The service in one word, as a device's."""
        words = [word for word, _ in self.states.values() if word != NOT_PROMISED]
        return next((word for word in ORDER if word in words), NEVER)


@dataclass(frozen=True)
class Answer:
    """The whole answer: `device` is the one that it was judged for, None if there is none to offload."""

    app: App
    diagnosis: Diagnosis
    device: Device | None
    rulings: tuple[Ruling, ...]
    findings: tuple[Finding, ...]

    def state(self) -> str:
        """ready if every service is; else the worst word."""
        words = [r.state() for r in self.rulings] + [f.level for f in self.findings if f.level in ORDER]
        return next((word for word in ORDER if word in words), NEVER)


@dataclass
class Judge:
    """What stays the same for every service of a program."""

    host: Host
    app: App
    diagnosis: Diagnosis
    lists: dict[str, tuple[tuple[str, str], ...] | None] = field(default_factory=dict)

    def answer(self) -> Answer:
        """Judge every service."""
        order = (READY, OFF, UNKNOWN, NEVER)
        devices = sorted(self.diagnosis.devices, key=lambda d: order.index(d.state()))
        self.device = devices[0] if devices else None
        self._whole()
        rulings = tuple(self._service(service) for service in self.app.services)
        return Answer(self.app, self.diagnosis, self.device, rulings, _sorted(self.app.notes.findings))

    def _whole(self) -> None:
        """Findings about the program and its files."""
        app = self.app
        for where, why in app.files.problems if app.files else []:
            app.notes.add("D820", why, where=where, why=why)
        if not app.version:
            app.notes.add("D822", f"{app.name}: not found, or its answer was not understood", app=app.name)
        if not app.services:
            app.notes.add("D801", ", ".join(app.files.read[:4]) if app.files else "-", app=app.name)

    def _service(self, service: Service) -> Ruling:
        self._able(service)
        self._asked(service)
        gcm = self._versions(service)
        self._ciphers(service, gcm)
        known.keys_change(service, self.diagnosis.machine.kernel.series)
        if service.side == "server" and only_here(service.address.split(", ")):
            service.notes.add(
                "D811", f"{service.where}: {service.address}", name=service.title(), address=service.address
            )
        states = {d: self._state(service, d) for d in self._directions()}
        cells = tuple(
            self._work(service, Cell(d, v, c), states[d]) for d, v, c in self._offered(service, states)
        )
        return Ruling(service, states, _sorted(service.notes.findings), cells)

    def _directions(self) -> Sequence[str]:
        """Those that were asked for."""
        return list(self.device.states) if self.device else ["tx", "rx"]

    def _able(self, service: Service) -> None:
        """The program and its library, old or new."""
        app, notes = self.app, service.notes
        if app.version and app.version < OLDEST[app.name]:
            notes.add("D805", f"{app.shown} is installed", app=app.shown, how=NEWER[app.name])
            return
        version, trial = app.library_version(), self.diagnosis.trial
        tried = trial.cells and any(n == 0 for n in trial.cells.values()) and not trial.asked
        if (version and version[:2] < KTLS_LIBRARY) or (tried and short(trial.library) == app.library):
            seen = "tested on loopback" if tried else f"{app.shown} runs with it"
            notes.add("D806", seen, app=app.shown, library=app.library)

    def _asked(self, service: Service) -> None:
        """Is kernel TLS asked for at all?"""
        notes, ask = service.notes, service.ask
        codes = {f.code for f in notes.findings}
        if codes & {"D803", "D805", "D819"}:
            return
        if not ask.text:
            why = f"{service.where}: neither this block nor an enclosing one enables kernel TLS"
            notes.add(
                "D802", why, name=service.title(), app=self.app.name, put=service.put, line=service.line
            )
        elif ask.text == "off":
            notes.add("D804", ask.where, name=service.title(), where=ask.where, line=service.line)
        elif ask == self.app.lent:
            notes.add("D821", ask.where, name=service.title(), where=ask.where)

    def _versions(self, service: Service) -> bool:
        """TLS 1.3 goes first, and few kernels give it to a card; say whether TLS 1.2 is offered."""
        said, notes = service.versions, service.notes
        library = self.app.library_version()
        if service.offers("1.3") and service.ask.text == "on" and library and library[:2] < RX13_LIBRARY:
            seen = f"{said.where}: {self.app.library}"
            notes.add("D813", seen, ["rx"], name=service.title(), library=self.app.library)
        if service.offers("1.3") and self._takes_tls13():
            return service.offers("1.2")
        if not service.stop:
            notes.add("D833", f"{service.where}: TLS 1.3 by tlshd", name=service.title())
            return False
        if not service.offers("1.2"):
            shown = "TLS 1.3 only" if said.text else "neither TLS 1.2 nor 1.3"
            notes.add(
                "D807",
                f"{said.where}: {shown}",
                name=service.title(),
                line=service.stop,
                put=place(said, service),
            )
            return False
        if service.offers("1.3") and service.ask.text == "on":
            notes.add(
                "D808",
                f"{said.where}: TLS {' and '.join(said.text.split())}",
                name=service.title(),
                line=service.stop,
                put=place(said, service),
            )
        return True

    def _ciphers(self, service: Service, gcm: bool) -> None:
        """Which of the TLS 1.2 ciphers may a card take?"""
        kinds, said = self._kinds(service), service.ciphers
        if not gcm or service.ask.text != "on":
            return
        if kinds is None:
            service.notes.add(
                "D826",
                f"openssl ciphers {said.text}",
                name=service.title(),
                line=service.gcm,
                put=place(said, service),
            )
            return
        able = {c.cipher for c in ALL_CELLS if c.version == "1.2" and self._card_takes(c)}
        if not any(kind in able for _, kind in kinds):
            names = ", ".join(name for name, _ in kinds[:6])
            service.notes.add(
                "D809",
                f"{said.where}: {names or 'none'}",
                name=service.title(),
                line=service.gcm,
                put=place(said, service),
            )
        elif others := [name for name, kind in kinds if kind not in able]:
            service.notes.add(
                "D810",
                f"{said.where}: {said.text}",
                [],
                [", ".join(others[:12])],
                name=service.title(),
                count=len(others),
                line=service.gcm,
                put=place(said, service),
            )

    def _card_takes(self, cell: Cell) -> bool:
        """Return what the card's profile promises, or without one what the kernel gives to any card."""
        profile = self.device.found.profile if self.device else None
        if profile is None:
            return cell.cipher in CIPHERS[:2]
        return profile.reason(*cell) == ""

    def _takes_tls13(self) -> bool:
        """Whether the card's profile promises TLS 1.3 on this kernel, in any direction."""
        profile = self.device.found.profile if self.device else None
        return any(cell.version == "1.3" for cell in profile.promises) if profile else False

    def _kinds(self, service: Service) -> tuple[tuple[str, str], ...] | None:
        """Each TLS 1.2 cipher of its list and what it is; None if OpenSSL does not understand the list."""
        text = service.ciphers.text
        if text not in self.lists:
            self.lists[text] = expand(self.host, text)
        return self.lists[text]

    def _offered(self, service: Service, states: Mapping[str, object]) -> list[tuple[str, str, str]]:
        """Direction, version and cipher of every cell that the service offers, in the order of the table."""
        twelve = {kind for _, kind in self._kinds(service) or ()}
        thirteen = {SUITE[s] for s in re.split(r"[:, ]+", service.suites.text) if s in SUITE}
        rows = [
            (v, c)
            for v, has in (("1.2", twelve), ("1.3", thirteen))
            for c in (*CIPHERS, OTHER)
            if service.offers(v) and c in has
        ]
        return [(d, v, c) for d in states for v, c in rows]

    def _state(self, service: Service, direction: str) -> tuple[str, str]:
        """How a direction of a service stands: the program's reasons, then the card's."""
        of_card = self.device.states[direction] if self.device else (NEVER, "D201")
        if of_card[0] == NOT_PROMISED:
            return of_card
        mine = [f for f in service.notes.findings if not f.directions or direction in f.directions]
        for level in (NEVER, OFF, UNKNOWN):
            if worst := [f.code for f in mine if f.level == level]:
                return level, worst[0]
            if of_card[0] == level:
                return of_card
        return of_card

    def _work(self, service: Service, cell: Cell, state: tuple[str, str]) -> Work:
        """Return who does it."""
        blocked = {f.code: f.level for f in service.notes.findings}
        if cell.cipher == OTHER:
            return Work(cell, USER, "the kernel has no such cipher")
        for code in ("D805", "D806", "D819", "D812", "D817", "D818", "D802", "D803", "D804"):
            if code in blocked:
                return Work(cell, USER, code)
        if cell.direction == "rx" and cell.version == "1.3" and "D813" in blocked:
            return Work(cell, USER, "D813")
        who, why = self._kernel(cell, state)
        return Work(cell, SW, "D811") if who == HW and "D811" in blocked else Work(cell, who, why)

    def _kernel(self, cell: Cell, state: tuple[str, str]) -> tuple[str, str]:
        """Return what the doctor's own table says of a cell."""
        known = (
            self.device.cells
            if self.device
            else table(None, {cell.direction: state}, self.diagnosis.trial, self._no_tls())
        )
        found = next((c for c in known if c.cell == cell), None)
        if found is None:
            return NOBODY_KNOWS, state[1]
        return (found.who, found.why) if found.who in (HW, SW, NOBODY_KNOWS) else (USER, found.why)

    def _no_tls(self) -> str:
        """Why this kernel has no TLS at all; ''."""
        codes = [f.code for f in self.diagnosis.findings]
        return next((c for c in codes if c in ("D102", "D106", "D107", "D108", "D112")), "")


def expand(host: Host, text: str) -> tuple[tuple[str, str], ...] | None:
    """The TLS 1.2 ciphers of OpenSSL's list, as this host's OpenSSL reads it: name and kind."""
    if not text or text.startswith("-") or "\0" in text or len(text) > 4000:
        return None
    done = host.run(["openssl", "ciphers", "-v", "-s", "-tls1_2", text], check=False, timeout=20)
    if done.rc != 0:
        return None
    rows = [line.split() for line in done.text.splitlines()[:500]]
    named = [(r[0], next((w[4:] for w in r if w.startswith("Enc=")), "")) for r in rows if r]
    return tuple((plain(name), ENC.get(enc, OTHER)) for name, enc in named)


def _sorted(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda f: (LEVELS.index(f.level), f.code)))


def place(said: Said, service: Service) -> str:
    """Where a line goes that takes the place of a setting, or is the first of its kind."""
    return service.put if said.where == DEFAULT else f"at {said.where} instead"
