"""The workloads `iperf3` and `nginx`: programs that people know, and what they say they moved."""

from __future__ import annotations

from contextlib import suppress

from offload.errors import RigError, TimedOut
from offload.host.base import Completed, Host
from offload.suite.bench.programs import unpacked
from offload.suite.measure.arms import Moved, NoFigure
from offload.suite.measure.plan import CIPHER, VERSION, Setting
from offload.suite.measure.testbed import Testbed
from offload.suite.measure.window import Window
from offload.suite.traffic import iperf3, nginx, wrk
from offload.suite.traffic.nginx import Shop

GRACE = 60.0  # seconds that a program may take longer than it was told to
# 1,024 connections are more than the usual limit of open files
MANY = ("/bin/sh", "-c", 'ulimit -n "$(ulimit -H -n)"; exec "$@"', "sh")


def ended(host: Host, argv: list[str], seconds: float, window: Window) -> Completed:
    """Run a program inside the window. RigError if it does not end."""
    process = host.start(argv)
    try:
        window.begin()
        over = window.wait(seconds + GRACE, lambda: not process.running())
        window.end()
        if not over:
            raise TimedOut(f"timed out after {seconds + GRACE:g} s ({host.name}): {' '.join(argv)}")
        return process.wait(10)
    finally:
        process.kill()


class Iperf3:
    """iperf3-tls: the DUT is the client, whatever the direction."""

    def __init__(self, testbed: Testbed) -> None:
        self.testbed = testbed
        self._port = 0

    def missing(self, arm: str, setting: Setting) -> str:
        """Why an arm cannot run here, or ''."""
        if setting.streams > iperf3.MOST:
            return f"iperf3 has at most {iperf3.MOST} streams"
        hosts = [self.testbed.dut.host, *([self.testbed.peer.host] if self.testbed.peer else [])]
        return next((why for host in hosts if (why := iperf3.missing(host))), "")

    def run(self, arm: str, setting: Setting, seconds: float, window: Window) -> Moved:
        """One turn."""
        argv = iperf3.argv(
            self.testbed.address,
            self._server(),
            arm,
            setting.direction,
            setting.streams,
            seconds,
            size=setting.size,
            version=VERSION,
            cipher=CIPHER,
        )
        found = iperf3.parse(ended(self.testbed.dut.host, argv, seconds, window))
        if arm == "hw-zc" and not found.zerocopy:
            raise NoFigure("arm hw-zc: iperf3-tls sent without zero-copy sendfile (TLS_TX_ZEROCOPY_RO)")
        kinds = {"tx": found.tx, "rx": found.rx}.get(setting.direction, found.tx + found.rx)
        return Moved(found.sent, found.received, len(kinds), found.seconds, kinds=kinds, whole=True)

    def _server(self) -> int:
        """The port of the peer's server: ours, or the one that a person started there."""
        if not self._port and self.testbed.peer is not None:
            port = self.testbed.next_port()
            self.testbed.undo.enter_context(iperf3.server(self.testbed.peer.host, port))
            self._port = port
        return self._port or iperf3.PORT


class Nginx:
    """nginx on the DUT, wrk on the peer: the DUT transmits."""

    def __init__(self, testbed: Testbed) -> None:
        self.testbed = testbed
        self._shops: dict[str, Shop] = {}
        self._sizes: set[int] = set()
        self._scripts: dict[str, str] = {}

    def missing(self, arm: str, setting: Setting) -> str:
        """Why an arm cannot run here, or ''."""
        if self.testbed.peer is None:
            return "wrk runs on the peer: name it as netns:NAME"
        zerocopy, program = arm == "hw-zc", self._program(arm)
        lacks = nginx.missing(self.testbed.dut.host, zerocopy=zerocopy, program=program)
        return lacks or wrk.missing(self.testbed.peer.host)

    def _program(self, arm: str) -> str:
        """Which nginx an arm runs: in a lab a fetched one, where this system's cannot send without a copy."""
        lab = arm == "hw-zc" and self.testbed.emulated
        if lab and nginx.missing(self.testbed.dut.host, zerocopy=True):
            with suppress(RigError):
                return unpacked.find(say=lambda _: None)
        return nginx.PROGRAM

    def run(self, arm: str, setting: Setting, seconds: float, window: Window) -> Moved:
        """One turn: payload is whole answers times their size."""
        assert setting.size is not None
        shop = self._shop(arm)
        self.check(shop, setting)
        found = self._asked(self.url(shop, setting), setting, seconds, window)
        moved = found.requests * setting.size
        if found.bytes < moved:
            raise NoFigure(
                f"wrk: {found.requests} answers in {found.bytes} bytes, wanted {setting.size} each"
            )
        return Moved(moved, 0, setting.streams, found.seconds, found.requests, whole=True)

    def _asked(self, url: str, setting: Setting, seconds: float, window: Window) -> wrk.Result:
        """Return what wrk found. An emulated bench gets more time if not one answer came: it may share its
        cores."""
        assert self.testbed.peer is not None
        host = self.testbed.peer.host
        for longer in (1, 5, 20) if self.testbed.emulated else (1,):
            time, threads = seconds * longer, self._cpus(host)
            argv = wrk.argv(self._lua(setting), url, setting.streams, time, threads, close=setting.close)
            found = wrk.parse(ended(host, [*MANY, *argv], time, window))
            if found.requests:
                return found
        raise TimedOut(f"wrk: not one answer in {time:g} s from {url}", "use a larger --seconds")

    def _shop(self, arm: str) -> Shop:
        """The nginx of an arm; software and card have the same one."""
        kind = "ktls" if arm in ("sw", "hw") else arm
        if kind not in self._shops:
            end = self.testbed.end("dut")
            shop = Shop(
                self.testbed.dut.v4,
                self.testbed.next_port(),
                tls=kind != "plain",
                ktls=kind in ("ktls", "hw-zc"),
                zerocopy=kind == "hw-zc",
                cipher=CIPHER,
                workers=self._cpus(end.side.host),
                program=self._program(arm),
            )
            self.testbed.undo.enter_context(nginx.running(end.side.host, shop, end.at))
            self._shops[kind] = shop
        return self._shops[kind]

    def url(self, shop: Shop, setting: Setting) -> str:
        """Return what wrk asks for."""
        return shop.url(setting.size or 0)

    def check(self, shop: Shop, setting: Setting) -> None:
        """Make the file, and look once that it arrives as it is."""
        size = setting.size or 0
        if size not in self._sizes:
            ours, theirs = self.testbed.end("dut"), self.testbed.end("peer")
            nginx.stock(ours.side.host, ours.at.folder, [size])
            nginx.check(theirs.side.host, shop, size, theirs.at.ca)
            self._sizes.add(size)

    def script(self, setting: Setting) -> str:
        """Return what wrk runs."""
        return wrk.SCRIPT

    def _lua(self, setting: Setting) -> str:
        """Where wrk's script lies on the peer."""
        text = self.script(setting)
        if text not in self._scripts:
            end = self.testbed.end("peer")
            self._scripts[text] = f"{end.at.folder}/wrk-{len(self._scripts)}-{self.testbed.next_port()}.lua"
            end.side.host.write(self._scripts[text], text.encode(), 0o644)
        return self._scripts[text]

    def _cpus(self, host: Host) -> int:
        """How many CPUs a host has."""
        with suppress(ValueError):
            return max(1, int(host.run(["nproc"]).text))
        return 1
