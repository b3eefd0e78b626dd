"""Prints layout.h: where the fields that the sources name are, from the kernel's mlx5_ifc.h (make layout)."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMED = re.compile(r"\b([AFI])\((\w+), (\w+)\)")  # A: an array at the end, which has no size; I: as F
HEAD = """\
/* SPDX-License-Identifier: Apache-2.0 */
/* Where the fields of the card's messages are, first bit and width: from mlx5_ifc.h of Linux {release}. */
/* Made by `make layout`; not to be edited. */
#ifndef CX6_LAYOUT_H
#define CX6_LAYOUT_H

"""
# what the header takes from the kernel; every u8 of its structures stands for one bit
PROGRAM = """\
#include <stdint.h>
#include <stddef.h>
#include <stdio.h>
typedef uint8_t u8; typedef uint16_t u16; typedef uint32_t u32; typedef uint64_t u64;
typedef uint16_t __be16; typedef uint32_t __be32; typedef uint64_t __be64;
#define BIT(n) (1UL << (n))
#define BIT_ULL(n) (1ULL << (n))
#define DECLARE_FLEX_ARRAY(type, name) type name[0]
#include "{header}"
#define SHOW_F(s, f) printf("#define %s__%s %zu, %zu\\n", #s, #f, \\
    offsetof(struct mlx5_ifc_##s##_bits, f), sizeof(((struct mlx5_ifc_##s##_bits *)0)->f));
#define SHOW_A(s, f) printf("#define %s__%s %zu, 0\\n", #s, #f, offsetof(struct mlx5_ifc_##s##_bits, f));
int main(void) {{ {body} return 0; }}
"""


def named(folder: Path = HERE) -> list[tuple[str, str, str]]:
    """Every field that the sources name."""
    texts = (path.read_text() for path in folder.rglob("*.c"))
    return sorted(
        {
            (m[2], m[3], "A" if m[1] == "A" else "F")
            for text in texts
            for m in NAMED.finditer(text)
            if m[2] != "type"
        }
    )


def lines(header: Path) -> str:
    """A line for each field, as the header has them."""
    body = "\n".join(f"SHOW_{kind}({struct}, {field})" for struct, field, kind in named())
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "show.c"), Path(folder, "show")
        source.write_text(PROGRAM.format(header=header.resolve(), body=body))
        argv = ["gcc", "-w", "-I", str(header.resolve().parent), "-o", str(program), str(source)]
        subprocess.run(argv, check=True)
        return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.stdout.write(HEAD.format(release=sys.argv[2]) + lines(Path(sys.argv[1])) + "\n#endif\n")
