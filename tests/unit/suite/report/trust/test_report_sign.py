"""A signed result: by real ssh-keygen and a key made for the test, and by everything that is not that."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from offload.errors import ConfigError, OffloadError, Refused, RigError
from offload.suite.report.trust import manifest, sign
from offload.suite.report.verbs import add_parser

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
WHO = "lab@example.org"


def make_key(folder: Path, name: str = "key") -> Path:
    """An SSH key without a passphrase."""
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(folder / name)]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    return folder / name


def allow(folder: Path, *lines: tuple[str, Path]) -> Path:
    """A file of allowed signers."""
    text = [f"{who} {key.with_name(key.name + '.pub').read_text()}" for who, key in lines]
    (folder / "allowed").write_text("".join(text))
    return folder / "allowed"


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lab's key."""
    return make_key(tmp_path_factory.mktemp("key"))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A result."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "events.jsonl").write_bytes(b'{"event": "run-start"}\n')
    (folder / "report.html").write_bytes(b"<!DOCTYPE html><p>certified")
    manifest.write(folder)
    return folder


def call(*words: str | Path) -> int:
    """Run `ktls-offload report WORDS`: its exit code, also that of an error."""
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    args = parser.parse_args(["report", *map(str, words)])
    try:
        return int(args.func(args))
    except OffloadError as exc:
        sys.stdout.write(f"{exc}\n")
        return exc.exit_code


def test_signed_result_verifies(
    run: Path, key: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A signed result is intact, and by whom is said; with a name where names are known."""
    assert call("sign", run, "--key", key) == 0
    assert capsys.readouterr().out.startswith(f"signed: {run / manifest.SIGNATURE}: ED25519 key SHA256:")
    assert call("verify", run) == 0
    out = capsys.readouterr().out
    assert "intact" in out and "signed by ED25519 key SHA256:" in out and "--allowed-signers would say" in out
    known = allow(tmp_path, ("other@example.org", make_key(tmp_path)), (WHO, key))
    assert call("verify", run, "--allowed-signers", known) == 0
    assert f"signed by {WHO}, ED25519 key" in capsys.readouterr().out
    assert call("verify", run, "--allowed-signers", known, "--identity", WHO, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "ktls-offload/verify/1" and found["intact"] and not found["problems"]
    assert (found["signature"]["state"], found["signature"]["signer"]) == ("good", WHO)


def test_ssh_keygen_alone_checks_it(run: Path, key: Path, tmp_path: Path) -> None:
    """Who trusts none of us verifies with ssh-keygen and sha256sum alone."""
    assert call("sign", run, "--key", key) == 0
    known = allow(tmp_path, (f'{WHO} namespaces="{sign.NAMESPACE}"', key))
    words = [
        "-Y",
        "verify",
        "-f",
        str(known),
        "-I",
        WHO,
        "-n",
        "report@ktls-offload",
        "-s",
        "manifest.json.sig",
    ]
    data = (run / manifest.NAME).read_bytes()
    ended = subprocess.run(["ssh-keygen", *words], input=data, cwd=run, capture_output=True)
    assert ended.returncode == 0, ended.stderr
    rows = "".join(f"{row['sha256']}  {row['path']}\n" for row in json.loads(data)["files"])
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet"], input=rows.encode(), cwd=run, check=True)


@pytest.mark.parametrize("name", ["events.jsonl", "report.html", manifest.NAME, manifest.SIGNATURE])
def test_any_flipped_byte_is_found(run: Path, key: Path, tmp_path: Path, name: str) -> None:
    """One bit that flips anywhere in a signed result is found."""
    assert call("sign", run, "--key", key) == 0
    known = allow(tmp_path, (WHO, key))
    data = (run / name).read_bytes()
    for place in range(0, len(data), 1 + len(data) // (8 if name.startswith(manifest.NAME) else 2)):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        (run / name).write_bytes(changed)
        assert call("verify", run, "--allowed-signers", known) == call("verify", run) == 1, place


def test_rewritten_result_needs_another_signature(
    run: Path, key: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A result whose files and manifest were both rewritten is found by its signature."""
    assert call("sign", run, "--key", key) == 0
    (run / "report.html").write_bytes(b"<!DOCTYPE html><p>CERTIFIED")
    manifest.write(run)
    assert call("verify", run) == 1
    assert "BAD SIGNATURE: it is not a signature of manifest.json" in capsys.readouterr().out
    (run / manifest.SIGNATURE).unlink()
    assert call("verify", run) == 0  # nobody asked for a signature, and it says so
    assert "unsigned: " in capsys.readouterr().out
    assert call("verify", run, "--allowed-signers", allow(tmp_path, (WHO, key))) == 1
    assert "unsigned: " in capsys.readouterr().out


def test_signature_of_a_stranger_is_refused(run: Path, key: Path, tmp_path: Path) -> None:
    """A good signature counts only by who is allowed, by that name, for this, today."""
    assert call("sign", run, "--key", key) == 0
    other = make_key(tmp_path)
    for line, who in (
        ((WHO, other), None),
        ((WHO, key), "other@example.org"),
        ((f'{WHO} namespaces="file"', key), None),
        ((f'{WHO} valid-before="20200101"', key), None),
        ((f"{WHO} cert-authority", key), WHO),
    ):
        words = ["--identity", who] if who else []
        assert call("verify", run, "--allowed-signers", allow(tmp_path, line), *words) == 1, line
    (tmp_path / "allowed").write_text('\0rubbish "\n' * 20)
    assert call("verify", run, "--allowed-signers", tmp_path / "allowed") == 1
    for name in ("*@example.org", "x@y,lab@example.org"):
        assert call("verify", run, "--allowed-signers", allow(tmp_path, (name, key))) == 0


def test_signature_for_another_purpose_is_refused(run: Path, key: Path) -> None:
    """A signature that its key made in another namespace is none of a result."""
    words = ["-Y", "sign", "-q", "-n", "file", "-f", str(key), str(run / manifest.NAME)]
    subprocess.run(["ssh-keygen", *words], check=True)
    assert call("verify", run) == 1


def test_damaged_armour_is_refused(run: Path, key: Path, tmp_path: Path) -> None:
    """Only the very bytes that ssh-keygen wrote are a signature."""
    assert call("sign", run, "--key", key) == 0
    path = run / manifest.SIGNATURE
    good = path.read_bytes()
    one_line = sign.BEGIN + good[len(sign.BEGIN) : -len(sign.END)].replace(b"\n", b"") + b"\n" + sign.END
    wrong = [b"", good + b"\n", b"\n" + good, good.replace(b"\n", b"\r\n"), good[:-1], good * 2, bytes(300)]
    for bad in (*wrong, b"x" * 70_000, good[:40] + b" " + good[40:], one_line):
        path.write_bytes(bad)
        assert call("verify", run) == 1
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_bytes(good)
    assert call("verify", run) == 1


def test_what_cannot_be_signed_is_said(
    run: Path, key: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No key, no folder, a wrong key, a second signature are one sentence each."""
    before = sorted(run.iterdir())
    assert call("sign", run, "--key", tmp_path / "none") == 2
    assert call("sign", tmp_path / "nothing", "--key", key) == 2
    (tmp_path / "text").write_text("no key")
    assert call("sign", run, "--key", tmp_path / "text") == 5
    assert "ssh-keygen did not sign" in capsys.readouterr().out and sorted(run.iterdir()) == before
    assert call("sign", run, "--key", key) == 0
    assert call("sign", run, "--key", key) == 2
    assert "already exists" in capsys.readouterr().out
    assert call("verify", run, "--identity", WHO) == call("verify", run, "--allowed-signers", tmp_path) == 2
    assert call("verify", run, "--allowed-signers", tmp_path / "none") == 2


def test_what_is_not_signed_stays_as_it_was(
    run: Path, key: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No manifest is left where no run is, or where there is no signature for it."""
    (tmp_path / "home").mkdir()
    assert call("sign", tmp_path / "home", "--key", key) == 2
    assert "holds no run" in capsys.readouterr().out and not list((tmp_path / "home").iterdir())
    (run / manifest.NAME).unlink()
    (tmp_path / "text").write_text("no key")
    assert call("sign", run, "--key", tmp_path / "text") == 5
    assert not (run / manifest.NAME).exists()


def test_changed_result_is_not_signed(run: Path, key: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody signs what is no longer as it was left; to list it anew is a decision."""
    (run / "report.html").write_bytes(b"<!DOCTYPE html><p>CERTIFIED")
    assert call("sign", run, "--key", key) == 5
    assert "report.html: SHA-256" in capsys.readouterr().out
    (run / manifest.NAME).unlink()
    assert call("sign", run, "--key", key) == 0 and call("verify", run) == 0


def test_key_in_an_agent_signs(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key whose private half only an agent holds signs by its public file."""
    key = make_key(tmp_path)
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(tmp_path / "a")], stdout=subprocess.PIPE) as agent:
        try:
            assert agent.stdout and agent.stdout.readline()
            monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "a"))
            subprocess.run(["ssh-add", "-q", str(key)], check=True, capture_output=True)
            key.unlink()
            assert call("sign", run, "--key", tmp_path / "key.pub") == 0
        finally:
            agent.terminate()
    assert call("verify", run, "--allowed-signers", allow(tmp_path, (WHO, key))) == 0


def test_key_never_comes_near_us(run: Path, key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signing opens no key: its path is handed on, and nothing of it is left in the result."""
    real = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail("read") if path == key else real(path))
    assert call("sign", run, "--key", key) == 0
    secret = key.read_text().splitlines()[2].encode()
    assert not [path for path in run.iterdir() if secret in path.read_bytes()]


def test_no_ssh_keygen_is_a_broken_rig(run: Path, key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be checked for want of ssh-keygen is neither intact nor damaged."""
    assert call("sign", run, "--key", key) == 0
    monkeypatch.setenv("PATH", str(run))
    assert call("verify", run) == 7
    (run / manifest.SIGNATURE).unlink()
    assert call("verify", run) == 0 and call("sign", run, "--key", key) == 7


def test_errors_have_their_kinds(run: Path, tmp_path: Path) -> None:
    """Who calls these from Python gets the errors that the docstrings name."""
    with pytest.raises(ConfigError, match="no such key"):
        sign.sign(run, tmp_path / "none")
    (tmp_path / "text").write_text("no key")
    with pytest.raises(Refused, match="did not sign"):
        sign.sign(run, tmp_path / "text")
    assert issubclass(RigError, OffloadError)
