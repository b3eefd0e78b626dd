"""`certify` from end to end with a lab that is only a name: phases, verdicts, exit codes, what is left."""

import argparse
import hashlib
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from offload.debian.digests import of_folder
from offload.errors import ConfigError, RigError
from offload.suite.certify import plan, verbs
from offload.suite.certify import tests as certify_tests
from offload.suite.report import files
from offload.suite.report.trust.verify import compare
from tests.unit.suite.certify.fake_certify import HEAD, FakeLab, add, call, checkout


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm_python: str) -> Iterator[Path]:
    """A checkout whose tests pass, on a lab that is only a name."""
    yield from checkout(tmp_path, monkeypatch, warm_python)


def test_all_promises_kept_is_certified(
    root: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run in which all went well ends with 0, a report, and the time of each phase."""
    monkeypatch.setattr(certify_tests, "sys", sys)
    code, report = call(root)
    assert (code, report["verdict"], report["simulated"]) == (0, "certified", True)
    said = {"driver": "nicsim", "driver version": "1", "firmware": "sim/x"}
    assert report["kernel"] == "6.1.0" and report["rig"] == {"cpus": "2", "qemu": "7.2", **said}
    known = report["judged"]
    assert known["kernel"]["image"] == "a" * 64 and known["kernel"]["checked"] == "as it was fetched"
    assert (
        known["tests"]["tests/hw"] == of_folder(root / "tree/tests/hw")
        and len(known["kernel"]["driver"]) == 64
    )
    names = [phase["name"] for phase in report["phases"]]
    assert names == ["kernel", "simulated NIC", "programs", "boot the lab", "tests"]
    assert all(phase["seconds"] >= 0 for phase in report["phases"])
    left = {path.name for path in (root / "run").iterdir()}
    assert left == {
        "events.jsonl",
        "report.json",
        "report.html",
        "report.ktap",
        "console.log",
        "junit.xml",
        "timing.svg",
        "summary.txt",
        "manifest.json",
    }
    assert not compare(root / "run").problems
    out = capfd.readouterr().out
    assert "verdict: CERTIFIED" in out and str(root / "run/report.html") in out
    first, _, _ = out.partition("[5/6] tests")
    assert "--attach fake --kernel 6.1: all" in first, "what stays unproved is said before the tests"
    peak = report["memory"]["peak"] >> 20
    assert peak > 20 and f"peak memory: {peak} MiB (runner, VMs, tools)" in out
    assert f"Memory at most: {peak} MiB" in (root / "run/report.html").read_text()


@pytest.mark.parametrize(
    ("body", "code", "word"),
    [
        ("assert 0, 'short'", 20, "failed"),
        ("pytest.skip('no tool')", 21, "incomplete"),
        ("raise __import__('offload.errors').errors.RigError('VM down')", 22, "void"),
        ("pytest.xfail('mlx5-rx-toggle-drops-rules: known')", 20, "failed"),  # listed, and not for this test
        ("__import__('os')._exit(3)", 22, "void"),
        ("raise KeyboardInterrupt", 22, "void"),
        ("__import__('resource').setrlimit(1, (9, 9))", 22, "void"),  # RLIMIT_FSIZE: as a disk that is full
    ],
)
def test_exit_code_says_the_verdict(root: Path, body: str, code: int, word: str) -> None:
    add(root, body)
    alone = [] if word == "incomplete" else ["--only", "test_more"]  # which by itself gives incomplete
    found, report = call(root, *alone)
    assert (found, report["verdict"]) == (code, word), report["reasons"]


def test_an_empty_folder_is_no_part_of_a_result(root: Path) -> None:
    """A folder that a killed test left empty does not make a result that is not intact."""
    add(root, f"__import__('os').makedirs({str(root / 'run/captures/deep')!r})")
    call(root, "--only", "test_more")
    assert not compare(root / "run").problems and not (root / "run/captures").exists()


def test_disk_that_is_full_at_the_report(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report that finds no room is one sentence; what was found can be made into one."""
    (root / "run").mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "none", str(root / "run")]).returncode:
        pytest.skip("needs to mount a small disk")
    monkeypatch.setattr(plan, "DISK", 0)
    try:
        with pytest.raises(RigError, match=r"cannot write .*/run/\w+\.\w+: No space left on device"):
            call(root)
        shutil.copy(root / "run/events.jsonl", root / "events.jsonl")
    finally:
        subprocess.run(["umount", str(root / "run")], check=True)
    assert files.write(root)["verdict"] == "certified"


def test_only_some_tests_never_certify(root: Path) -> None:
    """Leaving tests out gives incomplete, even if all that ran passed."""
    code, report = call(root, "--only", "payload")
    assert (code, report["verdict"]) == (21, "incomplete") and report["counts"]["pass"] > 0


def test_rig_that_breaks_before_the_tests(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lab that does not boot is a broken rig, with a void report that says so."""

    def broken(kernel: object, **options: object) -> FakeLab:
        raise RigError("no agent after 60 s", "see console.log")

    monkeypatch.setattr(FakeLab, "start", broken)
    with pytest.raises(RigError, match="no agent"):
        call(root)
    report = json.loads((root / "run/report.json").read_text())
    assert report["verdict"] == "void" and report["reasons"][0] == "stopped: no agent after 60 s"
    assert [phase["name"] for phase in report["phases"]][-1] == "boot the lab"


def test_helper_that_does_not_build(root: Path) -> None:
    """A compiler error is shown with the command that failed."""
    (root / "tree/native/ktls-handoff/Makefile").write_text("all:\n\t@echo no such header >&2; exit 1\n")
    with pytest.raises(RigError, match=r"make -C(.|\n)*no such header"):
        call(root)


def test_interrupt_keeps_evidence_and_stops_the_lab(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the middle of a test ends tests and lab, and the report says void."""
    monkeypatch.setattr(certify_tests, "sys", sys)
    add(root, "import os, signal, time; os.kill(os.getppid(), signal.SIGTERM); time.sleep(60)")

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            call(root)
    finally:
        signal.signal(signal.SIGTERM, before)
    report = json.loads((root / "run/report.json").read_text())
    assert report["verdict"] == "void" and "stopped: interrupted" in report["reasons"]
    assert report["counts"]["pass"] > 10


def test_kept_lab_is_named(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """--keep-lab leaves the lab up and says how to stop it."""
    call(root, "--keep-lab", "--only", "rig.clean-log")
    assert FakeLab.up and "ktls-offload lab down fake" in capfd.readouterr().out
    FakeLab.up = 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--kernel", "6.2"], r"no kernel series '6\.2'"),
        (["--nic", "conectx-6-dx"], "did you mean connectx-6-dx"),
    ],
)
def test_unknown_kernel_or_nic(root: Path, words: list[str], why: str) -> None:
    """A mistyped kernel or profile is answered with the nearest, and nothing is made."""
    with pytest.raises(ConfigError, match=why):
        call(root, *words)
    assert not (root / "run").exists()


def test_folder_of_another_run_is_refused(root: Path) -> None:
    """Results are never written over results."""
    (root / "run").mkdir()
    (root / "run/report.json").write_text("{}")
    with pytest.raises(ConfigError, match="not empty"):
        call(root)


def test_asking_for_help_loads_nothing_heavy() -> None:
    """`certify --help` imports neither the lab nor the renderers."""
    code = """
import argparse, sys, offload.suite.certify.verbs
offload.suite.certify.verbs.add_parser(argparse.ArgumentParser().add_subparsers())
heavy = ("yaml", "jinja2", "offload.suite.bench.vm", "offload.suite.report")
print([name for name in sys.modules if name.startswith(heavy)])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_missing_extra_is_reported_first(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a boot to hear that the report cannot be written."""
    monkeypatch.setattr(verbs, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="certify needs pytest, jinja2, cryptography"):
        call(root)
    assert not FakeLab.up and not (root / "run").exists()


def again(root: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """Replay the run of `call` into another folder: (exit code, its report)."""
    parser = argparse.ArgumentParser()
    verbs.add_parser(parser.add_subparsers())
    argv = ["certify", "--replay", str(root / "run"), "--out", str(root / "again"), *words]
    code = int((args := parser.parse_args(argv)).func(args))
    return code, json.loads((root / "again/report.json").read_text())


def test_failure_is_repeated_and_then_mended(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """--replay runs what failed and nothing else, and says whether it ends as before."""
    add(root, "assert 0, 'lost 3 frames'")
    call(root, "--only", "test_more")
    assert f"repeat what failed (1): ktls-offload certify --replay {root}/run" in capfd.readouterr().out
    code, report = again(root)
    assert (code, report["counts"]["fail"], report["counts"]["pass"]) == (20, 1, 0)
    (row,) = report["replay"]["tests"]
    assert (row["id"].endswith("::test_more"), row["same"], row["words"]) == (True, True, "same outcome")
    assert report["replay"]["differs"] == [] and FakeLab.cpus is None
    out = capfd.readouterr().out
    assert "repeating 1 test of run" in out and "replay of run:\n  fail  -> fail" in out
    shutil.rmtree(root / "again")
    tests = root / "tree/tests/hw/test_it.py"
    tests.write_text(tests.read_text().replace("assert 0, 'lost 3 frames'", "pass"))
    code, report = again(root)
    assert (code, report["verdict"], report["replay"]["tests"][0]["now"]) == (21, "incomplete", "pass")
    shutil.rmtree(root / "again")
    tests.write_text(HEAD)
    with pytest.raises(ConfigError, match="none of the tests to repeat is in tests/hw today"):
        again(root)
    assert not (root / "again").exists()


def test_run_without_a_failure_is_not_repeated(root: Path) -> None:
    """A run in which nothing failed is refused before a lab is booted; a pattern picks."""
    call(root, "--only", "clean")
    with pytest.raises(ConfigError, match="no test of run failed"):
        again(root)
    assert not (root / "again").exists()
    code, report = again(root, "--only", "rig.clean-log")
    assert (code, report["counts"]["pass"]) == (21, 1) and report["replay"]["tests"][0]["same"]


def one_file_card(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A simulated card that is one file; that file."""
    card = root / "tree/native/nicsim/hw_tx.c"
    card.write_text("good\n")
    module = sys.modules["offload.suite.bench.cards.module"]
    monkeypatch.setattr(module, "SOURCE", card.parent, raising=False)
    monkeypatch.setattr(module, "sources", lambda folder: [Path("hw_tx.c")], raising=False)
    monkeypatch.setattr(
        module, "copy_sources", lambda into: shutil.copyfile(card, into / "hw_tx.c"), raising=False
    )
    return card


def test_patch_that_does_not_apply_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose patch is for another source leaves no folder, and can be started again."""
    card = one_file_card(root, monkeypatch)
    patch = root / "bad.patch"
    patch.write_text("--- hw_tx.c\n+++ hw_tx.c\n@@ -1 +1 @@\n-other\n+bad\n")
    there = sorted(root.rglob("*"))
    with pytest.raises(ConfigError, match="does not apply to native/nicsim"):
        call(root, "--nicsim-patch", str(patch))
    assert sorted(root.rglob("*")) == there and card.read_text() == "good\n"


def test_strangers_card_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--nicsim-patch builds a copy of the card, says so, and a replay asks for it again."""
    card = one_file_card(root, monkeypatch)
    module = sys.modules["offload.suite.bench.cards.module"]
    built: list[str] = []

    def build(kernel: object, say: object, source: Path) -> Path:
        built.append((source / "hw_tx.c").read_text())
        return source / "hw_tx.c"

    monkeypatch.setattr(module, "build_nicsim", build)
    patch = root / "bad.patch"
    patch.write_text("--- hw_tx.c\n+++ hw_tx.c\n@@ -1 +1 @@\n-good\n+bad\n")
    add(root, "assert 0")
    code, report = call(root, "--nicsim-patch", str(patch))
    sha256 = hashlib.sha256(patch.read_bytes()).hexdigest()
    assert (code, built, card.read_text()) == (20, ["bad\n"], "good\n")
    assert report["rig"]["nicsim"] == f"patched by SHA-256 {sha256} (bad.patch)"
    assert f"nicsim patched by SHA-256 {sha256}" in (root / "run/summary.txt").read_text()
    assert (root / "run/nicsim.patch").read_bytes() == patch.read_bytes()
    with pytest.raises(ConfigError, match="was a run with nicsim patched by SHA-256(.|\n)*run/nicsim.patch"):
        again(root)
    code, report = again(root, "--nicsim-patch", str(root / "run/nicsim.patch"))
    assert (code, built[1:], report["replay"]["differs"]) == (20, ["bad\n"], [])
