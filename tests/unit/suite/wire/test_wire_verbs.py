"""`ktls-offload wire`: exit codes, what is printed where, and what the native core is told and believed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest

from offload.cli.main import main
from offload.errors import ConfigError, RigError
from offload.suite.wire import live, native
from offload.suite.wire.ask import Ask
from offload.suite.wire.document import misfit
from offload.suite.wire.verify import verify, why_python
from tests.lib.wire.wiredocs import different, equal, inconclusive

ROOT = Path(__file__).parents[4]
SECRET = b"CLIENT_RANDOM " + b"5a" * 32 + b" " + b"77" * 48 + b"\n"
CAN = os.geteuid() == 0 and Path(live.PROGRAM).exists()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a capture, keys and a payload, and a core that is not built."""
    (tmp_path / "run.pcap").write_bytes(b"capture")
    (tmp_path / "keys").write_bytes(SECRET)
    (tmp_path / "keys").chmod(0o600)
    (tmp_path / "sent").write_bytes(b"payload")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(native, "PROGRAM", str(tmp_path / "ktls-wire"))
    return tmp_path


def core(folder: Path, *lines: str) -> None:
    """Build a core: a shell script."""
    (folder / "ktls-wire").write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    (folder / "ktls-wire").chmod(0o755)


def answering(folder: Path, document: Any, rc: int = 0) -> None:
    """Build a core that gives this answer and keeps what it was called with."""
    (folder / "answer").write_text(document if isinstance(document, str) else json.dumps(document))
    core(folder, 'echo "$@" > called', "cat answer", f"exit {rc}")


@pytest.mark.parametrize(
    ("document", "rc", "words"),
    [(equal(), 0, "EQUAL"), (different(), 20, "DIFFERENT"), (inconclusive(), 21, "INCONCLUSIVE")],
)
def test_the_outcome_is_the_exit_code(
    folder: Path, capsys: pytest.CaptureFixture[str], document: dict[str, Any], rc: int, words: str
) -> None:
    """Equal is exit 0, different 20, inconclusive 21, in words and as JSON."""
    answering(folder, document)
    asked = ["wire", "verify", "run.pcap", "--keylog", "keys", "--payload", "sent"]
    assert main(asked) == rc
    out, err = capsys.readouterr()
    assert out.splitlines()[-1].startswith(f"verdict: {words}") and err == ""
    assert main([*asked, "--json"]) == rc
    assert json.loads(capsys.readouterr().out) == document


def test_every_part_of_the_question_reaches_the_core(folder: Path) -> None:
    """Each option of the verb becomes one of the core; a name with a dash stays a name."""
    answering(folder, equal())
    (folder / "-run.pcap").write_bytes(b"capture")
    asked = ["wire", "verify", "--keylog", "keys", "--payload", "sent", "--reply", "sent", "--port", "443"]
    assert main([*asked, "--checksums", "--threads", "3", "--", "-run.pcap"]) == 0
    called = (folder / "called").read_text().split()
    assert called[:2] == ["verify", "./-run.pcap"]
    assert called[2:8] == ["--keylog", "keys", "--payload", "sent", "--reply", "sent"]
    assert called[8:] == ["--port", "443", "--checksums", "--threads", "3"]


def test_secrets_go_by_memory(folder: Path) -> None:
    """Keys and payload given as bytes are in no argument, environment or file; then wiped."""
    answering(folder, equal())
    core(
        folder,
        'cat "$4" > keys-seen; cat "$6" > payload-seen; readlink "$4" > where',
        "cat /proc/self/cmdline /proc/self/environ > visible; cat answer",
    )
    assert verify(Ask(folder / "run.pcap", SECRET, b"sent " * 1000))["outcome"] == "equal"
    assert (folder / "keys-seen").read_bytes() == SECRET
    assert (folder / "payload-seen").read_bytes() == b"sent " * 1000
    assert (folder / "where").read_text().startswith("/memfd:")
    assert b"5a5a" not in (folder / "visible").read_bytes()
    with native.memory(SECRET) as fd:
        kept = os.dup(fd)
    assert os.pread(kept, 1000, 0) == bytes(len(SECRET))
    os.close(kept)


def test_bad_input_is_the_cores_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the core refuses is exit 2 with its words and no others."""
    core(folder, "echo 'ktls-wire: run.pcap: not a capture' >&2", "exit 2")
    assert main(["wire", "verify", "run.pcap", "--keylog", "keys"]) == 2
    assert capsys.readouterr().err == "ktls-offload: error: run.pcap: not a capture\n"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["kill -11 $$"], "ended with -11"),
        (["echo broken >&2", "exit 1"], "ended with 1: broken"),
        (["echo nothing"], "is not JSON"),
        (["echo '" + "[" * 100000 + "'"], "is not JSON"),
        (["cat answer", "exit 21"], "outcome: 'equal' with exit 21"),
        (["exec yes"], "longer than 1 MiB"),
    ],
)
def test_a_core_that_breaks_is_the_rigs_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], words: str
) -> None:
    """A core that dies, talks nonsense or talks without end is never a verdict."""
    monkeypatch.setattr(native, "LONGEST", 1 << 20)
    answering(folder, equal())
    core(folder, *lines)
    with pytest.raises(RigError, match=words):
        verify(Ask(folder / "run.pcap", SECRET), "core")


def leaves(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in a document."""
    if isinstance(tree, dict):
        return [path, *(p for k, v in tree.items() for p in leaves(v, (*path, k)))]
    if isinstance(tree, list):
        return [path, *(p for k, v in enumerate(tree) for p in leaves(v, (*path, k)))]
    return [path]


def test_an_answer_of_another_form_is_not_believed(folder: Path) -> None:
    """Every value of another kind, and every missing one, is found with its place."""
    assert [misfit(document) for document in (equal(), different(), inconclusive())] == ["", "", ""]
    paths = [path for path in leaves(different()) if path and path[-1] not in (0, "16384", "3072", "10")]
    assert len(paths) > 70
    for path in paths:
        for wrong in (None, -1, 1.5, True, "\x1b[2J", ["x"]):
            tree = document = different()
            for key in path[:-1]:
                tree = tree[key]
            if wrong is None:
                del tree[path[-1]]
            else:
                tree[path[-1]] = wrong
            assert str(path[-1]) in misfit(document), (path, wrong)
    answering(folder, equal() | {"schema": 2})
    with pytest.raises(RigError, match=r"does not follow docs/reference/wire.md: schema: 2"):
        verify(Ask(folder / "run.pcap", SECRET))


def test_without_core_the_oracle_answers_and_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a core Python verifies, and a person is told; `--engine core` is exit 7."""
    from tests.lib.wiregen.good import good_case

    case = next(case for case in map(good_case, range(99)) if not case.checksums and case.port is None)
    (folder / "run.pcap").write_bytes(case.capture)
    (folder / "keys").write_bytes(case.keylog)
    asked = ["wire", "verify", "run.pcap", "--keylog", "keys"]
    assert main(asked) == 0
    out, err = capsys.readouterr()
    assert "verdict: EQUAL" in out and err == f"{why_python()}\n" and "make build" in err
    assert main([*asked, "--engine", "python", "--json"]) == 0
    out, err = capsys.readouterr()
    assert (misfit(json.loads(out)), json.loads(out)["engine"], err) == ("", "python", "")
    assert main([*asked, "--engine", "core"]) == 7
    assert "the native core is not built" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="no engine 'gpu'"):
        verify(Ask(folder / "run.pcap", SECRET), "gpu")


def test_keys_that_others_can_read_are_worth_a_word(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A keylog with an open mode is named on standard error, and used."""
    answering(folder, equal())
    (folder / "keys").chmod(0o644)
    assert main(["wire", "verify", "run.pcap", "--keylog", "keys"]) == 0
    err = capsys.readouterr().err
    assert err == "warning: keys holds secrets, but others can read it (mode 644): chmod 600 keys\n"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["verify"],
        ["verify", "run.pcap"],
        ["verify", "run.pcap", "--keylog", "keys", "--port", "0"],
        ["verify", "run.pcap", "--keylog", "keys", "--port", "65536"],
        ["verify", "run.pcap", "--keylog", "keys", "--threads", "-1"],
        ["verify", "run.pcap", "--keylog", "keys", "--engine", "rust"],
        ["compare", "run.pcap"],
        ["compare", "run.pcap", "nothing"],
        ["capture", "lo"],
        ["capture", "lo", "-o", "f", "--seconds", "0"],
    ],
)
def test_a_question_without_sense_is_2(
    folder: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A question that makes no sense is exit 2 and a sentence."""
    assert main(["wire", *words]) == 2
    assert capsys.readouterr().err.strip() and not (folder / "f").exists()


def test_compare_of_a_capture_with_itself(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Compare has the same exit codes, words and JSON."""
    from tests.lib.wiregen.good import good_case

    (folder / "a").write_bytes(good_case(7).capture)
    assert main(["wire", "compare", "a", "a", "--json"]) in (0, 21)
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1 and document["first_difference"] is None
    assert main(["wire", "compare", "a", "a", "--port-a", "1"]) == 21
    assert "INCONCLUSIVE" in capsys.readouterr().out.splitlines()[-1]


def test_every_verb_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """Each --help says what it is for, where to capture, and its exit codes."""
    for verb in ("verify", "compare", "capture"):
        assert main(["wire", verb, "--help"]) == 0
        said = capsys.readouterr().out
        assert len(said) > 700 and "\nexit codes: 0" in said
        assert all(len(line) <= 100 for line in said.splitlines())


def heed_interrupts() -> None:
    """Take SIGINT as on a terminal: a job in the background of a script inherits it ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def capturing() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """A function that starts `ktls-offload wire capture WORDS` and returns once it captures."""
    with ExitStack() as undo:

        def start(*words: str) -> subprocess.Popen[str]:
            argv, pipe = [sys.executable, "-m", "offload", "wire", "capture", *words], subprocess.PIPE
            child = subprocess.Popen(
                argv, stdout=pipe, stderr=pipe, text=True, cwd=ROOT, preexec_fn=heed_interrupts
            )
            undo.callback(child.kill)
            assert child.stderr is not None and child.stderr.readline().startswith("capturing lo into ")
            return child

        yield start


@pytest.mark.skipif(not CAN, reason="needs root and build/wiretap")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_capture_ends_by_interrupt_with_everything(
    tmp_path: Path, capturing: Callable[..., subprocess.Popen[str]], how: signal.Signals
) -> None:
    """Ctrl-C ends a capture with exit 0, and what was sent before is in it."""
    import socket

    mark = Random(how).randbytes(32)
    child = capturing("lo", "-o", str(tmp_path / "f"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.sendto(mark, sock.getsockname())
        assert sock.recv(100) == mark  # a busy kernel shows it later
    child.send_signal(how)
    out, err = child.communicate(timeout=120)
    assert (child.returncode, out) == (0, "") and err.endswith("none lost\n")
    assert (tmp_path / "f").read_bytes().count(mark) == 1


@pytest.mark.skipif(not CAN, reason="needs root and build/wiretap")
def test_capture_ends_by_itself(tmp_path: Path, capturing: Callable[..., subprocess.Popen[str]]) -> None:
    """A capture of one second takes one second; an old file or a wrong name is refused."""
    began = time.monotonic()
    child = capturing("lo", "-o", str(tmp_path / "f"), "--seconds", "1")
    assert child.wait(120) == 0 and time.monotonic() - began >= 1
    child.communicate()
    for words, code in ((["lo", "-o", str(tmp_path / "f")], 2), (["no0", "-o", str(tmp_path / "g")], 3)):
        assert main(["wire", "capture", *words]) == code
    assert not (tmp_path / "g").exists()


def played(folder: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> list[str]:
    """A wiretap that is a shell script; the words of a capture with it."""
    (folder / "wiretap").write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    (folder / "wiretap").chmod(0o755)
    monkeypatch.setattr(live, "PROGRAM", str(folder / "wiretap"))
    return ["wire", "capture", "lo", "-o", "f", "--seconds", "1"]


@pytest.mark.parametrize(
    ("lines", "code", "words"),
    [
        (["echo 'wiretap: not permitted' >&2", "exit 4"], 4, "not permitted"),
        (["exit 6"], 7, "ended with 6 without a message"),
        (["echo '{\"ready\":true}'", "echo 'wiretap: full' >&2", "exit 5"], 7, "error: full"),
        (["echo '{\"ready\":true}'", "exit 2"], 3, "ended with 2"),
        (
            ['echo \'{"ready":true}\n{"frames":5,"bytes":9,"dropped":2,"truncated":0}\''],
            7,
            "5 frames, 9 bytes in f; 2 more were lost",
        ),
    ],
)
def test_a_capture_that_breaks_says_how(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    lines: list[str],
    code: int,
    words: str,
) -> None:
    """A capture that cannot begin, breaks or loses frames has the exit code of its cause."""
    assert main(played(folder, monkeypatch, *lines)) == code
    assert words in capsys.readouterr().err
    monkeypatch.setattr(live, "PROGRAM", str(folder / "missing"))
    assert main(["wire", "capture", "lo", "-o", "f"]) == 7
    assert "make build" in capsys.readouterr().err
