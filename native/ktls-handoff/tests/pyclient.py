"""The Python client, called as client.c is: HOST PORT POLICY RESIDENT [STUNNEL [NAME [MS]]]."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from offload.connect.client import Policy, Target, connect
from offload.errors import ConfigError, RigError


def main(host: str, port: str, policy: str, resident: str, *more: str) -> int:
    """Connect, print the line, send standard input and print the line that comes back."""
    stunnel, name, ms = (*more, "", "", "")[:3]
    payload = sys.stdin.buffer.read()
    how = {"via": resident, "stunnel": stunnel, "program": os.environ.get("KTLS_HANDOFF", "/nowhere")}
    timeout = int(ms) / 1000 if ms else None
    try:
        got = connect(Target(host, int(port), name), Policy(policy, timeout=timeout), **how)
    except (ConfigError, RigError) as exc:
        print(f"none: {exc}")
        return 2
    print(json.dumps(got.line), flush=True)
    with got.sock, got.sock.makefile("rb") as answers:
        if got.process and payload:
            got.sock.sendall(payload)
            sys.stdout.buffer.write(answers.readline())
    return got.process.wait() if got.process else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
