"""Is a result as it was left: every file against manifest.json, and the signature over that?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from offload.errors import ConfigError
from offload.suite.report.render.summary import clean
from offload.suite.report.trust import manifest, sign
from offload.suite.report.trust.manifest import NAME, SIGNATURE, Found, Listed, shown
from offload.suite.report.trust.saved import saved

SCHEMA = "ktls-offload/verify/1"
DAMAGED = 1
SHOWN = 20
BENCHES = "benches.json"
UNSIGNED = "unsigned: anyone with write access could have replaced everything here"


@dataclass(frozen=True)
class Problem:
    """One thing that is not as it was left: changed | missing | extra | odd | manifest | signature."""

    kind: str
    path: str
    words: str


@dataclass(frozen=True)
class Compared:
    """The bytes of the manifest, how many files it lists, and where they are not as it says."""

    data: bytes
    files: int
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class Result:
    """What was found: files that the manifest lists, problems (none: intact), what the signature is worth.

    `says`: the verdict that the result claims; `parts`: files that an archive holds in part, or leaves out.
    """

    folder: Path
    files: int
    problems: tuple[Problem, ...]
    signature: sign.Signature
    says: str
    parts: tuple[str, ...] = ()


def check(folder: Path, allowed: Path | None = None, identity: str | None = None) -> Result:
    """Compare a folder with its manifest, byte for byte, and look at the signature.

    With `allowed` (or `identity`) a result that is not signed by one of them is not intact. ConfigError if
    there is no such folder or file of allowed signers, RigError if a signature needs ssh-keygen and it is
    not there.
    """
    if identity and allowed is None:
        raise ConfigError("--identity needs --allowed-signers", "a file of lines: NAME ssh-ed25519 AAAA...")
    if allowed is not None:
        with manifest.plain(allowed.resolve()):
            pass  # ConfigError if it cannot be read, before ssh-keygen says it in its own words
    found = compare(folder)
    signature = _signature(folder, found.data, allowed, identity)
    if signature.state == "bad" or (signature.state == "unsigned" and allowed is not None):
        problem = Problem("signature", SIGNATURE, signature.words)
        found = replace(found, problems=(*found.problems, problem))
    return Result(folder, found.files, found.problems, signature, _says(folder))


def compare(folder: Path) -> Compared:
    """Compare the files of a folder with its manifest. ConfigError if there is no such folder."""
    found = manifest.walk(folder)
    data, why = _read(folder / NAME)
    listed = why or manifest.parse(data)
    if isinstance(listed, str):
        return Compared(data, 0, (Problem("manifest", NAME, listed),))
    return Compared(data, len(listed), (*_changed(listed, found), *_unlisted(listed, found)))


def _read(path: Path) -> tuple[bytes, str]:
    """Return the manifest, or why there is none."""
    try:
        data = manifest.content(path)
    except ConfigError as exc:
        return b"", str(exc).removeprefix(f"{path}: ")
    return (b"", "no manifest, so the original content is unknown") if data is None else (data, "")


def _changed(listed: dict[str, Listed], found: Found) -> Iterator[Problem]:
    """Yield the files that are not there, or not as they are listed."""
    for path, wanted in listed.items():
        if path in found.odd:
            continue
        if path not in found.files:
            yield Problem("missing", path, "listed, but missing")
            continue
        try:
            have = manifest.measure(found.files[path])
        except ConfigError as exc:
            yield Problem("odd", path, str(exc))
            continue
        if have.size != wanted.size:
            yield Problem("changed", path, f"{have.size} bytes, {wanted.size} are listed")
        elif have != wanted:
            yield Problem(
                "changed", path, f"SHA-256 {have.sha256[:16]}..., {wanted.sha256[:16]}... is listed"
            )


def _unlisted(listed: dict[str, Listed], found: Found) -> Iterator[Problem]:
    """Yield what is there and not listed: files, empty folders, links, pipes, names that do not print."""
    parents = {"/".join(parts[:n]) for p in listed if (parts := p.split("/")) for n in range(1, len(parts))}
    yield from (Problem("extra", path, "not listed") for path in found.files if path not in listed)
    yield from (Problem("extra", path, "a folder without listed files") for path in found.folders - parents)
    yield from (Problem("odd", path, why) for path, why in found.odd.items())


def _signature(folder: Path, data: bytes, allowed: Path | None, identity: str | None) -> sign.Signature:
    try:
        made = manifest.content(folder / SIGNATURE, sign.MOST)
    except ConfigError as exc:
        return sign.Signature("bad", str(exc).removeprefix(f"{folder / SIGNATURE}: "))
    return sign.Signature("unsigned", UNSIGNED) if made is None else sign.look(data, made, allowed, identity)


def text(result: Result) -> str:
    """Return what was found, for a person; of a result that is not intact nothing is quoted."""
    bad = result.problems
    if not bad:
        lines = [f"intact: {result.folder}: {result.files} files, each as {NAME} lists it"]
        lines += [
            f"  in part or left out, as the archive's index says: {shown(name)}"
            for name in result.parts[:SHOWN]
        ]
        lines += [f"  and {len(result.parts) - SHOWN} more"] if len(result.parts) > SHOWN else []
    else:
        lines = [f"NOT INTACT: {result.folder}"]
        lines += [f"  {p.kind:<9} {shown(p.path)}: {p.words}" for p in bad[:SHOWN]]
        lines += [f"  and {len(bad) - SHOWN} more"] if len(bad) > SHOWN else []
    head = {"unsigned": "", "bad": "BAD SIGNATURE: "}.get(result.signature.state, "signed ")
    lines += [head + result.signature.words]
    lines += [] if bad else [f"it says: {result.says}"]
    return "\n".join(lines) + "\n"


def _says(folder: Path) -> str:
    """Return the verdict in report.json, or of all benches together, as text that steers no terminal."""
    if (folder / BENCHES).exists() and not (folder / "report.json").exists():
        return _together(folder / BENCHES)
    try:
        found = saved(folder)
    except ConfigError as exc:
        return clean(str(exc).partition("\n")[0])
    mark = "" if found.get("simulated") is False else " (SIMULATED)"
    return clean(f"{found.get('verdict')!s:.40}: {found.get('headline')!s:.300}{mark}")


def _together(path: Path) -> str:
    """Return the verdict of `certify --all-benches`, and that of each bench."""
    try:
        found = json.loads(manifest.content(path) or b"")
        each = "; ".join(f"{bench['place']!s:.40}: {bench['word']!s:.40}" for bench in found["benches"])
        return clean(f"{found['verdict']!s:.40}: {each:.300}")
    except (ConfigError, ValueError, KeyError, TypeError, RecursionError):
        return f"{path.name} cannot be read"


def as_json(result: Result) -> str:
    """Return what was found, for programs."""
    tree: dict[str, Any] = {
        "schema": SCHEMA,
        "folder": str(result.folder),
        "intact": not result.problems,
        "files": result.files,
        "problems": [asdict(problem) for problem in result.problems],
        "parts": list(result.parts),
        "signature": asdict(result.signature),
    }
    return json.dumps(tree, indent=1, sort_keys=True) + "\n"
