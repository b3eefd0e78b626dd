"""Key logs: which lines are keys, which are ignored, which are bad; none is shown."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from offload.errors import ConfigError
from offload.suite.wire import keylog

RANDOM, MASTER = "0a" * 32, "Bb" * 48
GOOD = f"CLIENT_RANDOM {RANDOM} {MASTER}"


@pytest.mark.parametrize(
    ("line", "keys", "bad"),
    [
        (GOOD, 1, 0),
        (GOOD + "\r", 1, 0),
        (f"  CLIENT_RANDOM\t{RANDOM}  {MASTER} ", 1, 0),
        (f"CLIENT_TRAFFIC_SECRET_0 {RANDOM} {'00' * 32}", 1, 0),
        (f"SERVER_TRAFFIC_SECRET_0 {RANDOM} {'00' * 48}", 1, 0),
        (f"CLIENT_EARLY_TRAFFIC_SECRET {RANDOM} {'00' * 32}", 1, 0),
        ("", 0, 0),
        ("# comment", 0, 0),
        ("#", 0, 0),
        (f"EXPORTER_SECRET {RANDOM} 00", 0, 0),
        ("RSA 00 00", 0, 0),
        ("EXPORTER_SECRET", 0, 1),
        ("hello world", 0, 1),
        ("CLIENT_RANDOM", 0, 1),
        (f"CLIENT_RANDOM {RANDOM}", 0, 1),
        (GOOD + " 00", 0, 1),
        (f"CLIENT_RANDOM {RANDOM} {'00' * 32}", 0, 1),
        (f"CLIENT_RANDOM {RANDOM[2:]} {MASTER}", 0, 1),
        (f"CLIENT_RANDOM {RANDOM} {'0g' * 48}", 0, 1),
        (f"CLIENT_TRAFFIC_SECRET_0 {RANDOM} {'00' * 64}", 0, 1),
        (f"CLIENT_RANDOM {RANDOM} +{MASTER[1:]}", 0, 1),
        ("\0\xff", 0, 1),
    ],
)
def test_a_line(line: str, keys: int, bad: int) -> None:
    """Each line is a key, nothing, or bad."""
    found = keylog.parse(line.encode("latin-1"))
    assert (found.keys, found.bad, len(found.secrets)) == (keys, bad, keys)


def test_the_first_secret_of_a_label_and_random_counts() -> None:
    """A second line for the same random counts as valid and changes nothing."""
    found = keylog.parse(f"{GOOD}\nCLIENT_RANDOM {RANDOM} {'00' * 48}\n".encode())
    assert found.keys == 2 and found.get("CLIENT_RANDOM", b"\x0a" * 32) == b"\xbb" * 48
    assert found.get("CLIENT_RANDOM", b"\x0b" * 32) is None


def test_no_line_is_shown(tmp_path: Path) -> None:
    """Neither a message nor a repr of the key log has a secret in it."""
    found = keylog.parse(GOOD.encode())
    assert MASTER.lower() not in repr(found).lower() and "bbbb" not in repr(found)
    (tmp_path / "k").write_text(GOOD + "0\n")
    with pytest.raises(ConfigError, match="no valid key line") as caught:
        keylog.load(tmp_path / "k")
    assert "bb" not in str(caught.value).lower().replace(str(tmp_path).lower(), "")


def test_a_descriptor_is_read() -> None:
    """A key log may come through a pipe that was handed down."""
    out, into = os.pipe()
    writer = threading.Thread(target=lambda: (os.write(into, GOOD.encode()), os.close(into)))
    writer.start()
    found = keylog.load(Path(f"/dev/fd/{out}"))
    writer.join()
    os.close(out)
    assert found.keys == 1


def test_a_file_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    """A missing file, a folder, a pipe by name and 64 MiB are refused."""
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as file:
        file.truncate((64 << 20) + 1)
    for name, word in (
        ("gone", "No such"),
        (".", "not a regular"),
        ("pipe", "not a regular"),
        ("large", "64 MiB"),
    ):
        with pytest.raises(ConfigError, match=word):
            keylog.load(tmp_path / name)
