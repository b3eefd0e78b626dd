"""`ktls-offload cards` and the page that is made from the profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from offload.card.cards import Kernel, as_text, kernels, real
from offload.card.cards_page import page
from offload.card.profile import find


def test_page_is_of_today() -> None:
    """docs/use/cards.md is what the data gives: the command in the page makes it anew."""
    path = Path(__file__).parents[3] / "docs/use/cards.md"
    assert path.read_text() == page(), "run the command at the end of docs/use/cards.md"


def test_every_card_is_reported_and_the_simulated_one_is_none() -> None:
    """Each real profile has its lines; cards of which nothing is known are named after them."""
    said = as_text()
    assert len(real()) >= 8 and all(f"({profile.id}): driver" in said for profile in real())
    assert "nicsim" not in said and "without a profile: the driver knows its id" in said
    assert "\n  NVIDIA BlueField-4 (15b3:a2df)\n" in said
    assert "ConnectX-5" not in said, "older cards are on the page only"


@pytest.mark.parametrize(
    ("sets", "answer", "missing"),
    [
        ({"CONFIG_TLS": "m", "CONFIG_TLS_DEVICE": "y", "CONFIG_NFP": "y"}, "yes", ()),
        ({"CONFIG_TLS": "m", "CONFIG_TLS_DEVICE": "n", "CONFIG_NFP": "m"}, "no", ("CONFIG_TLS_DEVICE",)),
        ({"CONFIG_TLS": "m", "CONFIG_TLS_DEVICE": "y"}, "unknown", None),
    ],
)
def test_what_a_kernel_lacks(sets: dict[str, str], answer: str, missing: tuple[str, ...] | None) -> None:
    """An option that is off is named; one that nobody looked at makes the answer unknown."""
    kernel = Kernel("x", "1", "y", sets)
    assert (kernel.answer(find("agilio-nfp")), kernel.lacks(find("agilio-nfp"))) == (answer, missing)


def test_debian_leaves_out_mlx5_and_has_nfp() -> None:
    """What Debian's configuration says of two drivers, on each of its kernels."""
    debian = [k for k in kernels() if k.name.startswith("Debian")]
    assert len(debian) == 3
    for kernel in debian:
        assert kernel.lacks(find("connectx-7")) == ("CONFIG_MLX5_EN_TLS",)
        assert kernel.answer(find("agilio-nfp")) == "yes"
