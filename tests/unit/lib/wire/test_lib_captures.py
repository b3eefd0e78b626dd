"""Tests capture through one door, and what was captured is in their evidence whatever becomes of them."""

from __future__ import annotations

import ast
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from offload.errors import RigError
from offload.suite.report import captured
from offload.suite.report.captured import Captured, Code, Stray
from tests.lib.wire import captures
from tests.lib.wire.captures import Captures
from tests.lib.wire.explain import explain
from tests.lib.wiregen import any_case  # noqa: F401  (enters every kind)
from tests.lib.wiregen.damage.kinds import damaged

TESTS = Path(__file__).parents[3]
ITSELF = {"lib/wire/captures.py", "sw-fallback/test_16_tap.py"}  # the door, and the test of the tap


def test_there_is_one_door() -> None:
    """No test on a bench opens a capture that nobody explains."""
    users = set()
    for path in (p for room in ("hw", "lib", "nicsim", "sw-fallback") for p in (TESTS / room).rglob("*.py")):
        if "capturing" not in (text := path.read_text()):
            continue
        calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        if any(isinstance(call.func, ast.Name) and call.func.id == "capturing" for call in calls):
            users.add(str(path.relative_to(TESTS)))
    assert users == ITSELF


@pytest.fixture
def stray(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every tap has seen a frame that nothing explains; what each was to keep of a frame."""
    case, _ = damaged("stray_noise", 0)
    asked: list[int] = []

    @contextmanager
    def capturing(host: object, dev: str, path: str, kept: int) -> Iterator[SimpleNamespace]:
        asked.append(kept)
        yield SimpleNamespace(
            end=lambda: None, stop=lambda: None, fetch=lambda to: to.write_bytes(case.capture)
        )

    monkeypatch.setattr(captures, "capturing", capturing)
    return asked


def take(seen: Captures, folder: Path, place: str = "wire", fails: Exception | None = None) -> None:
    """Capture at this place; the block fails so."""
    with seen.taking({place: (None, "eth0")}, folder):  # type: ignore[dict-item]
        if fails:
            raise fails


def test_a_stray_frame_fails_the_test_and_is_reported(stray: list[int], tmp_path: Path) -> None:
    """Nobody looked for it."""
    seen = Captures()
    with pytest.raises(AssertionError, match="captured frames are unexplained: stray-data at"):
        take(seen, tmp_path)
    found = seen.evidence()
    assert found is not None and found.unexplained == 1 and found.frames > 10


def test_a_stray_frame_comes_before_whatever_else_failed(stray: list[int], tmp_path: Path) -> None:
    """A frame that nothing explains is named first, once, and only those of this block."""
    seen = Captures()
    with pytest.raises(AssertionError, match=r"^1 of \d+ captured frames are unexplained: .*; out of order$"):
        with seen.first():
            take(seen, tmp_path, fails=AssertionError("out of order"))
    with pytest.raises(AssertionError, match="^out of order$"), seen.first():
        raise AssertionError("out of order")
    with pytest.raises(AssertionError) as once, seen.first():
        take(seen, tmp_path)
    assert str(once.value).count("unexplained") == 1


def test_it_is_reported_of_a_test_that_failed_before(stray: list[int], tmp_path: Path) -> None:
    """The failure stays the test's own, and the frame is in the evidence."""
    seen = Captures()
    with pytest.raises(ValueError, match="its own"):
        take(seen, tmp_path, fails=ValueError("its own"))
    assert seen.evidence() is not None


def test_a_broken_rig_says_nothing(stray: list[int], tmp_path: Path) -> None:
    """A lab that died has no capture to judge."""
    seen = Captures()
    with pytest.raises(RigError):
        take(seen, tmp_path, fails=RigError("it died"))
    assert seen.evidence() is None


@pytest.mark.parametrize("place", ["host", "other"])
def test_plaintext_belongs_above_the_card(stray: list[int], tmp_path: Path, place: str) -> None:
    """What is seen at the host's port, or on another device, did not come out of this card."""
    seen = Captures()
    take(seen, tmp_path, place)
    assert seen.evidence() == Captured(0, 0)


def test_only_above_the_card_are_headers_enough(stray: list[int], tmp_path: Path) -> None:
    """Each byte beyond it is judged."""
    places = {place: (None, "eth0") for place in ("wire", "host", "other")}
    with suppress(AssertionError), Captures().taking(places, tmp_path, heads=256):  # type: ignore[arg-type]
        pass
    assert stray == [0, 256, 0]


def test_each_test_begins_anew(stray: list[int], tmp_path: Path) -> None:
    """What one test met is not said of the next."""
    seen = Captures()
    with suppress(AssertionError):
        take(seen, tmp_path)
    seen.begin()
    assert seen.evidence() is None


def test_evidence_is_read_as_it_was_written() -> None:
    """What the verdict reads is what the test told, cut to the first findings."""
    strays = tuple(Stray(Code.PROTOCOL, number, "protocol 17") for number in range(20))
    test = {"evidence": {"captured": Captured(9000, 20, strays).evidence()}}
    assert captured.read(test) == Captured(9000, 20, strays[: captured.MOST])


# frames as Ethernet, IPv4 and TCP have them; 198.51.100.1:1000 sends to 198.51.100.2:443
ENDS = bytes([198, 51, 100, 1]), bytes([198, 51, 100, 2])


def ip(protocol: int, body: bytes, *, back: bool = False) -> bytes:
    """A frame from one end to the other."""
    source, target = ENDS[::-1] if back else ENDS
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0, 64, protocol, 0) + source + target
    return bytes(12) + b"\x08\0" + head + body


def tcp(seq: int, data: bytes = b"", flags: int = 16, *, back: bool = False, ack: int = 0) -> bytes:
    """A segment from one end to the other."""
    ports = (443, 1000) if back else (1000, 443)
    return ip(6, struct.pack("!HHIIBBHHH", *ports, seq, ack, 0x50, flags, 9, 0, 0) + data, back=back)


def left(folder: Path, *frames: bytes, also: tuple[int, ...] = ()) -> set[tuple[str, int]]:
    """What is left over of a capture of these frames."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 16, 1)
    blocks = [struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame for frame in frames]
    (folder / "wire.pcap").write_bytes(head + b"".join(blocks))
    return {(str(stray.code), stray.at) for stray in explain(folder / "wire.pcap", also=also).first}


OPEN = (tcp(99, flags=2), tcp(499, flags=18, back=True, ack=100), tcp(100, ack=500))
SENT = tcp(100, b"a" * 50), tcp(500, back=True, ack=150)
FAR = 100 ^ 1 << 31


@pytest.mark.parametrize(
    ("frames", "found"),
    [
        ((*OPEN, *SENT), set()),
        ((*OPEN, tcp(FAR, b"a" * 50), *SENT), {("stray-data", 4)}),
        ((*SENT, tcp(FAR, b"a" * 50)), {("stray-data", 3)}),  # the connection is older than the capture
        ((*SENT, tcp(80, b"b" * 10)), set()),  # and this was sent before
        ((*OPEN, *SENT, tcp(100, b"b" * 50)), set()),  # has a place: what it should be, a wire proof says
        ((*OPEN, *SENT, tcp(100, b"a" * 50)), set()),
        ((*OPEN, *SENT, ip(17, b"payload")), {("protocol", 6)}),
        ((*OPEN, *SENT, ip(1, b"unreachable")), set()),
        ((ip(17, b"payload"),), set()),  # of no connection's ends
        ((*OPEN, *SENT, ip(6, b"short")), {("unread-tcp", 6)}),
        ((tcp(100, b"a"), tcp(0, flags=4, back=True)), {("lone-data", 1)}),  # nobody opened it, RST answers
        ((*OPEN, tcp(99, b"x"), *SENT), set()),  # a keep-alive
    ],
)
def test_what_explains_a_frame(
    tmp_path: Path, frames: tuple[bytes, ...], found: set[tuple[str, int]]
) -> None:
    """TCP's numbers, another connection's age and the protocols of the test: without any key."""
    assert left(tmp_path, *frames) == found


def test_a_test_says_what_else_is_on_its_wire(tmp_path: Path) -> None:
    """ESP between the ends is explained by a test that makes it, and by no other."""
    frames = (*OPEN, *SENT, ip(50, b"sealed"))
    assert left(tmp_path, *frames, also=(50,)) == set()
    assert left(tmp_path, *frames) == {("protocol", 6)}


def test_every_capture_is_asked_to_end_before_one_is_awaited(tmp_path: Path) -> None:
    """Each listens for a moment longer: one after the other took as many moments."""
    did: list[str] = []

    class Tap:
        def __init__(self, place: str) -> None:
            self.place = place

        def __getattr__(self, what: str) -> Callable[..., None]:
            return lambda *_: did.append(f"{what} {self.place}")

    taken = captures.Taken({place: cast(Any, Tap(place)) for place in ("wire", "host")}, tmp_path)
    assert (
        taken.files() == taken.files() == {place: tmp_path / f"{place}.pcapng" for place in ("wire", "host")}
    )
    assert did == [f"{what} {place}" for what in ("end", "stop", "fetch") for place in ("wire", "host")]
