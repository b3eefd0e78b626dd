"""Asks both engines the same question and says where their answers part."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

from offload.errors import ConfigError
from offload.suite.wire.ask import Ask
from offload.suite.wire.document import misfit
from tests.lib.wiregen.scene import Case

# WIRE_CORE=FILE asks another build of the core: one under sanitizers, or one that is not being rebuilt
CORE = Path(os.environ.get("WIRE_CORE", "") or Path(__file__).parents[3] / "build" / "ktls-wire")
REFUSED = {"refused": True}  # what stands for exit 2
BATCH = 8
Verdict = dict[str, Any]
Running = subprocess.Popen[bytes]


def write(case: Case, folder: Path) -> list[str]:
    """Put a case into files; the arguments for the core."""
    folder.mkdir(exist_ok=True)
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


def start_core(case: Case, folder: Path) -> Running:
    """The native core, at work on a case."""
    assert CORE.exists(), "the native core is not built: run `make build`"
    args = [str(CORE), "verify", *write(case, folder)]
    pipe = subprocess.PIPE
    return subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, close_fds=False)


def end_core(running: Running) -> Verdict:
    """The core's verdict: exit 0 with a document, or 2 with a sentence."""
    out, err = running.communicate(timeout=120)
    said = err.decode(errors="replace").strip()
    if running.returncode == 2:
        assert said and not out, f"exit 2 needs a sentence, and no document: {said!r}"
        return dict(REFUSED)
    assert running.returncode == 0 and not said, f"the core ended with {running.returncode}: {said}"
    verdict: Verdict = json.loads(out)
    assert not misfit(verdict), misfit(verdict)
    assert verdict.pop("engine") == "core"
    return verdict


def core(case: Case, folder: Path) -> Verdict:
    """The verdict of the native core."""
    return end_core(start_core(case, folder))


def oracle(case: Case, folder: Path) -> Verdict:
    """The verdict of the Python oracle."""
    from offload.suite.wire.oracle import verify

    folder.mkdir(exist_ok=True)
    (folder / "capture").write_bytes(case.capture)
    ask = Ask(folder / "capture", case.keylog, case.payload, case.reply, case.port, case.checksums)
    try:
        verdict: Verdict = json.loads(json.dumps(verify(ask)))
    except ConfigError as exc:
        assert str(exc), "a refusal needs a sentence"
        return dict(REFUSED)
    assert not misfit(verdict), misfit(verdict)
    assert verdict.pop("engine") == "python"
    return verdict


def both(cases: Iterable[tuple[int, Case]], folder: Path) -> Iterator[tuple[int, Verdict, Verdict]]:
    """Seed, the oracle's and the core's verdict; the cores of a batch run while the oracle works."""
    left = iter(cases)
    while batch := list(islice(left, BATCH)):
        with ExitStack() as undo:
            begun = [
                undo.enter_context(start_core(case, folder / str(i))) for i, (_, case) in enumerate(batch)
            ]
            ours = [oracle(case, folder / "oracle") for _, case in batch]
            theirs = [end_core(one) for one in begun]
        yield from zip((seed for seed, _ in batch), ours, theirs, strict=True)


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
