"""`ktls-offload driver build` against a real kernel's headers, where the lab has them."""

from __future__ import annotations

import os
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from offload.debian.cache import cache_root
from offload.driver import build, target
from tests.unit.driver.fake_driver import FAKE

REAL = replace(FAKE, needs={"CONFIG_TLS_DEVICE": "y"}, take=("drivers/net/fake",), include=(), public="")
CODE = """\
#include <linux/module.h>
#if IS_ENABLED(CONFIG_FAKE_TLS)
int fake_ktls(void);
int fake_ktls(void) { return 1; }
EXPORT_SYMBOL(fake_ktls);
#endif
MODULE_DESCRIPTION("Only to be built");
MODULE_LICENSE("GPL");
"""


def source(version: str, series: str, folder: Path) -> Path:
    """An archive as linux-source-X.Y has it, with one small driver that needs the option to be built."""
    top = folder / f"linux-source-{series}"
    (top / "drivers/net/fake").mkdir(parents=True)
    (top / "COPYING").write_text("GPL-2.0\n")
    (top / "drivers/net/fake/fake.c").write_text(CODE)
    (top / "drivers/net/fake/Makefile").write_text("obj-$(CONFIG_FAKE_TLS:y=m) += fake.o\n")
    numbers = zip(("VERSION", "PATCHLEVEL", "SUBLEVEL"), version.split("-")[0].split("."), strict=True)
    (top / "Makefile").write_text("# SPDX\n" + "".join(f"{k} = {v}\n" for k, v in numbers))
    with tarfile.open(folder / "source.tar.xz", "w:xz") as packed:
        packed.add(top, top.name)
    return folder / "source.tar.xz"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the lab's kernels are amd64")
@pytest.mark.parametrize("series", ["6.1", "7.2"])
def test_kbuild_sees_the_option(series: str, tmp_path: Path) -> None:
    """The option decides what kbuild compiles and what the code sees, and the module fits."""
    if not (cache_root() / "kernels" / f"{series}.json").is_file():
        pytest.skip(f"the lab has no kernel {series}: ktls-offload lab fetch {series}")
    kernel, said = target.find(series), list[str]()
    archive = source(kernel.version, kernel.series, tmp_path)
    tree = build.build(kernel, REAL, tmp_path / "out", archive, 1, said.append)
    text = "\n".join(said)
    assert [p.name for p in build.built_modules(REAL, tree)] == ["fake.ko"]
    assert f"ok   fake: vermagic {kernel.release}" in text and "no module of the kernel" not in text
    assert "ok   fake has fake_ktls: built with CONFIG_FAKE_TLS" in text
