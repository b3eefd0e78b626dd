"""What stands in a file that somebody else wrote: text, and not more of it than makes sense."""

from __future__ import annotations

from pathlib import Path

from offload.errors import ConfigError
from offload.yamlfile import read_plain


def bounded(path: Path, most: int, what: str) -> str:
    """The text of a file of at most `most` bytes. ConfigError if it cannot be read, or is no such text."""
    try:
        raw = read_plain(path, most + 1)
        text = raw.decode("utf-8")
    except OSError as exc:
        raise ConfigError(f"{path}: cannot read: {exc.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text") from None
    if len(raw) > most:
        raise ConfigError(f"{path}: larger than {most // 1024} KiB: this is not a {what}")
    return text
