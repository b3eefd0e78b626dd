"""`ktls-offload driver build`: a driver with the option that Debian left out, built and checked."""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from offload.cli import main as cli
from offload.debian.cache import locked
from offload.driver import build, kinds, secure, target, tree
from offload.errors import ConfigError, Refused, RigError
from tests.unit.driver.fake_driver import FAKE, RELEASE, SYMVERS, VERSION, Fake, debian


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small Debian; tests work on copies."""
    return debian(tmp_path_factory.mktemp("driver") / "root").root


@pytest.fixture
def fake(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """The machine of one test, and a cache of its own."""
    shutil.copytree(template, tmp_path / "root", symlinks=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("KTLS_OFFLOAD_STATE", str(tmp_path / "state"))
    return Fake(tmp_path / "root")


def made(fake: Fake, said: list[str] | None = None) -> Path:
    """The folder of a driver that was built from the archive."""
    lines = [] if said is None else said
    return build.build(fake.target(), FAKE, None, fake.archive, 1, lines.append)


def test_a_driver_is_built_and_fits(fake: Fake) -> None:
    """The option reaches the code, and what the kernel's modules rely on is unchanged."""
    said: list[str] = []
    folder = made(fake, said)
    assert [p.name for p in build.built_modules(FAKE, folder)] == ["fake.ko"]
    assert f"  ok   fake: vermagic {RELEASE} SMP mod_unload" in said
    assert "  ok   fake has fake_ktls: built with CONFIG_FAKE_TLS" in said
    assert "  ok   fake: all 1 exported symbols keep their CRC; these need no rebuild: fake_ib" in said
    assert build.origin(folder) == VERSION


def test_only_the_drivers_files_are_taken(fake: Fake) -> None:
    """The archive for DKMS holds the driver's source, and nothing that was built."""
    folder = made(fake)
    packed = build.archive_of(folder)
    assert packed
    with tarfile.open(packed) as archive:
        names = {n.removeprefix(f"ktls-offload-fake-{VERSION}/") for n in archive.getnames()}
    ours = {"Kbuild", "Makefile", "dkms.conf", "check", "COPYING"}
    assert names == ours | {"drivers/net/fake/fake.c", "drivers/net/other/other.h"}


def test_a_second_build_fetches_nothing(fake: Fake) -> None:
    """What an earlier call did is not done again."""
    made(fake)
    fake.archive.unlink()
    said: list[str] = []
    build.build(fake.target(), FAKE, None, fake.archive, 1, said.append)
    assert said[0].endswith("has it")


def test_drivers_of_two_kernels_are_built_side_by_side(fake: Fake) -> None:
    """A build that runs for another kernel is not waited for."""
    tree = build.place(FAKE, RELEASE, None)

    def say(line: str) -> None:
        assert not line.startswith("waiting"), line

    with locked(build.lock_of(tree.with_name(f"{FAKE.name}-6.12.0-1-amd64"))):
        build.build(fake.target(), FAKE, None, fake.archive, 1, say)
    assert build.origin(tree) == VERSION


@pytest.mark.parametrize(("here", "noted"), [(["gcc-14"], False), ([], True)])
def test_another_compiler_is_noted(
    fake: Fake, monkeypatch: pytest.MonkeyPatch, here: list[str], noted: bool
) -> None:
    """A person hears it if the kernel's own compiler, as 7.2 names it, is not installed."""
    text = '"x86_64-linux-gnu-gcc-14 (Debian 14.2.0-19) 14.2.0"'
    known = fake.target()
    found = replace(known, config={**known.config, "CONFIG_CC_VERSION_TEXT": text})
    monkeypatch.setattr("shutil.which", lambda name, **how: name if name in here else None)
    monkeypatch.setattr(build, "run", lambda argv, **how: (0, b"", b"", 0.1))
    said: list[str] = []
    (fake.root / "tree").mkdir()
    build._make(found, FAKE, fake.root / "tree", 1, said.append)
    assert any("kernel was built with gcc-14, but this is gcc" in line for line in said) == noted, said


def test_dkms_config_names_what_to_build(fake: Fake) -> None:
    """DKMS rebuilds for kernels of the same series only, through the same checks."""
    conf = tree.texts(fake.target(), kinds.kind("ch_ktls"))["dkms.conf"]
    assert 'PACKAGE_NAME="ktls-offload-ch_ktls"' in conf
    assert 'BUILD_EXCLUSIVE_KERNEL="^6\\.1\\."' in conf
    assert 'BUILT_MODULE_NAME[1]="ch_ktls"' in conf
    assert 'MAKE[0]="make KVER=$kernelver KDIR=$kernel_source_dir all"' in conf


def spoiled(fake: Fake, path: str, change: Callable[[str], str]) -> None:
    """Change a file of the machine."""
    file = fake.root / path
    fake.put(path, change(file.read_text()))


AT, LIB = f"usr/src/linux-headers-{RELEASE}", f"lib/modules/{RELEASE}"


@pytest.mark.parametrize(
    "path, change, words",
    [
        (f"{AT}/ours.symvers", lambda t: t.replace("2222", "3333"), "1 of 1 exported symbols have a new CRC"),
        (f"{AT}/ours.symvers", lambda t: t.replace("fake_send", "fake_gone"), "are missing: fake_send"),
        (f"{AT}/Module.symvers", lambda t: SYMVERS.format(crc="00000000"), "this kernel has no CRCs"),
        (f"{AT}/Makefile", lambda t: t.replace("SMP", "UP"), "and the kernel's is"),
        (
            f"{AT}/Makefile",
            lambda t: t.replace("$(subdir-ccflags-y)", "-I$(M)/drivers/net/other"),
            "did not take",
        ),
    ],
    ids=["crc", "gone", "no-crc", "vermagic", "option"],
)
def test_what_does_not_fit_is_refused(
    fake: Fake, path: str, change: Callable[[str], str], words: str
) -> None:
    """A module that the kernel, or another module, could not live with is not installed."""
    spoiled(fake, path, change)
    said: list[str] = []
    with pytest.raises(Refused, match="do not install these modules"):
        made(fake, said)
    assert [line for line in said if line.startswith("  BAD") and words in line]


def test_without_crcs_the_headers_decide(fake: Fake) -> None:
    """A kernel without CRCs is served if no header that others include knows the option."""
    spoiled(fake, f"{AT}/Module.symvers", lambda t: SYMVERS.format(crc="00000000"))
    header = fake.put(f"{AT}/include/linux/fake/driver.h", "struct fake { int a; };\n")
    said: list[str] = []
    made(fake, said)
    assert [line for line in said if "no header in include/linux/fake knows CONFIG_FAKE_TLS" in line]
    header.write_text("#ifdef CONFIG_FAKE_TLS\n#endif\n")
    with pytest.raises(Refused):
        made(fake)


def test_a_rebuilt_dependent_may_have_new_crcs(fake: Fake) -> None:
    """New CRCs are right where every module that uses them was built with them."""
    spoiled(fake, f"{AT}/ours.symvers", lambda t: t.replace("2222", "3333"))
    spoiled(
        fake,
        f"{LIB}/modules.dep",
        lambda t: t.replace("fake_ib.ko: kernel/drivers/net/fake/fake.ko", "fake_ib.ko:"),
    )
    said: list[str] = []
    made(fake, said)
    assert [line for line in said if "every module that uses them was built with it" in line]


def test_what_does_not_compile_is_shown(fake: Fake) -> None:
    """The compiler's words are in the error, and the log's place."""
    spoiled(fake, f"{AT}/Makefile", lambda t: t.replace("fake.c", "lost.c"))
    with pytest.raises(RigError, match=r"(?s)fake does not build for .*lost\.c.*build\.log"):
        made(fake)


def test_what_was_edited_is_compiled_again(fake: Fake) -> None:
    """The source stays as somebody left it, and what does not compile is shown; nobody asks whether it may be
    installed."""
    folder = made(fake)
    source, module = folder / "drivers/net/fake/fake.c", build.built_modules(FAKE, folder)[0]
    source.write_text(f"{source.read_text()}\nint edited_by_a_person;\n")
    os.utime(source, (source.stat().st_mtime + 60,) * 2)
    build.compile_again(fake.target(), FAKE, folder, 1, print)
    assert b"edited_by_a_person" in module.read_bytes() and "edited_by_a_person" in source.read_text()
    source.write_text("int broken(")
    os.utime(source, (source.stat().st_mtime + 120,) * 2)
    with pytest.raises(RigError, match=r"(?s)fake does not build for .*build\.log"):
        build.compile_again(fake.target(), FAKE, folder, 1, print)


def test_another_version_of_the_source_is_not_taken(fake: Fake) -> None:
    """An archive of another kernel version is refused, and nothing is left of it."""
    spoiled(fake, f"{AT}/include/generated/compile.h", lambda t: t.replace("6.1.200-1", "6.1.201-1"))
    with pytest.raises(ConfigError, match=r"is Linux 6\.1\.200, and kernel .* is 6\.1\.201"):
        made(fake)
    assert not build.place(FAKE, RELEASE, None).exists()


def test_a_folder_of_somebody_else_stays(fake: Fake) -> None:
    """--out never overwrites what this command did not make."""
    folder = build.place(FAKE, RELEASE, None)
    folder.mkdir(parents=True)
    (folder / "thesis.tex").write_text("mine")
    with pytest.raises(Refused, match="did not make it"):
        made(fake)
    assert (folder / "thesis.tex").read_text() == "mine"


@pytest.mark.parametrize(
    "path, change, error, words",
    [
        ("etc/os-release", lambda t: t.replace("debian", "ubuntu"), Refused, "drivers of Debian's kernels"),
        (
            f"{AT}/include/generated/compile.h",
            lambda t: t.replace("Debian", "#1"),
            Refused,
            "not one that Debian",
        ),
        (f"{AT}/.config", lambda t: t + "CONFIG_FAKE_TLS=y\n", Refused, "has CONFIG_FAKE_TLS=y already"),
        (f"{AT}/.config", lambda t: "", Refused, "lacks CONFIG_FAKE=m"),
    ],
    ids=["ubuntu", "own-kernel", "set", "flavour"],
)
def test_a_kernel_that_needs_none_or_cannot_is_refused(
    fake: Fake, path: str, change: Callable[[str], str], error: type[Exception], words: str
) -> None:
    """One sentence says why there is nothing to build."""
    spoiled(fake, path, change)
    with pytest.raises(error, match=words):
        made(fake)


def test_missing_headers_and_programs_are_named(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says which package to install."""
    with pytest.raises(ConfigError, match="apt install linux-headers-6.1.0-1-amd64"):
        target.find("6.1.0-1-amd64", fake.root)
    with pytest.raises(ConfigError, match=r"no kernel 6\.1 here\n.*ktls-offload lab fetch 6\.1;"):
        target.find("6.1", fake.root)
    with pytest.raises(ConfigError, match=r"no kernel 6\.5 here\n.*it has 6\.1, 6\.12, 7\.2; or name"):
        target.find("6.5", fake.root)
    monkeypatch.setattr(build, "SBIN", ())
    found = fake.target()
    monkeypatch.setenv("PATH", str(fake.root))
    with pytest.raises(ConfigError, match=r"(?s)not installed: make, gcc.*apt install make gcc"):
        build.build(found, FAKE, None, fake.archive, 1, print)


@pytest.mark.parametrize(
    "path, raw, closed, words",
    [
        ("nothing", b"", False, "no Secure Boot"),
        (secure.SECURE_BOOT, b"\6\0\0\0\0", False, "off"),
        (secure.SECURE_BOOT, b"\6\0\0\0\1", True, "Secure Boot is on"),
        (secure.LOCKDOWN, b"none [integrity] confidentiality\n", True, "locked down"),
        (secure.LOCKDOWN, b"[none] integrity confidentiality\n", False, "no Secure Boot"),
        (secure.LOCKDOWN, b"\xff\x1b[31m", False, "no Secure Boot"),
    ],
)
def test_secure_boot_is_seen(tmp_path: Path, path: str, raw: bytes, closed: bool, words: str) -> None:
    """A machine that loads signed modules only is recognized."""
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(raw)
    gate = secure.gate(tmp_path)
    assert (gate.closed, words in gate.why) == (closed, True)


def test_the_command_names_what_is_wrong(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    """Bad input ends in a sentence with a hint and exit code 2, status in 0."""
    for words, hint in (
        (["build", "mlx6"], "did you mean mlx5?"),
        (["build", "mlx5", "--kernel", "../../etc"], "is not a kernel release"),
        (["build", "mlx5", "--kernel", "6.1.0-0-amd64"], "apt install linux-headers-6.1.0-0-amd64"),
        (["build", "mlx5", "-j", "0"], "at least 1"),
        (["remove", "mlx5", "--kernel", "6.1.0-0-amd64"], "is not installed"),
    ):
        assert cli.main(["driver", *words]) == 2, words
        assert hint in capsys.readouterr().err
    assert cli.main(["driver", "status"]) == 0
    assert "nothing is built" in capsys.readouterr().out
