"""Whose policy counts: a resident works by its files as they are now, and for clients of the same policy."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from check_client import CLIENTS, call, chain, falls_back, liar
from check_serve import Resident, resident
from rig import Rig

OLDER = b'{"ok":false,"cause":"usage","message":"unknown option: \'--digest\' (see --help)","exit":1}\n'
TLS13 = "sslVersion = TLSv1.3\nciphersuites = TLS_AES_128_GCM_SHA256\nciphers = ECDHE-RSA-AES128-GCM-SHA256\n"


def pin(rig: Rig, whose: str = "server") -> str:
    """A policy that takes one certificate."""
    return f"CAfile = {rig.file(whose)}\nverifyPeer = yes\n"


@contextmanager
def edited(rig: Rig, text: str, *args: str) -> Iterator[tuple[Resident, Path]]:
    """A resident of a policy in a file that may be edited."""
    path = rig.folder / "edited.conf"
    path.write_text(text)
    with resident(rig, "--policy", str(path), *args) as home:
        yield home, path


@contextmanager
def helper(rig: Rig) -> Iterator[None]:
    """The Python client finds a ktls-handoff to start."""
    os.environ["KTLS_HANDOFF"] = rig.program
    try:
        yield
    finally:
        del os.environ["KTLS_HANDOFF"]


def check_same_policy_is_served(rig: Rig) -> None:
    """The digests of client and resident are equal for one policy, whatever stands in it."""
    odd = f"; a\r\n\tclient=yes\nverifyChain = no\nCAfile=/nowhere\n  CAfile\t= {rig.file('ca')} \r\n"
    for text in (
        chain(rig),
        pin(rig),
        "verifyChain = no\n",
        odd + "verifyChain = yes\ncheckHost = server.test\nsni =\n",
        chain(rig) + "checkIP = 127.0.0.1\ncurves = P-256:P-384\nsni = jos\u00e9.test\nTIMEOUTconnect = 60",
        chain(rig) + "verifyPeer = no\nciphers = ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256\n",
    ):
        with edited(rig, text) as (home, _), rig.server() as port:
            for kind in CLIENTS:
                got = call(rig, port, text, str(home.path), kind=kind)
                assert not got.stderr and json.loads(got.stdout)["via"] == "ktls", (kind, text, got)
    with edited(rig, chain(rig) + TLS13) as (home, _):  # digests agree; the fake kernel knows only TLS 1.2
        for kind in CLIENTS:
            got = call(rig, "1", chain(rig) + TLS13, str(home.path), kind=kind)
            assert b"cannot connect to 127.0.0.1 port 1" in got.stdout, (kind, got)


def check_other_policy_is_refused(rig: Rig) -> None:
    """A client whose policy is not the resident's goes the way that applies its own, and says so once."""
    with resident(rig) as home:  # of a CA
        for text in (
            pin(rig),
            chain(rig) + "ciphers = ECDHE-RSA-AES128-GCM-SHA256\n",
            chain(rig) + "curves = P-256\n",
            chain(rig) + "checkHost = server.test\n",
            chain(rig) + "sni = server.test\n",
            "verifyChain = no\n",
        ):
            for kind in CLIENTS:
                said = falls_back(rig, str(home.path), policy=text, kind=kind)
                assert "the resident has another policy" in said, (kind, text)
        assert home.lines(0) == []


def check_pin_of_another_is_never_handed_over(rig: Rig) -> None:
    """`--pin A --via RESIDENT`: a peer that is not A is not handed over, whomever the resident trusts."""
    with resident(rig) as home, rig.server() as port, helper(rig):
        for kind in CLIENTS:
            got = call(rig, port, pin(rig, "other"), str(home.path), kind=kind)
            assert got.returncode == 2 and b"the resident has another policy" in got.stdout, (kind, got)
            assert b"the fallback failed too" in got.stdout and not got.stderr, (kind, got)
        assert b"not the pinned one" in got.stdout, got  # the last one: Python has asked its helper, too


def check_helper_goes_in_for_the_resident(rig: Rig) -> None:
    """Python starts a ktls-handoff with its own policy, by the kernel still: one line says why."""
    with resident(rig) as home, rig.server() as port, helper(rig):
        got = call(rig, port, pin(rig), str(home.path), kind="Python")
        assert json.loads(got.stdout)["via"] == "ktls" and got.stderr.count(b"\n") == 1, got
        assert b"another policy" in got.stderr and b"started a separate ktls-handoff" in got.stderr, got
        with liar(rig, OLDER) as path:
            got = call(rig, port, chain(rig), path, kind="Python")
        assert json.loads(got.stdout)["via"] == "ktls" and b"unknown option: '--digest'" in got.stderr, got


def check_older_ones(rig: Rig) -> None:
    """A resident that knows no digest is no resident for us; a client that sends none is refused."""
    for kind in CLIENTS:
        with liar(rig, OLDER) as path:
            assert "unknown option: '--digest'" in falls_back(rig, path, kind=kind)
    with resident(rig) as home, rig.server() as port:
        with home.dial() as sock:
            sock.send(f"connect\n127.0.0.1\n{port}\n".encode())
            line = json.loads(sock.recv(8192))
        assert (line["ok"], line["cause"]) == (False, "usage") and "has no --digest" in line["message"], line
        for digest in ("0" * 64, "x", home.digest().upper()):
            got = home.ask("connect", "127.0.0.1", port, "--digest", digest)
            assert (got.json["cause"], got.json["exit"], got.sock) == ("policy", 4, None), got


def check_edited_policy_takes_effect(rig: Rig) -> None:
    """What is edited under a running resident, policy or certificates, counts for the next client."""
    trust = rig.folder / "trust.pem"
    trust.write_text(Path(rig.file("ca")).read_text())
    text = f"CAfile = {trust}\nverifyChain = yes\n"
    with edited(rig, text) as (home, path), rig.server() as port:
        assert home.ask("connect", "127.0.0.1", port).json["ok"]
        path.write_text(pin(rig, "other"))
        assert "not the pinned one" in home.ask("connect", "127.0.0.1", port).json["message"]
        path.write_text(pin(rig))
        assert home.ask("connect", "127.0.0.1", port).json["ok"]
        path.write_text(text)
        assert home.ask("connect", "127.0.0.1", port).json["ok"]
        stale = home.digest()
        trust.write_text(Path(rig.file("other")).read_text())
        assert home.ask("connect", "127.0.0.1", port).json["cause"] == "verify"
        assert home.ask("connect", "127.0.0.1", port, "--digest", stale).json["cause"] == "policy"
        path.write_text("verifyChain = no\nTIMEOUTconnect = 60\n")
        assert home.ask("connect", "127.0.0.1", port).json["ok"] and home.lines(0) == []


def check_edited_policy_that_is_wrong(rig: Rig) -> None:
    """A file that is wrong serves nobody, and is told to each client and once to the log."""
    with edited(rig, chain(rig)) as (home, path), rig.server() as port:
        before, digest = home.files(), home.digest()
        for text, why in (("verify = 2\n", ":1: unknown key"), (pin(rig, "nobody"), "No such file")):
            path.write_text(text)
            for _ in range(2):
                got = home.ask("connect", "127.0.0.1", port, "--digest", digest)
                assert got.json["cause"] == "policy" and why in got.json["message"], got
            if text.startswith("verify ="):
                said = falls_back(rig, str(home.path))
                assert "the resident's policy is wrong" in said, said
        path.write_text(chain(rig))
        assert home.ask("connect", "127.0.0.1", port).json["ok"] and home.files(before) == before
        assert len(home.lines(1)) == 1 and "no client is served until it is fixed" in home.lines(1)[0]


def check_relay_of_the_suite(rig: Rig) -> None:
    """The suite's own client of a resident (offload/suite/traffic/handoff.py) sends the right digest."""
    source = (Path(__file__).resolve().parents[3] / "offload/suite/traffic/handoff.py").read_text()
    relay = source.partition('RELAY = """')[2].partition('"""')[0]
    policy = "sslVersion=TLSv1.2\nciphers=ECDHE-RSA-AES256-GCM-SHA384\nverify=chain\n"
    assert 'f"sslVersion=TLSv{version}\\nciphers={CIPHERS[version, cipher]}\\nverify=chain\\n"' in source
    with resident(rig) as home, rig.server() as port:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        words = [str(home.path), rig.file("ca"), policy, "connect", "127.0.0.1", port]
        with ours, theirs:
            argv = ["/usr/bin/python3", "-I", "-c", relay, *words, "--fd", str(theirs.fileno())]
            subprocess.run(argv, pass_fds=[theirs.fileno()], check=True, timeout=60)
            line, fds, _, _ = socket.recv_fds(ours, 8192, 1)
        assert json.loads(line)["ok"] and len(fds) == 1, line
        os.close(fds[0])
