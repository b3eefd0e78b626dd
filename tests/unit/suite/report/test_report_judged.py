"""What was judged by what: the report names profile, tests, commit and kernel, and says what is not ours."""

import dataclasses
import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from offload.card.profile import find, load
from offload.debian import cache, record
from offload.debian.digests import of_folder
from offload.debian.kernels import Kernel
from offload.errors import RigError
from offload.host.local import LocalHost
from offload.suite.bench.lab.rig import versions
from offload.suite.certify import judged as certify_judged
from offload.suite.certify.judged import judged, on_host
from offload.suite.report.compare.diff import compare
from offload.suite.report.document import build
from offload.suite.report.events import Log
from offload.suite.report.forms.junit import junit
from offload.suite.report.forms.ktap import ktap
from offload.suite.report.judged import Shipped, rows
from offload.suite.report.render import card
from offload.suite.report.render.render import html
from offload.suite.report.render.summary import text
from tests.unit.doctor.fake_doctor import FakeHost
from tests.unit.suite.report.report_whole import JUDGED
from tests.unit.suite.report.test_report_verdict import CRITERIA, FACTS, GOOD, run


def reported(shipped: str, **more: Any) -> Log:
    """A good run that was judged by such a profile."""
    log, event = run(GOOD), {**JUDGED, "profile": {**JUDGED["profile"], "shipped": shipped, **more}}
    events = [{"event": "judged", "time": "", **event}, *log.events]
    return Log([event | {"seq": seq} for seq, event in enumerate(events)])


@pytest.mark.parametrize(
    ("shipped", "of", "remark"),
    [
        ("yes", "", ""),
        ("altered", "V The Card", "not the shipped profile of V The Card"),
        ("foreign", "", "not a shipped profile"),
        ("unknown", "", "no evidence that the profile is a shipped one"),
        ("certainly", "", "no evidence that the profile is a shipped one"),
    ],
)
def test_every_form_says_whose_profile_judged(shipped: str, of: str, remark: str) -> None:
    """Headline, first page, summary, JUnit, KTAP and picture name a profile that is not shipped."""
    document = build(reported(shipped, of=of), CRITERIA, FACTS)
    page = html(document).partition('id="promises"')[0]
    forms = [document["headline"], page, text(document), junit(document).decode(), ktap(document)]
    forms.append(card.svg(document))
    if remark:
        assert document["verdict"] == "certified" and all(remark in form for form in forms)
    else:
        assert (
            "shipped profile" not in "".join(forms)
            and document["headline"] == "A Card keeps all 3 required and all 1 optional promises"
        )
    assert document["judged"]["tests"] == {"tests/hw": "2" * 64, "tests/lib": "3" * 64}
    assert "2" * 64 in html(document) and "2" * 64 in text(document)


def test_a_comparison_names_other_judges() -> None:
    """`report diff` names another profile that judged, and says nothing of the same one."""
    old, new = (build(reported("yes", sha256=digit * 64), CRITERIA, FACTS) for digit in "ab")
    found = [line for line in compare(old, new)["differs"] if line.startswith("judged")]
    assert found == ["judged by a different profile: aaaaaaaaaaaaaaaa then, bbbbbbbbbbbbbbbb now"]
    assert not compare(old, old)["differs"]


def test_a_profile_that_promises_nothing_certifies_nothing() -> None:
    """A run in which all went well is incomplete if the profile has no promised cell."""
    nothing = dataclasses.replace(FACTS, promised=frozenset())
    tests = [test for test in GOOD if test["promise"] != "payload.tx"]
    assert build(run(tests), CRITERIA, FACTS)["verdict"] == "incomplete"  # what follows is about the profile
    found = build(run([*tests, GOOD[0] | {"promise": None, "id": "x", "evidence": {}}]), CRITERIA, nothing)
    assert found["verdict"] == "incomplete" and "promises nothing" in found["headline"]


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A committed checkout with tests and one profile."""
    for name in ("nic-profiles", "tests/hw/deep", "tests/lib"):
        (tmp_path / name).mkdir(parents=True)
    shutil.copy(find("nicsim").path, tmp_path / "nic-profiles/nicsim.yaml")
    (tmp_path / "tests/hw/deep/b.py").write_text("b")
    (tmp_path / "tests/hw/a.py").write_text("a")
    monkeypatch.setattr(certify_judged, "folder", lambda: tmp_path / "nic-profiles")
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    return tmp_path


def test_a_profile_is_shipped_as_the_commit_has_it(shipped: Path) -> None:
    """A profile changed in place is altered, another is foreign; nobody knows without git."""
    path = shipped / "nic-profiles/nicsim.yaml"
    first = judged(load(path), shipped)
    assert (
        first["profile"]["shipped"] is Shipped.YES.value and not first["dirty"] and len(first["commit"]) == 40
    )
    path.write_text(path.read_text() + "# changed\n")
    again = judged(load(path), shipped)
    assert again["dirty"] and again["profile"]["shipped"] == "altered"
    assert again["profile"]["of"] == find("nicsim").title()
    assert again["profile"]["sha256"] != first["profile"]["sha256"]
    mine = shipped / "mine.yaml"
    mine.write_text(path.read_text().replace("id: nicsim\n", "id: mine\n"))
    assert judged(load(mine), shipped)["profile"]["shipped"] == "foreign"
    shutil.rmtree(shipped / ".git")
    without = judged(load(path), shipped)
    assert (without["profile"]["shipped"], without["commit"], without["dirty"]) == ("unknown", "", False)


def test_a_row_of_an_earlier_run_changes_no_code(shipped: Path) -> None:
    """One run after another is recorded: what judges is as the commit has it. Code beside the rows counts."""
    (shipped / "benchmarks/results").mkdir(parents=True)
    (shipped / "benchmarks/results/cards.md").write_text("| a row |\n")
    path = shipped / "nic-profiles/nicsim.yaml"
    assert not judged(load(path), shipped)["dirty"]
    (shipped / "benchmarks/results.py").write_text("")
    assert judged(load(path), shipped)["dirty"]


def test_tests_are_known_by_their_digest(shipped: Path) -> None:
    """The digest of a folder of tests is what sha256sum makes of it, and a byte changes it."""
    folder = shipped / "tests/hw"
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/a.pyc").write_text("cache")
    line = "find . -type f ! -path '*/__pycache__/*' | LC_ALL=C sort | xargs -d '\\n' sha256sum | sha256sum"
    done = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True, check=True)
    before = judged(load(shipped / "nic-profiles/nicsim.yaml"), shipped)["tests"]
    assert before["tests/hw"] == done.stdout.split()[0] == of_folder(folder) and "tests/lib" in before
    (folder / "deep/b.py").write_text("c")
    assert of_folder(folder) != before["tests/hw"]


def test_a_host_says_what_lies_on_its_disk() -> None:
    """A real host is asked for the digests of what it booted; what is not there is empty."""
    found = on_host(LocalHost(None), "no_such_driver")
    disk, running = ("image", "modules", "driver"), ("running", "running_driver", "version")
    assert set(found) == {"kernel", "checked", *disk, *running}
    assert (found["driver"], found["running_driver"]) == ("", "")
    assert all(len(found[name]) in (0, 64) for name in ("image", "modules"))


def test_a_running_kernel_is_asked_what_it_is() -> None:
    """What runs is known by its build id, which the kernel itself says, not by a file."""
    found, notes = on_host(LocalHost(None), "no_such_driver"), Path("/sys/kernel/notes").read_bytes()
    assert found["version"] == hashlib.sha256(Path("/proc/version").read_bytes()).hexdigest()
    head = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0"
    assert found["running"] == notes.partition(head)[2][:20].hex() and len(found["running"]) == 40


def test_a_report_of_a_real_host_says_what_is_not_known() -> None:
    """A real host's kernel is named: what runs, what lies on disk, what is not known."""
    about = on_host(LocalHost(None), "no_such_driver")
    events = [{"event": "judged", "time": "", **JUDGED}, {"event": "booted", "time": "", **about}]
    log = Log([event | {"seq": seq} for seq, event in enumerate([*events, *run(GOOD).events])])
    reported = dict(rows(build(log, CRITERIA, FACTS)))
    assert reported["running kernel (build id)"] == about["running"]
    assert reported["kernel driver"] == reported["running driver (build id)"] == "not known"
    assert "may differ from the running ones" in reported["kernel"]


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """A kernel in a cache of an earlier version, which kept no record."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place = cache.cache_root() / "kernels/6.1.0-1-amd64"
    modules = place / "root/lib/modules/6.1.0-1-amd64"
    modules.mkdir(parents=True)
    (modules / "tls.ko").write_bytes(b"tls")
    (place / "vmlinux").write_bytes(bytes(1 << 20))
    cache.write_json(place / "kernel.json", {"series": "6.1", "release": "6.1.0-1-amd64"})
    return Kernel(
        "6.1", "6.1.0-1-amd64", "6.1.1-1", place / "vmlinux", modules, place / "build", place / "config"
    )


@pytest.mark.parametrize("changed", ["vmlinux", "modules"])
def test_a_kernel_that_changed_in_the_cache_is_not_booted(kernel: Kernel, changed: str) -> None:
    """200 KB of other bytes in the cached kernel end the run before it boots."""
    assert record.check(kernel).checked is record.Checked.FIRST
    assert record.check(kernel) == record.check(kernel)
    path = kernel.vmlinux if changed == "vmlinux" else kernel.modules / "tls.ko"
    with path.open("r+b") as file:
        file.write(b"\x90" * 200_000)
    with pytest.raises(RigError, match=f"changed since the download: its {changed} changed"):
        record.check(kernel)


def test_a_kernel_is_recorded_when_it_is_fetched(kernel: Kernel) -> None:
    """A kernel with the record of its download is one that is as it was fetched."""
    place = kernel.vmlinux.parent
    known = cache.read_json(place / "kernel.json") or {}
    cache.write_json(place / "kernel.json", known | record.measured(kernel.vmlinux, kernel.modules))
    assert record.check(kernel).checked is record.Checked.FETCHED


@pytest.mark.parametrize(
    ("said", "shown"), [({"serial_number": "MT2131X01234"}, "MT2131X01234"), ({}, "not known")]
)
def test_a_real_card_is_known_by_its_serial_number(said: dict[str, str], shown: str) -> None:
    """The rig of real hosts names the card's serial number where its driver tells it."""
    host, address = FakeHost(), "pci/0000:04:00.0"
    host.answers["devlink", "-j", "dev"] = (
        0,
        json.dumps({"info": {address: {"driver": "mlx5_core"} | said}}),
        "",
    )
    assert versions(host, host, "eth0")["serial"] == shown  # type: ignore[arg-type]
