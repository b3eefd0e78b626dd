"""The man page: made from the parser, of this version, without a complaint from those who print it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from offload import __version__
from offload.cli import whole
from offload.cli_man import page, prose

PAGE = Path(__file__).parents[2] / "docs" / "ktls-offload.1"


def test_the_page_is_up_to_date() -> None:
    """Without a NIC the page in docs/ says what the parser says."""
    made = page(whole())
    assert PAGE.read_text() == made, "python -m offload.cli_man docs/ktls-offload.1"
    assert f"ktls\\-offload {__version__}" in made


PRINTERS = (
    ["groff", "-ww", "-man", "-z", "-Tutf8"],
    ["mandoc", "-T", "lint", "-W", "warning"],
    ["man", "--warnings", "-l"],
)


@pytest.mark.parametrize("argv", PRINTERS, ids=lambda a: a[0])
def test_those_who_print_it_do_not_complain(argv: list[str]) -> None:
    """Without a NIC groff, mandoc and man print the page without a warning."""
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not installed")
    done = subprocess.run(
        [*argv, str(PAGE)],
        capture_output=True,
        text=True,
        env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
    )
    complaint = done.stderr + (done.stdout if argv[0] == "mandoc" else "")
    assert done.returncode == 0 and complaint == "", complaint


def test_it_names_every_verb_and_option() -> None:
    """Without a NIC each verb has its section and each option its line."""
    text = PAGE.read_text().replace("\\-", "-")
    for command in whole().walk():
        if not command.path:
            continue
        section = re.search(rf'^\.SS "{re.escape(command.words)}"\n(.*?)(?=^\.S[SH] )', text, re.M | re.S)
        assert section, command.words
        for option in command.options:
            assert "--help" in option.names or all(name in section.group(1) for name in option.names)


def test_the_words_are_data() -> None:
    """Without a NIC no help text can become a request of the page's language."""
    made = list(prose(".so /etc/passwd\n'sh\nback\\slash and `--dry-run`\n\n  .kept '~^`\n"))
    assert made == [
        "\\&.so /etc/passwd", "\\&'sh", "back\\eslash and \\fB\\-\\-dry\\-run\\fR", ".PP", ".nf",
        "  .kept \\(aq\\(ti\\(ha\\(ga", ".fi",
    ]  # fmt: skip
