"""Who stands behind a result: an OpenSSH signature over manifest.json, made and checked by ssh-keygen -Y."""

from __future__ import annotations

import base64
import binascii
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from offload.errors import ConfigError, Refused, RigError
from offload.suite.report.trust import manifest
from offload.suite.report.trust.saved import put

NAMESPACE = "report@ktls-offload"  # so that no signature made for anything else counts here
RUN = ("events.jsonl", "report.json", "benches.json")  # what a run leaves, alone or as one of many
MOST = 64 << 10  # bytes of a signature: one with an RSA key of 16384 bits has less than 8 KiB
BEGIN, END = b"-----BEGIN SSH SIGNATURE-----\n", b"-----END SSH SIGNATURE-----\n"
WIDTH = 70  # as ssh-keygen breaks its lines (openssh sshbuf-misc.c, sshbuf_dtob64)
GOOD = re.compile(r'Good "[^"]*" signature with (\S+) key (SHA256:\S+)')


@dataclass(frozen=True)
class Signature:
    """What a signature is worth: unsigned | good | unknown signer | bad; `words` is one line for a person."""

    state: str
    words: str
    signer: str = ""
    key: str = ""


def sign(folder: Path, key: Path) -> str:
    """Sign the manifest of a folder, which the caller has compared with it, and return a line about it.

    A run without a manifest gets one, if it can be signed. `key` is the path of a private key, or of a public
    one whose other half ssh-agent or a hardware key holds; it is only handed to ssh-keygen. ConfigError if
    there is no such file, no run in the folder, or a signature already; Refused if ssh-keygen does not sign.
    """
    if not key.is_file():
        raise ConfigError(f"{key}: no such key", "--key names the file of an SSH key; ssh-keygen makes one")
    if os.path.lexists(folder / manifest.SIGNATURE):
        raise ConfigError(f"{folder / manifest.SIGNATURE} already exists", "move it away to sign again")
    if not any((folder / name).exists() for name in RUN):
        raise ConfigError(f"{folder} holds no run", "name the folder of a run, results/<time>")
    there = manifest.content(folder / manifest.NAME)
    data = manifest.listing(folder) if there is None else there
    made = _made(data, key)
    found = look(data, made)
    if found.state != "unknown signer":
        raise Refused(f"the signature that ssh-keygen made with {key} is not valid: {found.words}")
    if there is None:
        put(folder / manifest.NAME, data)
    put(folder / manifest.SIGNATURE, made)
    return f"{folder / manifest.SIGNATURE}: {found.key}"


def _made(data: bytes, key: Path) -> bytes:
    """Return a signature of these bytes. ssh-keygen has the terminal, to ask for a passphrase."""
    with tempfile.TemporaryDirectory(prefix="ktls-offload-") as name:
        copy = Path(name) / manifest.NAME
        copy.write_bytes(data)
        words = ["-Y", "sign", "-n", NAMESPACE, "-f", str(key.absolute()), str(copy)]
        asks = sys.stderr.isatty()
        rc, said = _keygen(words, None, stderr=None if asks else subprocess.PIPE)
        made = manifest.content(copy.with_name(manifest.SIGNATURE), MOST)
        if rc != 0 or made is None:
            raise Refused(f"ssh-keygen did not sign with {key} (exit {rc})" + (f": {said}" if said else ""))
        return made


def look(
    data: bytes, signature: bytes, allowed: Path | None = None, identity: str | None = None
) -> Signature:
    """Return what a signature over `data` is worth; with `allowed` only for the signers in that file.

    RigError without ssh-keygen. Nothing of the signature is trusted, nor that it is one.
    """
    if not _armoured(signature):
        return Signature("bad", f"{manifest.SIGNATURE} is damaged, or is not an ssh-keygen signature")
    with tempfile.TemporaryDirectory(prefix="ktls-offload-") as name:
        copy = Path(name) / manifest.SIGNATURE
        copy.write_bytes(signature)
        words = ["-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(copy)]
        rc, said = _keygen(words, data)
        match = GOOD.match(said)
        if rc != 0 or match is None:
            return Signature("bad", f"it is not a signature of {manifest.NAME}: {said or f'exit {rc}'}")
        key = f"{match[1]} key {match[2]}"
        if allowed is None:
            return Signature(
                "unknown signer", f"by {key}; whose that is, --allowed-signers would say", "", key
            )
        return _known(data, copy, key, allowed, identity)


def _known(data: bytes, copy: Path, key: str, allowed: Path, identity: str | None) -> Signature:
    """Return whether one of the allowed signers made a signature that is known to be right."""
    last = ""
    for name in [identity] if identity else _principals(copy, allowed):
        words = ["-Y", "verify", "-n", NAMESPACE, "-s", str(copy), "-f", str(allowed), "-I", name]
        rc, last = _keygen(words, data)
        if rc == 0:
            return Signature("good", f"by {name}, {key}", name, key)
    whom = f"not by {identity} as {allowed} knows them" if identity else f"by nobody whom {allowed} allows"
    return Signature("bad", f"{whom}: {key}" + (f" ({last})" if last else ""), "", key)


def _principals(copy: Path, allowed: Path) -> list[str]:
    """Return the names that the file of allowed signers has for the key of a signature."""
    rc, said = _keygen(["-Y", "find-principals", "-s", str(copy), "-f", str(allowed)], None)
    names = [name for line in said.splitlines() for name in line.split(",")] if rc == 0 else []
    return [name for name in names if name and not name.startswith("!")]


def _armoured(signature: bytes) -> bool:
    """Say whether it is in the one form that ssh-keygen writes: a byte more or less, and it is not."""
    if len(signature) > MOST or not (signature.startswith(BEGIN) and signature.endswith(END)):
        return False
    text = signature[len(BEGIN) : -len(END)]
    try:
        again = base64.b64encode(base64.b64decode(text.replace(b"\n", b""), validate=True))
    except binascii.Error:
        return False
    lines = [again[at : at + WIDTH] + b"\n" for at in range(0, len(again), WIDTH)]
    return b"".join(lines) == text


def _keygen(
    words: Sequence[str], data: bytes | None, stderr: int | None = subprocess.PIPE
) -> tuple[int, str]:
    """Run ssh-keygen: (exit code, what it said, without control characters). RigError if it is not there."""
    env = {**os.environ, "LC_ALL": "C"}
    try:
        ended = subprocess.run(
            ["ssh-keygen", *words], input=data, stdout=subprocess.PIPE, stderr=stderr, env=env, check=False
        )
    except OSError as exc:
        raise RigError(f"cannot run ssh-keygen: {exc.strerror}", "apt install openssh-client") from None
    said = (ended.stdout + (ended.stderr or b"")).decode("utf-8", "replace").strip()
    lines = ["".join(c if c.isprintable() else " " for c in line) for line in said.splitlines()]
    return ended.returncode, "\n".join(lines[:20])
