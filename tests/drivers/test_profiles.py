"""The profiles are held against the drivers' own tables, in Debian's source of each kernel of the lab."""

from __future__ import annotations

from pathlib import Path

import pytest

from offload.card.cards import kernels
from offload.card.profile import Profile, load_all
from offload.card.profile_ids import undescribed
from offload.debian.kernels import SERIES, cached
from tests.lib.catalogue.driver_tables import DATA_PATHS, DRIVERS, drift, read, unlisted

REAL = [profile for profile in load_all() if not profile.plays]


@pytest.mark.parametrize("series", SERIES)
@pytest.mark.parametrize("profile", REAL, ids=lambda p: p.id)
def test_profile_says_what_the_driver_says(profile: Profile, tree: Path) -> None:
    """Ids, counters, ciphers, directions, defaults and options of a profile are those of its driver."""
    wrong = drift(profile, read(tree, DRIVERS[profile.driver]))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("series", SERIES)
@pytest.mark.parametrize("driver", DRIVERS)
def test_every_card_of_a_driver_is_known(driver: str, tree: Path) -> None:
    """Each id of a driver's table has a profile or is in the list of cards without one."""
    new = unlisted(driver, read(tree, DRIVERS[driver]), REAL, undescribed())
    assert not new, f"{driver} knows {', '.join(new)}: a profile, or a row of offload/card/profile_ids.yaml"


@pytest.mark.parametrize("series", SERIES)
def test_the_kernel_offloads_one_version_of_tls(tree: Path) -> None:
    """The kernel hands TLS 1.2 to a card and nothing else: that is why no profile promises 1.3."""
    text = (tree / "net/tls/tls_device.c").read_text()
    assert text.count("!= TLS_1_2_VERSION") == 2 and "TLS_1_3_VERSION" not in text


@pytest.mark.parametrize("series", SERIES)
def test_nfp_encrypts_on_one_data_path_only(tree: Path) -> None:
    """Of nfp's two data paths NFD3 hands packets to its TLS and NFDK does not: nfp-nfdk-plaintext says so."""
    calls = {path: "nfp_net_tls_tx(" in (tree / file).read_text() for path, file in DATA_PATHS.items()}
    assert calls == {"nfd3": True, "nfdk": False}, "the note nfp-nfdk-plaintext is out of date"


@pytest.mark.parametrize("series", SERIES)
def test_debian_compiles_in_what_the_page_says(series: str) -> None:
    """A row of Debian in offload/card/cards.yaml is what the configuration of the lab's kernel says."""
    kernel = cached(series)
    assert kernel, "ktls-offload lab fetch"
    row = next(one for one in kernels() if one.kernel.startswith(f"{series}."))
    lines = kernel.config.read_text().splitlines()
    set_to = dict(line.split("=", 1) for line in lines if line.startswith("CONFIG_"))
    assert row.sets == {name: set_to.get(name, "n") for name in row.sets}
