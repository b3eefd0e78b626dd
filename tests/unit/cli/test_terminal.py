"""Text in the lines of a terminal: nothing is lost, nothing is wider, and commands can be copied."""

from __future__ import annotations

import io

import pytest

from offload.card.cards import as_text
from offload.host import terminal
from offload.host.terminal import fitted

PAGE = """\
title of the page
a paragraph that is too long for a narrow terminal, so
that its lines flow again

  word  what this one word means, in a few more words than fit
  run it --now   # and why one does that, told in many words
  a command that is longer than the terminal is wide
short
"""


def test_what_fits_stays_as_it_is() -> None:
    """No word moves on a wide terminal."""
    assert fitted(PAGE, 70) == PAGE


def test_what_does_not_fit_goes_on_below_its_column() -> None:
    """A paragraph flows, an entry and a comment keep their column, a command stays whole."""
    assert (
        fitted(PAGE, 40)
        == """\
title of the page a paragraph that is
too long for a narrow terminal, so that
its lines flow again

  word  what this one word means, in a
        few more words than fit
  run it --now  # and why one does that,
                # told in many words
  a command that is longer than the terminal is wide
short
"""
    )


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


@pytest.mark.parametrize("width", [70, 80, 100])
def test_cards_fit_a_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line fits, with the same words; a pipe gets whole lines."""
    monkeypatch.setenv("COLUMNS", str(width))
    reported = terminal.shown(as_text(), Terminal())
    assert max(map(len, reported.splitlines())) <= width and reported.split() == as_text().split()
    assert terminal.shown(as_text(), io.StringIO()) == as_text()
