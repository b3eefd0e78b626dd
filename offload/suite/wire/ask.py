"""The question to a wire verifier: which capture, which secrets, which payload."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Ask:
    """What both engines are asked; docs/reference/wire.md says what each part means.

    `keylog`: a file, or its content. `payload` and `reply`: what the client and the server sent, a file or
    the bytes. `threads`: of the native core, 0 for as many as there are processors.
    """

    capture: Path
    keylog: Path | bytes = field(repr=False)
    payload: Path | bytes | None = field(default=None, repr=False)
    reply: Path | bytes | None = field(default=None, repr=False)
    port: int | None = None
    checksums: bool = False
    threads: int = 0
