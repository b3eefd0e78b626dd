"""`report registry`: only results that are intact, signed and right are listed; the site says the rest."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from offload.errors import ConfigError
from offload.suite.report import files
from offload.suite.report.registry import site
from offload.suite.report.trust import archive, manifest, unpack
from tests.unit.page_check import problems
from tests.unit.suite.report import report_whole as made
from tests.unit.suite.report.render.test_report_render import Page
from tests.unit.suite.report.test_report_verbs import call
from tests.unit.suite.report.trust.test_report_archive import head, packet
from tests.unit.suite.report.trust.test_report_sign import allow, make_key
from tests.unit.suite.report.trust.test_report_sign import call as said

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
WHO = "lab@example.org"


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two signed results, the lab's key, and who may sign."""
    place = tmp_path_factory.mktemp("lab")
    key = make_key(place)
    allow(place, (WHO, key))
    for name, worst in (("good", "pass"), ("bad", "fail")):
        run = place / name
        run.mkdir()
        made.folder(run, worst=worst)
        manifest.write(run)
        assert said("sign", run, "--key", key) == 0
    return place


def archives(signed: Path, place: Path, *names: str) -> Path:
    """A folder with archives of these results."""
    place.mkdir(exist_ok=True)
    for name in names:
        archive.pack(signed / name, place / f"{name}.tar.gz")
    return place


def remade(source: Path, out: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    """Write an archive anew, with its files changed."""
    with tarfile.open(source) as tar:
        files = {info.name: tar.extractfile(info).read() for info in tar}  # type: ignore[union-attr]
    change(files)
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    out.write_bytes(gzip.compress(whole.getvalue()))


def make(signed: Path, place: Path, out: Path) -> int:
    """Run `report registry` with the lab's signers."""
    return call("registry", place, "--out", out, "--allowed-signers", signed / "allowed")


def test_site_lists_what_was_verified(signed: Path, tmp_path: Path) -> None:
    """Each result has its row, report, picture and badge; the later one says what became worse."""
    out = tmp_path / "site"
    assert make(signed, archives(signed, tmp_path / "in", "good", "bad"), out) == 0
    page = (out / "index.html").read_text()
    assert problems(page) == [] and not Page(page).depth
    rows = json.loads((out / "registry.json").read_text())["results"]
    assert sorted(row["verdict"] for row in rows) == ["certified", "failed"]
    assert {row["signer"] for row in rows} == {WHO} and {row["remark"] for row in rows} == {""}
    first, later = rows[1], rows[0]
    assert first["changed"] == "the first of its kind" and later["newest"] and not first["newest"]
    assert ("REGRESSION" in later["changed"]) is (later["verdict"] == "failed")
    for row in rows:
        assert row["card"].endswith("(SIMULATED)")
        assert (out / row["folder"] / "report.html").read_text().count("<html") == 1
        assert ET.parse(out / row["folder"] / "card.svg")
    links = [str(attrs["href"]) for tag, attrs in Page(page).tags if tag == "a"]
    assert all((out / link).is_file() for link in links if link.startswith("./")) and len(links) > 6


def test_site_is_made_anew(signed: Path, tmp_path: Path) -> None:
    """A second run replaces the site; a folder of something else is refused."""
    out, place = tmp_path / "site", archives(signed, tmp_path / "in", "good")
    assert make(signed, place, out) == 0
    (out / "old.txt").write_text("x")
    assert make(signed, place, out) == 0 and not (out / "old.txt").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/thesis.txt").write_text("x")
    with pytest.raises(ConfigError, match="is no registry"):
        make(signed, place, tmp_path / "other")
    assert (tmp_path / "other/thesis.txt").exists()


def edited(files: dict[str, bytes]) -> None:
    """Turn a failed report into a certified one."""
    name = next(name for name in files if name.endswith("report.json"))
    files[name] = files[name].replace(b'"verdict": "failed"', b'"verdict": "certified"')


def unsigned(files: dict[str, bytes]) -> None:
    """Leave the signature out."""
    del files[next(name for name in files if name.endswith(manifest.SIGNATURE))]


def shortened(files: dict[str, bytes]) -> None:
    """Leave a file out that nobody said was left out."""
    del files[next(name for name in files if name.endswith("summary.txt"))]


def added(files: dict[str, bytes]) -> None:
    files[next(iter(files)).partition("/")[0] + "/more.txt"] = b"x"


def climbing(files: dict[str, bytes]) -> None:
    """Name a file outside of the folder."""
    files[next(iter(files)).partition("/")[0] + "/../../more.txt"] = b"x"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (edited, "not intact: report.json"),
        (unsigned, "not signed by an allowed signer"),
        (shortened, "not intact: summary.txt"),
        (added, "not intact: more.txt"),
        (climbing, "is no file of a run"),
    ],
)
def test_damaged_archive_is_not_listed(
    signed: Path, tmp_path: Path, change: Callable[[dict[str, bytes]], None], why: str
) -> None:
    """An archive that was changed is named with the reason, and the others are listed."""
    place, out = archives(signed, tmp_path / "in", "good", "bad"), tmp_path / "site"
    remade(place / "bad.tar.gz", place / "odd.tar.gz", change)
    assert make(signed, place, out) == 1
    tree = json.loads((out / "registry.json").read_text())
    assert why in tree["not_listed"]["odd.tar.gz"] and len(tree["results"]) == 2
    assert "odd.tar.gz" in (out / "index.html").read_text() and not (tmp_path / "more.txt").exists()


def test_capture_in_part_is_as_it_was_left(
    signed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive with a part of a capture is listed; one whose part was changed is not."""
    monkeypatch.setattr(archive, "WINDOW", 100 << 10)
    run, place = tmp_path / "run", tmp_path / "in"
    shutil.copytree(signed / "good", run)
    (run / manifest.SIGNATURE).unlink()
    (run / "wire.pcapng").write_bytes(head() + b"".join(map(packet, range(400))))
    manifest.write(run)
    assert said("sign", run, "--key", signed / "key") == 0
    place.mkdir()
    assert archive.pack(run, place / "run.tar.gz").entries[-1].of_packets == 400
    assert make(signed, place, tmp_path / "site") == 0

    def change(files: dict[str, bytes]) -> None:
        name = next(name for name in files if name.endswith(".pcapng"))
        files[name] = files[name][:-40] + bytes(40)

    remade(place / "run.tar.gz", place / "odd.tar.gz", change)
    assert make(signed, place, tmp_path / "site") == 1
    (why,) = json.loads((tmp_path / "site/registry.json").read_text())["not_listed"].values()
    assert "not intact: wire.pcapng" in why


def test_another_signer_is_not_listed(signed: Path, tmp_path: Path) -> None:
    """A result that somebody else signed is not listed."""
    key = make_key(tmp_path)
    place = archives(signed, tmp_path / "in", "good")
    words = ("registry", place, "--out", tmp_path / "site", "--allowed-signers")
    assert call(*words, allow(tmp_path, (WHO, key))) == 1
    (why,) = json.loads((tmp_path / "site/registry.json").read_text())["not_listed"].values()
    assert "not signed by an allowed signer" in why


def test_signed_lie_is_not_listed(signed: Path, tmp_path: Path) -> None:
    """A verdict that does not follow from its events is not listed, whoever signed it."""
    run = tmp_path / "lie"
    shutil.copytree(signed / "bad", run)
    path = run / "report.json"
    path.write_bytes(path.read_bytes().replace(b'"verdict": "failed"', b'"verdict": "certified"'))
    (run / manifest.SIGNATURE).unlink()
    manifest.write(run)
    assert said("sign", run, "--key", signed / "key") == 0
    place = tmp_path / "in"
    place.mkdir()
    archive.pack(run, place / "lie.tar.gz")
    assert make(signed, place, tmp_path / "site") == 1
    (why,) = json.loads((tmp_path / "site/registry.json").read_text())["not_listed"].values()
    assert why == "its verdict does not follow from its events"


RUBBISH = {
    "empty": b"",
    "text": b"x" * 99,
    "no tar": gzip.compress(b"x" * 99),
    "no file": gzip.compress(bytes(10240)),
}


@pytest.mark.parametrize("kind", RUBBISH)
def test_what_is_no_archive_is_reported(signed: Path, tmp_path: Path, kind: str) -> None:
    """Rubbish by the name of an archive is one line."""
    (tmp_path / "x.tar.gz").write_bytes(RUBBISH[kind])
    assert make(signed, tmp_path, tmp_path / "site") == 1
    assert len(json.loads((tmp_path / "site/registry.json").read_text())["not_listed"]) == 1


def test_bomb_is_refused(signed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive that unpacks to more than the bound is refused."""
    place = archives(signed, tmp_path / "in", "good")
    monkeypatch.setattr(unpack, "MOST", 10_000)
    assert make(signed, place, tmp_path / "site") == 1
    (why,) = json.loads((tmp_path / "site/registry.json").read_text())["not_listed"].values()
    assert "not an archive that can be read" in why


def test_nothing_to_list(signed: Path, tmp_path: Path) -> None:
    """A folder without archives, or none at all, is an error for a person."""
    for place, words in ((tmp_path, "no archive is there"), (tmp_path / "none", "no such folder")):
        with pytest.raises(ConfigError, match=words):
            make(signed, place, tmp_path / "site")


def test_badge_says_the_verdict(signed: Path) -> None:
    """A badge is a small SVG with the verdict in words, and SIMULATED."""
    for worst, word in (("pass", "certified"), ("fail", "failed"), ("error", "void")):
        text = site.badge(made.document(worst=worst))
        said = "".join(ET.fromstring(text).itertext())
        assert word in said and "SIMULATED" in said
    assert "SIMULATED" not in site.badge(made.document(simulated=False))


def test_archive_verifies_as_its_folder(
    signed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`verify`, `recompute` and `show` take an archive; a capture in part is named, and is no damage."""
    monkeypatch.setattr(archive, "WINDOW", 100 << 10)
    run, packed = tmp_path / "run", tmp_path / "run.tar.gz"
    shutil.copytree(signed / "good", run)
    (run / manifest.SIGNATURE).unlink()
    (run / "wire.pcapng").write_bytes(head() + b"".join(map(packet, range(400))))
    files.write(run)  # the page names each file of the run
    manifest.write(run)
    assert said("sign", run, "--key", signed / "key") == 0
    archive.pack(run, packed)
    capsys.readouterr()
    assert said("verify", packed, "--allowed-signers", signed / "allowed") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"intact: {packed}: ") and lines[1].endswith(": wire.pcapng")
    assert lines[2].startswith(f"signed by {WHO}") and lines[3].startswith("it says: certified")
    assert call("recompute", packed) == 0
    assert capsys.readouterr().out.startswith(f"identical: {packed}/report.json follows")
    assert call("show", packed) == 0 and "verdict: CERTIFIED" in capsys.readouterr().out


@pytest.mark.parametrize("change", [edited, shortened, added])
def test_changed_archive_is_not_intact(
    signed: Path, tmp_path: Path, change: Callable[[dict[str, bytes]], None]
) -> None:
    """`verify` of an archive finds what was changed in it."""
    odd = tmp_path / "odd.tar.gz"
    remade(archives(signed, tmp_path / "in", "bad") / "bad.tar.gz", odd, change)
    assert said("verify", odd, "--allowed-signers", signed / "allowed") == 1


@pytest.mark.parametrize("data", [b"", b"x" * 500, gzip.compress(b"x" * 500)], ids=["empty", "noise", "gzip"])
def test_file_that_is_no_archive_is_named(
    tmp_path: Path, data: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that only has the name of an archive is exit 2, and so is one that is not there."""
    odd = tmp_path / "odd.tar.gz"
    assert said("verify", odd) == 2 and "no such archive" in capsys.readouterr().out
    odd.write_bytes(data)
    assert said("verify", odd) == 2 and "not an archive that can be read" in capsys.readouterr().out


def test_index_of_an_archive_is_hostile(signed: Path, tmp_path: Path) -> None:
    """An index that is damaged excuses nothing."""

    def change(files: dict[str, bytes]) -> None:
        shortened(files)
        files[next(name for name in files if name.endswith(archive.INDEX))] = b"[" * 100_000

    odd = tmp_path / "odd.tar.gz"
    remade(archives(signed, tmp_path / "in", "good") / "good.tar.gz", odd, change)
    assert said("verify", odd, "--allowed-signers", signed / "allowed") in (1, 2)
