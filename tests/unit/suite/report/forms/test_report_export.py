"""`report export`: each form on standard output or in a file, and wrong requests in one sentence."""

import hashlib
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from offload.errors import ConfigError
from offload.suite.report.forms.export import BYTES, FORMS
from tests.unit.suite.report import report_whole as made
from tests.unit.suite.report.test_report_verbs import call

TEXTS = [form for form in FORMS if form not in BYTES]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.folder(tmp_path_factory.mktemp("run"))


def state(folder: Path) -> dict[str, str]:
    """Every file of a folder with its digest."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("form", TEXTS)
def test_form_is_the_same_on_paper_and_in_a_pipe(
    folder: Path, form: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A form is the same in a file and on standard output, and the run stays as it is."""
    before = state(folder)
    assert call("export", folder, "--as", form) == 0
    said = capfdbinary.readouterr().out
    assert call("export", folder, "--as", form, "--out", tmp_path / "out") == 0
    assert (tmp_path / "out").read_bytes() == said and said.endswith(b"\n") and state(folder) == before


def test_forms_are_what_they_are_called(folder: Path, tmp_path: Path) -> None:
    """KTAP, XML and JSON come out as such, and the first two are files that the run left."""
    for form in TEXTS:
        call("export", folder, "--as", form, "--out", tmp_path / form)
    assert (tmp_path / "ktap").read_bytes() == (folder / "report.ktap").read_bytes()
    assert (tmp_path / "junit").read_bytes() == (folder / "junit.xml").read_bytes()
    assert ET.fromstring((tmp_path / "junit").read_bytes()).tag == "testsuites"
    assert json.loads((tmp_path / "checkbox").read_text())["results"]
    assert ET.fromstring((tmp_path / "card").read_bytes()).tag == "{http://www.w3.org/2000/svg}svg"
    assert json.loads((tmp_path / "in-toto").read_text())["_type"] == "https://in-toto.io/Statement/v1"


def test_wrong_requests_are_one_sentence(folder: Path, tmp_path: Path) -> None:
    """An unknown form, a file of the run as output, and a folder without a run are refused."""
    before = state(folder)
    for words, said in (
        ((folder, "--as", "ktpa"), r"no form 'ktpa' \(did you mean ktap\?\)"),
        ((folder, "--as", "ktap", "--out", folder / "report.json"), "is a file of the run"),
        ((tmp_path, "--as", "ktap"), r"report\.json: No such file"),
    ):
        with pytest.raises(ConfigError, match=said):
            call("export", *words)
    assert state(folder) == before


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("text", ['{"schema": 2}', '{"schema": 2, "verdict": 3, "tests": 4}'])
def test_damaged_report_is_refused(tmp_path: Path, form: str, text: str) -> None:
    """A report.json that lacks its parts is refused by name, in every form."""
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(ConfigError, match=r"report\.json is damaged"):
        call("export", tmp_path, "--as", form, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
