"""The folder in which a driver is built: Debian's files, and ours for kbuild, a person, or DKMS."""

from __future__ import annotations

import tarfile
from pathlib import Path

from offload.driver.kinds import Kind
from offload.driver.target import Target
from offload.paths import PACKAGE

MARK = "written by ktls-offload"
KBUILD = """\
# {mark}: what Debian's configuration leaves out; include/generated/autoconf.h does not know it, so -D
export {option} := {value}
subdir-ccflags-y += -D{define}=1 -g0{includes}
{objects}
"""
# BTF needs pahole and the kernel's vmlinux; a module without it loads all the same
MAKEFILE = """\
# {mark}: `make [KVER=release]` builds the modules for a kernel and checks them, as DKMS does
KVER ?= $(shell uname -r)
KDIR ?= /lib/modules/$(KVER)/build
MODDIR ?= /lib/modules/$(KVER)

all: modules
	sh $(CURDIR)/check $(KDIR) $(MODDIR)

modules:
	$(MAKE) -C $(KDIR) M=$(CURDIR) CONFIG_DEBUG_INFO_BTF_MODULES= modules

clean:
	$(MAKE) -C $(KDIR) M=$(CURDIR) clean

.PHONY: all modules clean
"""
DKMS = """\
# {mark}: source of Debian's {source} {version}
PACKAGE_NAME="{package}"
PACKAGE_VERSION="{version}"
MAKE[0]="make KVER=$kernelver KDIR=$kernel_source_dir all"
CLEAN="make KVER=$kernelver KDIR=$kernel_source_dir clean"
AUTOINSTALL="yes"
# another series of kernels has another driver: there this one is not built
BUILD_EXCLUSIVE_KERNEL="^{series}\\."
"""


def name_of(kind: Kind) -> str:
    """Return what DKMS calls a driver's package."""
    return f"ktls-offload-{kind.name}"


def write(target: Target, kind: Kind, tree: Path) -> None:
    """Write our files next to Debian's."""
    for name, text in texts(target, kind).items():
        (tree / name).write_text(text)


def texts(target: Target, kind: Kind) -> dict[str, str]:
    """Our files: name -> text."""
    folders = dict.fromkeys(kind.modules.values())
    fields = {
        "mark": MARK,
        "option": kind.option,
        "value": kind.value,
        "series": target.series.replace(".", "\\."),
        "version": target.version,
        "source": target.source,
        "package": name_of(kind),
        "define": kind.option + ("_MODULE" if kind.value == "m" else ""),
        "includes": "".join(f" -I$(src)/{folder}" for folder in kind.include),
        "objects": "\n".join(f"obj-m += {folder}/" for folder in folders),
    }
    rows = [
        f'BUILT_MODULE_NAME[{i}]="{module}"\nBUILT_MODULE_LOCATION[{i}]="{folder}"\n'
        f'DEST_MODULE_LOCATION[{i}]="/updates/dkms"\n'
        for i, (module, folder) in enumerate(kind.modules.items())
    ]
    return {
        "Kbuild": KBUILD.format(**fields),
        "Makefile": MAKEFILE.format(**fields),
        "dkms.conf": DKMS.format(**fields) + "".join(rows),
        "check": _check(kind),
    }


def _check(kind: Kind) -> str:
    """check.sh with what it needs to know of the driver."""
    known = {
        "option": kind.option,
        "modules": " ".join(kind.modules),
        "public": kind.public,
        "witness": " ".join(f"{module}:{symbol}" for module, symbol in kind.witness.items()),
    }
    text = (PACKAGE / "driver/check.sh").read_text("utf-8")
    for key, value in known.items():
        text = text.replace(f"@{key}@", value)
    return text


def pack(target: Target, kind: Kind, tree: Path) -> None:
    """Put the tree, in which nothing was built yet, into an archive in it, as DKMS wants it in /usr/src."""
    top = f"{name_of(kind)}-{target.version}"
    files = sorted(p for p in tree.rglob("*") if p.is_file())
    with tarfile.open(tree / f"{top}.tar.gz", "w:gz") as archive:
        for file in files:
            archive.add(file, f"{top}/{file.relative_to(tree)}", recursive=False, filter=_plain)


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Owned by root, whoever built it."""
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    return info
