"""wrk on the peer: asks nginx for one file over and over; how it is called and what it found."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from offload.errors import RigError
from offload.host.base import Completed, Host

PROGRAM = "wrk"
MARK = "ktls-offload "
# wrk's own text rounds; its summary (README.md of wrk, SCRIPTING) has whole numbers. duration: microseconds
SCRIPT = """\
done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format('%s{"bytes":%.0f,"requests":%.0f,"usec":%.0f,"errors":[%.0f,%.0f,%.0f,%.0f,%.0f]}\\n',
    "ktls-offload ", summary.bytes, summary.requests, summary.duration,
    e.connect, e.read, e.write, e.status, e.timeout))
end
"""
ERRORS = ("connect", "read", "write", "status", "timeout")


@dataclass(frozen=True)
class Result:
    """What came: bytes with HTTP's own headers, whole answers, seconds."""

    bytes: int
    requests: int
    seconds: float


def missing(host: Host) -> str:
    """Return what this host lacks, or ''."""
    return "wrk is not installed" if host.run(["which", PROGRAM], check=False).rc else ""


def version(host: Host) -> str:
    """The version, or none; it answers --version with an exit code of 1."""
    found = re.search(r"wrk (\S+)", host.run([PROGRAM, "--version"], check=False).text)
    return found[1] if found else "none"


def argv(script: str, url: str, connections: int, seconds: float, threads: int, *, close: bool) -> list[str]:
    """The command. `script`: where SCRIPT lies; `close`: a new connection for each request."""
    threads = max(1, min(threads, connections))
    words = [PROGRAM, "-s", script, "-t", str(threads), "-c", str(connections), "--timeout", "30s"]
    words += ["-d", f"{max(1, round(seconds))}s", *(["-H", "Connection: close"] if close else [])]
    return [*words, url]


def parse(done: Completed) -> Result:
    """The answer. RigError with wrk's own words if it failed, or if requests did, not if there were none."""
    line = next((row for row in done.text.splitlines() if row.startswith(MARK)), "")
    try:
        said = json.loads(line.removeprefix(MARK))
        errors = dict(zip(ERRORS, map(int, said["errors"]), strict=True))
        found = Result(int(said["bytes"]), int(said["requests"]), int(said["usec"]) / 1e6)
    except (ValueError, TypeError, KeyError):
        said = (done.stderr + done.stdout).decode("utf-8", "replace").strip()[-300:]
        raise RigError(f"wrk, exit {done.rc} ({done.where}): {said or 'it said nothing'}") from None
    failed = {name: number for name, number in errors.items() if number}
    if failed or found.requests < 0:
        raise RigError(f"wrk: {found.requests} answers, errors: {failed} ({done.where})")
    return found
