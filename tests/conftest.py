"""Options and fixtures of every test that needs a bench; tests/unit and tests/daemons use none of them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from offload.card.counters import Snapshot
from offload.card.nic import Nic, look
from offload.card.profile import Cell, Profile
from offload.host.base import Bench, Side
from offload.suite.bench.vm import cards
from offload.suite.report.criteria import load as load_criteria
from offload.suite.report.record.testinfo import promise_of
from offload.suite.report.spent import watch
from offload.suite.traffic.drive import Pump, Transfer
from tests.lib.flow.flow import Traffic
from tests.lib.life.life import Contexts, Life, ManyConnections, Pair, life_of
from tests.lib.rig import needs, rig_choice, sampling
from tests.lib.rig.rig import Labs, Rig, begin_log, check_log
from tests.lib.rig.switch import Switch
from tests.lib.rig.witness import Witness
from tests.lib.wire.wire import Watch, WireTap

# a job of a script's background ignores Ctrl-C, and so would all that tests start and interrupt
signal.signal(signal.SIGINT, signal.default_int_handler)
MOVERS = (Traffic, Transfer, Pump, Life, Pair, ManyConnections)
TIMED = {
    "switch": (Switch,),
    "traffic": MOVERS,
    "wire proof": (WireTap, Watch),
}  # what `certify --timing` shows
for kind, classes in TIMED.items():
    for timed in classes:
        watch(timed, kind)
pytest_plugins = [
    "offload.suite.report.record.plugin",
    "tests.lib.rig.attempts",
    "tests.lib.wire.captures",
    "tests.lib.rig.forecast",
    "tests.lib.rig.limits",
    "tests.lib.wire.silent",
    "tests.lib.scenario.plugin",
    "tests.lib.labs.order",
    "tests.lib.labs.turns",
]
KINDS = {"hw": "nicsim", "sw-fallback": "veth", "nicsim": "nicsim"}  # folder of a test -> kind of lab


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what selects the rig."""
    group = parser.getgroup("ktls-offload rig")
    group.addoption("--kernel", default=os.environ.get("KERNEL", "6.1"), help="6.1, 6.12 or 7.2")
    group.addoption("--profile", default="", help="id in nic-profiles/ (connectx-6-dx, or as --lab says)")
    group.addoption("--attach", metavar="NAME", default="", help="use the running lab of this name")
    group.addoption("--warm", action="store_true", help="use a lab that stays up for the next run (make try)")
    group.addoption("--lab", metavar="FILE", default="", help="use the real hosts of this lab file")
    group.addoption(
        "--sample",
        metavar="DAY",
        default="",
        help="part of the tests: of a DAY (or today), `each`, `promises` or `required`: tests/README.md",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers: one multiplies a test by cells of the profile, one keeps it to one kernel."""
    if config.getoption("--lab"):
        rig_choice.choose(config)
    config.option.profile = config.option.profile or "connectx-6-dx"
    config.addinivalue_line("markers", "once: says the same on every kernel; --sample DAY leaves it out")
    config.addinivalue_line(
        "markers", "turns(name): --sample promises runs one of the tests with this name, by the day"
    )
    config.addinivalue_line(
        "markers",
        "cells(which): `tx` or `rx`: promised cells; `unpromised` others; `all`; version=: of this TLS, "
        "and not asked if there is none",
    )
    config.addinivalue_line(
        "markers", "direction(which): not asked of a card that promises nothing in it; else its parameter's"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test per cell of the profile, as its marker says."""
    marker = metafunc.definition.get_closest_marker("cells")
    if marker is None:
        return
    profile = rig_choice.profile_of(metafunc.config)
    which, cells = marker.args[0], _cells(profile, marker)
    if which != "all":
        cells = [c for c in cells if (c in profile.promises) == (which != "unpromised")]
    if which in ("tx", "rx"):
        cells = [c for c in cells if c.direction == which]
    names = [f"{c.direction}-{c.version.replace('.', '')}_{c.cipher.replace('-', '_')}" for c in cells]
    metafunc.parametrize("cell", [_row(cell, profile, metafunc.definition) for cell in cells], ids=names)


def _cells(profile: Profile, marker: pytest.Mark) -> list[Cell]:
    """The cells of the card's table; of one version, if the marker names it."""
    return [c for c in profile.cells() if c.version == marker.kwargs.get("version", c.version)]


def _row(cell: Cell, profile: Profile, item: pytest.Item) -> Any:
    """A parameter; a program that lets OpenSSL install the keys for TLS 1.3 receive needs a new one."""
    needs_handoff = any("ktls-handoff" in mark.args for mark in item.iter_markers("requires"))
    late = needs_handoff and cell in profile.promises and (cell.direction, cell.version) == ("rx", "1.3")
    return pytest.param(cell, marks=[pytest.mark.requires("openssl-3.2")] if late else [])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the profile does not promise: no skip, it is not asked; and what a sample can miss."""
    profile = rig_choice.profile_of(config)
    criteria, sample = load_criteria().promises, config.getoption("--sample")

    def asked(item: pytest.Item) -> bool:
        of_version = item.get_closest_marker("cells")
        if of_version and "version" in of_version.kwargs:
            return any(
                c in profile.promises and c.direction == of_version.args[0]
                for c in _cells(profile, of_version)
            )
        wanted = criteria[promise].applies if (promise := promise_of(item)) in criteria else "always"
        if wanted == "always" and (of := item.get_closest_marker("direction")):
            wanted = of.args[0] if of.args else item.callspec.params["direction"]  # type: ignore[attr-defined]
        return wanted not in ("tx", "rx") or wanted in profile.directions()

    items[:] = [i for i in items if "unit" in i.path.parts or asked(i)]
    if sample:
        kept = sampling.sampled(items, sample)
        wanted = {id(item) for item in kept}
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in wanted])
        items[:] = kept


@pytest.fixture(scope="session")
def labs(pytestconfig: pytest.Config) -> Iterator[Labs]:
    """The labs of this run."""
    plugins = pytestconfig.pluginmanager
    reporter, capture = plugins.get_plugin("terminalreporter"), plugins.get_plugin("capturemanager")

    def say(line: str) -> None:
        if reporter is not None:
            with capture.global_and_fixture_disabled() if capture else nullcontext():
                reporter.write_line(line)

    found = Labs(pytestconfig, say)
    try:
        yield found
    finally:
        found.close()


@pytest.fixture
def rig(request: pytest.FixtureRequest, labs: Labs) -> Rig:
    """The lab of the kind that this test's folder names, with what its test needs."""
    kind = next(kind for folder, kind in KINDS.items() if folder in request.path.parts)
    return labs.get(kind)


@pytest.fixture(autouse=True)
def requires(request: pytest.FixtureRequest) -> None:
    """Skip a test whose rig lacks something; every unmet need is shown."""
    wanted = [name for marker in request.node.iter_markers("requires") for name in marker.args]
    if wanted:
        unmet = needs.unmet(request.getfixturevalue("rig"), wanted)
        if unmet:
            pytest.skip("; ".join(unmet))


@pytest.fixture
def bench(rig: Rig) -> Bench:
    """DUT, peer and wire."""
    return rig.bench


@pytest.fixture
def dut(rig: Rig) -> Side:
    """The device under test: host, interface, addresses."""
    return rig.bench.dut


@pytest.fixture
def peer(rig: Rig) -> Side:
    """The other end."""
    return rig.bench.peer


@pytest.fixture
def wire(rig: Rig) -> Any:
    """The host on which the wire can be seen; None where nobody can stand on it."""
    return rig.bench.wire


@pytest.fixture
def profile(rig: Rig) -> Profile:
    """What is known of the card."""
    return rig.profile


@pytest.fixture
def nic(rig: Rig) -> Nic:
    """The card as the kernel shows it now."""
    return look(rig.bench.dut.host, rig.bench.dut.dev)


@pytest.fixture
def counters(rig: Rig) -> Callable[[], Snapshot]:
    """A function that reads the DUT's counters now."""
    return rig.counters


@pytest.fixture
def traffic(rig: Rig) -> Traffic:
    """Connections between DUT and peer."""
    return Traffic(rig)


@pytest.fixture
def wire_tap(request: pytest.FixtureRequest, traffic: Traffic) -> WireTap:
    """What opens a capture beyond the DUT's card, with the keys of the peer's stunnel."""
    return WireTap(request, traffic)


@pytest.fixture
def offload(rig: Rig) -> Switch:
    """The DUT's TLS features: `on()` gives what the profile promises; what was found comes back after the
    test."""
    return Switch(rig.bench.dut, rig.profile.directions())


@pytest.fixture
def peer_offload(rig: Rig) -> Switch:
    """The peer's TLS features; what was found comes back after the test."""
    return Switch(rig.bench.peer)


@pytest.fixture
def life(rig: Rig) -> Life:
    """Connections that a test holds in its hand at both ends."""
    return life_of(rig)


@pytest.fixture(autouse=True)
def contexts(request: pytest.FixtureRequest) -> Contexts | None:
    """What the DUT's card has been given, for a test that runs on a card: looked at when its body is over."""
    if "hw" not in request.path.parts or "rig" not in request.fixturenames:
        return None
    return Contexts(request.getfixturevalue("rig"))


@pytest.fixture(autouse=True)
def witness(request: pytest.FixtureRequest) -> Witness | None:
    """The simulated ConnectX's own count, for a test that runs on one: compared when its body is over."""
    if "hw" not in request.path.parts or "rig" not in request.fixturenames:
        return None
    rig = request.getfixturevalue("rig")
    return Witness(rig) if getattr(rig.lab, "kind", "") == cards.KIND else None


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Put switches back as soon as a body has ended: a card that does not follow fails the test.

    The same for contexts that it does not give back, and for counters that a simulated card contradicts.
    """
    switches = [value for value in pyfuncitem.funcargs.values() if isinstance(value, Switch)]
    after = [value for value in pyfuncitem.funcargs.values() if isinstance(value, (Contexts, Witness))]
    for one in after:
        one.begin()
    try:
        result = yield
    except BaseException as exc:
        for one in after:
            if isinstance(one, Witness):
                one.add_to(exc)
        forget(after)
        for switch in reversed(switches):
            try:
                switch.restore()
            except AssertionError as stuck:
                exc.add_note(f"and it was not put back: {stuck}")
        raise
    for switch in reversed(switches):
        switch.restore()
    try:
        for one in after:
            one.check()
    except AssertionError:
        forget(after)
        raise
    return result


def forget(after: Iterable[Contexts | Witness]) -> None:
    """Drop what was noted before a test that failed: it says nothing about the next one."""
    for one in after:
        one.forget()


@pytest.fixture(autouse=True)
def clean_dmesg(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each test on a lab: a warning, oops or leak in the kernel log means that the rig broke."""
    if not {"rig", "lab"} & set(request.fixturenames):
        yield
        return
    rig = request.getfixturevalue("rig")
    begin_log(rig)
    yield
    check_log(rig)
