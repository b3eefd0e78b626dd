"""The lab's first file system: a cpio archive with busybox, kernel modules, the agent and an init."""

from __future__ import annotations

import lzma
import shlex
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from offload.cmd import run
from offload.errors import RigError
from offload.paths import PACKAGE

TYPE_DIR, TYPE_FILE, TYPE_CHAR = 0o040000, 0o100000, 0o020000
GUEST = PACKAGE / "suite/bench/vm/guest"
MERGED = ("ghash_generic",)  # modules of older kernels: in 7.2 gcm calls a library that is built in
TMPFS = ("/tmp", "/run", "/dev/shm")  # what the guest has of its own, hiding the host's


class Cpio:
    """Writes the "newc" format (Documentation/driver-api/early-userspace/buffer-format.rst), root-owned."""

    def __init__(self) -> None:
        self._out = bytearray()
        self._dirs: set[str] = set()
        self._inode = 1

    def _entry(self, name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        self._inode += 1
        raw = name.encode() + b"\0"
        numbers = (self._inode, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(raw), 0)
        self._out += b"070701" + b"".join(b"%08X" % n for n in numbers) + raw
        self._pad()
        self._out += data
        self._pad()

    def _pad(self) -> None:
        self._out += b"\0" * (-len(self._out) % 4)

    def folder(self, name: str) -> None:
        """A folder and those above it, once each."""
        parts = name.strip("/").split("/")
        for depth in range(1, len(parts) + 1):
            path = "/".join(parts[:depth])
            if path and path not in self._dirs:
                self._dirs.add(path)
                self._entry(path, TYPE_DIR | 0o755)

    def file(self, name: str, data: bytes, mode: int = 0o644) -> None:
        """A file, with its folders."""
        self.folder(str(Path(name).parent).strip("."))
        self._entry(name.strip("/"), TYPE_FILE | mode, data)

    def console(self) -> None:
        """/dev/console: without it init has no outputs."""
        self.folder("dev")
        self._entry("dev/console", TYPE_CHAR | 0o600, device=(5, 1))

    def done(self) -> bytes:
        """The archive."""
        self._entry("TRAILER!!!", 0)
        return bytes(self._out) + b"\0" * (-len(self._out) % 512)


def module_order(modules: Path, names: Iterable[str]) -> list[Path]:
    """Files of the named modules and all that they need, in loading order.

    Those that are built in are left out, or that newer kernels have no more. RigError for another that the
    kernel lacks.
    """
    tree: dict[str, tuple[str, list[str]]] = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        path, _, rest = line.partition(":")
        tree[module_name(path)] = (path, rest.split())
    builtin = {module_name(p) for p in (modules / "modules.builtin").read_text().split()}
    chosen: list[str] = []
    for name in names:
        if name not in tree:
            if name not in builtin and name not in MERGED:
                raise RigError(f"kernel {modules.name} has no module {name}")
            continue
        file, needs = tree[name]
        # modules.dep lists direct and indirect needs, the deepest last
        chosen += [p for p in [*reversed(needs), file] if p not in chosen]
    return [modules / p for p in chosen]


def module_name(path: str) -> str:
    """aesni_intel for kernel/arch/x86/crypto/aesni-intel.ko.xz."""
    return Path(path).name.split(".")[0].replace("-", "_")


def unpacked(path: Path) -> bytes:
    """A module as the kernel's loader wants it."""
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".zst":
        rc, out, err, _ = run(["zstd", "-dc"], input=data)
        if rc != 0:
            raise RigError(f"zstd cannot unpack {path.name}: {err.decode('utf-8', 'replace').strip()}")
        return out
    return data


@lru_cache(maxsize=1)
def busybox() -> bytes:
    """The static busybox of the host."""
    found = shutil.which("busybox")
    if not found:
        raise RigError("no busybox", "apt-get install busybox-static")
    data = Path(found).read_bytes()
    if b"/ld-linux" in data[:4096]:
        raise RigError(f"{found} is not static", "apt-get install busybox-static")
    return data


# what init does first, what makes the guest's root of the shares below /new, and how it ends there.
# NO_WAKEUP_PREEMPTION: under TCG each switch of processes costs the caches of translated code and pages, and
# capture, wire and both ends of a connection wake for each packet. So who runs goes on until it
# waits or has used its time.
HEAD = """\
#!/busybox sh
b=/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs dev /dev
for m in /modules/*; do $b insmod "$m" || echo "lab: cannot load $m"; done
"""
ROOT = """\
nine=trans=virtio,version=9p2000.L,access=any
$b mount -t 9p -o ro,msize=512000,cache=loose,$nine root /lower || echo "lab: no root share"
$b mount -t tmpfs -o mode=755 rw /rw
$b mkdir /rw/up /rw/work
$b mount -t overlay -o lowerdir=/lower,upperdir=/rw/up,workdir=/rw/work,index=off,xino=off root /new
for d in proc sys dev; do $b mount --move /$d /new/$d; done
$b mount -t debugfs debugfs /new/sys/kernel/debug
echo NO_WAKEUP_PREEMPTION > /new/sys/kernel/debug/sched/features
$b mount -t tracefs tracefs /new/sys/kernel/tracing
$b mkdir -p /new/dev/pts /new/dev/shm
$b mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /new/dev/pts
%(run)s
for d in %(tmpfs)s; do $b mkdir -p /new$d; $b mount -t tmpfs -o mode=1777 tmpfs /new$d; done
for d in %(binds)s; do $b mkdir -p "/new$d"; $b mount --bind "/lower$d" "/new$d" || echo "lab: no $d"; done
$b mkdir -p /new/usr/lib/modules
$b ln -s %(modules)s /new/usr/lib/modules/
$b mount -t 9p -o msize=131072,cache=none,$nine out /new/run/lab/out || echo "lab: no results share"
$b hostname lab
"""
NEW_RUN = """\
$b mkdir -p /new/run
$b mount -t tmpfs -o mode=755 tmpfs /new/run
$b mkdir -p /new/run/lab/out
$b cp -r /lab/. /new/run/lab/"""
AGENT = """\
export PYTHONPATH=/run/lab/python TMPDIR=%(temp)s PYTHONDONTWRITEBYTECODE=1
exec %(switch)s%(python)s -S -s -c 'import sys; from offload.suite.bench.vm.guest.agent import main; main([])'
"""
# a lab's agent begins without any share, and mounts them (SHARES) when it is told to: until then the VM can
# be kept as it is (snapshot.py), which QEMU refuses while a share is mounted
EARLY = """\
$b mount -t tmpfs -o mode=755 tmpfs /run
$b mkdir -p /run/lab/out /sbin
$b cp -r /lab/. /run/lab/
$b ln -s /busybox /sbin/insmod
"""
SHARES = "/shares.sh"


def below_tmpfs(paths: Iterable[Path]) -> list[str]:
    """Those folders that the guest's own tmpfs would hide, outermost only."""
    hidden: list[str] = []
    own = (*TMPFS, tempfile.gettempdir())
    for path in sorted({str(p.resolve()) for p in paths}):
        if any(path.startswith(f"{top}/") for top in own) and not any(
            path == h or path.startswith(f"{h}/") for h in hidden
        ):
            hidden.append(path)
    return hidden


def init_script(modules: Path, visible: Sequence[Path], python: str) -> str:
    """The shell script that turns the shares into the guest's root and becomes the agent there."""
    return HEAD + _filled(ROOT + AGENT, modules, visible, python, NEW_RUN, "$b switch_root /new ")


def early_init(python: str) -> str:
    """The shell script that becomes the agent before there is any share."""
    return HEAD + EARLY + _filled(AGENT, Path(), (), python)


def shares_script(modules: Path, visible: Sequence[Path]) -> str:
    """The shell script that makes the root of a lab whose agent runs."""
    return "b=/busybox\n" + _filled(
        ROOT, modules, visible, "", "$b mkdir -p /new/run; $b mount --move /run /new/run"
    )


def _filled(
    text: str, modules: Path, visible: Sequence[Path], python: str, run: str = "", switch: str = ""
) -> str:
    """A script with its words in their places."""
    temp = tempfile.gettempdir()
    words = {
        "tmpfs": shlex.join(sorted({*TMPFS, temp} - {"/run"})),
        "binds": shlex.join(below_tmpfs(visible)),
        "modules": shlex.quote(str(modules)),
        "temp": shlex.quote(temp),
        "python": shlex.quote(python),
        "run": run,
        "switch": switch,
    }
    return text % words


def build(
    modules: Sequence[Path], files: Mapping[str, bytes], init: str, more: Mapping[str, bytes] | None = None
) -> bytes:
    """The archive: busybox, modules in their order, files below /lab, the agent, and the init.

    `more`: programs, and what they need, by their paths.
    """
    cpio = Cpio()
    for folder in ("proc", "sys", "dev", "run", "lower", "rw", "new", "modules"):
        cpio.folder(folder)
    cpio.console()
    cpio.file("busybox", busybox(), 0o755)
    for number, path in enumerate(modules):
        cpio.file(f"modules/{number:03}-{module_name(path.name)}.ko", unpacked(path))
    for path in sorted(GUEST.glob("*.py")):
        cpio.file(f"lab/python/{path.relative_to(PACKAGE.parent)}", path.read_bytes())
    for package in GUEST.relative_to(PACKAGE.parent).parents[:-1]:
        cpio.file(f"lab/python/{package}/__init__.py", b"")
    for name, data in files.items():
        cpio.file(f"lab/{name}", data)
    for name, data in (more or {}).items():
        cpio.file(name, data, 0o755)
    cpio.file("init", init.encode(), 0o755)
    return cpio.done()
