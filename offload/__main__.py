"""`python -m offload` is the same command as `ktls-offload`."""

import sys

from offload.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
