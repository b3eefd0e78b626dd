"""Without kernel TLS a migration proceeds all the same: QEMU takes what `connect` gives it."""

from __future__ import annotations

import shutil
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from offload.connect.client import Policy, connect
from offload.suite.traffic.certs import Certs, make
from tests.daemons.connect_peer import Server, needs_stunnel
from tests.lib.flow.migration import AREA, GUEST, MAGIC, QEMU, STATUS, Guest
from tests.lib.flow.migration_end import End

MORE = ["-S", "-incoming"]
pytestmark = [
    needs_stunnel,
    pytest.mark.skipif(not (GUEST.exists() and shutil.which(QEMU)), reason="QEMU and make build wanted"),
]


class Before(Server):
    """What stands before the receiving QEMU: it takes TLS away, and passes on what was in it."""

    def __init__(self, folder: Path, certs: Certs) -> None:
        super().__init__(folder, certs)
        self.inner = str(folder / "incoming")

    def _echo(self, conn: socket.socket) -> None:
        with suppress(OSError), self._context.wrap_socket(conn, server_side=True) as tls:
            with socket.socket(socket.AF_UNIX) as plain:
                plain.connect(self.inner)
                while data := self._next(tls):
                    plain.sendall(data)

    @staticmethod
    def _next(tls: ssl.SSLSocket) -> bytes:
        with suppress(ssl.SSLEOFError):
            return tls.recv(65536)
        return b""


def ended(end: End) -> None:
    """End its QEMU, and close what it holds."""
    end.quit()
    if hasattr(end, "lines"):
        end.lines.close()
    end.monitor.close()


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[tuple[End, End, Before]]:
    """A guest that runs, a QEMU that waits for it, and what stands before that one."""
    guest, before = Guest(), Before(tmp_path, make(["127.0.0.1"]))
    with ExitStack() as undo:
        undo.callback(before.close)
        found = []
        for name, more in (("near", []), ("far", [*MORE, f"unix:{before.inner}"])):
            folder = tmp_path / name
            folder.mkdir()
            shutil.copy(GUEST, folder / "guest")
            end = End()
            end.monitor.close()
            undo.callback(ended, end)
            end.do_start({"argv": [*guest.argv(str(folder)), *more], "socket": f"{folder}/qmp"})
            found.append(end)
        found[0].do_ready({"at": STATUS, "magic": MAGIC})
        yield found[0], found[1], before


def test_a_migration_proceeds_by_stunnel(ends: tuple[End, End, Before]) -> None:
    """Without ktls-handoff, QEMU takes stunnel's socket: the guest is equal."""
    near, far, before = ends
    warned: list[str] = []
    got = connect(before.target, Policy(ca=str(before.ca)), program="/nowhere", warn=warned.append)
    with got.sock:
        near.qmp("getfd", got.sock, fdname="stream")
    near.qmp("migrate", uri="fd:stream")
    assert near.do_migrated({"timeout": 120})["info"]["status"] == "completed"
    far.do_waits({"timeout": 120})
    size = (Guest().mib << 20) - (1 << 20)
    here, there = (end.do_memory({"from": 1 << 20, "size": size, "area": AREA}) for end in (near, far))
    assert here == there and there["rest"] == Guest().rest() and len(warned) == 1
    near.quit()
    assert got.process and got.process.wait(60) == 0
