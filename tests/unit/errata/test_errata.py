"""Known kernel bugs: which kernel has which, what a failure is told, and what a wrong file is told."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from offload.errata.file import read
from offload.errata.kernel import version
from offload.errata.match import DEFAULT, Erratum, explain, kernel, load, matching, standing
from offload.errata.page import page
from offload.errors import ConfigError

ERRATA = {erratum.id: erratum for erratum in load()}
GOOD = DEFAULT.read_text()
Wrong = Callable[[str, str], str]
# the kernels of the lab, and the one that is known to be bad
LAB61, LAB612, LAB72 = (
    ("6.1.0-56-amd64", "6.1.192-2"),
    ("6.12.117+deb12-amd64", "6.12.117-1~deb12u1"),
    ("7.2.12+deb13-amd64", "7.2.12-1~bpo13+1"),
)
BAD612 = ("6.12.95+deb12-amd64", "6.12.95-1~bpo12+1")


@pytest.mark.parametrize(
    ("release", "package", "stable", "whose"),
    [
        ("6.1.0-56-amd64", "6.1.192-2", (6, 1, 192, 2), "debian"),
        ("6.1.0-56-cloud-amd64", "1:6.1.192-1", (6, 1, 192, 1), "debian"),
        ("6.12.95+deb12-amd64", "", (6, 12, 95, 1), "debian"),
        ("6.12.117+deb12-amd64", "6.12.117-1~deb12u1", (6, 12, 117, 1), "debian"),
        ("6.1.0-56-amd64", "", None, "debian"),
        ("6.12.95", "", (6, 12, 95, 1), "upstream"),
        ("6.1.0", "", (6, 1, 0, 1), "upstream"),
        ("6.12", "", (6, 12, 0, 1), "upstream"),
        ("6.18.44-fc-v657", "", (6, 18, 44, 1), "other"),
        ("6.1.112-122.189.amzn2023.x86_64", "", (6, 1, 112, 1), "other"),
        ("6.8.0-45-generic", "6.8.0-45.45", None, "other"),
        ("5.14.0-427.el9.x86_64", "", None, "other"),
        ("6.1.0-56-amd64", "6.12.95-1", None, "debian"),
        ("6.12.95+deb12-amd64", "rubbish", None, "debian"),
        ("7.4.0-rc3", "", None, "other"),
        ("6.13-amd64", "6.13~rc6-1~exp1", None, "other"),
        ("", "", None, "other"),
    ],
)
def test_a_kernel_is_identified_by_release_and_package(
    release: str, package: str, stable: tuple[int, ...] | None, whose: str
) -> None:
    """The stable number is taken from where it is, and where it is nowhere that is said."""
    found = kernel(release, package)
    assert (found.stable, found.whose) == (stable, whose)
    assert bool(found.why) == (stable is None)


def test_a_version_without_packaging_number_is_the_first_package() -> None:
    """6.1.20 in the data is the package 6.1.20-1, and what is no version is none."""
    assert version("6.1.20") == version("6.1.20-1") == (6, 1, 20, 1)
    assert version("6.12") == (6, 12, 0, 1) and version("6") is None and version("6.1.x") is None


def test_a_missing_package_version_gets_a_remedy() -> None:
    """A Debian release without its package version names the command that shows it."""
    assert "dpkg-query -W linux-image-6.1.0-56-amd64" in kernel("6.1.0-56-amd64").why


@pytest.mark.parametrize(
    ("ident", "release", "package", "word", "why"),
    [
        # Debian's changelog decides, package by package; a rebuild holds what its original holds
        ("tls-append-frag", "6.1.0-50-amd64", "6.1.186-1", "affected", "the fix is in 6.1.187-1"),
        ("tls-append-frag", "6.1.0-51-amd64", "6.1.187-1", "fixed", "6.1.187-1 has the fix"),
        ("tls-append-frag", "6.1.0-51-amd64", "6.1.187-1~deb11u1", "fixed", "6.1.187-1"),
        ("tls-append-frag", "6.1.0-5-amd64", "6.1.9-1", "affected", "6.1.187-1"),  # 9 is less than 187
        ("tls-append-frag", *BAD612, "affected", "the fix is in 6.12.111-1, but this is 6.12.95-1~bpo"),
        ("tls-append-frag", "6.12.110+deb13-amd64", "6.12.110-1", "affected", "6.12.111-1"),
        ("tls-append-frag", *LAB612, "fixed", "6.12.111-1"),
        # a release alone may not say enough
        ("tls-append-frag", "6.1.0-56-amd64", "", "unknown", "does not show the stable release number"),
        ("tls-append-frag", "6.12.117+deb12-amd64", "", "fixed", "6.12.111-1"),
        # upstream: a number at or above a package's has the fix; below, only what was read is known
        ("tls-append-frag", "6.12.111", "", "fixed", "6.12.111-1"),
        ("tls-append-frag", "6.12.95", "", "affected", "6.12.95-1~bpo12+1"),
        ("tls-append-frag", "6.12.100", "", "unknown", "first version with it is not recorded"),
        ("tls-append-frag", "6.1.100", "", "unknown", "first version with it is not recorded"),
        # other makers take fixes back: an older number proves nothing
        ("tls-append-frag", "6.12.90-arch1-1", "", "unknown", "vendor build"),
        ("tls-append-frag", "6.12.112-arch1-1", "", "fixed", "6.12.111-1"),
        ("tls-append-frag", "6.12.0-55.el10.x86_64", "", "unknown", "does not show the stable"),
        # other series
        ("tls-append-frag", "6.6.80", "", "unknown", "nothing is recorded of Linux 6.6"),
        ("tls-append-frag", "7.2.11", "", "unknown", "7.2.12-1 has the fix; the first version with it"),
        ("tls-append-frag", "7.3.4", "", "fixed", "7.3.4-1"),
        ("tls-append-frag", "7.4.0", "", "fixed", "all of Linux 7.4"),
        ("tls-append-frag", "7.10.1", "", "fixed", "all of Linux 7.10"),  # 10 is more than 4
        ("tls-append-frag", "7.4.0-rc3", "", "unknown", "nothing is recorded of Linux 7.4"),
        ("tls-append-frag", "7.3.0-rc3", "", "unknown", "7.3.0-rc3 is a release candidate"),
        ("tls-append-frag", "7.5.0-rc1", "", "fixed", "all of Linux 7.5"),
        ("tls-append-frag", "nonsense", "", "unknown", "'nonsense' is not a kernel release"),
        ("skb-orphan-plaintext", "6.8.0-45-generic", "", "fixed", "all of Linux 6.8"),
        # what no changelog says
        ("tls-splice-eof", *LAB61, "unknown", "no back-port"),
        ("mlx5-get-psv", *LAB61, "affected", "so it is in 6.1.192-2"),
        ("mlx5-get-psv", "6.1.0-60-amd64", "6.1.200-1", "unknown", "no later version was checked"),
        ("sk-dst-get", "6.1.0-40-amd64", "6.1.162-1", "fixed", "6.1.162"),
        # behavior is the same between two versions that have it; nobody takes a fix back
        ("netem-on-egress", *LAB612, "affected", "so it is in 7.2.12-1"),
        ("netem-on-egress", "6.18.44-fc-v657", "", "affected", "so it is in 7.2.12-1"),
        ("netem-on-egress", "6.1.0-56-amd64", "", "affected", "so it is in 6.12.95-1"),
        ("netem-on-egress", *LAB72, "affected", "so it is in 7.2.12-1"),
        ("netem-on-egress", "7.3.5", "", "unknown", "no later version was checked"),
        ("netem-on-egress", "5.15.100", "", "unknown", "nothing is recorded"),
        ("poll-incomplete-record", *LAB61, "affected", "so it is in 6.1.192-2"),
        ("poll-incomplete-record", *LAB612, "fixed", "all of Linux 6.12"),
        ("poll-incomplete-record", "6.6.1", "", "unknown", "nothing is recorded"),
        ("msg-eor", "6.12.50", "", "unknown", "6.12.95-1 has the fix"),
    ],
)
def test_standing_of_a_kernel(ident: str, release: str, package: str, word: str, why: str) -> None:
    """Affected, fixed and unknown are told apart at the edges, with the reason."""
    found = standing(ERRATA[ident], kernel(release, package))
    assert (found.word, why in found.why) == (word, True), found


def test_matching_lists_what_a_kernel_has_or_may_have() -> None:
    """The lab's kernels have the bugs that were seen on them, and not those fixed before."""
    mine = [erratum.id for erratum in matching(*LAB61)]
    assert {"sendfile-beyond-end", "poll-incomplete-record", "tls-splice-eof"} <= {*mine}
    assert "tls-append-frag" not in mine and "overlapping-skbs" not in mine
    assert "tls-splice-eof" not in [erratum.id for erratum in matching(*LAB612)]
    bad = {erratum.id for erratum in matching(*BAD612)}
    assert {"tls-append-frag", "tls-splice-eof", "overlapping-skbs", "pipe-back-pressure"} <= bad
    words = [standing(erratum, kernel(*LAB61)).word for erratum in matching(*LAB61)]
    assert words == sorted(words) and {*words} == {"affected", "unknown"}
    assert len(matching("6.1.0-56-amd64")) > len(mine)
    assert matching("nonsense") == load()


SHORT = "1032192 of 1048576 bytes arrived"
NO_TAG = "the receiver ended with EBADMSG: Bad message after 409600 of 1048576 bytes"


@pytest.mark.parametrize(
    ("at", "test", "reason", "driver", "expected"),
    [
        (BAD612, "tests/hw/test_20.py::test_sends[v6-sendfile]", SHORT, "", ["tls-splice-eof"]),
        (LAB612, "tests/hw/test_20.py::test_sends[v6-sendfile]", SHORT, "", []),
        (LAB61, "x::test_sends[sendfile]", SHORT, "", ["sendfile-beyond-end", "tls-splice-eof"]),
        (LAB61, "tests/sendfile.py::test_sends[write]", SHORT, "", []),  # folders say nothing
        (BAD612, "x::test_loss[0.5]", NO_TAG, "", ["overlapping-skbs"]),
        (LAB61, "x::test_loss[0.5]", NO_TAG, "", []),
        (LAB61, "x::test_stream[rx-stunnel-ktls]", SHORT, "", ["poll-incomplete-record"]),
        (LAB612, "x::test_stream[rx-stunnel-ktls]", SHORT, "", []),
        (
            BAD612,
            "x::test_stuck",
            "rx_tls_decrypted: the card decrypted too little",
            "mlx5_core",
            ["mlx5-get-psv", "mlx5-rx-rule", "rx-starts-out-of-step"],
        ),
        (
            BAD612,
            "x::test_stuck",
            "rx_tls_decrypted: the card decrypted too little",
            "nicsim",
            ["rx-starts-out-of-step"],
        ),
        (
            BAD612,
            "x::test_msg_more",
            "the kernel log: BUG: unable to handle page fault",
            "",
            ["tls-append-frag"],
        ),
        (BAD612, "x::test_MSG_MORE", "sha-256 differs", "", ["tls-append-frag"]),  # case does not matter
        (
            BAD612,
            "x::test_stuck",
            "rx_tls_decrypted: the card decrypted too little",
            "",
            ["mlx5-get-psv", "mlx5-rx-rule", "rx-starts-out-of-step"],
        ),
        (("6.18.44-fc-v657", ""), "x::test_link_down", "inet_diag shows transmit as hw", "", ["shown-as-hw"]),
        (
            LAB61,
            "",
            "the kernel log: unencrypted skb with no associated socket - dropping",
            "",
            ["netem-on-egress"],
        ),
        (LAB61, "x::test_link_down", "inet_diag shows transmit as hw", "", ["shown-as-hw"]),
        (LAB61, "x::test_rekey", "OSError: [Errno 16] EBUSY", "", ["tls13-key-update"]),
        (("5.14.0-427.el9.x86_64", ""), "x::test_loss", NO_TAG, "", []),  # of 5.14 nothing is recorded
        (("6.1.0-56-amd64", ""), "x::test_loss", NO_TAG, "", ["rx-mixed-decrypted", "overlapping-skbs"]),
    ],
)
def test_a_failure_is_explained(
    at: tuple[str, str], test: str, reason: str, driver: str, expected: list[str]
) -> None:
    """A message is matched with the bugs of this kernel and this driver, and no others."""
    found = explain(reason, kernel(*at), test=test, driver=driver)
    assert [erratum.id for erratum in found] == expected


@pytest.mark.parametrize(
    "reason",
    [
        "exit 5: no such device",
        "switched off, and the card counted {'tx_tls_encrypted_bytes': 4096}",
        "ktls-handoff: handshake: certificate verify failed",
        "counter tx_tls_ctx is missing or went backwards",
        "KeyError: 'x'",
        "",
    ],
)
@pytest.mark.parametrize("at", [LAB61, BAD612, LAB612, LAB72])
def test_an_ordinary_failure_is_not_explained_away(at: tuple[str, str], reason: str) -> None:
    """A message that fits no symptom gets no note, on no kernel."""
    assert explain(reason, kernel(*at), test="x::test_sends[sendfile-loss-link]") == ()


@pytest.mark.parametrize("erratum", load(), ids=lambda e: e.id)
def test_shipped_errata_say_where_they_are_from(erratum: Erratum) -> None:
    """Every erratum has a source, a remedy, and something known of at least one series."""
    assert re.search(r"\.[ch]\b|\.rst|changelog|CVE's record|own run|github", erratum.source), erratum.source
    assert erratum.do and erratum.kernels
    assert "see the CVE's record" not in erratum.symptom or erratum.cve, "no CVE to look up"
    assert erratum.driver or erratum.part not in ("mlx5", "ch_ktls")


def test_errata_of_the_facts_are_all_there() -> None:
    """The CVE numbers are those of the facts, no more and no fewer."""
    numbers = {cve for erratum in load() for cve in erratum.cve}
    assert numbers == {
        "CVE-2026-52974",
        "CVE-2026-98967",
        "CVE-2025-40149",
        "CVE-2023-28466",
        "CVE-2024-26582",
        "CVE-2024-26583",
        "CVE-2024-26584",
        "CVE-2024-26585",
        "CVE-2024-26800",
        "CVE-2024-53091",
        "CVE-2024-58240",
        "CVE-2025-38616",
        "CVE-2026-23240",
        "CVE-2026-23414",
        "CVE-2026-64025",
        "CVE-2026-74611",
        "CVE-2026-93824",
    }
    assert {erratum.commit for erratum in load() if erratum.commit} == {
        "b17cf742eaad",
        "cc8091587779",
        "eaa39f9f8ac8",
    }


def test_the_page_is_made_from_the_data() -> None:
    """docs/reference/errata.md is what the data gives: the command in the page makes it anew."""
    path = Path(__file__).parents[3] / "docs/reference/errata.md"
    assert path.read_text() == page(), "run the command at the end of docs/reference/errata.md"
    assert all(f"\n### {erratum.id}\n" in page() for erratum in load())


@pytest.fixture
def wrong(tmp_path: Path) -> Wrong:
    """Change one text of the shipped file; what the reader says about it."""

    def change(old: str, new: str) -> str:
        assert old in GOOD
        (tmp_path / "errata.yaml").write_text(GOOD.replace(old, new, 1))
        with pytest.raises(ConfigError) as caught:
            read(tmp_path / "errata.yaml")
        return str(caught.value)

    return change


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("schema: 1", "schema: 2", "schema: '2', wanted 1 (the only schema so far)"),
        ("    kind: bug", "    kind: bugs", "errata[0].kind: 'bugs', wanted one of bug, behavior (did you"),
        ("    part: device", "    part: [device]", "errata[0].part: a list, wanted one of device"),
        ("    title:", "    titlex:", "errata[0]: unknown key 'titlex' (did you mean title?)"),
        ("    directions: [tx]", "    directions: []", "errata[0].directions: a list, wanted a list with"),
        ("    directions: [tx]", "    directions: [xt]", "errata[0].directions[0]: 'xt', wanted one of tx"),
        ("commit: b17cf742eaad", "commit: upstream", "errata[0].commit: 'upstream', wanted 7 to 40 hexa"),
        ('"6.1": {fixed: 6.1.187-1}', '"6.1": {fixed: 6.12.1-1}', ".kernels.6.1.fixed: '6.12.1-1', wanted a"),
        ('"6.1": {fixed: 6.1.187-1}', '"6.1": {fixed: soon}', ".kernels.6.1.fixed: 'soon', wanted a version"),
        ('"6.1": {fixed: 6.1.187-1}', '"six": {fixed: 6.1.1-1}', ".kernels.six: 'six', wanted a series as"),
        ('"6.1": {fixed: 6.1.187-1}', '"6.1": {}', ".kernels.6.1: wanted unknown alone, or some of fixed"),
        ('"6.1": {fixed: 6.1.187-1}', '"6.1": {fixed: 6.1.187-1, unknown: x}', ".kernels.6.1: wanted unk"),
        (
            "lacks: 6.12.95-1~bpo12+1, fixed: 6.12.111-1",
            "lacks: 6.12.111-1, fixed: 6.12.95-1",
            ".kernels.6.12: 6.12.111-1 cannot lack what an older version has",
        ),
        ('onward: "7.4"', 'onward: "7.3"', "errata[0].onward: 7.3, wanted a series after those of kernels"),
        ('pattern: "BUG', 'pattern: "(BUG', "errata[0].pattern: '(BUG:|Oops|general"),
        ('test: "msg.?more|frag"', 'test: "msg|"', "errata[0].test: 'msg|', wanted an expression that does"),
        ("commit: b17cf742eaad", "commit: b17cf742eaad-1", "errata[0].commit: 'b17cf742eaad-1', wanted 7"),
        ('    title: "tls', "    title: null #", "errata[0].title: 'null', wanted text"),
        ('    title: "tls', '    title: "\\e[2Jtls', "errata[0].title: '\\x1b[2Jtls: device"),
        (
            "lacks: 6.12.95-1~bpo12+1, fixed: 6.12.111-1",
            "lacks: 6.12.111-1~bpo12+1, fixed: 6.12.111-1",
            "errata[0].kernels.6.12: 6.12.111-1~bpo12+1 cannot lack",
        ),
        ('      "6.1": {fixed: 6.1.187-1}', '      "7.9": {has: 7.9.1-1}', "errata[0].onward: 7.4, wanted a"),
        ("cve: [CVE-2026-52974]", "cve: [CVE-26-1]", ".cve[0]: 'CVE-26-1', wanted a number as in CVE-"),
        ("id: tls-splice-eof", "id: tls-append-frag", "errata[1].id: 'tls-append-frag' given twice"),
        ("id: tls-append-frag", "id: TLS", "errata[0].id: 'TLS', wanted a short name in lower case"),
        ("    do: ", "    do: null\n    do: ", "errata[0]: key 'do' given twice"),
        ('source: "Debian', 'sauce: "Debian', "errata[0]: key source is missing"),
        ("errata:\n", "errata: 3\nmore:\n", "errata: '3', wanted a list with entries"),
        ("schema: 1", "schema: [", "not YAML"),
    ],
)
def test_a_wrong_value_is_reported_with_its_line(wrong: Wrong, old: str, new: str, expected: str) -> None:
    """Each kind of mistake gives file, line, key, what was there and what was wanted."""
    said = wrong(old, new).splitlines()
    assert all(line.startswith("errata.yaml:") for line in said)
    assert any(expected in line for line in said), said


def test_a_wrong_value_names_the_right_line(wrong: Wrong) -> None:
    """The line is that of the wrong value, and all problems come at once, in order."""
    line = GOOD[: GOOD.index("commit: b17cf742eaad")].count("\n") + 1
    assert wrong("commit: b17cf742eaad", "commit: no").startswith(f"errata.yaml:{line}: errata[0].commit: ")
    both = wrong("kind: bug\n    title: ", "kind: odd\n    title: x\n    titlex: ").splitlines()
    numbers = [int(text.split(":")[1]) for text in both]
    assert len(both) == 2 and numbers == sorted(numbers)


def test_a_file_that_is_none_is_reported_in_one_line(tmp_path: Path) -> None:
    """A file that is missing, empty, a list or no text is refused without a traceback."""
    path = tmp_path / "errata.yaml"
    with pytest.raises(ConfigError, match=r"^errata.yaml: cannot read: No such file or directory$"):
        read(path)
    for data, expected in (
        (b"", "errata.yaml:1: empty file"),
        (b"- 1\n", "errata.yaml:1: a list, wanted a mapping"),
        (b"schema: 1\n\xff\xfe: 1\n", "errata.yaml:"),
        (b"schema: 1\n? [a]\n: 1\nerrata: []\n", "errata.yaml:2: unknown key a list"),
    ):
        path.write_bytes(data)
        with pytest.raises(ConfigError) as caught:
            read(path)
        assert str(caught.value).startswith(expected), caught.value


@pytest.mark.parametrize(
    "reason",
    [
        "plaintext on the wire at stream offset 7: 0a1b; 3 of 9 bytes arrived",
        "12 records in clear; the receiver ended with EBADMSG after 0 of 9 bytes",
        "1 of 490 captured frames are unexplained: clear-record at 303; 3 of 9 bytes arrived",
        "1 of 490 captured frames are unexplained: stray-data at 303; 3 of 9 bytes arrived",
    ],
)
def test_no_erratum_excuses_plaintext(reason: str) -> None:
    """Plaintext is explained by a bug that puts plaintext on the wire, and by no other one that fits."""
    test = "test_loss_resync_sendfile_splice_stunnel_ktls_route_vlan_bond"
    at = kernel(*BAD612)
    other = re.sub("plaintext|clear|stray", "x", reason)
    assert any("plaintext" not in erratum.symptom for erratum in explain(other, at, test=test)), other
    assert all("plaintext" in erratum.symptom for erratum in explain(reason, at, test=test))
