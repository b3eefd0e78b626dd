"""What a drawn bad card can do wrong (places), and when it does so (conditions): knobs, and words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.lib.scenario.verdict.headline import past

# what a knob of a place is asked for, and so what a condition must be known of by then
CONTEXT, PACKET, FRAME, RECORD = "context", "packet", "frame", "record"
MOVING = (PACKET, FRAME, RECORD)
ALWAYS = (CONTEXT, *MOVING)


@dataclass(frozen=True)
class Place:
    """What is done wrong. `values`: of a scenario that can see it; `never`: conditions that hide it."""

    name: str
    knobs: Mapping[str, int]
    direction: str
    level: str
    words: str
    security: bool = False
    values: Mapping[str, str] = field(default_factory=dict)
    never: tuple[str, ...] = ()


@dataclass(frozen=True)
class Condition:
    """When it is done: `values` of the scenarios that make it, `levels` at which the card knows of it."""

    name: str
    knobs: Mapping[str, int]
    values: Mapping[str, str]
    words: str
    directions: tuple[str, ...] = ("tx", "rx")
    levels: tuple[str, ...] = MOVING
    place: str = ""  # in a headline, where no value of a scenario makes it
    also: tuple[tuple[str, str], ...] = ()  # other values that make it, each by itself
    also_named: str = ""  # other words of a headline that name it


TIMES = ("twice", "thrice")  # of a frame with a header
HOLES = tuple(("trouble", f"lost-{what}") for what in ("first", "header", "inside", "tag", "last", *TIMES))
COUNTS = tuple(("connections", count) for count in ("2", "9", "33", "70"))
FORGED = {"trouble": "forged-body"}
LOST = {"trouble": "lost-header"}
ONCE = ("tag-cut", "header-cut", "again", "tso-frame", "after-event-other")  # met too seldom for one in seven
BEHIND = ("header-cut", "tag-cut", "turn", "past-", "many-in-frame", "mended")  # not where the forgery is

PLACES = (
    Place("tx-keystream", {"tx_ks": 1}, "tx", RECORD, "a wrong keystream is used"),
    Place("tx-leak", {"tx_leak": 1}, "tx", RECORD, "plaintext is sent under a tag that fits", security=True),
    Place("tx-tag", {"tx_bad_tag": 1}, "tx", RECORD, "a wrong tag is sent"),
    Place(
        "tx-nonce", {"tx_wrong_nonce": 1}, "tx", RECORD, "another nonce is used than is shown", security=True
    ),
    Place("tx-clear", {"tx_clear": 1}, "tx", FRAME, "a frame leaves in plaintext", security=True),
    Place(
        "tx-checksum",
        {"tx_bad_csum": 7},
        "tx",
        FRAME,
        "one frame in seven has a wrong TCP checksum",
        never=ONCE,
    ),
    Place("tx-twice", {"tx_dup": 1}, "tx", FRAME, "a frame is sent twice"),
    Place("tx-order", {"tx_swap": 1}, "tx", FRAME, "a frame leaves after the next one", never=("tag-cut",)),
    Place("tx-stray", {"tx_stray": 1}, "tx", FRAME, "a frame is sent once more in plaintext", security=True),
    Place("tx-drop", {"tx_drop": 7}, "tx", PACKET, "one packet in seven is lost in the card", never=ONCE),
    Place("tx-tail", {"tx_tail": 1}, "tx", "tail", "the rest of a tag is wrong"),
    Place("tx-class", {"tx_tos": 1}, "tx", FRAME, "the traffic class is dropped", values={"ip": "v4-tos"}),
    Place("tx-uncounted", {"tx_count": 1}, "tx", PACKET, "encrypted bytes are not counted", never=("turn",)),
    Place(
        "tx-counted-twice",
        {"tx_count": 3},
        "tx",
        PACKET,
        "encrypted bytes are counted twice",
        never=("turn",),
    ),
    Place("ctx-leak", {"ctx_leak": 1}, "tx", CONTEXT, "contexts are never given back"),
    Place("tx-refuse", {"refuse_add": 1}, "tx", CONTEXT, "connections are refused to transmit"),
    Place("rx-refuse", {"refuse_add": 2}, "rx", CONTEXT, "connections are refused to receive"),
    Place("rx-keystream", {"rx_ks": 1}, "rx", RECORD, "wrong bytes are called authentic", security=True),
    Place(
        "rx-noauth",
        {"rx_noauth": 1},
        "rx",
        RECORD,
        "forged records are accepted",
        security=True,
        values=FORGED,
        never=BEHIND,
    ),
    Place(
        "rx-garble",
        {"rx_garble": 1},
        "rx",
        FRAME,
        "one bit is wrong after the tag was checked",
        security=True,
    ),
    Place("rx-pass", {"rx_pass": 1}, "rx", PACKET, "packets are left to software", never=("turn",)),
    Place("rx-uncounted", {"rx_count": 1}, "rx", FRAME, "decrypted bytes are not counted", never=("turn",)),
    Place(
        "rx-counted-twice", {"rx_count": 3}, "rx", FRAME, "decrypted bytes are counted twice", never=("turn",)
    ),
    Place("rx-noresync", {"rx_noresync": 1}, "rx", CONTEXT, "the kernel's answers are ignored", values=LOST),
    Place(
        "rx-number",
        {"rx_bad_sn": 1},
        "rx",
        CONTEXT,
        "the kernel's answer is taken for the next record",
        values=LOST,
    ),
)

TX = ("tx",)


def more_than(count: str) -> tuple[tuple[str, str], ...]:
    """The values of more connections than this number."""
    return tuple(connections for connections in COUNTS if int(connections[1]) > int(count))


def _headers() -> tuple[Condition, ...]:
    return (
        Condition("aes-256", {"when_key": 256}, {"cell": "1.2-aes-gcm-256"}, "under AES-256", levels=ALWAYS),
        Condition(
            "ipv6", {"when_ip": 6}, {"ip": "v6"}, "over IPv6", levels=ALWAYS, also=(("ip", "v6-tclass"),)
        ),
        Condition(
            "class",
            {"when_tos": 1},
            {"ip": "v4-tos"},
            "in packets with a traffic class",
            TX,
            also=(("ip", "v6-tclass"), ("trouble", "ce-mark")),
        ),
        Condition("class-v6", {"when_tos": 1, "when_ip": 6}, {"ip": "v6-tclass"}, "with a class of IPv6", TX),
        Condition("ip-options", {"when_ip_header": 24}, {"ip": "v4-options"}, "behind options of IPv4", TX),
        Condition("bare", {"when_tcp_header": 20}, {"tcp": "bare"}, "in packets without options of TCP"),
        Condition("sack", {"when_tcp_header": 44}, {"tcp": "sack-live"}, "in packets with SACK blocks", TX),
        *(
            Condition(
                f"mtu-{mtu}", {"when_mtu": mtu}, {"mtu": str(mtu)}, f"at an MTU of {mtu}", levels=ALWAYS
            )
            for mtu in (600, 9000)
        ),
        Condition("no-tso", {"when_no_tso": 1}, {"tso": "off"}, "without TSO", levels=ALWAYS),
    )


def _cuts() -> tuple[Condition, ...]:
    return (
        *(
            Condition(
                f"record-{n}",
                {"when_record": n},
                {"record": str(n)},
                f"in records of {n:,} bytes",
                levels=(FRAME, RECORD),
            )
            for n in (1, 16, 16383, 16384)
        ),
        *(
            Condition(
                f"header-cut-{k}",
                {"when_header_cut": k},
                {"place": "header-cut"},
                f"after a header cut at byte {k}",
                levels=(RECORD,),
            )
            for k in range(1, 5)
        ),
        *(
            Condition(
                f"tag-cut-{k}",
                {"when_tag_cut": k},
                {"place": "tag-cut"},
                f"where a tag is cut after byte {k}",
                levels=(FRAME, "tail"),
            )
            for k in range(1, 16)
        ),
    )


def _lots() -> tuple[Condition, ...]:
    tso, also = {"place": "hundreds-in-tso", "record": "16"}, (("place", "hundreds-in-tso"),)
    lot, frame = "from the 200th record of a TSO packet on", "from the fifth frame of a TSO packet on"
    return (
        Condition("tso-lot", {"when_lot": 200}, tso, lot, TX, (RECORD,), also=also),
        Condition("tso-frame", {"when_frame": 5}, tso, frame, TX, (FRAME, RECORD), also=also),
    )


def _records() -> tuple[Condition, ...]:
    small, frame = {"place": "many-in-frame", "record": "16"}, (FRAME, RECORD)
    return (
        Condition(
            "many-in-frame",
            {"when_batch": 3},
            small,
            "from the third record of a frame on",
            levels=(RECORD,),
            also=(("place", "many-in-frame"),),
        ),
        *_lots(),
        Condition(
            "span",
            {"when_span": 11},
            {"record": "16384"},
            "beyond the tenth frame of a record",
            levels=(FRAME, RECORD),
            also_named="in records of 16,384 bytes",
        ),
        Condition(
            "inside",
            {"when_inside": 1},
            small,
            "in records that begin inside a frame",
            levels=(RECORD,),
            also=(("record", "4096"),),
        ),
        *(
            Condition(
                f"number-2^{b}",
                {"when_number": b + 1},
                {"number": f"2^{b}"},
                f"from record 2^{b} on",
                levels=frame,
            )
            for b in (8, 16, 32)
        ),
        *(
            Condition(
                f"past-2^{b}",
                {"when_offset": b + 1},
                {},
                f"from 2^{b} bytes of a connection on",
                levels=frame,
                place=past(b),
            )
            for b in (15, 16, 17)
        ),
    )


def _crowds() -> tuple[Condition, ...]:
    return (
        *(
            Condition(
                f"nth-{nth}",
                {"when_nth": nth},
                {"connections": n},
                f"from the {nth}th live context on",
                levels=ALWAYS,
                also=more_than(n),
            )
            for n, nth in (("9", 12), ("33", 40), ("70", 100))
        ),
        *(
            Condition(
                f"contexts-{nth}",
                {"when_contexts": nth},
                {"connections": n},
                f"while {nth} contexts live",
                also=more_than(n),
            )
            for n, nth in (("9", 16), ("33", 60), ("70", 120))
        ),
        Condition(
            "turn",
            {"when_turn": 1},
            {"connections": "2"},
            "after a packet of another connection",
            also=COUNTS,
        ),
    )


def _losses() -> tuple[Condition, ...]:
    holds = (("header", 1, "begins"), ("tag", 2, "ends"), ("inside", 4, "neither begins nor ends"))
    again = {"when_again": 1}
    return (
        Condition("again", again, {"trouble": "lost-inside"}, "in what is sent again", TX, also=HOLES),
        *(
            Condition(
                f"again-holds-{name}",
                {**again, "when_holds": bit},
                {"trouble": f"lost-{name}"},
                f"in frames sent again in which a record {how}",
                TX,
                (FRAME,),
                also=tuple(("trouble", f"lost-{times}") for times in TIMES if name == "header"),
            )
            for name, bit, how in holds
        ),
        Condition(
            "mended",
            {"when_mended": 1},
            LOST,
            "in the eight records after a hole",
            levels=(RECORD,),
            also=HOLES,
        ),
    )


def _events() -> tuple[Condition, ...]:
    events = (
        ("toggle", 1, TX),
        ("mtu", 2, ("tx", "rx")),
        ("coalesce", 4, ("tx", "rx")),
        ("carrier", 8, ("tx", "rx")),
        ("other", 32, ("tx", "rx")),
    )
    return (
        *(
            Condition(
                f"after-event-{name}",
                {"when_after": bit},
                {"event": name},
                f"on connections older than the event {name}",
                directions,
            )
            for name, bit, directions in events
        ),
    )


CONDITIONS = (*_headers(), *_cuts(), *_records(), *_crowds(), *_losses(), *_events())
