"""labgrid's own client, imported once: `python -m tests.lib.rig.labgrid_client NAME` forks for each stub.

Each start of labgrid-client itself costs 0.7 s of processor, nearly all of it imports.
"""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager
from pathlib import Path

from tests.lib.rig import stub

WORDS = '@ARGV, "", map { "$_=$ENV{$_}" } grep { /^LG_/ } keys %ENV'


def warm(folder: Path) -> AbstractContextManager[str]:
    """The path of a labgrid-client that starts at once; it ends with this."""
    return stub.warm(folder / "labgrid-client", __name__, WORDS)


def play(given: list[str]) -> int:
    """Be the client with these words and this environment."""
    from labgrid.remote.client import main

    end = given.index("")
    sys.argv[:] = ["labgrid-client", *given[:end]]
    os.environ.update(pair.split("=", 1) for pair in given[end + 1 :])
    main()
    return 0


if __name__ == "__main__":
    import labgrid.remote.client  # noqa: F401  (what costs)

    stub.serve(stub.listening(sys.argv[1]), play)
