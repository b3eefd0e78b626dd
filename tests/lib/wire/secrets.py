"""Where are session keys? Looks for them in files here, and in files and process tables of a lab's guest."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from pathlib import Path

from offload.host.base import Host

# Runs in the guest: needles come by standard input, so that no process shows them.
SCRIPT = r"""
import json, os, sys
needles = [bytes.fromhex(text) for text in json.load(sys.stdin)]
pids = [name for name in os.listdir("/proc") if name.isdigit()]
paths = [f"/proc/{pid}/{name}" for pid in pids for name in ("cmdline", "environ")]
for top in ("/run", "/tmp", "/dev/shm"):  # what the guest can write to and has of its own
    for folder, _, names in os.walk(top):
        paths += [os.path.join(folder, name) for name in names]
for path in paths:
    try:
        with open(path, "rb") as file:
            data = file.read() if os.path.isfile(path) else b""
    except OSError:
        continue
    if any(needle in data for needle in needles):
        print(path)
"""


LINE = re.compile(rb"^[A-Z0-9_]+ [0-9a-f]{64} (?:[0-9a-f]{2})+\n", re.MULTILINE)


def whole(keylog: bytes) -> set[bytes]:
    """The whole lines of a key log, which OpenSSL may be writing, or shred overwriting, at this moment."""
    return set(LINE.findall(keylog))


def forms(keylog: bytes) -> list[bytes]:
    """Return every way in which the secrets of key log lines could have been written down."""
    lines = [line.split() for line in keylog.splitlines() if not line.startswith(b"#")]
    texts = {words[2].lower() for words in lines if len(words) == 3}
    found = set(texts) | {text.upper() for text in texts}
    for raw in (bytes.fromhex(text.decode()) for text in texts):
        found |= {raw, repr(raw)[2:-1].encode(), base64.b64encode(raw), repr(list(raw)).encode()}
    return sorted(found)


def in_files(needles: Iterable[bytes], *tops: Path) -> list[Path]:
    """Return the files below these folders (or the files) that hold one."""
    paths = [path for top in tops for path in (top.rglob("*") if top.is_dir() else [top]) if path.is_file()]
    wanted = list(needles)
    return [path for path in paths if any(needle in path.read_bytes() for needle in wanted)]


def in_guest(needles: Iterable[bytes], host: Host) -> list[str]:
    """Return the files of the guest, and of its /proc the arguments and environments, that hold one."""
    ask = json.dumps([needle.hex() for needle in needles]).encode()
    return host.run(["/usr/bin/python3", "-I", "-S", "-c", SCRIPT], input=ask).text.split()
