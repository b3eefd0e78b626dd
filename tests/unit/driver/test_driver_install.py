"""`ktls-offload driver install` and `remove`: what was there is there again, whatever happened in between."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from offload.driver import build, install, record, secure, status
from offload.driver.kinds import kinds
from offload.driver.target import bare
from offload.errors import ConfigError, OffloadError, Refused, RigError, SwitchFailed
from tests.lib.rig.schemas import fits
from tests.unit.driver.fake_driver import FAKE, RELEASE, Fake, debian


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small Debian for whose kernel the driver is built; tests work on copies."""
    base = tmp_path_factory.mktemp("driver")
    fake = debian(base / "root")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(base / "cache"))
        build.build(fake.target(), FAKE, None, fake.archive, 1, lambda _: None)
    yield base


@pytest.fixture
def fake(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """The machine of one test."""
    shutil.copytree(template, tmp_path / "base", symlinks=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "base/cache"))
    monkeypatch.setenv("KTLS_OFFLOAD_STATE", str(tmp_path / "state"))
    return Fake(tmp_path / "base/root")


def reported(fake: Fake) -> list[str]:
    """What `driver status` says; its document fits the published schema."""
    found = status.gather(None, fake.root)
    fits("driver-status", status.as_json(found))
    return list(status.lines(found))


def put(fake: Fake, dry_run: bool = False) -> list[str]:
    """Install; what was said."""
    said: list[str] = []
    tree = build.place(FAKE, RELEASE, None)
    install.install(fake.target(), FAKE, tree, False, dry_run, said.append)
    return said


def take(fake: Fake, dry_run: bool = False) -> list[str]:
    """Remove; what was said."""
    said: list[str] = []
    install.remove(bare(RELEASE, fake.root), FAKE, dry_run, said.append)
    return said


def taken(fake: Fake) -> str:
    """The module that modprobe would take."""
    argv = ["modinfo", "-b", str(fake.root), "-k", RELEASE, "-F", "filename", "fake"]
    return install.command(argv).strip()


def test_installed_and_removed_is_as_before(fake: Fake) -> None:
    """modprobe takes our module after install, and after remove every byte is as it was."""
    before = fake.files()
    said = put(fake)
    assert taken(fake).endswith("updates/ktls-offload/fake.ko")
    assert any("modprobe -r fake_ib fake; modprobe fake" in line for line in said)
    take(fake)
    assert fake.files() == before
    assert not list(record.all_records())


def test_dry_run_does_nothing(fake: Fake) -> None:
    """--dry-run names each action, and does none."""
    before = fake.files()
    said = put(fake, dry_run=True)
    assert [line for line in said if line.startswith("  cp ")] and said[-1].startswith("nothing was done")
    assert fake.files() == before
    put(fake)
    after = fake.files()
    assert take(fake, dry_run=True)[-1].startswith("nothing was done")
    assert fake.files() == after


def test_installed_twice_is_refused(fake: Fake) -> None:
    """A second install says so; a remove without one too."""
    put(fake)
    with pytest.raises(Refused, match="is already installed for"):
        put(fake)
    take(fake)
    with pytest.raises(ConfigError, match="is not installed"):
        take(fake)


STEPS = ("save", "_copy", "_settle", "_first")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_any_step_it_can_be_removed(
    fake: Fake, monkeypatch: pytest.MonkeyPatch, step: str, when: str
) -> None:
    """Kill -9 at any step leaves what `driver remove` takes away."""
    before, real = fake.files(), getattr(install, step)

    def dies(*args: object) -> None:
        if when == "after":
            real(*args)
        raise SystemExit(9)

    with monkeypatch.context() as patched:
        patched.setattr(install, step, dies)
        patched.setattr(install, "_undo", lambda *args: None)  # as a killed process has no undo
        with pytest.raises(SystemExit):
            put(fake)
    if record.load("fake", RELEASE):
        take(fake)
    assert fake.files() == before


@pytest.mark.parametrize("step", STEPS[1:])
def test_a_failing_step_is_undone(fake: Fake, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """An install that fails half-way says so and leaves nothing."""
    before, real, calls = fake.files(), getattr(install, step), []

    def fails(*args: object) -> None:
        calls.append(step)
        real(*args)
        if len(calls) == 1:
            raise RigError("no more disk")

    monkeypatch.setattr(install, step, fails)
    with pytest.raises(SwitchFailed, match="no more disk; all changes were undone"):
        put(fake)
    assert fake.files() == before and not list(record.all_records())


def test_a_module_that_modprobe_would_not_take_is_undone(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """An install after which modprobe still takes another module (depmod.d) is undone."""
    before = fake.files()
    monkeypatch.setattr(install, "_settle", lambda target: None)
    with pytest.raises(
        SwitchFailed, match=r"modprobe would take .*/kernel/drivers/net/fake/fake\.ko and not"
    ):
        put(fake)
    assert fake.files() == before


def test_a_file_that_somebody_replaced_stays(fake: Fake) -> None:
    """Remove takes away only what install put there."""
    put(fake)
    ours = fake.modules / "updates/ktls-offload/fake.ko"
    ours.write_bytes(ours.read_bytes() + b"signed by somebody")
    assert any("stays" in line for line in take(fake))
    assert ours.is_file()


def test_secure_boot_wants_a_signature(fake: Fake) -> None:
    """Secure Boot refuses an unsigned module, with how to sign it; a signed one is taken."""
    file = fake.root / secure.SECURE_BOOT
    file.parent.mkdir(parents=True)
    file.write_bytes(b"\6\0\0\0\1")
    with pytest.raises(Refused, match=r"(?s)Secure Boot is on.*sign-file sha256 .*mokutil --import"):
        put(fake)
    module = build.built_modules(FAKE, build.place(FAKE, RELEASE, None))[0]
    module.write_bytes(module.read_bytes() + secure.MAGIC)
    put(fake)
    assert taken(fake).endswith("updates/ktls-offload/fake.ko")


def test_a_kernel_of_the_lab_is_left_alone(fake: Fake, tmp_path: Path) -> None:
    """A driver built for a kernel that is not installed here is not installed either."""
    cached = tmp_path / "base/cache/ktls-offload/kernels" / RELEASE / "root"
    cached.parent.mkdir(parents=True)
    fake.root.rename(cached)
    moved = Fake(cached)
    with pytest.raises(Refused, match="is not here: you can build fake"):
        put(moved)


@pytest.mark.parametrize(
    "change",
    [
        {"files": {"/etc/passwd": "0" * 64}},
        {"files": {f"/lib/modules/{RELEASE}/updates/../../../../etc/passwd": "0" * 64}},
        {"folders": ["/home"]},
        {"dkms": "nvidia/1 --all"},
        {"release": "5.10.0-1-amd64"},
        {"schema": 2},
        {"files": 7},
    ],
    ids=str,
)
def test_a_hostile_record_removes_nothing(fake: Fake, change: dict[str, object]) -> None:
    """A damaged record ends in an error, not in root removing what it names."""
    put(fake)
    path = next((record.folder()).glob("driver-*"))
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    before = fake.files()
    with pytest.raises(ConfigError, match="damaged"):
        take(fake)
    assert fake.files() == before


def test_remove_prints_what_brings_the_other_driver_back(fake: Fake) -> None:
    """The way back names modules one by one: modprobe stops at one whose file has gone."""
    put(fake)
    assert any(
        line.strip() == "rmmod fake_ib fake; modprobe fake" for line in "\n".join(take(fake)).splitlines()
    )


def test_status_tells_what_is_where(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Status names what was built, installed, changed since, and is loaded."""
    monkeypatch.setitem(kinds(), "fake", FAKE)
    assert any("not installed" in line for line in reported(fake))
    put(fake)
    fake.put("sys/module/fake/taint", "OE\n")
    said = "\n".join(reported(fake))
    assert "installed from 6.1.200-1 in updates/ktls-offload" in said
    assert "the loaded fake was built outside the kernel" in said
    (fake.modules / "updates/ktls-offload/fake.ko").unlink()
    assert "is gone" in "\n".join(reported(fake))


def test_nothing_built_nothing_installed(fake: Fake) -> None:
    """Install says which command builds."""
    shutil.rmtree(build.place(FAKE, RELEASE, None))
    with pytest.raises(OffloadError, match="ktls-offload driver build fake"):
        put(fake)
