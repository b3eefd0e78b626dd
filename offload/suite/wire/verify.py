"""The verifier that everybody calls: the native core if it is built, else its oracle in Python."""

from __future__ import annotations

from typing import Any

from offload.errors import ConfigError
from offload.suite.wire import native
from offload.suite.wire.ask import Ask

ENGINES = ("auto", "core", "python")


def verify(ask: Ask, engine: str = "auto") -> dict[str, Any]:
    """Return the document of docs/reference/wire.md, with `engine` core or python.

    ConfigError if the question or a file makes no sense, RigError if the core is asked for and broken.
    """
    if engine not in ENGINES:
        raise ConfigError(f"no engine {engine!r}", f"choose one of {', '.join(ENGINES)}")
    if engine == "core" or (engine == "auto" and native.built()):
        return native.verify(ask)
    from offload.suite.wire.oracle import verify as by_oracle

    return by_oracle(ask)


def why_python() -> str:
    """Return why `auto` takes the oracle; nothing if it does not."""
    return (
        ""
        if native.built()
        else "the native core is not built (in a checkout: make build); the Python oracle answers"
    )
