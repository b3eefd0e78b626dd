"""An interactive shell in the lab: this terminal, connected to one in the guest."""

from __future__ import annotations

import binascii
import os
import queue
import select
import shutil
import signal
import sys
import termios
import tty
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offload.vm.lab import Lab


def interact(lab: Lab, place: str) -> int:
    """Run bash on a terminal in the lab until it ends; its exit code. The terminal is put back."""
    client = lab.client
    events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    wake, waker = os.pipe()

    def note(event: dict[str, Any]) -> None:
        events.put(event)
        os.write(waker, b".")

    client.on_event = note
    size = shutil.get_terminal_size()
    env = {"TERM": os.environ.get("TERM", "dumb"), "PS1": f"{lab.name}/{place}# "}
    answer = client.call(
        "terminal", argv=["bash", "--norc", "-i"], ns="" if place == "root" else place, env=env,
        rows=size.lines, columns=size.columns,
    )  # fmt: skip
    job, before = answer["job"], termios.tcgetattr(0)
    old = signal.signal(signal.SIGWINCH, lambda *_: _resized(lab, job))
    try:
        tty.setraw(0)
        while True:
            ready, _, _ = select.select([0, wake], [], [])
            if wake in ready:
                os.read(wake, 4096)
                code = _show(events)
                if code is not None:
                    return code
            if 0 in ready:
                client.call("stdin", job=job, data=binascii.b2a_base64(os.read(0, 4096)).decode())
    finally:
        signal.signal(signal.SIGWINCH, old)
        termios.tcsetattr(0, termios.TCSADRAIN, before)
        os.close(wake)
        client.on_event = lambda event: None
        os.close(waker)


def _show(events: queue.SimpleQueue[dict[str, Any]]) -> int | None:
    """Show what came; the exit code if the shell has ended."""
    while not events.empty():
        event = events.get()
        if event["event"] == "end":
            return int(event["rc"]) if event["rc"] >= 0 else 128 - int(event["rc"])
        if event["event"] == "data":
            sys.stdout.buffer.write(binascii.a2b_base64(event["data"]))
            sys.stdout.buffer.flush()
    return None


def _resized(lab: Lab, job: int) -> None:
    size = shutil.get_terminal_size()
    lab.client.call("resize", job=job, rows=size.lines, columns=size.columns)
