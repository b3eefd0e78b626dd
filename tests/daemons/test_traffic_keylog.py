"""The keys of an unmodified stunnel are read, and gone after."""

from __future__ import annotations

import re
import socket
import stat
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from offload.errors import RigError
from offload.host.local import LocalHost
from offload.suite.traffic import certs, keylog, stunnel

BUILT = keylog.LIBRARY.exists() and LocalHost().run(["which", stunnel.PROGRAM], check=False).rc == 0


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory."""
    path = Path("/dev/shm") / f"ktls-offload-unit-{uuid.uuid4().hex[:8]}"
    try:
        yield path
    finally:
        LocalHost().run(["rm", "-rf", str(path)])


@pytest.mark.skipif(not BUILT, reason="needs build/keylog.so and stunnel4")
def test_stunnel_logs_and_nothing_is_left(folder: Path) -> None:
    """A key log holds the secret of a connection while it is up, 0600, and is wiped."""
    host = LocalHost()
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    with ExitStack() as undo:
        at = undo.enter_context(certs.placed(certs.make(["127.0.0.1"]), host, str(folder)))
        log = undo.enter_context(keylog.keylog(host, str(folder)))
        service = stunnel.Service("x", f"127.0.0.1:{port}", "127.0.0.1:9", version="1.2")
        undo.enter_context(stunnel.running(host, [service], at, env=log.env))
        argv = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}"]
        subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        assert re.fullmatch(rb"CLIENT_RANDOM [0-9a-f]{64} [0-9a-f]{96}\n", log.read())
        assert stat.S_IMODE(Path(log.path).stat().st_mode) == 0o600
    assert not Path(log.path).exists()


def test_environment_names_the_place_and_nothing_else(folder: Path) -> None:
    """The environment of the logging program holds two paths, no secret."""
    log = keylog.KeyLog(LocalHost(), f"{folder}/keys")
    assert log.env == {"LD_PRELOAD": str(keylog.LIBRARY), "KTLS_KEYLOG": f"{folder}/keys"}


def test_it_is_wiped_when_the_block_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failing test leaves no keys: overwritten first, then removed."""
    monkeypatch.setattr(keylog, "LIBRARY", Path(__file__))
    with pytest.raises(KeyError), keylog.keylog(LocalHost(), str(folder)) as log:
        Path(log.path).write_bytes(b"secret")
        (folder / "second").hardlink_to(log.path)
        raise KeyError
    assert not Path(log.path).exists()
    assert b"secret" not in (folder / "second").read_bytes()


def test_keys_that_stay_are_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key log that could not be removed is no silent success."""
    monkeypatch.setattr(keylog, "LIBRARY", Path(__file__))
    with pytest.raises(RigError, match="remains on here"), keylog.keylog(LocalHost(), str(folder)) as log:
        Path(log.path).unlink()
        Path(log.path).mkdir()
    with suppress(OSError):
        Path(log.path).rmdir()


def test_without_the_library_it_says_what_to_do(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that was not built is named, with the command that builds it."""
    monkeypatch.setattr(keylog, "LIBRARY", Path("/nowhere/keylog.so"))
    with pytest.raises(RigError, match=r"(?s)keylog\.so is not built.*make build"):
        with keylog.keylog(LocalHost(), str(folder)):
            pass
