"""A card by its own tools: three generations of mlx5, hostile answers, tools that fail or hang."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offload.card import nic_tools
from offload.card.nic import look
from offload.card.nic_tools import Answer, ask
from offload.doctor import firmware
from offload.doctor.document import as_json
from offload.doctor.examine import DIRECTIONS, Doctor
from offload.doctor.text import as_text
from offload.errors import TimedOut
from offload.suite.bench.lab.rig import versions
from tests.unit.card.mlx5_answers import BUS, CARDS, CX7, answers
from tests.unit.doctor.fake_doctor import FakeHost, card
from tests.unit.doctor.test_doctor import PROFILES, fixed

READERS = {tool.name: tool.read for tool in nic_tools.TOOLS}
SETTINGS = {
    "UCTX_EN": "True(1)",
    "TLS_OPTIMIZE": "False(0)",
    "CRYPTO_POLICY": "UNRESTRICTED(1)",
    "SRIOV_EN": "False(0)",
    "DATA_CRYPTO_ENGINE": "DEVICE_DEFAULT(0)",
    "LINK_TYPE_P1": "ETH(2)",
}


def host(name: str = "connectx-7") -> FakeHost:
    """A host whose tools speak of a card."""
    made = FakeHost()
    made.answers |= answers(CARDS[name])
    return made


def said(host: FakeHost) -> dict[str, Answer]:
    """What its tools say of eth0, by tool."""
    return {answer.tool: answer for answer in ask(host, look(host, "eth0"))}


@pytest.mark.parametrize("name", CARDS)
def test_three_generations(name: str) -> None:
    """Versions, part, settings and link of three generations are read."""
    found, one = said(host(name)), CARDS[name]
    assert [answer.why for answer in found.values()] == [""] * 5
    assert dict(found["devlink"].said)["fw"] == one.running and found["devlink"].said["fw.psid"] == one.psid
    flash = {"FW Version": one.version, "PSID": one.psid, "Security Attributes": one.security}
    assert flash.items() <= found["mstflint"].said.items()
    board = {"Device type": one.kind, "Name": one.part or "N/A", "Description": one.description or "N/A"}
    assert found["mstconfig"].said == board | SETTINGS
    assert found["devlink-param"].said == {
        "flow_steering_mode": "smfs",
        "enable_roce": "true",
        "max_macs": "128",
    }
    assert found["mstlink"].said["Speed"] == "200G"
    assert found["mstlink"].said["Recommendation"] == "No issue was observed"


def test_firmware_that_waits_for_a_reset_is_named() -> None:
    """A stored firmware is told where another one runs, and only there."""
    assert said(host("connectx-7"))["devlink"].said["stored fw"] == CX7.stored
    assert not [name for name in said(host("bluefield-2"))["devlink"].said if name.startswith("stored")]


@pytest.mark.parametrize(
    ("name", "crypto"), [("connectx-7", False), ("bluefield-2", True), ("connectx-6-dx", None)]
)
def test_crypto_is_read_from_the_card_not_from_the_table_of_addresses(name: str, crypto: bool | None) -> None:
    """The description of the card counts, not the head of the table of GUIDs below it."""
    one = host(name)
    found = firmware.board(one, look(one, "eth0"))
    assert found.crypto is crypto and found.part == CARDS[name].part
    assert "UID" not in found.text


def test_no_crypto_is_the_reason() -> None:
    """Doctor says that a ConnectX-7 is one without crypto, from a whole answer of mstflint."""
    one = host("connectx-7")
    fixed()(one)
    device = Doctor(one, DIRECTIONS, PROFILES).diagnose(["eth0"]).devices[0]
    assert "D207" in {finding.code for finding in device.findings}


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (None, "mstflint is not installed"),
        (
            (1, "", "-E- Cannot open Device: 0000:04:00.0. Permission denied.\nmore\n"),
            "mstflint: -E- Cannot open Device: 0000:04:00.0. Permission denied.",
        ),
        ((1, "-E- No devices found\n", ""), "mstflint: -E- No devices found"),
        ((3, "", ""), "mstflint: exit 3"),
        ((0, "what is this?", ""), "the output of mstflint is not recognizable"),
    ],
)
def test_a_tool_that_fails_is_one_line(row: tuple[int, str, str] | None, why: str) -> None:
    """A tool that is missing, refuses or says nonsense is one line; the others answer."""
    one = host()
    one.answers.pop(("mstflint",))
    if row:
        one.answers["mstflint",] = row
    found = said(one)
    assert found["mstflint"].why == why
    assert found["mstconfig"].said and not found["mstflint"].said


def test_a_tool_that_hangs_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that does not end is given up, and the others are asked."""
    one, run = host(), FakeHost.run

    def hang(self: FakeHost, argv: Any, **more: Any) -> Any:
        if argv[0] == "mstlink":
            assert more["timeout"] == nic_tools.WAIT
            raise TimedOut("mstlink did not end")
        return run(self, argv, **more)

    monkeypatch.setattr(FakeHost, "run", hang)
    found = said(one)
    assert found["mstlink"].why == "mstlink gave no answer in 20 s" and found["mstconfig"].said
    device = Doctor(one, DIRECTIONS, PROFILES, tools=True).diagnose(["eth0"]).devices[0]
    assert device.state() == "ready"


def test_the_vendors_names_are_tried_too() -> None:
    """The programs of NVIDIA's own package are asked where Debian's are not installed."""
    one = host()
    for ours, theirs in (("mstflint", "flint"), ("mstconfig", "mlxconfig"), ("mstlink", "mlxlink")):
        one.answers[theirs,] = one.answers.pop((ours,))
    assert not [answer for answer in said(one).values() if answer.why]


def test_only_its_makers_tools_touch_a_card() -> None:
    """mst programs, which write to configuration space to read, ask no other maker's card."""
    one = host()
    one.devices = {"eth0": card("cxgb4", BUS, "1425:6407")}
    assert [*said(one)] == ["devlink", "devlink-param"]
    one.devices = {"eth0": card("veth", "", "")}
    one.asked.clear()
    assert not said(one) and not [argv for argv in one.asked if argv[0] in ("devlink", "mstflint")]


def test_only_the_tools_that_are_named_are_asked() -> None:
    """Who wants the answers of two tools does not wait for the others."""
    one = host()
    assert [answer.tool for answer in ask(one, look(one, "eth0"), ("devlink", "mstflint"))] == [
        "devlink",
        "mstflint",
    ]


def test_nothing_but_queries() -> None:
    """No tool is asked for more than a query."""
    one = host()
    said(one)
    asked = {argv[0]: argv[1:] for argv in one.asked if argv[0].startswith("mst")}
    assert asked == {
        "mstflint": ("-d", BUS, "query", "full"),
        "mstconfig": ("-d", BUS, "query"),
        "mstlink": ("-d", BUS, "--json"),
    }
    assert [argv[1:4] for argv in one.asked if argv[0] == "devlink"] == [
        ("-j", "dev", "info"),
        ("-j", "dev", "param"),
    ]


def test_doctor_tells_them() -> None:
    """Doctor has the tools' answers in its document, and in its text if it is verbose."""
    found = Doctor(host(), DIRECTIONS, PROFILES, tools=True).diagnose(["eth0"])
    assert "TLS_OPTIMIZE False(0)" in as_text(found, verbose=True).replace("\n", " ")
    assert "mstconfig" not in as_text(found)
    rows = {row["tool"]: row for row in json.loads(as_json(found))["devices"][0]["tools"]}
    assert (
        rows["mstconfig"]["said"]["CRYPTO_POLICY"] == "UNRESTRICTED(1)"
        and rows["mstflint"]["why_not"] is None
    )


def test_the_report_keeps_them() -> None:
    """The rig of a bench of real hosts has the answers of the DUT's tools."""
    rig = versions(host(), host(), "eth0")
    running = "fw.psid MT_0000000894, fw 28.41.1000, fw.version 28.41.1000"
    assert rig["card, by devlink"] == f"{running}, stored fw 28.43.1014, stored fw.version 28.43.1014"
    assert "Crypto Disabled" in rig["card, by mstflint"] and "TLS_OPTIMIZE" in rig["card, by mstconfig"]


NAMES = ("info", "param", "result", "output", f"pci/{BUS}", "versions", "fixed", "running", "stored", "fw")
NAMES += (
    "fw.psid",
    "name",
    "values",
    "value",
    "Operational Info",
    "State",
    "Troubleshooting Info",
    "Recommendation",
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)
LINES = st.lists(
    st.sampled_from(
        ["Description:", "PSID: x", "Configurations:", "   TLS_OPTIMIZE  True(1)", "*RO  TLS_X y", ":"]
    )
    | st.text(),
    max_size=8,
).map("\n".join)


@settings(max_examples=300, deadline=None)
@given(text=st.text() | LINES | JSON.map(json.dumps))
def test_any_answer_is_read_or_left(text: str) -> None:
    """Whatever a tool prints, each reader gives text by name, and what is shown is plain."""
    for read in READERS.values():
        for name, value in read(text, BUS).items():
            assert isinstance(name, str) and isinstance(value, str)
            line = nic_tools.plain(value)
            assert (
                len(line) <= nic_tools.LONGEST and line.replace("\n", "x").isprintable() and "\n" not in line
            )


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_damaged_answer_is_read_or_left(data: st.DataObject) -> None:
    """A real form, cut and overwritten anywhere, gives an answer; so does the whole doctor."""
    one = host(data.draw(st.sampled_from(sorted(CARDS))))
    tools = ("devlink", "mstflint", "mstconfig", "mstlink")
    words = data.draw(st.sampled_from([key for key in one.answers if key[0] in tools]))
    text = one.answers[words][1]
    at, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    one.answers[words] = (0, text[:at] + data.draw(st.text(max_size=20)) + text[end:], "")
    for answer in ask(one, look(one, "eth0")):
        assert str(answer).isprintable() and len(answer.said) <= nic_tools.MANY + len(nic_tools.BOARD)
    assert as_json(Doctor(one, DIRECTIONS, PROFILES, tools=True).diagnose(["eth0"])).isascii()


def test_endless_answers_are_bounded() -> None:
    """A value without end is cut, and so is a list of parameters or settings."""
    long = "x" * 100_000
    assert len(nic_tools.plain(long)) == nic_tools.LONGEST
    many = "\nConfigurations:\n" + "".join(f"        TLS_{n}    True(1)\n" for n in range(5000))
    assert len(READERS["mstconfig"](many, BUS)) == nic_tools.MANY
    rows = [{"name": str(n), "values": [{"value": n}]} for n in range(5000)]
    assert len(READERS["devlink-param"](json.dumps({"param": {f"pci/{BUS}": rows}}), BUS)) == nic_tools.MANY
    assert READERS["devlink"]("[" * 100_000, BUS) == {}
