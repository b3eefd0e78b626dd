"""The peer's card is a good one where the DUT's is patched: a module of its own, built from our source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from offload.host.base import Completed
from offload.suite.bench.cards.module import PEER
from offload.suite.bench.vm import recipe
from offload.suite.bench.vm.topology import MODULE, PEER_MODULE, load_module

KERNEL = type("K", (), {"release": "6.1.0", "version": "1", "modules": Path("/x")})()


class Guest:
    """A guest that has these files, and notes what is run in it."""

    def __init__(self, *files: str) -> None:
        self.files, self.ran = files, list[list[str]]()

    def run(self, argv: list[str], **_: Any) -> Completed:
        if argv[:3] == ["/busybox", "test", "-e"]:
            return Completed(tuple(argv), 0 if argv[3] in self.files else 1, b"", b"", 0.0)
        self.ran.append(argv)
        return Completed(tuple(argv), 0, b"", b"", 0.0)


@pytest.mark.parametrize(
    ("files", "loaded"),
    [
        ((MODULE,), [["insmod", MODULE, "personality=a,b"]]),
        (
            (MODULE, PEER_MODULE),
            [
                ["insmod", MODULE, "personality=a,b", "adapter=0"],
                ["insmod", PEER_MODULE, "personality=a,b", "adapter=1"],
            ],
        ),
    ],
)
def test_the_peer_has_a_module_of_its_own(files: tuple[str, ...], loaded: list[list[str]]) -> None:
    """One module is both cards; where there are two, each is one card."""
    guest = Guest(*files)
    load_module(guest, "a,b")  # type: ignore[arg-type]
    assert guest.ran == loaded


def test_only_the_card_of_the_dut_is_patched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A lab with a patched source builds the peer's module from ours, and is another lab for it."""
    built: list[tuple[Path | None, str]] = []

    def build(kernel: object, say: object, source: Path | None = None, name: str = "nicsim") -> Path:
        built.append((source, name))
        made = tmp_path / f"{name}.ko"
        made.write_text(str(source))
        return made

    qemu = type("Q", (), {"program": "q", "version": "8.2", "options": ()})()
    monkeypatch.setattr(recipe, "build_nicsim", build)
    monkeypatch.setattr(recipe, "find", lambda say: qemu)
    monkeypatch.setattr(recipe, "accelerator", lambda *_: ("tcg", "because"))
    patched = recipe.choose(KERNEL, "nicsim", "connectx-6-dx", None, tmp_path, print)
    assert built == [(tmp_path, "nicsim"), (None, PEER)] and patched.peer == tmp_path / f"{PEER}.ko"
    good = recipe.choose(KERNEL, "nicsim", "connectx-6-dx", None, None, print)
    assert built[2:] == [(None, "nicsim")] and good.peer is None
    assert "the peer's card" in patched.made() and "the peer's card" not in good.made()
