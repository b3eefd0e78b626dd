"""The command line: what is refused, with which exit code, and where the refusal is told."""

from __future__ import annotations

import json
import socket

from rig import Rig

REFUSED = [
    ("nothing", []),
    ("unknown verb", ["bind", "127.0.0.1", "1"]),
    ("no port", ["connect", "127.0.0.1", "--no-verify"]),
    ("three words", ["connect", "127.0.0.1", "1", "2", "--no-verify"]),
    ("port 0", ["connect", "127.0.0.1", "0", "--no-verify"]),
    ("port of letters", ["connect", "127.0.0.1", "https", "--no-verify"]),
    ("port beyond 65535", ["connect", "127.0.0.1", "65536", "--no-verify"]),
    ("no verification named", ["connect", "127.0.0.1", "1"]),
    ("two verifications", ["connect", "127.0.0.1", "1", "--no-verify", "--ca", "x"]),
    ("name without ca", ["connect", "127.0.0.1", "1", "--no-verify", "--name", "x"]),
    ("server key on a client", ["connect", "127.0.0.1", "1", "--no-verify", "--key", "x"]),
    ("server without key", ["accept", "127.0.0.1", "1", "--cert", "x"]),
    ("ca on a server", ["accept", "127.0.0.1", "1", "--ca", "x"]),
    ("tls 1.1", ["connect", "127.0.0.1", "1", "--no-verify", "--tls", "1.1"]),
    ("want nothing", ["connect", "127.0.0.1", "1", "--no-verify", "--want", "none"]),
    ("time-out 0", ["connect", "127.0.0.1", "1", "--no-verify", "--timeout", "0"]),
    ("time-out nan", ["connect", "127.0.0.1", "1", "--no-verify", "--timeout", "nan"]),
    ("option without value", ["connect", "127.0.0.1", "1", "--no-verify", "--tls"]),
    ("flag with value", ["connect", "127.0.0.1", "1", "--no-verify=1"]),
    ("unknown option", ["connect", "127.0.0.1", "1", "--no-verify", "--insecure"]),
    ("fallback without fd", ["connect", "127.0.0.1", "1", "--no-verify", "--fallback", "/x"]),
    ("line break in a value", ["connect", "127.0.0.1", "1", "--no-verify", "--sni", "x\nclient = no"]),
    ("close without fd", ["close"]),
    ("cipher that is none", ["connect", "127.0.0.1", "1", "--no-verify", "--ciphers", "ROT13"]),
    ("CA file that is missing", ["connect", "127.0.0.1", "1", "--ca", "/nowhere.pem"]),
    ("pin that is missing", ["connect", "127.0.0.1", "1", "--pin", "/nowhere.pem"]),
    ("listen on a name", ["accept", "localhost", "1", "--cert", "CERT", "--key", "KEY"]),
]


def check_refusals(rig: Rig) -> None:
    """A wrong command line ends with 1, one JSON line with cause usage, and one line for people."""
    for what, args in REFUSED:
        args = [{"CERT": rig.file("server"), "KEY": rig.file("server-key")}.get(a, a) for a in args]
        got = rig.plain(*args)
        assert got.rc == got.json["exit"] == 1, (what, got)
        assert got.json["cause"] == "usage", (what, got)
        assert len(got.errors) == 1, (what, got)


def check_refusal_reaches_parent(rig: Rig) -> None:
    """The refusal goes to --fd, although the option that was wrong stands before it."""
    got = rig.run("connect", "127.0.0.1", "1", "--bogus")
    assert (got.rc, got.json["cause"], got.sock) == (1, "usage", None)
    assert "--bogus" in got.json["message"]


def check_hostile_names(rig: Rig) -> None:
    """Quotes, line breaks, escapes and odd bytes stay inside the JSON string and off the terminal."""
    for name in ('a"b\\c', "new\nline", "esc\x1b[31m", "f\udce9", "del\x7f", "b" * 5000):
        got = rig.plain("connect", name, "1", "--no-verify", "--bogus")
        assert got.rc == 1 and got.out.count("\n") == 1
        assert got.out.isascii() and got.out[:-1].isprintable()
        assert all(line.isprintable() or "\udce9" in line for line in got.errors)


def check_quote_survives(rig: Rig) -> None:
    """A name with a quote comes back as it was given."""
    got = rig.plain("connect", "127.0.0.1", "1", "--no-verify", '--x"y\\z')
    assert '--x"y\\z' in got.json["message"]


def check_fd_must_be_unix_socket(rig: Rig) -> None:
    """A --fd that cannot carry a descriptor is refused before anything is connected."""
    with socket.socket() as tcp:
        args = ("connect", "127.0.0.1", "1", "--no-verify", "--fd", str(tcp.fileno()))
        got = rig.plain(*args, fds=(tcp.fileno(),))
    assert got.rc == 1 and "unix socket" in got.errors[0]


def check_help_and_version(rig: Rig) -> None:
    """--help names the three verbs and the exit codes; --version names OpenSSL too."""
    text = rig.plain("--help")
    assert text.rc == 0 and not text.errors
    assert all(word in text.out for word in ("connect", "accept", "close", "7 parent gone"))
    assert "OpenSSL 3" in rig.plain("--version").out
    assert rig.plain("connect", "x", "1", "--help").out == text.out


def check_key_file_mode(rig: Rig) -> None:
    """A key that every user can read is refused; so is one with a passphrase, without asking for it."""
    bad = rig.folder / "bad-key.pem"
    bad.write_bytes((rig.folder / "server-key.pem").read_bytes())
    for mode, rc in ((0o604, 1), (0o602, 1), (0o640, 4)):
        bad.chmod(mode)
        args = ("accept", "127.0.0.1", "0", "--cert", rig.file("server"), "--key", str(bad))
        got = rig.plain(*args, fake={"FAKE_KTLS_ABSENT": "1"})
        assert got.rc == rc, (oct(mode), got)


def check_key_must_match(rig: Rig) -> None:
    """A key of another certificate is a usage error that names both files."""
    args = ("accept", "127.0.0.1", "0", "--cert", rig.file("server"), "--key", rig.file("ca-key"))
    got = rig.plain(*args)
    assert got.rc == 1 and "ca-key.pem" in json.dumps(got.json)
