"""A small Debian with a kernel whose driver lacks an option: enough for make, gcc, nm, modinfo and depmod."""

from __future__ import annotations

import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from offload.driver.kinds import Kind
from offload.driver.target import Target, find

RELEASE, VERSION = "6.1.0-77-amd64", "6.1.200-1"
FAKE = Kind(
    name="fake",
    cards="none",
    option="CONFIG_FAKE_TLS",
    value="y",
    needs={"CONFIG_FAKE": "m"},
    take=("drivers/net/fake", "drivers/net/other/*.h"),
    include=("drivers/net/other",),
    modules={"fake": "drivers/net/fake"},
    witness={"fake": "fake_ktls"},
    public="include/linux/fake",
    reload=("fake_ib", "fake"),
)
CODE = """\
#include <other.h>
static const char magic[] __attribute__((section(".modinfo"), used)) = "vermagic=" MAGIC;
int fake_send(void) { return OTHER; }
asm(".globl __crc_fake_send\\n.set __crc_fake_send, 0x22222222");
#ifdef CONFIG_FAKE_TLS
int fake_ktls(void) { return 1; }
#endif
"""
ABOVE = """\
static const char magic[] __attribute__((section(".modinfo"), used)) = "vermagic=" MAGIC;
extern int fake_send(void);
int above(void) { return fake_send(); }
"""
# stands for kbuild: reads our Kbuild as far as one module needs it, and lists what the module exports
KBUILD = """\
src := $(M)
include $(M)/Kbuild
modules:
	gcc $(subdir-ccflags-y) -DMAGIC='"{release} SMP mod_unload"' -c -o $(M)/drivers/net/fake/fake.ko \\
		$(M)/drivers/net/fake/fake.c
	cp $(KDIR)/ours.symvers $(M)/Module.symvers
"""
SYMVERS = (
    "0x11111111\tprintk\tvmlinux\tEXPORT_SYMBOL\t\n"
    "0x{crc}\tfake_send\tdrivers/net/fake/fake\tEXPORT_SYMBOL\t\n"
)


@dataclass
class Fake:
    """The machine below `root`, and the archive of its kernel's source."""

    root: Path

    @property
    def headers(self) -> Path:
        """The kernel's headers."""
        return self.root / f"usr/src/linux-headers-{RELEASE}"

    @property
    def modules(self) -> Path:
        """The kernel's modules."""
        return self.root / "lib/modules" / RELEASE

    @property
    def archive(self) -> Path:
        """The kernel's source."""
        return self.root / "linux-source-6.1.tar.xz"

    def target(self) -> Target:
        """The kernel as the product sees it."""
        return find(RELEASE, self.root)

    def put(self, path: str, text: str) -> Path:
        """Write a file of the machine."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def files(self) -> dict[str, bytes]:
        """Every file below lib/modules, to see that what was there is there again."""
        found = sorted(p for p in (self.root / "lib").rglob("*"))
        return {str(p.relative_to(self.root)): p.read_bytes() if p.is_file() else b"" for p in found}


def debian(root: Path) -> Fake:
    """A Debian that runs a kernel with driver fake, and fake_ib on top of it."""
    fake = Fake(root)
    fake.put("etc/os-release", 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\n')
    at = f"usr/src/linux-headers-{RELEASE}"
    fake.put(f"{at}/.config", "CONFIG_FAKE=m\n# CONFIG_FAKE_TLS is not set\n")
    banner = f'#define UTS_VERSION "#1 SMP PREEMPT_DYNAMIC Debian {VERSION} (2026-11-16)"\n'
    fake.put(f"{at}/include/generated/compile.h", banner)
    fake.put(f"{at}/Module.symvers", SYMVERS.format(crc="22222222"))
    fake.put(f"{at}/ours.symvers", SYMVERS.format(crc="22222222"))
    fake.put(f"{at}/Makefile", KBUILD.format(release=RELEASE))
    _source(fake, "6.1.200")
    _stock(fake, "fake", CODE.replace("#include <other.h>", "#define OTHER 0"))
    _stock(fake, "fake_ib", ABOVE)
    subprocess.run(["/sbin/depmod", "-b", str(root), RELEASE], check=True)
    return fake


def _source(fake: Fake, version: str) -> None:
    """The archive of the kernel's source."""
    major, minor, sub = version.split(".")
    top = fake.root / "linux-source-6.1"
    lines = f"# SPDX\nVERSION = {major}\nPATCHLEVEL = {minor}\nSUBLEVEL = {sub}\nEXTRAVERSION =\n"
    for path, text in {
        "Makefile": lines,
        "COPYING": "GPL-2.0\n",
        "drivers/net/fake/fake.c": CODE,
        "drivers/net/other/other.h": "#define OTHER 0\n",
        "drivers/net/other/other.c": "not wanted\n",
    }.items():
        fake.put(f"linux-source-6.1/{path}", text)
    with tarfile.open(fake.archive, "w:xz") as packed:
        packed.add(top, top.name)


def _stock(fake: Fake, name: str, text: str) -> None:
    """A module as Debian built it."""
    code = fake.put(f"{name}.c", text)
    goal = fake.modules / f"kernel/drivers/net/fake/{name}.ko"
    goal.parent.mkdir(parents=True, exist_ok=True)
    argv = ["gcc", f'-DMAGIC="{RELEASE} SMP mod_unload"', "-c", "-o", str(goal), str(code)]
    subprocess.run(argv, check=True)
