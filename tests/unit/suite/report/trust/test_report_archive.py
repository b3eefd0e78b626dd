"""The archive: what is in it, what is cut, what stays behind, and that keys never leave."""

import gzip
import hashlib
import io
import json
import shutil
import struct
import subprocess
import tarfile
from pathlib import Path

import pytest

from offload.errors import ConfigError, Refused
from offload.suite.report.trust import archive
from offload.suite.report.trust.archive import pack
from offload.suite.report.trust.archive_window import Damaged, blocks, window
from tests.unit.suite.report import report_whole as made
from tests.unit.suite.report.test_report_verbs import call

SECRET = "c0ffee" * 8
LINE = f"CLIENT_RANDOM {'ab' * 32} {SECRET * 2}"
PLANTED = {
    "NSS key log, TLS 1.2": LINE,
    "NSS key log, TLS 1.3": f"SERVER_HANDSHAKE_TRAFFIC_SECRET {'ab' * 32} {SECRET}",
    "application secret": f"client_x CLIENT_TRAFFIC_SECRET_0 {'ab' * 32} {SECRET}",
    "session of s_client": f"    Master-Key: {SECRET.upper()}{SECRET.upper()}",
    "private key": f"-----BEGIN EC PRIVATE KEY-----\n{SECRET}\n-----END EC PRIVATE KEY-----",
}


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    ends = struct.pack(f"{order}I", len(body) + 12)
    return struct.pack(f"{order}I", kind) + ends + body + ends


def packet(number: int, size: int = 1000, order: str = "<") -> bytes:
    data = number.to_bytes(4, "big") + bytes(size - 4)
    return block(6, struct.pack(f"{order}IIIII", 0, 0, number, size, size) + data, order)


def head(order: str = "<") -> bytes:
    """Section and interface."""
    section = block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)
    return section + block(1, struct.pack(f"{order}HHI", 1, 0, 0), order)


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with a small and a large capture."""
    folder = made.folder(tmp_path_factory.mktemp("master"))
    (folder / "captures").mkdir()
    (folder / "captures/small-wire.pcapng").write_bytes(head() + packet(1))
    (folder / "captures/large-wire.pcapng").write_bytes(head() + b"".join(map(packet, range(400))))
    return folder


@pytest.fixture(autouse=True)
def small_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture of 400 packets is a large one here."""
    monkeypatch.setattr(archive, "WINDOW", 100 << 10)


@pytest.fixture
def run(master: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(master, tmp_path / "run")


def content(path: Path) -> dict[str, bytes]:
    """The files of an archive by name, without the folder that all of them are in."""
    data = path.read_bytes()
    if path.suffix == ".zst":
        data = subprocess.run(["zstd", "-dqc", str(path)], check=True, capture_output=True).stdout
    else:
        data = gzip.decompress(data)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        members = tar.getmembers()
        assert all(one.isfile() and (one.uid, one.mtime, one.mode) == (0, 0, 0o644) for one in members)
        assert len({one.name.partition("/")[0] for one in members}) == 1
        return {one.name.partition("/")[2]: tar.extractfile(one).read() for one in members}  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", archive.KINDS)
def test_whole_run_is_in_it(run: Path, tmp_path: Path, kind: str) -> None:
    """The archive has every file of the run, and says of each what it is."""
    if kind == ".tar.zst" and shutil.which("zstd") is None:
        pytest.skip("zstd is not installed")
    packed = pack(run, tmp_path / f"a{kind}")
    found = content(packed.path)
    names = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}
    assert found.keys() == names | {"ARCHIVE.json"} and packed.left == {}
    index = {row["name"]: row for row in json.loads(found["ARCHIVE.json"])["files"]}
    assert all(hashlib.sha256(found[name]).hexdigest() == index[name]["sha256"] for name in names)
    same = names - {"captures/large-wire.pcapng"}
    assert all(found[name] == (run / name).read_bytes() for name in same)
    assert packed.sha256 == hashlib.sha256(packed.path.read_bytes()).hexdigest()


def test_large_capture_is_cut(run: Path, tmp_path: Path) -> None:
    """Of a large capture the first and the last packets are kept, whole, with its digest."""
    packed = pack(run, tmp_path / "a.tar.gz")
    found = content(packed.path)["captures/large-wire.pcapng"]
    numbers = [int.from_bytes(data[28:32], "big") for kind, data in blocks(found) if kind == 6]
    half = len(numbers) // 2
    assert numbers == [*range(half), *range(400 - half, 400)] and 90 < len(numbers) < 105
    entry = next(one for one in packed.entries if one.name == "captures/large-wire.pcapng")
    assert (entry.packets, entry.of_packets) == (len(numbers), 400) and entry.size <= archive.WINDOW + 200
    assert entry.of_sha256 == hashlib.sha256((run / "captures/large-wire.pcapng").read_bytes()).hexdigest()
    assert any("in part" in line and "of 400 packets" in line for line in packed.lines())


def test_same_run_gives_the_same_bytes(run: Path, tmp_path: Path) -> None:
    """Two archives of one run are identical, so that one digest stands for both."""
    assert pack(run, tmp_path / "a.tar.gz").sha256 == pack(run, tmp_path / "b.tar.gz").sha256


@pytest.mark.parametrize("name", ["events.jsonl", "console.log", "report.json", "captures/large-wire.pcapng"])
@pytest.mark.parametrize("kind", PLANTED)
def test_planted_keys_stop_it(run: Path, tmp_path: Path, name: str, kind: str) -> None:
    """No archive is made while a file holds key material, and the file is named."""
    with (run / name).open("ab") as file:
        file.write(b"\n" + PLANTED[kind].encode() if name != "report.json" else b"")
    if name == "report.json":
        tree = json.loads((run / name).read_text())
        (run / name).write_text(json.dumps(tree | {"headline": PLANTED[kind]}))
    with pytest.raises(Refused, match=f"{Path(name).name} holds key material in line") as caught:
        pack(run, tmp_path / "a.tar.gz")
    assert SECRET not in str(caught.value) and not list(tmp_path.glob("*a.tar*"))


def test_keys_in_a_block_of_a_capture_stop_it(run: Path, tmp_path: Path) -> None:
    """A capture that carries session keys of its own is refused, in whatever form they are."""
    secrets = block(10, struct.pack("<II", 0x544C534B, 8) + b"\x00" * 8)
    (run / "captures/small-wire.pcapng").write_bytes(head() + secrets + packet(1))
    with pytest.raises(Refused, match="block of session keys"):
        pack(run, tmp_path / "a.tar.gz")


@pytest.mark.parametrize(
    "name", ["keys-3f2a", "keylog", "sslkeylog.txt", "a.keylog", "server.key", "c.PEM", "id_ed25519"]
)
def test_key_files_stop_it(run: Path, tmp_path: Path, name: str) -> None:
    """A file that is named like one of keys stops the archive, whatever is in it."""
    (run / name).write_text("nothing")
    with pytest.raises(Refused, match="named like a key file"):
        pack(run, tmp_path / "a.tar.gz")


def test_strange_files_stay_behind(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What no run leaves is not handed on, and what stayed behind is named."""
    (run / "core.1234").write_bytes(b"memory of a process")
    (run / "captures/bad.pcapng").write_bytes(head() + b"\x06\x00\x00\x00\xff\xff\xff\xff" + bytes(40))
    (run / "link.txt").symlink_to("/etc/hostname")
    (run / ".hidden.txt").write_text("x")
    assert call("archive", run, tmp_path / "a.tar.gz") == 0
    found, out = content(tmp_path / "a.tar.gz"), capsys.readouterr().out
    assert not {"core.1234", "captures/bad.pcapng", "link.txt", ".hidden.txt"} & found.keys()
    left = json.loads(found["ARCHIVE.json"])["left_out"]
    assert (
        left.keys() == {"core.1234", "captures/bad.pcapng"} and "not a capture" in left["captures/bad.pcapng"]
    )
    assert "left out: core.1234: not a file type that a run produces" in out and "SHA-256" in out


def test_wrong_places_are_refused(run: Path, tmp_path: Path) -> None:
    """A wrong name, a taken one, one among the evidence, or of no run, is refused."""
    (tmp_path / "b.tar.gz").write_text("there")
    with pytest.raises(ConfigError, match=r"ends in \.tar\.zst or \.tar\.gz"):
        pack(run, tmp_path / "a.zip")
    with pytest.raises(ConfigError, match="already exists"):
        pack(run, tmp_path / "b.tar.gz")
    with pytest.raises(ConfigError, match="in the folder of the run"):
        pack(run, run / "a.tar.gz")
    with pytest.raises(ConfigError, match=r"report\.json"):
        pack(tmp_path, tmp_path.parent / "a.tar.gz")
    assert (tmp_path / "b.tar.gz").read_text() == "there" and not list(tmp_path.glob(".ktls*"))


def test_without_zstd_is_one_sentence(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without zstd a .tar.zst is refused with what to do."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refused, match="zstd, which is not installed"):
        pack(run, tmp_path / "a.tar.zst")


@pytest.mark.parametrize("order", "<>")
def test_window_keeps_what_fits(order: str) -> None:
    """A capture of either byte order is whole if it fits, and never cut inside of a packet."""
    packets = [packet(number, 100 + number, order) for number in range(50)]
    data = head(order) + b"".join(packets)
    assert window(data, len(data)) == (whole := window(data, 1 << 30)) and whole.data == data
    for most in (0, 1, 500, 5000):
        part = window(data, most)
        assert (
            part.of == 50 and len(part.data) <= most + len(head(order)) and part.data.startswith(head(order))
        )
        assert sum(one in part.data for one in packets) == part.packets


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_damaged_capture_is_said_to_be(cut: int) -> None:
    """A capture that ends anywhere, or is none, is found out."""
    good = head() + packet(1)
    for data in (good[:-cut], good[cut:], b"\x0a\x0d\x0d\x0a" + bytes(cut)):
        with pytest.raises(Damaged):
            list(blocks(data))
