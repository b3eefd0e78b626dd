"""`ktls-offload wire verify | compare | capture`: what was on the wire, and is it what it should be?"""

from __future__ import annotations

import argparse
import json
import shutil
import stat
import sys
from pathlib import Path
from typing import Any

CODES = {"equal": 0, "different": 20, "inconclusive": 21}
EXITS = """

exit codes: 0 equal; 20 different; 21 inconclusive (never a pass); 2 wrong usage or file; 7 broken.
"""
VERIFY = f"""\
Proves that every TLS record in a capture is the one that a correct software sender would send.
With the session keys and the payload, it encrypts each record again and compares nonce, ciphertext
and tag. Without the payload, it decrypts each record and checks its tag. Retransmissions must
repeat the first bytes, and the payload must not appear in plaintext. Missing bytes or keys make
the answer inconclusive; the output names what is missing.

Capture *beyond* the card: on the peer, on a mirror port of the switch, or on the simulated wire.
The host's own port shows plaintext when the card encrypts.

  SSLKEYLOGFILE=keys.txt curl ...       most TLS programs write their keys this way
  ktls-offload wire capture eth1 -o run.pcapng
  ktls-offload wire verify run.pcapng --keylog keys.txt --payload sent.bin

It reads pcap and pcapng; TLS 1.2 and 1.3; AES-GCM and ChaCha20-Poly1305.
docs/reference/wire.md explains the comparison.
{EXITS}"""
COMPARE = f"""\
Compares the TCP streams of two captures byte for byte in both directions, handshake included. For
example one capture of stunnel and one with offload, made with the same random numbers on both ends
(docs/reference/wire.md, proof C). It compares connections in the order in which they begin.
Addresses, ports, packets and retransmissions may differ. A capture that lacks a beginning, an end
or a byte is inconclusive, unless the captures already differ.
{EXITS}"""
CAPTURE = """\
Writes every frame that DEV sends and receives to a new pcapng file, until Ctrl-C. The file then
holds every frame up to that moment; no buffer is discarded. DEV is in promiscuous mode meanwhile.
Needs root (CAP_NET_RAW).

exit codes: 0 done; 2 the file cannot be created; 3 no such interface; 4 no permission; 7 lost
frames.
"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `wire` with its verbs."""
    parser = verbs.add_parser("wire", help="capture frames and verify every TLS record in them")
    inner = parser.add_subparsers(dest="wire_verb", metavar="VERB", required=True)
    verify = _verb(inner, "verify", "verify every TLS record in a capture", VERIFY)
    verify.add_argument("capture", type=Path, metavar="CAPTURE", help="pcap or pcapng file")
    verify.add_argument(
        "--keylog", type=Path, required=True, metavar="K", help="session keys, in SSLKEYLOGFILE format"
    )
    verify.add_argument("--payload", type=Path, metavar="F", help="file with the data that the client sent")
    verify.add_argument("--reply", type=Path, metavar="F", help="file with the data that the server sent")
    verify.add_argument("--port", type=_port, metavar="N", help="only connections with this TCP port")
    verify.add_argument("--checksums", action="store_true", help="ignore frames with a wrong checksum")
    verify.add_argument("--engine", choices=("auto", "core", "python"), default="auto", help="default: auto")
    verify.add_argument(
        "--threads", type=_threads, default=0, metavar="N", help="threads of the core (default: all CPUs)"
    )
    compare = _verb(inner, "compare", "compare the streams of two captures", COMPARE)
    compare.add_argument("a", type=Path, metavar="A", help="pcap or pcapng file")
    compare.add_argument("b", type=Path, metavar="B", help="pcap or pcapng file")
    compare.add_argument("--port-a", type=_port, metavar="N", help="only connections of A with this TCP port")
    compare.add_argument("--port-b", type=_port, metavar="N", help="only connections of B with this TCP port")
    for verb in (verify, compare):
        verb.add_argument("--json", action="store_true", help="print JSON, for programs")
    capture = _verb(inner, "capture", "capture every frame of an interface in a file", CAPTURE)
    capture.add_argument("dev", metavar="DEV", help="interface")
    capture.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="new pcapng file; must not exist yet"
    )
    capture.add_argument("--seconds", type=_seconds, metavar="N", help="stop after N seconds")
    capture.add_argument(
        "--buffer", type=_buffer, default=64, metavar="MIB", help="size of the kernel queue (default 64)"
    )
    parser.set_defaults(func=main)


def _verb(
    inner: argparse._SubParsersAction[argparse.ArgumentParser], name: str, words: str, text: str
) -> argparse.ArgumentParser:
    layout = argparse.RawDescriptionHelpFormatter
    return inner.add_parser(name, help=words, description=text, formatter_class=layout)


def _number(text: str, least: int, most: int) -> int:
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not between {least} and {most}")
    return int(text)


def _port(text: str) -> int:
    return _number(text, 1, 65535)


def _threads(text: str) -> int:
    return _number(text, 0, 256)


def _seconds(text: str) -> int:
    return _number(text, 1, 86400)


def _buffer(text: str) -> int:
    return _number(text, 1, 1023)


def main(args: argparse.Namespace) -> int:
    """Run one of the verbs; ConfigError for a question that makes no sense."""
    return {"verify": verify, "compare": compare, "capture": capture}[args.wire_verb](args)


def verify(args: argparse.Namespace) -> int:
    """Print what a capture proves."""
    from offload.suite.wire.ask import Ask
    from offload.suite.wire.verify import verify as ask_engine
    from offload.suite.wire.verify import why_python
    from offload.suite.wire.words import text

    _warn_of_readers(args.keylog)
    if args.engine == "auto" and why_python():
        say(f"{why_python()}\n", sys.stderr)
    question = Ask(
        capture=args.capture,
        keylog=args.keylog,
        payload=args.payload,
        reply=args.reply,
        port=args.port,
        checksums=args.checksums,
        threads=args.threads,
    )
    return _answer(args, ask_engine(question, args.engine), lambda found: text(found, _width()))


def compare(args: argparse.Namespace) -> int:
    """Print whether two captures hold the same streams."""
    from offload.suite.wire.compare import compare as ask
    from offload.suite.wire.compare import text

    return _answer(args, ask(args.a, args.b, args.port_a, args.port_b), text)


def capture(args: argparse.Namespace) -> int:
    """Capture here."""
    from offload.suite.wire.live import capture as run

    return run(args.dev, args.output, args.seconds, args.buffer)


def _answer(args: argparse.Namespace, document: dict[str, Any], text: Any) -> int:
    say(json.dumps(document) + "\n" if args.json else text(document))
    return CODES[document["outcome"]]


def _warn_of_readers(keylog: Path) -> None:
    """Say on standard error that others can read the secrets."""
    try:
        found = keylog.stat()
    except OSError:
        return  # the engine says what is wrong with it
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISREG(found.st_mode) and mode & 0o077:
        say(
            f"warning: {keylog} holds secrets, but others can read it (mode {mode:o}): chmod 600 {keylog}\n",
            sys.stderr,
        )


def _width() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def say(line: str, to: Any = None) -> None:
    """Write to standard output, or to another stream."""
    (to or sys.stdout).write(line)
