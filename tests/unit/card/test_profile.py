"""Profiles: those that ship, and what a wrong file is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from offload.card.profile import DIRECTIONS, Profile, find, folder, load, load_all
from offload.card.profile_ids import named, undescribed
from offload.card.profile_model import KERNEL_COUNTERS
from offload.errors import ConfigError

GOOD = (folder() / "nicsim.yaml").read_text()
LIMIT = (
    'limitations: [{id: a, what: x, test: "tests/x.py::test_y", expect: z, link: "https://docs.kernel.org/"}]'
)
Wrong = Callable[[str, str], str]


@pytest.fixture
def wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wrong:
    """Change one text of a good profile; what the loader says about it."""
    monkeypatch.chdir(tmp_path)

    def change(old: str, new: str) -> str:
        assert old in GOOD
        Path("nicsim.yaml").write_text(GOOD.replace(old, new, 1))
        with pytest.raises(ConfigError) as caught:
            load("nicsim.yaml")
        return str(caught.value)

    return change


def line_of(text: str) -> int:
    """The line of the good profile that holds a text."""
    return GOOD[: GOOD.index(text)].count("\n") + 1


@pytest.mark.parametrize("profile", load_all(), ids=lambda p: p.id)
def test_shipped_profiles_say_something_about_every_cell(profile: Profile) -> None:
    """Each cell of a shipped profile is promised or has a reason, never both."""
    for cell in profile.cells():
        assert profile.promised(*cell) != bool(profile.reason(*cell)), cell
    assert profile.limitations or profile.notes, "a shipped profile has at least one limitation or note"
    assert profile.kconfig, "a shipped profile names the kernel option of its driver"


@pytest.mark.parametrize("profile", load_all(), ids=lambda p: p.id)
def test_required_counters_of_shipped_profiles_have_a_driver_name(profile: Profile) -> None:
    """A required counter has a name in the driver and is not dead."""
    for direction in DIRECTIONS:
        for name in profile.counters.required(direction):
            assert profile.counters.name(name) and name not in profile.counters.dead(direction)


def test_connectx_6_dx_is_as_the_kernel_has_it() -> None:
    """The ConnectX-6 Dx promises AES-GCM both ways, starts with receive off."""
    profile = find("connectx-6-dx")
    assert profile.driver == "mlx5_core" and profile.pci[0].covers("15b3:101d")
    assert profile.promised("rx", "1.2", "aes-gcm-256") and not profile.promised("rx", "1.3", "aes-gcm-256")
    assert profile.default("tx") and not profile.default("rx")
    dead = {*profile.counters.dead("tx"), *profile.counters.dead("rx")}
    assert dead == {"tx_tls_drop_bypass_req", "tx_tls_resync_bytes", "rx_tls_resync_res_skip"}


def test_a_later_promise_that_is_one_already(wrong: Wrong) -> None:
    """A combination is promised now or later."""
    old = 'tx: {"1.3": [aes-gcm-128'
    said = wrong(old, 'tx: {"1.2": [aes-gcm-128')
    assert f"nicsim.yaml:{line_of(old)}: later: tx TLS 1.2 aes-gcm-128 is promised already" in said


def test_a_newer_kernel_lets_a_card_promise_more() -> None:
    """TLS 1.3 is promised by mlx5 on a kernel that hands it to cards; the T6 stays as it is."""
    profile = find("connectx-6-dx")
    newer = profile.on(True)
    assert newer.promised("rx", "1.3", "aes-gcm-256") and not newer.reason("rx", "1.3", "aes-gcm-256")
    assert newer.reason("tx", "1.3", "chacha20-poly1305") and newer.promises > profile.promises
    assert profile.on(False) == profile and newer.on(True) == newer
    assert find("chelsio-t6").on(True).promises == find("chelsio-t6").promises


def test_t6_is_transmit_only_with_one_cipher() -> None:
    """The T6 promises one cell, loads ch_ktls first, and says why there is no receive."""
    profile = find("chelsio-t6")
    assert [str(c) for c in profile.promises] == ["tx TLS 1.2 aes-gcm-128"]
    assert [s.what for s in profile.steps] == ["ch_ktls", "tls-hw-tx-offload"]
    assert "transmit only" in profile.why_no_direction("rx") and profile.why_no_direction("tx") == ""
    assert any(p.covers("1425:6407") for p in profile.pci) and not any(
        p.covers("1425:5407") for p in profile.pci
    )


def test_mlx5_cards_differ_in_their_name_ids_and_parts() -> None:
    """One driver, one set of facts: its profiles agree in all that the driver decides."""
    first, *others = (p for p in load_all() if p.driver == "mlx5_core")
    assert len(others) == 4
    for other in others:
        same = replace(
            other,
            id=first.id,
            name=first.name,
            pci=first.pci,
            path=first.path,
            sku=first.sku,
            firmware=first.firmware,
        )
        assert same == first, other.id
        assert (other.sku.need, other.firmware.need) == (first.sku.need, first.firmware.need)


def test_a_card_belongs_to_one_profile_or_to_the_list_of_others() -> None:
    """No PCI id is described twice, and the list of cards without a profile names none that has one."""
    every = [(p.driver, ids) for p in load_all() for ids in p.pci] + [
        (c.driver, c.ids) for c in undescribed()
    ]
    taken: set[tuple[str, int, int]] = set()
    for driver, ids in every:
        devices = {(driver, ids.vendor, n) for n in range(ids.first, ids.last + 1)}
        assert not devices & taken, ids
        taken |= devices


def test_a_card_without_a_profile_is_named() -> None:
    """ConnectX-6 Lx, -9, -10 and BlueField-4 are known by name, and nothing is promised of them."""
    for device, name in (("101f", "-6 Lx"), ("1025", "-9"), ("1027", "-10"), ("a2df", "BlueField-4")):
        card = named("mlx5_core", f"15b3:{device}")
        assert card and name in card.name and "not known" in card.in_words()
    old = named("mlx5_core", "15b3:1019")
    assert old and "older" in old.in_words()
    assert named("mlx5_core", "15b3:101d") is None and named("nfp", "15b3:101f") is None


def test_nfp_says_what_it_does_not_count() -> None:
    """The nfp counts packets both ways, and neither bytes nor contexts nor errors."""
    counters = find("agilio-nfp").counters
    assert set(counters.absent("tx")) == {"tx_tls_encrypted_bytes", "tx_tls_ctx", "tx_tls_del"}
    assert "rx_tls_err" in counters.absent("rx") and counters.name("rx_tls_ctx") is None
    assert counters.name("rx_tls_resync_res_ok") == "rx_tls_resync_sent" and find("agilio-nfp").default("rx")


def test_nicsim_has_every_counter_of_the_kernel_document() -> None:
    """The simulated card's map covers all names of tls-offload.rst."""
    counters = find("nicsim").counters
    for direction in DIRECTIONS:
        has = {*counters.required(direction), *counters.optional(direction), *counters.dead(direction)}
        assert has == {*KERNEL_COUNTERS[direction]}
    assert counters.known("sim_bad_tag") and not counters.known("rx_packets")


@pytest.mark.parametrize(
    ("old", "new", "text", "expected"),
    [
        ("vendor:", "vender:", "vendor:", "unknown key 'vender' (did you mean vendor?)"),
        ("driver: nicsim", "driver: [a]", "driver: nicsim", "driver: a list, wanted a driver name"),
        ("schema: 1", "schema: 7", "schema: 1", "schema: '7', wanted 1"),
        (
            "firmware:",
            "firmware:\n  minimum: {version: 22.x, gives: y}",
            'need: "none"\n  hints',
            "firmware.minimum.version: '22.x', wanted numbers and dots",
        ),
        ("pci: []", "pci: [{id: 15B3:1, name: x}]", "pci: []", "wanted vendor:device in lower case"),
        ("pci: []", 'pci: [{id: "15b3:2-1", name: x}]', "pci: []", "wanted vendor:device"),
        ("wanted: y", "wanted: n", "wanted: y", "kconfig[1].wanted: 'n', wanted one of y, m"),
        ("tx: off", "tx: perhaps", "defaults:", "defaults.tx: 'perhaps', wanted on or off"),
        (
            "tx_tls_encrypted_packets:",
            "tx_tls_enc:",
            "tx_tls_encrypted_packets:",
            "unknown counter 'tx_tls_enc' (did you mean tx_tls_encrypted_packets?)",
        ),
        (
            "optional: [rx_tls_resync_req_start",
            "optional: [rx_tls_resync_req_strat",
            "optional: [rx_",
            "unknown counter 'rx_tls_resync_req_strat' (did you mean rx_tls_resync_req_start?)",
        ),
        (
            "feature: tls-hw-rx-offload",
            "feature: tls-hw-rx-ofload",
            "feature: tls-hw-rx",
            "did you mean tls-hw-rx-offload?",
        ),
        (
            "limitations: []",
            LIMIT.replace("tests/x.py::test_y", "none yet"),
            "limitations: []",
            "limitations[0].test: 'none yet', wanted the test that meets it, "
            "tests/...::test_name (a weakness",
        ),
        (
            "limitations: []",
            LIMIT.replace("id: a", "id: nicsim-is-not-a-card"),
            "notes:\n",
            "notes[0].id: 'nicsim-is-not-a-card' given twice",
        ),
        ("    seen:", "    test: tests/x.py::test_y\n    seen:", "    seen:", "unknown key 'test'"),
        ("link: https:", "link: http:", "link: https:", "wanted a public https:// link or a CVE number"),
        ("id: nicsim-is-not-a-card", "id: nicsim-is-not-a-card\n    seen: twice", "    seen:", "given twice"),
        (
            "dead: []",
            "dead: []\n    absent: [rx_tls_err]",
            "required: [rx_tls_dec",
            "rx_tls_err is absent and in another list",
        ),
        (
            "dead: []",
            "absent: [rx_tls_bytes]",
            "dead: []",
            "counters.rx.absent[0]: 'rx_tls_bytes', wanted one of",
        ),
        (
            "cipher: chacha20-poly1305",
            "cipher: aes-gcm-256",
            "cipher: chacha20",
            "covers rx TLS 1.2 aes-gcm-256",
        ),
    ],
)
def test_a_wrong_value_is_reported_with_its_line(
    wrong: Wrong, old: str, new: str, text: str, expected: str
) -> None:
    """Each kind of mistake gives file, line, key, what was there and what was wanted."""
    said = wrong(old, new)
    at = line_of(text) + ("given twice" in expected)
    assert any(x.startswith(f"nicsim.yaml:{at}: ") and expected in x for x in said.splitlines()), said


def test_all_problems_come_at_once_in_order(tmp_path: Path) -> None:
    """A file with five mistakes gives five lines, by line number."""
    bad = (
        GOOD.replace("schema: 1", "schema: 2").replace("wanted: y", "wanted: q").replace("pci: []", "pci: x")
    )
    (tmp_path / "nicsim.yaml").write_text(bad.replace("plays:", "playz:").replace("hints: []", "hints: 3"))
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "nicsim.yaml")
    numbers = [int(line.split(":")[1]) for line in str(caught.value).splitlines()]
    assert len(numbers) == 5 and numbers == sorted(numbers)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &x [1]\nb: *x\n", ":1: anchors and aliases are not supported"),
        ("a: !!python/object/apply:os.system [id]\n", ":1: tag"),
        ("[" * 900, ":1: nested deeper than 8"),  # libyaml 0.2.6 itself refuses 1,001
        ("a: [\n", ": not YAML"),
        ("a: 1\n---\nb: 2\n", ":2: a second document"),
        ("", ":1: empty file"),
        ("- 1\n", ":1: a list, wanted a mapping"),
        ("x\n" * 200_000, ": larger than 256 KiB"),
        ("a\x00b: 1\n", ":1: not YAML"),
        ("- a\n" * 30_000, ": too many entries"),
    ],
    ids=lambda v: v[:12].strip() or "empty",
)
def test_hostile_files_are_refused_in_one_line(tmp_path: Path, text: str, expected: str) -> None:
    """A file that is no small plain YAML is refused without a traceback."""
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "x.yaml")
    assert expected in str(caught.value).splitlines()[0]


def test_bytes_that_are_not_text_are_refused(tmp_path: Path) -> None:
    """A binary file is told with the line where it stops being text."""
    (tmp_path / "x.yaml").write_bytes(b"schema: 1\nid: \xff\xfe\n")
    with pytest.raises(ConfigError, match=":2: not UTF-8"):
        load(tmp_path / "x.yaml")


def test_terminal_escapes_do_not_get_through(wrong: Wrong) -> None:
    """A profile cannot move a person's cursor, neither accepted nor quoted back."""
    said = wrong("name: nicsim", 'name: "x\\e[2Jy"')
    assert "\x1b" not in said and "wanted text" in said


def test_an_unknown_id_names_the_nearest(tmp_path: Path) -> None:
    """A mistyped profile is told the nearest and all that there are."""
    with pytest.raises(ConfigError, match=r"did you mean connectx-6-dx\?") as caught:
        find("conectx-6-dx")
    assert "chelsio-t6" in caught.value.hint


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    """A profile file that is not there is told as such."""
    with pytest.raises(ConfigError, match="cannot read: No such file"):
        load(tmp_path / "none.yaml")


def test_problems_of_all_files_are_reported_together(tmp_path: Path) -> None:
    """load_all names every file that is wrong."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text("id: 1\n")
    with pytest.raises(ConfigError) as caught:
        load_all(tmp_path)
    assert "a.yaml:1" in str(caught.value) and "b.yaml:1" in str(caught.value)


def test_a_driver_that_names_a_counter_otherwise() -> None:
    """A mapping in the counter map translates the kernel document's name to the driver's."""
    counters = find("nicsim").counters
    assert counters.name("tx_tls_del") == "sim_tx_tls_del" and counters.known("sim_tx_tls_del")
    assert counters.name("tx_tls_no_such") is None


def test_a_mapping_to_no_counter_name_is_reported(wrong: Wrong) -> None:
    """A driver's name that cannot be one is refused with its line."""
    said = wrong("tx_tls_del: sim_tx_tls_del", "tx_tls_del: [x]")
    assert "counters.tx.required.tx_tls_del: a list, wanted the driver's name" in said
