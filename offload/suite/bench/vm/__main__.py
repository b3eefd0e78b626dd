"""`python -m offload.suite.bench.vm up ...` is the same as `ktls-offload lab up ...`."""

import argparse
import sys

from offload.errors import OffloadError
from offload.suite.bench.vm.verbs import add_parser

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="offload")
    add_parser(parser.add_subparsers(dest="verb", required=True))
    args = parser.parse_args(["lab", *sys.argv[1:]])
    try:
        sys.exit(args.func(args))
    except OffloadError as exc:
        sys.stderr.write(f"ktls-offload: error: {exc}\n")
        sys.exit(exc.exit_code)
