"""The manifest of a result: whatever is done to a file, to the list or to the folder is found."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from offload.errors import ConfigError
from offload.suite.report.trust import manifest
from offload.suite.report.trust.verify import check, compare, text

FILES = {
    "events.jsonl": b'{"event": "run-start"}\n' * 9,
    "report.html": b"<!DOCTYPE html><p>certified",
    "report.json": b'{"verdict": "certified"}\n',
    "evidence/wire/first.pcap": bytes(range(256)),
    "evidence/empty.log": b"",
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A result with evidence, and its manifest."""
    for name, data in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    manifest.write(tmp_path)
    return tmp_path


def kinds(folder: Path) -> set[tuple[str, str]]:
    """What is wrong with a folder, as kind and path."""
    return {(problem.kind, problem.path) for problem in compare(folder).problems}


def test_untouched_result_is_intact(run: Path) -> None:
    """A result that nobody touched is intact, and every file but the manifest is listed."""
    listed = manifest.parse((run / manifest.NAME).read_bytes())
    assert isinstance(listed, dict) and sorted(FILES) == list(listed)
    assert listed["report.json"].size == len(FILES["report.json"])
    found = check(run)
    assert (found.problems, found.files, found.signature.state) == ((), 5, "unsigned")
    assert "intact" in text(found) and "unsigned: " in text(found)


def test_sha256sum_can_check_it_too(run: Path) -> None:
    """The digests of a manifest are the plain SHA-256 of the files, each in hexadecimal."""
    import hashlib

    for row in json.loads((run / manifest.NAME).read_bytes())["files"]:
        assert row["sha256"] == hashlib.sha256(FILES[row["path"]]).hexdigest()


@pytest.mark.parametrize("name", [*[name for name, data in FILES.items() if data], manifest.NAME])
def test_any_flipped_byte_is_found(run: Path, name: str) -> None:
    """One bit that flips in any byte of any file, the manifest too, is found, where it is."""
    data = (run / name).read_bytes()
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        (run / name).write_bytes(changed)
        problems = compare(run).problems
        assert problems, f"byte {place} of {name}"
        assert name == manifest.NAME or [(p.kind, p.path) for p in problems] == [("changed", name)]
    (run / name).write_bytes(data)
    assert not compare(run).problems


def socket_at(path: Path) -> None:
    """A socket in the file system; a folder away, as such a path may only be short."""
    with socket.socket(socket.AF_UNIX) as end:
        here = Path.cwd()
        os.chdir(path.parent)
        try:
            end.bind(path.name)
        finally:
            os.chdir(here)


CHANGES: list[tuple[Callable[[Path], object], tuple[str, str]]] = [
    (lambda run: (run / "report.html").unlink(), ("missing", "report.html")),
    (lambda run: (run / "evidence/wire/first.pcap").unlink(), ("missing", "evidence/wire/first.pcap")),
    (lambda run: (run / "more").write_bytes(b""), ("extra", "more")),
    (lambda run: (run / "evidence/.more").write_bytes(b""), ("extra", "evidence/.more")),
    (lambda run: (run / "evidence/manifest.json").write_bytes(b""), ("extra", "evidence/manifest.json")),
    (lambda run: (run / "nothing").mkdir(), ("extra", "nothing")),
    (lambda run: (run / "report.html").write_bytes(b""), ("changed", "report.html")),
    (lambda run: (run / "evidence/empty.log").write_bytes(b"x"), ("changed", "evidence/empty.log")),
    (lambda run: (run / "link").symlink_to("report.html"), ("odd", "link")),
    (lambda run: (run / "up").symlink_to("/etc"), ("odd", "up")),
    (lambda run: os.mkfifo(run / "pipe"), ("odd", "pipe")),
    (lambda run: socket_at(run / "socket"), ("odd", "socket")),
    (lambda run: (run / "a\nb").write_bytes(b""), ("odd", "a\nb")),
    (lambda run: (run / "a\u202eb").write_bytes(b""), ("odd", "a\u202eb")),
    (lambda run: (run / "a\\b").write_bytes(b""), ("odd", "a\\b")),
    (lambda run: (run / os.fsdecode(b"\xff")).write_bytes(b""), ("odd", "\udcff")),
    (lambda run: (run / manifest.NAME).unlink(), ("manifest", manifest.NAME)),
]


@pytest.mark.parametrize(
    ("change", "what"), CHANGES, ids=[f"{kind}-{n}" for n, (_, (kind, _)) in enumerate(CHANGES)]
)
def test_other_changes_are_found(run: Path, change: Callable[[Path], object], what: tuple[str, str]) -> None:
    """What is missing, too much, a link, a pipe or has no name is found, and can be shown."""
    change(run)
    assert kinds(run) == {what}
    assert "NOT INTACT" in text(check(run)) and text(check(run)).isascii()


@pytest.mark.parametrize("name", ["report.json", "evidence", manifest.NAME])
def test_link_in_place_of_what_was_there_is_found(
    run: Path, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A link to a file or folder with the very same content is found."""
    away = tmp_path_factory.mktemp("away") / name
    (run / name).rename(away)
    (run / name).symlink_to(away)
    assert ("manifest" if name == manifest.NAME else "odd", name) in kinds(run)


def row(**more: object) -> dict[str, object]:
    """An entry of a manifest."""
    return {"path": "report.json", "sha256": "0" * 64, "size": 1} | more


def tree(*rows: object, **more: object) -> bytes:
    """A manifest of these entries."""
    return json.dumps({"files": list(rows), "schema": manifest.SCHEMA} | more, indent=1).encode() + b"\n"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "not a manifest"),
        (b"\xff{}", "not JSON in UTF-8"),
        (b"[" * 200_000, "not JSON"),
        (b" " * (manifest.MOST_BYTES + 1), "larger than 8 MiB"),
        (tree(schema="ktls-offload/manifest/2"), "schema"),
        (tree(files={}), "not a manifest"),
        (tree(*[1] * 20_001), "more than 20000"),
        (tree(row(), row()), "file 2: listed twice"),
        (tree(3), "wanted path"),
        (tree({"path": "a"}), "wanted path"),
        (tree(row(mode=1)), "wanted path"),
        (tree(row(size=-1)), "size -1"),
        (tree(row(size=True)), "size True"),
        (tree(row(size=1.0)), "size 1.0"),
        (tree(row(size=1 << 63)), "size 922"),
        (b'{"files": [{"size": ' + b"9" * 5000, "not JSON"),
        (tree(row(sha256="0" * 63)), "sha256"),
        (tree(row(sha256="A" * 64)), "sha256"),
        (tree(row(sha256=None)), "sha256"),
        (tree(row(path="../x")), "leads out"),
        (tree(row(path="a/../../x")), "leads out"),
        (tree(row(path="/etc/passwd")), "leads out"),
        (tree(row(path="./x")), "leads out"),
        (tree(row(path="a//x")), "leads out"),
        (tree(row(path="a/")), "leads out"),
        (tree(row(path="")), "path ''"),
        (tree(row(path=3)), "path 3"),
        (tree(row(path="a\0b")), "do not print"),
        (tree(row(path="a\x1b[2Jb")), "do not print"),
        (tree(row(path="..\\x")), "do not print"),
        (tree(row(path="\ud800")), "do not print"),
        (tree(row(path="x" * 1025)), "longer than 1024"),
        (tree(row(path="\u20ac" * 342)), "longer than 1024"),
        (tree(row(path="manifest.json")), "own"),
        (tree(row(path="manifest.json.sig")), "own"),
        (tree(row(path="b"), row(path="a")), "canonical"),
        (tree(row(), note=1), "canonical"),
        (tree(row())[:-1], "canonical"),
        (tree(row()) + b"\n", "canonical"),
        (tree(row()).replace(b"report", b"repor\\u0074"), "canonical"),
        (tree(row()).replace(b'"size": 1', b'"size": 2, "size": 1'), "canonical"),
    ],
)
def test_hostile_manifest_is_refused(run: Path, data: bytes, why: str) -> None:
    """A manifest that leads elsewhere, is huge, ambiguous or no manifest opens no file."""
    found = manifest.parse(data)
    assert isinstance(found, str) and why in found
    (run / manifest.NAME).write_bytes(data)
    assert kinds(run) == {("manifest", manifest.NAME)}
    assert text(check(run)).isprintable() or text(check(run)).isascii()


def test_only_what_is_below_the_folder_is_opened(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even a path that passed the check opens nothing that the walk did not find."""
    outside = run.parent / "outside"
    outside.write_bytes(b"x")
    monkeypatch.setattr(manifest, "path_problem", lambda path: "")
    (run / manifest.NAME).write_bytes(manifest.render({"../outside": manifest.measure(outside)}))
    assert ("missing", "../outside") in kinds(run)


@pytest.mark.parametrize("name", ["a\nb", os.fsdecode(b"\xff")])
def test_what_cannot_be_listed_is_said_when_it_is_written(run: Path, name: str) -> None:
    """A file whose name no manifest can hold is named, in characters that print."""
    (run / name).write_bytes(b"")
    with pytest.raises(ConfigError, match="do not print") as caught:
        manifest.write(run)
    assert str(caught.value).splitlines()[0].isascii()


def test_no_folder_is_one_line(tmp_path: Path) -> None:
    """A folder that is none is a mistake of who typed it, not damage."""
    (tmp_path / "file").write_bytes(b"")
    for name, why in (("none", "No such file"), ("file", "Not a directory")):
        with pytest.raises(ConfigError, match=why):
            check(tmp_path / name)
