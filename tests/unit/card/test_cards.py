"""`ktls-offload cards` and the page that is made from the profiles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from offload.card.cards import Kernel, as_json, as_text, kernels, real
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


def test_what_is_said_of_a_card() -> None:
    """One line for each question, in words: "no" where it offloads nothing."""
    t6 = as_text().partition("\n\n")[0].splitlines()
    rows = [(line[2:14].strip(), line[15:]) for line in t6[1:]]
    assert t6[0] == "Chelsio T6 (chelsio-t6): driver cxgb4"
    assert rows == [
        ("transmit", "TLS 1.2 with aes-gcm-128"),
        ("receive", "no"),
        ("on at start", "nothing"),
        ("compiled in", "Ubuntu 24.04, Ubuntu 24.04 HWE, RHEL 9, Fedora 40"),
        ("left out", "Debian 12, Debian 13, Debian 13 backports"),
        ("card", find("chelsio-t6").sku.need),
        ("firmware", find("chelsio-t6").firmware.need),
    ]


def test_programs_read_the_same_of_a_card() -> None:
    """One line of JSON; keys are only ever added to it."""
    said = as_json()
    document = json.loads(said)
    assert said.endswith("}\n") and said.count("\n") == 1 and document["schema"] == 1
    t6 = {card["id"]: card for card in document["cards"]}["chelsio-t6"]
    assert (t6["name"], t6["driver"]) == ("Chelsio T6", "cxgb4")
    assert {"id": "1425:6401-6409", "name": "T6"} in t6["pci"]
    assert t6["promises"] == [{"direction": "tx", "version": "1.2", "cipher": "aes-gcm-128"}]
    assert {k["name"]: k["compiled"] for k in t6["kernels"]}["Debian 12"] == "no"
    assert document["kernels"][0].keys() == {"name", "kernel", "source"}
    assert document["undescribed"] and document["undescribed"][0].keys() >= {"name"}


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
