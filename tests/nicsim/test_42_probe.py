"""`probe` on a card as if nobody had described it: its draft is a profile, and leads to a certificate run."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from offload.card.nic import features
from offload.card.profile import FEATURES, Profile, load
from offload.cmd import run
from offload.suite.bench.cards import knobs
from tests.lib.rig.rig import Labs

PROJECT = Path(__file__).parents[2]
FOLDER = "/run/ktls-offload-test-probe"
FILE = "unknown-card.yaml"
ONLY = "test_sends_under_known_keys and aes_gcm_128"
LEAK, GOOD = "0/tx_leak=1", "0/tx_leak=0"


@dataclass
class Drafted:
    """A draft that `probe --try` made in the lab, as a file here; `known`: what the card plays."""

    file: Path
    lab: str
    draft: Profile
    known: Profile

    def certify(self, out: Path) -> tuple[int, str, dict[str, int], str]:
        """A certificate run of one test by the draft: exit code, the verdict's word, outcomes, headline."""
        words = ["--attach", self.lab, "--nic", str(self.file), "--only", ONLY, "--out", str(out)]
        rc, said, err, _ = run([sys.executable, "-m", "offload", "certify", *words], timeout=900)
        assert (out / "report.json").is_file(), (said + err).decode("utf-8", "replace")
        report = json.loads((out / "report.json").read_text())
        return rc, report["verdict"], report["counts"], report["headline"]


@pytest.fixture(scope="module")
def drafted(labs: Labs, tmp_path_factory: pytest.TempPathFactory) -> Drafted:
    """The draft, made with both directions on; they are as before after."""
    rig = labs.get("nicsim")
    dut = rig.bench.dut
    with ExitStack() as undo:
        undo.callback(dut.host.run, ["rm", "-rf", FOLDER])
        dut.host.run(["mkdir", "-p", FOLDER])
        for name, found in features(dut.host, dut.dev).items():
            if name in FEATURES.values() and not found.active and not found.fixed:
                undo.callback(dut.host.run, ["ethtool", "-K", dut.dev, name, "off"])
                dut.host.run(["ethtool", "-K", dut.dev, name, "on"])
        argv = ["probe", dut.dev, "--try", "--out", f"{FOLDER}/{FILE}"]
        dut.host.run(["env", f"PYTHONPATH={PROJECT}", sys.executable, "-m", "offload", *argv], timeout=900)
        file = tmp_path_factory.mktemp("probe") / FILE
        file.write_bytes(dut.host.read(f"{FOLDER}/{FILE}"))
    return Drafted(file, rig.lab.name, load(file), rig.profile)


def test_the_draft_promises_what_the_card_does(drafted: Drafted) -> None:
    """Without this a draft could parse and say nothing, or more than the card keeps."""
    draft, known = drafted.draft, drafted.known
    assert draft.id == "unknown-card" and draft.driver == "nicsim"
    assert draft.promises == known.promises
    for direction in draft.directions():
        missing = set(known.counters.required(direction)) - set(draft.counters.required(direction))
        assert not missing, f"the card shows {missing}, and a verdict rests on them"
    assert "GUESS" in drafted.file.read_text(), "what nobody has seen has to be marked"


@pytest.mark.turns("verdict")
def test_the_draft_leads_to_a_verdict(drafted: Drafted, tmp_path: Path) -> None:
    """Without this a person with an unknown card would have a form, and no way to a certificate."""
    rc, word, counts, why = drafted.certify(tmp_path / "good")
    assert (rc, word) == (21, "incomplete"), why  # a part of the tests never certifies
    assert counts["pass"] == 1 and not counts["fail"] and not counts["error"], counts


@pytest.mark.turns("verdict")
def test_a_bad_card_fails_by_its_draft(drafted: Drafted, labs: Labs, tmp_path: Path) -> None:
    """Without this the run by a draft could be one that nothing fails."""
    root = labs.get("nicsim").lab.root
    knobs.turn(root, LEAK)
    try:
        rc, word, counts, why = drafted.certify(tmp_path / "bad")
    finally:
        knobs.turn(root, GOOD)
    assert (rc, word) == (20, "failed") and counts["fail"] == 1, why
