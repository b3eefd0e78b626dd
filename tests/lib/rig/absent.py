"""A lab's host without one of its programs, for as long as a block runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from offload.host.base import Host

AWAY = ".taken-away"
FOLDERS = "/usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin"


@contextmanager
def taken_away(host: Host, program: str) -> Iterator[None]:
    """No program of that name in any of the usual folders; a lab only, whose file system is its own."""
    move = 'for d in {f}; do [ ! -e "$d/{a}" ] || mv "$d/{a}" "$d/{b}"; done'
    gone, back = program, program + AWAY
    try:
        host.run(["sh", "-c", move.format(f=FOLDERS, a=gone, b=back)])
        assert host.run([program, "--version"], check=False).rc == 127, f"{program} is still there"
        yield
    finally:
        host.run(["sh", "-c", move.format(f=FOLDERS, a=back, b=gone)])
