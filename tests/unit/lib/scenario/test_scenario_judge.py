"""The bounds of a scenario's counters: what a card has to have decrypted at least."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from offload.card.counters import Delta, Snapshot
from offload.card.profile import find
from tests.lib.life.life import End, Pair
from tests.lib.scenario import events
from tests.lib.scenario.connections import Burst, Line, tracks
from tests.lib.scenario.frames import ACK, Frame, wrong
from tests.lib.scenario.play import Notes, Play
from tests.lib.scenario.setting import headers
from tests.lib.scenario.space import cell_of, load
from tests.lib.scenario.verdict import judge
from tests.lib.scenario.verdict.invariants import BYTES, PACKETS, Bounds, Facts, counted, errors, placed
from tests.lib.scenario.verdict.judge import Seen, _beyond, bounds, heads, not_met
from tests.lib.scenario.wire import Shown
from tests.lib.wire.records_trace import Share

SPACE = load(find("connectx-6-dx"))
START, WHOLE = 4000, 10_000


def seen(words: str) -> Seen:
    """A scenario in which the DUT received: 4000 bytes at the start, 6000 later."""
    scenario = SPACE.parse(f"seed=7,direction=rx{words}")
    cell = cell_of(scenario["cell"], "rx")
    end = End(None, 0)  # type: ignore[arg-type]
    line = Line(Pair(end, end, 9), tracks("secret", 9, cell, 0), cell)
    line.tracks["rx"].bursts = [Burst("start", (START,)), Burst("placed", (WHOLE - START,))]
    facts = Facts(Snapshot("nicsim0", 0.0, {}, {}), {}, {})
    notes = Notes(line, [], fair=START)
    found = Seen(scenario, [line], notes, facts, facts, {"wire": Path("none")}, ("rx",))
    vars(found)["frames"] = []
    return found


@pytest.mark.parametrize(("old", "more", "count"), [(2, 0, 0), (2, 7, 7), (0, 9, 9)])
def test_connections_that_are_older_are_not_counted_again(
    old: int, more: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The card took the old ones before the scenario: their contexts are no part of what moved in it."""
    found = seen("")
    first = found.lines[0]
    found.lines = [replace(first, old=True)] * old + [first] * more
    vars(found)["shown"] = {9: Shown({}, {"tx": 0, "rx": 0})}
    asked: list[int] = []
    for name in ("checksums", "errors", "placed", "counted", "untouched"):
        monkeypatch.setattr(judge.invariants, name, lambda *_: frozenset())
    monkeypatch.setattr(judge.invariants, "taken_over", lambda moved, count, _: asked.append(count))
    for name in ("_beyond", "_kept_back", "bounds", "calm"):
        monkeypatch.setattr(judge, name, lambda *_: "")
    judge.rest(found)
    assert asked == [count]


@pytest.mark.parametrize("words", ["", ",event=other", ",event=coalesce", ",ip=v6,place=tag-cut"])
def test_in_fair_impairment_all_that_came_is_asked_for(words: str) -> None:
    """A card has to decrypt nine tenths of all bytes where nothing goes wrong."""
    assert bounds(seen(words), "rx").least == 9000


@pytest.mark.parametrize("words", [",trouble=lost-tag", ",trouble=noise", ",event=carrier", ",event=mtu"])
def test_after_trouble_only_the_start_is_asked_for(words: str) -> None:
    """A card that lost its place may leave to software what follows."""
    assert bounds(seen(words), "rx").least == 3600


@pytest.mark.parametrize("words", ["", ",place=tag-cut", ",trouble=lost-tag", ",event=carrier"])
def test_what_the_kernel_took_as_decrypted_was_counted(words: str) -> None:
    """The kernel's own count is the least, to the byte, also where something goes wrong."""
    found = seen(words)
    found.by_card = Share(WHOLE + 29, None)
    assert bounds(found, "rx").least == WHOLE + 29
    found.by_card = Share(0, None)
    assert bounds(found, "rx").least in (3600, 9000), "what no impairment asks for is asked for still"


@pytest.mark.parametrize(
    ("words", "least"),
    [
        (",ip=v4-options", 9000),  # nothing is lost there
        (",ip=v4-options,trouble=lost-tag", 3600),
        (",ip=v4-options,age=old", 0),  # its connection may have lost its place in an earlier scenario
        (",ip=v4-tos,age=old", 9000),
    ],
)
def test_a_known_lack_of_a_resync_is_forgiven_where_the_profile_says(words: str, least: int) -> None:
    """The card owes what came before the first loss, and the calm under every other condition."""
    found = seen(words)
    found.no_resync = ("ip=v4-options",)
    assert bounds(found, "rx").least == least
    found.notes.calm = Delta("nicsim0", 1.0, {})
    if "options" in words:
        judge.calm(found)
        found.no_resync = ()
    with pytest.raises(AssertionError, match="not resynchronized: rx did 0"):
        judge.calm(found)


@pytest.mark.parametrize(
    ("words", "software", "least"),
    [(",age=old", (), 9000), (",age=old", ("tx",), 9000), (",age=old", ("tx", "rx"), 0), ("", ("rx",), 9000)],
)
def test_an_old_connection_that_is_software_s_owes_the_card_nothing(
    words: str, software: tuple[str, ...], least: int
) -> None:
    """A link that went down in an earlier scenario took it from the card; never a new one."""
    found = seen(words)
    found.lines[0].software = frozenset(software)
    assert bounds(found, "rx").least == least


@pytest.mark.parametrize("words", ["", ",age=old", ",trouble=lost-tag", ",event=toggle"])
def test_nobody_asks_who_decrypts_behind_an_extension_header(words: str) -> None:
    """No profile says whether its card finds TCP there. What the kernel says was done is asked for."""
    found = seen(f",ip=v6-extension{words}")
    found.by_card, found.notes.calm = Share(100, None), Delta("nicsim0", 1.0, {})
    assert bounds(found, "rx").least == 100
    judge.calm(found)


def frame(number: int, size: int, *, source: int = 443, target: int = 9, head: int = 66) -> Frame:
    """A frame between the peer and the DUT's port 9."""
    return Frame(number, source, target, 0, 64, b"", True, 0, ACK, (8,), bytes(size), head=head)


def test_no_more_is_counted_than_came() -> None:
    """The payload of the frames to the DUT is the most, also where frames may be lost."""
    found = seen(",event=mtu")
    vars(found)["frames"] = [frame(1, 1000), frame(2, 700, head=78), frame(3, 50, source=9, target=443)]
    found.notes.fair = 0
    assert bounds(found, "rx") == Bounds(0, 1700, (66, 78))


@pytest.mark.parametrize(
    ("words", "touched", "most"),
    [
        (",trouble=noise", 1500, 1500 + 31),
        (",trouble=noise", 1469, 1500),  # a frame of noise, and one that is counted twice, are too many
        (",trouble=noise", None, 1469 + 31 + 700),
        (",event=mtu", 1469, 1469 + 31 + 700),  # what waited in a queue was decrypted, and lost
        (",trouble=forged-tag", 1000, 1469 + 31 + 700),
    ],
)
def test_no_more_is_counted_than_the_kernel_saw_decrypted(words: str, touched: int | None, most: int) -> None:
    """Noise on the wire is no excuse: the records that came decrypted, and what ends a connection."""
    found = seen(words)
    found.lines[0].tracks["rx"].bursts = [Burst("all", (1440,))]
    vars(found)["shown"] = {9: Shown({}, {"tx": 0, "rx": 0})}
    noise, whole, end = frame(1, 700), frame(2, 1469), replace(frame(3, 31), seq=1469)
    vars(found)["frames"] = [noise, whole, end]
    found.by_card, found.notes.forged = Share(0, touched), "forged" in words
    assert bounds(found, "rx").most == most


def test_all_that_tcp_sent_was_encrypted_and_no_more() -> None:
    """The stream on the wire is the least, headers and tags of small records included."""
    found = seen(",record=1")
    vars(found)["shown"] = {9: Shown({"connections": [{"from_client": {"bytes": 3600}}]}, {"tx": 0})}
    vars(found)["frames"] = [frame(n, 1200, source=9, target=443) for n in range(3)]
    assert bounds(found, "tx") == Bounds(3600, 3600, (66, 66))
    found.frames.append(frame(4, 1200, source=9, target=443))
    assert bounds(found, "tx").most == 4800, "what TCP sends again is encrypted again"


@pytest.mark.parametrize(("sent", "said"), [(2400, ""), (3000, ""), (1200, "2400 bytes of payload left")])
def test_bytes_that_tcp_did_not_send_are_reported(sent: int, said: str) -> None:
    """A card that sends a segment twice over IPv6 is told: TCP counts what it sends again."""
    found = seen("")
    vars(found)["shown"] = {9: Shown({}, {"tx": 0})}
    vars(found)["frames"] = [frame(n, 1200, source=9, target=443) for n in range(2)]
    found.lines[0].tracks["tx"].bursts = [Burst("start", (1200,))]
    found.notes.sent = {9: sent}
    assert _beyond(found).partition("more")[0].startswith("port 9 of the DUT: " + said if said else "")
    assert bool(_beyond(found)) == bool(said)


LOSSY = ["toggle", "mtu", "rings", "channels", "carrier", "link-down"]


@pytest.mark.parametrize("event", LOSSY)
@pytest.mark.parametrize(("sent", "most"), [(3600, 3600), (3700, 3700), (None, 7200)])
def test_an_event_may_lose_only_what_tcp_sent(event: str, sent: int | None, most: int) -> None:
    """What the card did, and the wire did not show, TCP has sent; not asked, it is what the wire showed."""
    found = seen(f",event={event}")
    vars(found)["shown"] = {9: Shown({"connections": [{"from_client": {"bytes": 3600}}]}, {"tx": 0})}
    vars(found)["frames"] = [frame(n, 1200, source=9, target=443) for n in range(3)]
    found.lines[0].tracks["tx"].bursts = [Burst("start", (3600,))]
    found.notes.sent = {} if sent is None else {9: sent}
    assert bounds(found, "tx").most == most
    found.no_bytes = frozenset({"tx"})
    extra = -(-(most - 3600) // 1200)
    assert (bounds(found, "tx").packets or (0, 0))[1] == 3 + extra
    twice = Delta("p0", 1.0, {BYTES["tx"]: 7201, PACKETS["tx"]: 7})
    with pytest.raises(AssertionError, match="moved by 7"):
        counted(twice, "tx", bounds(found, "tx"), "in all")


@pytest.mark.parametrize(
    ("event", "lossy"), [("carrier", (4029, 5058)), ("other", (0, 0)), ("route", (0, 0))]
)
def test_frames_may_be_missing_only_while_the_port_is_set_again(
    event: str, lossy: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the DUT sent during an event that empties queues is known, and none may be missing elsewhere."""
    line = seen("").lines[0]
    line.tracks["tx"].bursts = [Burst("start", (4000,))]
    stage = SimpleNamespace(line=line, made=[])

    def between(*_: object) -> str:
        line.tracks["tx"].bursts.append(Burst("event", (1000,)))
        return ""

    monkeypatch.setattr(events, "between", between)
    play = Play(stage, SPACE.parse(f"seed=7,event={event}"), [line], None)  # type: ignore[arg-type]
    play._event()
    assert play.notes.lossy == lossy


@pytest.mark.parametrize(
    ("ip", "good", "bad"),
    [
        ("v4-options", {"options": bytes.fromhex("01010101")}, {}),
        ("v4-tos", {"tos": 0xBA}, {"tos": 2}),
        ("v6-flow-label", {"label": 7}, {}),
        ("v6", {}, {"label": 7}),
    ],
)
def test_a_header_that_never_came_to_the_dut_is_not_met(
    ip: str, good: dict[str, Any], bad: dict[str, Any]
) -> None:
    """Where the DUT receives, its card must have met the IP header, too; congestion bits aside."""
    found = seen(f",ip={ip}")
    vars(found)["frames"] = [replace(frame(1, 100), **good)]
    assert "ip" not in not_met(found)
    vars(found)["frames"] = [replace(frame(1, 100), **bad)]
    assert not_met(found)["ip"] == "frame 1 to the DUT has another IP header"


@pytest.mark.parametrize("ip", ["v4-tos", "v4-options", "v6-tclass", "v6-flow-label"])
def test_a_connection_that_the_event_opened_has_plain_headers(ip: str) -> None:
    """It is of IPv4 and has no option of the scenario: a good card failed for the flow label."""
    found = seen(f",ip={ip},event=other")
    other = replace(found.lines[0], pair=replace(found.lines[0].pair, port=10))
    found.notes.opened.append(other)
    plain = replace(frame(1, 100, source=10, target=443), kinds=(8,))
    assert not wrong([plain], 10, heads(found, other))
    assert heads(found, found.lines[0]) == headers(found.scenario) != heads(found, other)


@pytest.mark.parametrize(
    ("call", "reads", "met"),
    [
        ("read-pieces", [(4000, 12)], True),
        ("read-pieces", [(33, 1), (400, 1), (4000, 12)], True),
        ("read-pieces", [(33, 1), (401, 1), (4000, 12)], False),
        ("read-pieces", [(33, 1)], False),
        ("read-pieces", [(4000, 12), (6000, 2)], False),
        ("read-pieces", [], False),
        ("peek", [(4000, 2)], True),
        ("peek", [(33, 1), (4000, 2)], False),
        ("peek", [], False),
    ],
)
def test_calls_that_were_not_made_are_not_met(call: str, reads: list[tuple[int, int]], met: bool) -> None:
    """How often the DUT read says whether it read so."""
    found = seen(f",call={call}")
    found.lines[0].reads = reads
    assert ("call" not in not_met(found)) == met


FIVE = Bounds(5000, 5000, (66, 66))  # five frames of 1000 bytes


@pytest.mark.parametrize(
    ("done", "packets", "good"),
    [
        (5000, 5, True),
        (5330, 5, True),  # with headers, as mlx5 counts
        (4000, 4, False),  # a frame is not counted
        (4264, 4, False),
        (6000, 6, False),  # a frame is counted twice
        (6396, 6, False),
        (4999, 5, False),
        (5001, 5, False),
        (0, 0, False),
    ],
)
def test_a_frame_more_or_less_is_seen(done: int, packets: int, good: bool) -> None:
    """A card that counts payload or whole frames is held to it, frame by frame."""
    moved = Delta("p0", 1.0, {BYTES["rx"]: done, PACKETS["rx"]: packets})
    if good:
        counted(moved, "rx", FIVE, "in all")
        return
    with pytest.raises(AssertionError, match=f"rx_tls_decrypted_bytes moved by {done}, wanted 5000 to 5000"):
        counted(moved, "rx", FIVE, "in all")


@pytest.mark.parametrize(("drops", "lost", "good"), [(0, 0, True), (3, 4344, True), (3, 0, False)])
def test_a_packet_that_the_card_dropped_is_not_on_the_wire(drops: int, lost: int, good: bool) -> None:
    """TCP sends again what only waits: the driver drops what was acknowledged meanwhile, and counts it."""
    moved = Delta("p0", 1.0, {"tx_tls_drop_no_sync_data": drops})
    if good:
        placed(moved, lost)
        return
    with pytest.raises(AssertionError, match=f"could not place: {drops} packets"):
        placed(moved, lost)


@pytest.mark.parametrize(("host", "said"), [(True, "stayed in the card"), (False, "")])
def test_what_stayed_in_the_card_is_asked_of_each_connection(
    host: bool, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the DUT sends; an event may have lost what the victim sent meanwhile."""
    found, asked = seen(""), []
    vars(found)["shown"] = {9: Shown({}, {"tx": 7})}
    found.files |= {"host": Path("above")} if host else {}
    found.notes.lossy = (4500, 5000)
    monkeypatch.setattr(judge, "stayed", lambda *words: asked.append(words) or "stayed in the card")
    assert judge._kept_back(found) == said
    assert asked == ([(Path("above"), Path("none"), {9: 7}, {9: (4500, 5000)})] if host else [])


@pytest.mark.parametrize(("first", "then"), [(5000, 5330), (5330, 5000)])
def test_headers_count_in_all_scenarios_or_in_none(first: int, then: int) -> None:
    """A card that counts a frame twice could hide it among headers that it does not count elsewhere."""
    moved = {done: Delta("p0", 1.0, {BYTES["rx"]: done, PACKETS["rx"]: 5}) for done in (first, then)}
    found = counted(moved[first], "rx", FIVE, "in all")
    assert counted(moved[first], "rx", FIVE, "in all", found) == found
    nothing = Delta("p0", 1.0, {BYTES["rx"]: 0, PACKETS["rx"]: 0})
    assert counted(nothing, "rx", Bounds(0, 5000, (66, 66)), "in all", found) == found, (
        "no packet tells nothing"
    )
    with pytest.raises(AssertionError, match=f"moved by {then}, wanted"):
        counted(moved[then], "rx", FIVE, "in all", found)


def test_a_card_without_bytes_is_held_to_its_packets() -> None:
    """Where a card counts packets only, each frame is one, and no frame is two."""
    found = seen(",record=1")
    found.no_bytes = frozenset({"tx"})
    vars(found)["shown"] = {9: Shown({"connections": [{"from_client": {"bytes": 3000}}]}, {"tx": 0})}
    vars(found)["frames"] = [frame(n, 1200, source=9, target=443) for n in range(3)]
    bound = bounds(found, "tx")
    assert bound.packets == (3, 3)
    counted(Delta("p0", 1.0, {BYTES["tx"]: 9999, PACKETS["tx"]: 3}), "tx", bound, "in all")
    for packets in (2, 4, 6):
        with pytest.raises(AssertionError, match=f"tx_tls_encrypted_packets moved by {packets}, wanted 3"):
            counted(Delta("p0", 1.0, {BYTES["tx"]: 3000, PACKETS["tx"]: packets}), "tx", bound, "in all")


@pytest.mark.parametrize(
    ("refused", "peeks", "right"),
    [(0, False, False), (1, False, True), (2, False, True), (3, False, False)]
    + [(0, True, False), (3, True, True), (4, True, False)],
)
def test_a_forged_record_is_tried_by_each_call_that_meets_it(refused: int, peeks: bool, right: bool) -> None:
    """A peek and its read return the records before a forged one, and try it; the next peek fails."""
    moved = Delta("p0", 1.0, {"TlsDecryptError": refused, "rx_tls_err": 0})
    if right:
        errors(moved, True, peeks)
        return
    with pytest.raises(AssertionError, match=f"moved by {refused}"):
        errors(moved, True, peeks)


def test_no_key_is_tried_on_a_forged_version() -> None:
    """The kernel refuses such a record before it decrypts anything, so its count stands still."""
    errors(Delta("p0", 1.0, {"TlsDecryptError": 0, "rx_tls_err": 1}), True, untried=True)
    with pytest.raises(AssertionError, match="moved by 1"):
        errors(Delta("p0", 1.0, {"TlsDecryptError": 1, "rx_tls_err": 0}), True, untried=True)
    with pytest.raises(AssertionError, match="moved by 1"):
        errors(Delta("p0", 1.0, {"TlsDecryptError": 1, "rx_tls_err": 0}), False, untried=True)
