"""The DUT's features while arms take turns: TLS, segmentation; what was found always comes back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from offload.card.nic import features, look
from offload.card.profile import FEATURES
from offload.cmd import shielded
from offload.errors import NoPermission, SwitchFailed
from offload.host.base import Host
from offload.host.tools import tool
from offload.switch.enable import identity, put_back
from offload.switch.journal import Entry, Journal

SEGMENTATION = ("tcp-segmentation-offload", "generic-segmentation-offload", "generic-receive-offload")
# which of them stay, by the words of --segmentation except on and off: the card's own left out, one alone
PARTS = {"soft": SEGMENTATION[1:], "gso": SEGMENTATION[1:2], "gro": SEGMENTATION[2:]}
ESP = ("esp-hw-offload", "tx-esp-segmentation")


class Switches:
    """Sets features of one interface; `keeping` makes it. SwitchFailed for one that does not follow."""

    def __init__(self, host: Host, dev: str, journal: Journal | None) -> None:
        self.host, self.dev, self._journal = host, dev, journal
        nic = look(host, dev)
        self._found = nic.features
        self._is = {name: f.active for name, f in nic.features.items()}
        boot, netns = identity(host) if journal else ("", "")
        self._about = (dev, nic.ifindex, nic.bus, nic.driver, netns, boot)
        self._undo: dict[str, tuple[Entry, bool]] = {}

    def set(
        self, tls: Mapping[str, bool], segmentation: bool, *, only: str = "", esp: bool | None = None
    ) -> None:
        """Make the TLS features (tx, rx) and the segmentation offloads so; only what differs is touched.

        Segmentation offloads that were found off stay off: `segmentation` means as they were found, `only`
        these of them (PARTS). `esp`: the card's work for IPsec, None: as it is.
        """
        keep = SEGMENTATION if segmentation else PARTS.get(only, ())
        wanted = {FEATURES[side]: on for side, on in tls.items() if FEATURES[side] in self._found}
        wanted |= {n: n in keep and self._found[n].active for n in SEGMENTATION if n in self._found}
        if esp is not None:
            wanted |= {n: esp for n in ESP if n in self._found and not self._found[n].fixed}
        for name, on in wanted.items():
            if self._is[name] != on:
                self._one(name, on)

    def _one(self, name: str, on: bool) -> None:
        """Note, change, and read back."""
        found = self._found[name]
        if name not in self._undo:
            entry = Entry("feature", name, *self._about, found.active, found.requested)
            self._undo[name] = (entry, self._journal is not None and self._journal.lacks(entry))
            if self._journal:
                self._journal.add(entry)
        done = tool(self.host, ["ethtool", "-K", self.dev, name, "on" if on else "off"], timeout=180)
        now = features(self.host, self.dev).get(name)
        if done.rc or now is None or now.active != on:
            said = " ".join(done.stderr.decode("utf-8", "replace").split())[:200]
            raise SwitchFailed(
                f"{self.dev}: {name} is {now or 'gone'}, wanted {'on' if on else 'off'} ({said})"
            )
        self._is[name] = on

    def restore(self) -> None:
        """Put back what was found. SwitchFailed naming what stays."""
        stuck = []
        with shielded():
            for entry, fresh in reversed(self._undo.values()):
                if problem := put_back(self.host, self.dev, entry):
                    stuck.append(problem)
                elif fresh and self._journal:
                    self._journal.remove(entry)
        if stuck:
            raise SwitchFailed(f"could NOT put back: {'; '.join(stuck)}", f"ethtool -K {self.dev}")


@contextmanager
def keeping(host: Host, dev: str, journal: Journal | None = None) -> Iterator[Switches]:
    """Give the switches of an interface, and put everything back in the end.

    With a journal (a host that stays): locked, and each value found is in it before the change.
    """
    with ExitStack() as undo:
        if journal:
            undo.enter_context(journal.locked())
        switches = Switches(host, dev, journal)
        undo.callback(switches.restore)
        yield switches


def governors(host: Host) -> dict[str, str]:
    """The frequency governor of every CPU by its file; empty where the kernel shows none."""
    done = host.run(
        ["/bin/sh", "-c", "grep -H . /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"], check=False
    )
    rows = (line.partition(":") for line in done.text.splitlines())
    return {path: value.strip() for path, _, value in rows if value.strip()}


@contextmanager
def steady(host: Host) -> Iterator[tuple[str, str]]:
    """Run the CPUs at one speed until the block ends: the governor in words, and a warning or ''."""
    found = governors(host)
    if not found:
        yield "none", ""
        return
    words = ", ".join(sorted(set(found.values())))
    if set(found.values()) == {"performance"}:
        yield "performance", ""
        return
    with ExitStack() as undo:
        for path, value in found.items():
            undo.callback(_write, host, path, value)
            if because := _write(host, path, "performance"):
                yield words, f"governor is {words} and cannot be set: {because}"
                return
        yield f"performance (was {words})", ""


def _write(host: Host, path: str, value: str) -> str:
    """Set one governor: '' or why not."""
    try:
        done = host.run(["/bin/sh", "-c", 'echo "$0" > "$1"', value, path], check=False)
    except NoPermission as exc:
        return str(exc)
    return done.stderr.decode("utf-8", "replace").strip().rpartition(": ")[2][:120] if done.rc else ""
