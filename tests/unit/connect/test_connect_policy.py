"""A policy means the same to ktls-handoff, to Python and to stunnel."""

from __future__ import annotations

import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from offload.connect.policy import KEYS, Policy, Target, for_stunnel
from offload.errors import ConfigError

HANDOFF = Path(__file__).parents[3] / "build/ktls-handoff"
DOCS = Path(__file__).parents[3] / "docs/use/connect.md"
NONE = "verifyChain = no\n"
GOOD = (
    NONE,
    "; a comment\n# another\n\n client=yes\r\nverifyChain = no\n",
    "CAfile = CA\nverifyChain = yes\ncheckHost = a.test\n",
    "CAfile = CA\nverifyPeer = yes\nverifyChain = no\n",
    NONE + "sslVersion = TLSv1.3\nciphersuites = TLS_AES_128_GCM_SHA256\ncurves = P-256:X25519\nsni =\n",
    NONE + "TIMEOUTconnect = 3600\nverifyPeer = no",
)
BAD = {
    "": "neither",
    "[s]\n" + NONE: ":1: KEY = VALUE",
    NONE + "verify = 2\n": ":2: unknown key 'verify'",
    NONE + "nothing\n": ":2: KEY = VALUE",
    NONE + "ciphers =\n": "ciphers without a value",
    NONE + "sslVersion = all\n": "TLSv1.2 or TLSv1.3",
    "verifyChain = maybe\n": "yes or no",
    "verifyPeer = no\n": "neither",
    "CAfile = CA\nverifyPeer = yes\nverifyChain = yes\n": "one of them",
    "verifyChain = yes\n": "verification needs CAfile",
    "verifyPeer = yes\n": "verification needs CAfile",
    NONE + "client = no\n": "client",
    NONE + "TIMEOUTconnect = 0\n": "1 to 3600",
    NONE + "TIMEOUTconnect = 1.5\n": "1 to 3600",
    NONE + "curves = a\x01b\n": "KEY = VALUE",
    "CAfile = CA\nverifyPeer = yes\ncheckHost = a\n": "checks a name",
    NONE + "checkIP = ::1\n": "checks a name",
    "CAfile = CA\nverifyChain = yes\ncheckHost = a\ncheckHost = b\n": ":4: more than one name",
    "CAfile = CA\nverifyChain = yes\ncheckIP = ::1\n\ncheckHost = a\n": ":5: more than one name",
    NONE + "# " + "x" * 16384: "longer than",
}


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A file for the text of one, beside a CA."""
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    argv = [*make, "-subj", "/CN=ca", "-keyout", "/dev/null", "-out", str(tmp_path / "CA")]
    subprocess.run(argv, check=True, capture_output=True)
    return tmp_path / "policy.conf"


def reported(path: Path) -> tuple[int, str]:
    """What ktls-handoff makes of a policy: exit code (1: refused) and message."""
    argv = [str(HANDOFF), "connect", "127.0.0.1", "1", "--policy", str(path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr


@pytest.mark.skipif(not HANDOFF.exists(), reason="ktls-handoff is not built")
def test_both_readers_agree(policy: Path) -> None:
    """What one of the two readers of a policy refuses, the other refuses too."""
    for text in (*GOOD, *BAD):
        policy.write_text(text.replace("CA\n", f"{policy.parent}/CA\n"))
        rc, said = reported(policy)
        try:
            Policy(str(policy)).values()
        except ConfigError as exc:
            assert rc == 1, (text, said, exc)
        else:
            assert rc in (4, 5), (text, said)


@pytest.mark.parametrize("text", BAD)
def test_wrong_policy_is_refused(text: str, tmp_path: Path) -> None:
    """A policy that is wrong is refused by file and line, with what is wanted."""
    path = tmp_path / "p.conf"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        Policy(str(path)).values()
    assert BAD[text] in str(caught.value) and str(path) in str(caught.value)


def test_one_method_to_verify() -> None:
    """A policy is a file, a CA or a pin: none and two of them are refused."""
    for given in (Policy(), Policy(ca="a", pin="b"), Policy("f", ca="a"), Policy("/nowhere/p.conf")):
        with pytest.raises(ConfigError):
            given.values()


def lines(target: Target, policy: Policy) -> dict[str, str]:
    """What stunnel is told."""
    pairs = (line.split(" = ", 1) for line in for_stunnel(target, policy).splitlines())
    return {key.strip(): value for key, value in pairs}


def test_stunnel_gets_the_same(tmp_path: Path) -> None:
    """stunnel gets the policy, its defaults, and the name that has to be in the certificate."""
    said = lines(Target("192.0.2.2", 8443), Policy(ca="/ca.pem"))
    assert (said["sslVersion"], said["ciphers"]) == ("TLSv1.2", "ECDHE-RSA-AES256-GCM-SHA384")
    assert "ciphersuites" not in said and "checkHost" not in said
    assert (said["connect"], said["checkIP"], said["sni"]) == ("192.0.2.2:8443", "192.0.2.2", "")
    said = lines(Target("192.0.2.2", 1, "a.test"), Policy(ca="/ca.pem"))
    assert (said["checkHost"], said["sni"], said["verifyChain"]) == ("a.test", "a.test", "yes")
    said = lines(Target("a.test", 1), Policy(pin="/pin.pem", timeout=0.4))
    assert not {"checkHost", "checkIP"} & set(said) and said["verifyPeer"] == "yes"
    assert (said["sni"], said["TIMEOUTconnect"]) == ("a.test", "1")
    path = tmp_path / "p.conf"
    path.write_text(
        "CAfile = /c\nverifyChain = yes\ncheckHost = b.test\nsslVersion = TLSv1.3\nsni = c.test\n"
    )
    said = lines(Target("::1", 1), Policy(str(path)))
    assert (said["checkHost"], said["sni"], said["connect"]) == ("b.test", "c.test", "::1:1")
    assert said["ciphersuites"] == "TLS_AES_256_GCM_SHA384" and "ciphers" not in said


def test_digest_is_of_what_counts(tmp_path: Path) -> None:
    """The digest of a policy is that of the man page, and each key that counts changes it."""
    trust, path = tmp_path / "CA", tmp_path / "p.conf"
    trust.write_bytes(b"certificates")
    lines = "sslVersion=TLSv1.2\nciphers=ECDHE-RSA-AES256-GCM-SHA384\nverify=chain\nCAfile="
    wanted = sha256(f"{lines}{sha256(b'certificates').hexdigest()}\n".encode()).hexdigest()
    assert Policy(ca=str(trust), timeout=3).digest() == wanted
    base = f"CAfile = {trust}\nverifyChain = yes\n"
    same = ("", "TIMEOUTconnect = 3\n", "client = yes\n", "ciphersuites = X\n", "verifyPeer = no\n")
    other = ("sslVersion = TLSv1.3", "ciphers = X", "curves = X", "checkHost = a", "sni =", "sni = a")
    found = {wanted, Policy(pin=str(trust)).digest()}
    for more in (*same, *other):
        path.write_text(base + more)
        found.add(Policy(str(path)).digest())
        assert (Policy(str(path)).digest() == wanted) == (more in same), more
    trust.write_bytes(b"others")
    found.add(Policy(ca=str(trust)).digest())
    path.write_text("verifyChain = no\nCAfile = /nowhere\n")
    found.add(Policy(str(path)).digest())
    assert len(found) == 4 + len(other)
    for gone in (tmp_path / "gone", tmp_path):
        with pytest.raises(ConfigError, match=f"CAfile {gone}: "):
            Policy(ca=str(gone)).digest()


def test_page_names_every_key() -> None:
    text = DOCS.read_text()
    assert not [key for key in KEYS if key != "client" and f"`{key}" not in text and f"{key} " not in text]
