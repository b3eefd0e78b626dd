"""The man page: made from the parser, of this version, without a complaint from those who print it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from offload import __version__
from offload.cli.main import whole
from offload.cli.man import page, prose


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page as `make man` writes it."""
    path = tmp_path_factory.mktemp("man") / "ktls-offload.1"
    subprocess.run([sys.executable, "-m", "offload.cli.man", str(path)], check=True)
    return path


def test_the_page_is_of_this_version_and_the_same_each_time(built: Path) -> None:
    """The page names the version, and nothing in it depends on who makes it, or when."""
    assert f"ktls\\-offload {__version__}" in built.read_text()
    assert built.read_text() == page(whole())


PRINTERS = (
    ["groff", "-ww", "-man", "-z", "-Tutf8"],
    ["mandoc", "-T", "lint", "-W", "warning"],
    ["man", "--warnings", "-l"],
)


@pytest.mark.parametrize("argv", PRINTERS, ids=lambda a: a[0])
def test_those_who_print_it_do_not_complain(argv: list[str], built: Path) -> None:
    """groff, mandoc and man print the page without a warning."""
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not installed")
    done = subprocess.run(
        [*argv, str(built)],
        capture_output=True,
        text=True,
        env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
    )
    complaint = done.stderr + (done.stdout if argv[0] == "mandoc" else "")
    assert done.returncode == 0 and complaint == "", complaint


def test_it_names_every_verb_and_option(built: Path) -> None:
    text = built.read_text().replace("\\-", "-")
    for command in whole().walk():
        if not command.path:
            continue
        section = re.search(rf'^\.SS "{re.escape(command.words)}"\n(.*?)(?=^\.S[SH] )', text, re.M | re.S)
        assert section, command.words
        for option in command.options:
            assert "--help" in option.names or all(name in section.group(1) for name in option.names)


def test_the_words_are_data() -> None:
    """No help text can become a request of the page's language."""
    made = list(prose(".so /etc/passwd\n'sh\nback\\slash and `--dry-run`\n\n  .kept '~^`\n"))
    assert made == [
        "\\&.so /etc/passwd",
        "\\&'sh",
        "back\\eslash and \\fB\\-\\-dry\\-run\\fR",
        ".PP",
        ".nf",
        "  .kept \\(aq\\(ti\\(ha\\(ga",
        ".fi",
    ]
