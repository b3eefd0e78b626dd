"""Would this machine load a module that Debian did not sign? Only looks; touches no key."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from offload.cmd import run
from offload.driver.target import Target

# EFI_GLOBAL_VARIABLE; four bytes of attributes, then the value (fs/efivarfs/file.c)
SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
LOCKDOWN = "sys/kernel/security/lockdown"
MAGIC = b"~Module signature appended~\n"  # include/linux/module_signature.h
DKMS_KEY = "var/lib/dkms/mok.pub"  # made by Debian's dkms (dkms(8), MODULE SIGNING)


@dataclass(frozen=True)
class Gate:
    """Whether the machine demands signatures; `why` says what showed it."""

    closed: bool
    why: str


def gate(root: Path = Path("/")) -> Gate:
    """Look at the machine below `root`."""
    try:
        value = (root / SECURE_BOOT).read_bytes()
    except OSError:
        value = b""
    if value[4:5] == b"\1":
        return Gate(True, "Secure Boot is on (efivars), and Debian's kernels then load signed modules only")
    try:
        words = (root / LOCKDOWN).read_text(errors="replace")
    except OSError:
        words = ""
    mode = re.search(r"\[(integrity|confidentiality)\]", words)
    if mode:
        return Gate(True, f"the kernel is locked down ({mode[1]}, /{LOCKDOWN}) and loads signed modules only")
    return Gate(False, "Secure Boot is off" if value else "no Secure Boot here")


def signed(module: Path) -> bool:
    """Whether a module ends with a signature."""
    return module.read_bytes()[-len(MAGIC) :] == MAGIC


def advice(target: Target, modules: list[Path], root: Path = Path("/")) -> list[str]:
    """Return what a person must do so that a machine that demands signatures loads the modules."""
    tool = target.headers / "scripts/sign-file"
    digest = target.config.get("CONFIG_MODULE_SIG_HASH", '"sha256"').strip('"')
    lines = [
        "sign each module with your own key, and enroll its certificate once (confirm it at the next boot):"
    ]
    lines += [f"  {tool} {digest} KEY.priv KEY.der {module}" for module in modules]
    lines.append("  mokutil --import KEY.der")
    key = root / DKMS_KEY
    if key.is_file():
        lines.append(f"or let DKMS sign: `driver install --dkms`; its key {key} {_enrolled(key)}")
    return lines


def _enrolled(key: Path) -> str:
    """Return what mokutil says of a key."""
    rc, out, _, _ = run(["mokutil", "--test-key", str(key)])
    text = out.decode("utf-8", "replace")
    if rc == 127 or not text:
        return f"has to be enrolled: mokutil --import {key}"
    return "is enrolled" if "already enrolled" in text else f"is not enrolled: mokutil --import {key}"
