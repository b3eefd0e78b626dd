"""Put built modules where the kernel finds them first, and take them away again; each step can be undone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from offload.cmd import run
from offload.debian.cache import cache_root
from offload.driver import secure
from offload.driver.build import SBIN, archive_of, built_modules, check, origin
from offload.driver.kinds import Kind
from offload.driver.record import Record, digest, load, save
from offload.driver.target import Target
from offload.driver.tree import MARK, name_of
from offload.errors import ConfigError, NoPermission, OffloadError, Refused, RigError, SwitchFailed
from offload.switch.journal import Journal

Say = Callable[[str], None]
SOURCES = Path("/usr/src")


def search() -> str:
    """Where programs are looked for: a search path may lack sbin."""
    return os.pathsep.join((os.environ.get("PATH", ""), *SBIN))


def found(program: str) -> str | None:
    """The path of a program, or None."""
    return shutil.which(program, path=search())


def command(argv: list[str], timeout: float = 600.0) -> str:
    """Run a program of the system, also one below sbin; its output. RigError with its words if it fails."""
    rc, out, err, _ = run([found(argv[0]) or argv[0], *argv[1:]], timeout=timeout, env={"PATH": search()})
    if rc == 127:
        raise RigError(f"program {argv[0]} is not installed")
    if rc != 0:
        raise RigError(f"`{' '.join(argv)}` ends with {rc}: {err.decode('utf-8', 'replace').strip()[-600:]}")
    return out.decode("utf-8", "replace")


def install(target: Target, kind: Kind, tree: Path, dkms: bool, dry_run: bool, say: Say) -> None:
    """Install what was built in `tree`, and see that the kernel would take it.

    ConfigError if nothing was built; Refused if it does not fit, is there already, or the machine wants
    signatures; NoPermission; SwitchFailed if it failed half-way and was put back.
    """
    _here(target, kind)
    modules = built_modules(kind, tree)
    if not modules or not origin(tree):
        where = f"ktls-offload driver build {kind.name} --kernel {target.release}"
        raise ConfigError(f"no {kind.name} for {target.release} in {tree}", where)
    if not dkms:
        check(target, tree, say)
        _allowed(target, modules)
    elif archive_of(tree) is None:
        raise ConfigError(f"{tree} has no archive for DKMS", "driver build makes it")
    version = origin(tree)
    named = f"{name_of(kind)}/{version}" if dkms else ""
    place = target.modules / "updates/ktls-offload"
    files = {} if dkms else {str(place / path.name): digest(path) for path in modules}
    made = [] if dkms else [str(p) for p in (place, place.parent) if not p.exists()]
    record = Record(kind.name, target.release, version, named, files, made)
    steps = _dkms_steps(record) if dkms else [f"cp {p} {place}/" for p in modules]
    if _listed([*steps, f"depmod {target.release}", *_initramfs(target)], dry_run, say):
        return
    with Journal().locked():
        _here(target, kind)  # another call may have been faster
        _install(target, kind, tree, record, say)
    _next(target, kind, say)


def _listed(steps: Sequence[str], dry_run: bool, say: Say) -> bool:
    """Say every step; whether that was all that was asked for."""
    for step in steps:
        say(f"  {step}")
    if dry_run:
        say("nothing was done (--dry-run)")
    return dry_run


def _here(target: Target, kind: Kind) -> None:
    """Refused for a kernel that is not installed on this machine, or has the driver already."""
    if not target.modules.is_dir() or cache_root() in target.modules.parents:
        raise Refused(
            f"kernel {target.release} is not here: you can build {kind.name} for it, but not install it"
        )
    if load(kind.name, target.release):
        raise Refused(
            f"{kind.name} is already installed for {target.release}",
            f"ktls-offload driver remove {kind.name} --kernel {target.release}",
        )


def _allowed(target: Target, modules: list[Path]) -> None:
    """Refused, with what to do, if this machine loads signed modules only and these are not."""
    gate = secure.gate(target.modules.parents[2])
    unsigned = [path for path in modules if not secure.signed(path)]
    if gate.closed and unsigned:
        raise Refused(
            f"{gate.why}: {', '.join(p.name for p in unsigned)} would not load",
            "\n  ".join(secure.advice(target, unsigned)),
        )


def _install(target: Target, kind: Kind, tree: Path, record: Record, say: Say) -> None:
    """Do it; on failure put back."""
    save(record)
    try:
        if record.dkms:
            _dkms(tree, record)
        else:
            _copy(kind, tree, record)
        _settle(target)
        if not record.dkms:
            _first(target, record)
    except BaseException as trouble:
        _undo(target, record, say)
        if isinstance(trouble, OffloadError):
            raise SwitchFailed(f"{kind.name} was not installed: {trouble}; all changes were undone") from None
        raise


def _copy(kind: Kind, tree: Path, record: Record) -> None:
    """Copy each module whole: a half-written one has another name."""
    try:
        for path in built_modules(kind, tree):
            goal = next(Path(name) for name in record.files if Path(name).name == path.name)
            goal.parent.mkdir(parents=True, exist_ok=True)
            fresh = goal.with_suffix(".new")
            shutil.copyfile(path, fresh)
            fresh.chmod(0o644)
            fresh.replace(goal)
    except PermissionError as exc:
        raise NoPermission(f"cannot write {exc.filename}", "run it as root") from None
    except OSError as exc:
        raise RigError(f"cannot write {exc.filename}: {exc.strerror}") from None


def _root(target: Target) -> str:
    """The folder below which lib/modules is: / for a kernel that is installed here."""
    return str(target.modules.parents[2])


def _settle(target: Target) -> None:
    """Let modprobe, and the initramfs if this machine has one, see what is there now."""
    if not target.modules.is_dir():  # the kernel was removed, and all that was below it
        return
    command(["depmod", "-b", _root(target), target.release])
    for words in _initramfs(target):
        command(words.split(), timeout=1800)


def _initramfs(target: Target) -> list[str]:
    """Return what renews the initramfs: it may hold the kernel's own driver, and the boot would load that
    one."""
    image = target.modules.parents[2] / f"boot/initrd.img-{target.release}"
    there = image.is_file() and found("update-initramfs")
    return [f"update-initramfs -u -k {target.release}"] if there else []


def _first(target: Target, record: Record) -> None:
    """Refused unless modprobe would take each of ours, and not another of that name."""
    for name in record.files:
        argv = ["modinfo", "-b", _root(target), "-k", target.release, "-F", "filename", Path(name).stem]
        taken = command(argv).strip()
        if Path(taken).resolve() != Path(name).resolve():
            raise Refused(f"modprobe would take {taken} and not {name}", "see the search line in depmod.d(5)")


def _dkms_steps(record: Record) -> list[str]:
    """Return what is run to have DKMS build it, for this kernel and those that come."""
    return [f"dkms {verb} {record.dkms} -k {record.release}" for verb in ("add", "build", "install")]


def _dkms(tree: Path, record: Record) -> None:
    """Hand the source to DKMS."""
    archive, folder = archive_of(tree), SOURCES / record.dkms.replace("/", "-")
    assert archive
    if folder.exists() and not _ours(folder):
        raise Refused(f"{folder} exists, and this command did not make it")
    command(["tar", "-xzf", str(archive), "-C", str(SOURCES)])
    for step in _dkms_steps(record):
        words = step.split()
        command(words[:3] if words[1] == "add" else [*words, "--force"], timeout=3 * 3600.0)


def _ours(folder: Path) -> bool:
    """Whether we wrote a source folder of DKMS."""
    conf = folder / "dkms.conf"
    return conf.is_file() and MARK in conf.read_text(errors="replace")


def remove(target: Target, kind: Kind, dry_run: bool, say: Say) -> None:
    """Take away what install put there, and nothing else. ConfigError if nothing of ours is installed."""
    record = load(kind.name, target.release)
    if record is None:
        raise ConfigError(f"{kind.name} is not installed for {target.release}", "ktls-offload driver status")
    steps = [f"dkms remove {record.dkms} --all"] if record.dkms else [f"rm {name}" for name in record.files]
    if _listed([*steps, f"depmod {target.release}", *_initramfs(target)], dry_run, say):
        return
    with Journal().locked():
        _undo(target, record, say)
    # not modprobe -r: it stops at a module that the kernel no longer has a file of, as ch_ktls
    say(f"{kind.name} of Debian's own kernel {target.release} is back: {_reload(kind, 'rmmod')}")


def _undo(target: Target, record: Record, say: Say) -> None:
    """Every step back, done or not; a file that is not as we left it stays, and a line names it."""
    if record.dkms:
        with suppress(RigError):
            command(["dkms", "remove", record.dkms, "--all"], timeout=1800)
        folder = SOURCES / record.dkms.replace("/", "-")
        if _ours(folder):
            shutil.rmtree(folder)
    try:
        for name, sha in record.files.items():
            path = Path(name)
            path.with_suffix(".new").unlink(missing_ok=True)
            if path.is_file() and digest(path) != sha:
                say(f"  {name}: changed since the installation, so it stays")
            else:
                path.unlink(missing_ok=True)
        for name in record.folders:
            with suppress(OSError):  # not empty, or never made
                Path(name).rmdir()
    except PermissionError as exc:
        raise NoPermission(f"cannot remove {exc.filename}", "run it as root") from None
    _settle(target)
    record.path.unlink(missing_ok=True)


def _reload(kind: Kind, unload: str) -> str:
    """How the other driver comes into use."""
    return (
        "it is used from the next boot, or after\n"
        f"    {unload} {' '.join(kind.reload)}; modprobe {kind.reload[-1]}\n"
        "  which takes the card's links down for a few seconds"
    )


def _next(target: Target, kind: Kind, say: Say) -> None:
    """The steps after an installation."""
    say(f"{kind.name} with TLS offload is installed for {target.release}: {_reload(kind, 'modprobe -r')}")
    say("next: ktls-offload doctor; to go back to the old driver:")
    say(f"    ktls-offload driver remove {kind.name} --kernel {target.release}")
