"""What does the command line refuse, and in which words?"""

from __future__ import annotations

from rig import Rig

C = ("-c", "127.0.0.1", "-p", "9")
WRONG = {
    (*C, "--tls=1.1"): "--tls: '1.1' given, expected 1.2 or 1.3",
    (*C, "--tls="): "expected 1.2 or 1.3",
    (*C, "--tls-what"): "--tls-what: no such option",
    (*C, "--tlsx"): "--tlsx: no such option",
    (*C, "--tls", "--ktls=maybe"): "--ktls: 'maybe' given, expected off, tx, rx, both or require",
    (*C, "--tls", "--ktls"): "--ktls needs a value",
    (*C, "--tls", "--tls-record-size=511"): "from 512 to 16384",
    (*C, "--tls", "--tls-record-size=16385"): "from 512 to 16384",
    (*C, "--tls", "--tls-record-size=1k"): "from 512 to 16384",
    (*C, "--tls", "--tls-record-size="): "from 512 to 16384",
    (*C, "--tls", "--tls-verify-payload=yes"): "expected no value",
    (*C, "--tls", "--tls-ciphers", ""): "expected something",
    (*C, "--tls", "--tls-ciphers=NO-SUCH"): "OpenSSL has no such cipher for TLS 1.3",
    (*C, "--tls=1.2", "--tls-ciphers=TLS_NO_SUCH"): "OpenSSL has no such cipher for TLS 1.2",
    (*C, "--tls", "--tls-cert=x"): "--tls-cert is for the server only",
    (*C, "--tls", "--tls-ca=/dev/null"): "no certificates in it",
    (*C, "--tls", "-u"): "not with -u",
    (*C, "--tls", "--tls-verify-payload", "-F", "/dev/zero"): "not with -F",
    (*C, "--tls-verify-payload"): "does nothing without --tls",
    (*C, "--ktls=tx"): "does nothing without --tls",
    ("-s", "--tls-ca=x"): "--tls-ca is for the client only",
    ("-s", "--tls-verify-payload"): "is for the client only",
    ("-s", "--tls-cert=x"): "go together",
    ("-s", "--tls-cert=/dev/null", "--tls-key=/dev/null"): "any user can read or write it",
}


def check_wrong_options(rig: Rig) -> None:
    """Each is refused before anything is connected: exit 1, one line that names the option."""
    for args, words in WRONG.items():
        got = rig.run(*args)
        assert got.rc == 1 and words in got.err and got.err.count("\n") == 1, (args, got)


def check_files_of_a_server(rig: Rig) -> None:
    """A certificate or key that is none, or a key of another certificate: refused at the start."""
    (rig.folder / "empty.pem").write_text("")
    (rig.folder / "empty.pem").chmod(0o600)
    for cert, key, words in (
        ("empty", "server-key", "--tls-cert"),
        ("server", "empty", "--tls-key"),
        ("server", "named-key", "--tls-key"),
        ("none", "server-key", "--tls-cert"),
    ):
        got = rig.run("-s", f"--tls-cert={rig.folder}/{cert}.pem", "--tls-key", f"{rig.folder}/{key}.pem")
        assert got.rc == 1 and words in got.err, (cert, key, got)


def check_options_of_iperf3_stay(rig: Rig) -> None:
    """What is wrong for iperf3 is still its error, and --help shows both lists."""
    got = rig.run("-c", "127.0.0.1", "--tls", "--no-such")
    assert got.rc == 1, got
    text = rig.run("--help")
    assert text.rc == 0 and "--bidir" in text.out and "--tls-record-size" in text.out, text


def check_require_without_kernel(rig: Rig) -> None:
    """--ktls=require on a kernel without kTLS: exit 4 before connecting, for both ends, and what to do."""
    for end in (("-s",), (*C, "--tls")):
        got = rig.run(*end, "--ktls=require")
        assert got.rc == 4 and "has no TLS for sockets" in got.err and "modprobe tls" in got.err, got
