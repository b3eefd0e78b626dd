"""`python -m offload.suite.bench.lab init ...` is the same as `ktls-offload lab init ...`."""

import argparse
import sys

from offload.errors import OffloadError
from offload.suite.bench.lab.verbs import add_parser, main

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="offload")
    add_parser(parser.add_subparsers(dest="verb", required=True))
    args = parser.parse_args(["lab", *sys.argv[1:]])
    try:
        sys.exit(main(args))
    except OffloadError as exc:
        sys.stderr.write(f"ktls-offload: error: {exc}\n")
        sys.exit(exc.exit_code)
