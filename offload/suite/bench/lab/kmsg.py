"""What runs on a host and follows its kernel log; each line of standard input is answered with END.

Standard library only. A record is `priority,number,microseconds,flags;text` and then lines of its own that
begin with a space (Documentation/ABI/testing/dev-kmsg). Read as it comes: a full log loses its oldest lines.
"""

from __future__ import annotations

import os
import select
import sys

LOST = "WARNING: the kernel log overflowed: messages are lost"
READY, END = "kernel log: followed", "kernel log: that is all"
RECORD = 8192  # bytes: CONSOLE_EXT_LOG_MAX, kernel/printk/


def shown(record: str) -> list[str]:
    """A record as dmesg shows it; a message of several lines has its line ends escaped."""
    head, _, rest = record.partition(";")
    at = int(head.split(",")[2])
    text = rest.split("\n", 1)[0].replace("\\x0a", "\n")
    return [f"[{at // 1_000_000:5}.{at % 1_000_000:06}] {line}" for line in text.split("\n")]


def pass_on(log: int) -> None:
    """Print what the kernel has said since the last time."""
    while True:
        try:
            record = os.read(log, RECORD).decode("utf-8", "replace")
        except BlockingIOError:
            return
        except BrokenPipeError:
            record = f"4,0,0,-;{LOST}"
        sys.stdout.write("".join(f"{line}\n" for line in shown(record)))


def main() -> None:
    """Begin after the messages that are there, until standard input ends."""
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    os.lseek(log, 0, os.SEEK_END)
    sys.stdout.write(f"{READY}\n")
    sys.stdout.flush()
    poll = select.poll()
    for fd in (0, log):
        poll.register(fd, select.POLLIN)
    while True:
        asked = os.read(0, 4096) if 0 in dict(poll.poll()) else b"-"
        pass_on(log)
        sys.stdout.write(f"{END}\n" * asked.count(b"\n"))
        sys.stdout.flush()
        if not asked:
            return


if __name__ == "__main__":
    main()
