"""The reader of the kernel's trace of received records: shares right, and nothing made of half a trace."""

import pytest

from offload.errors import RigError
from offload.host.base import Completed
from tests.lib.wire.records_trace import EVENT, Met, Share, instance, parse, share, shares

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


def test_what_the_card_decrypted_is_added_up() -> None:
    """Records of several connections that came as plaintext are added up, as a whole and in part."""
    text = line(0, 0, 1, size=100) + line(1, 0, 0, size=7) + line(2, 1, 0, size=9)
    other = line(0, 0, 1, sk="00000000deadbeef", size=1000)
    assert share(HEAD + text + other) == Share(1100, 1107) and share(HEAD) == Share(0, 0)
    assert share(text + line(0, 0, 1, size=100)) == Share(100, 107), "a record that was tried again"
    again = line(0, 0, 1, size=100).replace("tcp_seq=77", "tcp_seq=78")
    assert share(text + again) == Share(100, 207), "a socket where another one was"
    lost = share("CPU:0 [LOST 5 EVENTS]\n" + text)
    assert lost == Share(100, None), "what is lost is not counted, and no more is"
    with pytest.raises(RigError, match="another form"):
        share(text.replace("rec_no", "record"))


class Kernel:
    """A host whose tracefs is made up: folders, what they hold, and whether the event is traced."""

    def __init__(self) -> None:
        self.folders: dict[str, dict[str, str]] = {}
        self.fails = ""

    def run(self, argv: list[str], **_: object) -> Completed:
        """Do what the kernel does."""
        return Completed(tuple(argv), 0, self.reported(argv).encode(), b"", 0.0)

    def reported(self, argv: list[str]) -> str:
        """What is read; or nothing, and it is done."""
        if argv[0] == "mkdir":
            self.folders[argv[1]] = {"trace": HEAD, "on": "0"}
        elif argv[0] == "rmdir":
            del self.folders[argv[1]]
        elif argv[0] == "cat":
            return self.folders[argv[1].removesuffix("/trace")]["trace"]
        return ""

    def write(self, path: str, data: bytes) -> None:
        """Empty the trace, or begin and end it."""
        if self.fails and self.fails == data.decode():
            raise RigError("the host is gone")
        here = next(self.folders[folder] for folder in self.folders if path.startswith(folder))
        here["on" if path.endswith(f"/{EVENT}/enable") else "trace"] = data.decode()

    def meets(self, text: str) -> None:
        """Receive records."""
        for here in self.folders.values():
            here["trace"] += text if here["on"] == "1" else ""


def test_a_trace_is_taken_again_and_again_from_nothing_on() -> None:
    """Its folder is made once and is gone at the end; between two takings nothing is traced."""
    host = Kernel()
    with instance(host) as trace:  # type: ignore[arg-type]
        for number, size in enumerate((100, 10)):
            host.meets(line(9, 0, 1, size=7))
            with trace.taken() as taken:
                host.meets(line(number, 0, 1, size=size))
                assert taken.share().whole == size and len(host.folders) == 1
    assert not host.folders


def test_a_trace_ends_when_the_test_does() -> None:
    """A scenario that fails, and a host that no longer answers, leave no folder."""
    host = Kernel()
    with instance(host) as trace:  # type: ignore[arg-type]
        with pytest.raises(AssertionError), trace.taken():
            raise AssertionError
        assert [here["on"] for here in host.folders.values()] == ["0"]
    with pytest.raises(RigError, match="gone"), instance(host) as trace:  # type: ignore[arg-type]
        host.fails = "1"
        with trace.taken():
            raise AssertionError("never begun")
    assert not host.folders
