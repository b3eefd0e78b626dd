"""Asks both engines the same question and says where their answers part."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from offload.errors import ConfigError
from offload.wire.ask import Ask
from tests.lib.wiregen.scene import Case

CORE = Path(__file__).parents[3] / "build" / "ktls-wire"
EXITS = {"equal": 0, "different": 20, "inconclusive": 21}
REFUSED = {"refused": True}  # what stands for exit 2
Verdict = dict[str, Any]


def write(case: Case, folder: Path) -> list[str]:
    """Put a case into files; the arguments for the core."""
    parts = {"capture": case.capture, "keylog": case.keylog, "payload": case.payload, "reply": case.reply}
    for name, data in parts.items():
        if data is not None:
            (folder / name).write_bytes(data)
    (folder / "keylog").chmod(0o600)
    args = [str(folder / "capture"), "--keylog", str(folder / "keylog"), "--threads", str(case.threads)]
    for name in ("payload", "reply"):
        args += [f"--{name}", str(folder / name)] if parts[name] is not None else []
    args += ["--port", str(case.port)] if case.port is not None else []
    return [*args, "--checksums"] if case.checksums else args


def core(case: Case, folder: Path) -> Verdict:
    """The verdict of the native core, its exit code checked against it."""
    assert CORE.exists(), "the native core is not built: run `make build`"
    args = [str(CORE), "verify", *write(case, folder)]
    done = subprocess.run(args, capture_output=True, close_fds=False, timeout=120, check=False)
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode == 2:
        assert said and not done.stdout, f"exit 2 needs a sentence, and no document: {said!r}"
        return dict(REFUSED)
    assert done.returncode in EXITS.values(), f"the core ended with {done.returncode}: {said}"
    verdict: Verdict = json.loads(done.stdout)
    assert done.returncode == EXITS[verdict["outcome"]], f"exit {done.returncode}: {verdict['outcome']}"
    assert verdict.pop("engine") == "core"
    return verdict


def oracle(case: Case, folder: Path) -> Verdict:
    """The verdict of the Python oracle."""
    from offload.wire.oracle import verify

    (folder / "capture").write_bytes(case.capture)
    ask = Ask(folder / "capture", case.keylog, case.payload, case.reply, case.port, case.checksums)
    try:
        verdict: Verdict = json.loads(json.dumps(verify(ask)))
    except ConfigError as exc:
        assert str(exc), "a refusal needs a sentence"
        return dict(REFUSED)
    assert verdict.pop("engine") == "python"
    return verdict


ENGINES = {"python": oracle, "core": core}


def parting(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Every place where two documents differ: path, then both values."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted({*ours, *theirs}):
            yield from parting(ours.get(key, "(absent)"), theirs.get(key, "(absent)"), f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            yield from parting(a, b, f"{path}[{i}]")
    elif ours != theirs:
        yield f"{path}: python {ours!r}, core {theirs!r}"


def parted(case: Case, folder: Path) -> list[str]:
    """Where oracle and core part on this case; empty if they agree."""
    return list(parting(oracle(case, folder), core(case, folder)))
