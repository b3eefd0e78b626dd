"""The reader of the kernel's trace of received records: shares right, and nothing made of half a trace."""

import pytest

from offload.errors import RigError
from tests.lib.wire.records_trace import Met, parse, shares, whole

HEAD = "# tracer: nop\n#\n#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n"


def line(number: int, encrypted: int, decrypted: int, sk: str = "00000000c0ffee00", size: int = 16413) -> str:
    """One event as the kernel prints it (net/tls/trace.h)."""
    said = f"sk={sk} tcp_seq=77 rec_no={number} len={size} encrypted={encrypted} decrypted={decrypted}"
    return f"         python3-411     [000] ...1.    45.678901: tls_device_decrypted: {said}\n"


def test_shares() -> None:
    """Records are told apart that came as plaintext, as ciphertext, and mixed."""
    text = HEAD + line(1, 0, 1) + line(2, 0, 0) + line(3, 1, 0) + line(4, 0, 1, size=31)
    assert parse(text)[1:3] == [Met(2, 16384, "part"), Met(3, 16384, "none")] and parse(text)[3].size == 2
    assert shares(parse(text)) == {"records": 4, "full": 2, "part": 1, "none": 1}
    assert parse(HEAD) == [] and shares([]) == {"records": 0, "full": 0, "part": 0, "none": 0}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("CPU:0 [LOST 5 EVENTS]\n" + line(1, 0, 1), "lost records"),
        (line(1, 0, 1) + line(3, 0, 1), r"every record once: \[1, 3\]"),
        (line(1, 0, 1) + line(1, 0, 1), "every record once"),
        (line(1, 0, 1) + line(2, 0, 1, sk="00000000deadbeef"), "more than one connection"),
        (line(1, 0, 1).replace("rec_no", "record"), "another form"),
    ],
)
def test_what_is_no_whole_trace(text: str, why: str) -> None:
    """A trace with gaps, of two connections or of another form is a broken rig."""
    with pytest.raises(RigError, match=why):
        parse(HEAD + text)


def test_what_the_card_decrypted_as_a_whole_is_added_up() -> None:
    """Records of several connections that came as plaintext are added up, each once."""
    text = line(0, 0, 1, size=100) + line(1, 0, 0, size=7) + line(2, 1, 0, size=9)
    other = line(0, 0, 1, sk="00000000deadbeef", size=1000)
    assert whole(HEAD + text + other) == 1100 and whole(HEAD) == 0
    assert whole(text + line(0, 0, 1, size=100)) == 100, "a record that was tried again"
    assert whole("CPU:0 [LOST 5 EVENTS]\n" + text) == 100, "what is lost is not counted, and no more is"
    with pytest.raises(RigError, match="another form"):
        whole(text.replace("rec_no", "record"))
